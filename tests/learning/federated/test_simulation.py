"""Flower's own simulation, on Ray: the three kinds of noise plug into a plain app."""

from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation
from learning.federated.simulating import QUIET, workers

from hubbub.learning.federated import (
    Central,
    CentralPlan,
    Compressing,
    Distributed,
    DistributedPlan,
    Local,
    LocalNoise,
    LocalPlan,
    Sharing,
    Signs,
)

NODES = 4
pytestmark = QUIET
alone = pytest.fixture(autouse=True, scope="module")(workers)


def simulated(strategy: Any, mod: Any) -> np.ndarray:
    server, client, found = ServerApp(), ClientApp(mods=[mod] if mod else []), []

    @client.train()
    def train(message: Message, context: Any) -> Message:
        change = np.full(64, float("nan") if context.node_config["partition-id"] == 0 else 0.05)
        trained = message.content.array_records["arrays"]["w"].numpy() + change
        return Message(RecordDict({"arrays": ArrayRecord({"w": Array(trained)})}), reply_to=message)

    @server.main()
    def main(grid: Grid, _: Any) -> None:
        result = strategy.start(grid, ArrayRecord({"w": Array(np.zeros(64))}), timeout=120)
        found.append(result.arrays["w"].numpy())

    run_simulation(
        server_app=server,
        client_app=client,
        num_supernodes=NODES,
        backend_config={"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": 1}},
    )
    return found[0]


def test_central_noise_under_flowers_simulation() -> None:
    plan = CentralPlan(rounds=2, rate=1.0, noise=1e-4, cohort=4.0)
    assert np.allclose(simulated(Central(plan, connected=NODES), None), 2 * 0.05 * 3 / 4, atol=1e-3)


def test_distributed_noise_under_flowers_simulation() -> None:
    plan = DistributedPlan(rounds=2, noise=0.01, honest=3, clients=4, length=64, bits=20)
    assert np.allclose(simulated(Distributed(plan, connected=NODES), Sharing(plan)), 2 * 0.05 * 3 / 4, atol=0.05)


@pytest.mark.long
def test_local_noise_and_compression_under_flowers_simulation() -> None:
    plan = LocalPlan(rounds=2, noise=1e-4)
    assert np.allclose(simulated(Local(plan, connected=NODES), LocalNoise(plan)), 2 * 0.05 * 3 / 4, atol=1e-3)
    central = CentralPlan(rounds=2, rate=1.0, noise=1e-4, cohort=4.0)
    signs = Central(central, compression=Signs(), connected=NODES)
    assert np.allclose(simulated(signs, Compressing(Signs())), 2 * 0.125, atol=1e-3)  # NaN is "not negative", too
