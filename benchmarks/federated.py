"""Federated learning under Flower's simulation: where the noise is added, how updates are compressed, at one epsilon.

100 clients, each with 600 pictures of about two classes (two shards of the rows sorted by label); features are the 36
lowest frequencies of a picture's cosine transform, which look at no data; the model is logistic regression. The unit of
privacy is a client with all its pictures, replaced by any others. Accuracy is that of the mean of the models of the
second half of all rounds, on the test pictures, which are public here. DP-SGD is hubbub.learning.sgd with one record a
client: its 600 pictures are the record's views, whose gradients are averaged before they are clipped.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("PYTHONPATH", os.pathsep.join(p for p in sys.path if p))

from cohorts import Floats, client_app
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvgM
from flwr.simulation import run_simulation
from flwr.supercore.task_identity import TaskIdentity
from report import write

from hubbub.learning.federated import (
    Central,
    CentralPlan,
    Compressing,
    Distributed,
    DistributedPlan,
    Local,
    LocalNoise,
    LocalPlan,
    Mask,
    Sharing,
    Signs,
    Top,
)

ROOT = Path(__file__).resolve().parent.parent
CLIENTS, CLASSES, FREQUENCIES, ROUNDS = 100, 10, 6, 20
EPSILON, DELTA = 8.0, 1e-5
LENGTH = (FREQUENCIES**2 + 1) * CLASSES
SGD = {"steps": 1, "rate": 1.0}, 0.1, 60.0
AVERAGING = {"steps": 5, "rate": 2.0}, 1.0, 3.0
"""What clients do, the clip norm, and the server's rate: chosen once on MNIST, without looking at these runs."""


def pictures(folder: Path, part: str) -> tuple[Floats, Any]:
    """Features, of length about 1 with a constant, and labels."""

    def read(kind: str, header: int) -> Any:
        with gzip.open(next(iter(folder.glob(f"{part}-{kind}*.gz")))) as file:
            return np.frombuffer(file.read(), np.uint8, offset=header)

    rows, labels = read("images", 16).reshape(-1, 28, 28) / 255.0, read("labels", 8).astype(np.int64)
    k = np.arange(28)
    waves = np.array([np.cos(np.pi * (k + 0.5) * f / 28) for f in range(FREQUENCIES)]) / np.sqrt(14)
    waves[0] /= np.sqrt(2)
    found = np.einsum("fi,nij,gj->nfg", waves, rows, waves).reshape(len(rows), -1)
    found /= np.maximum(1e-9, np.linalg.norm(found, axis=1, keepdims=True))
    return np.c_[found, np.full(len(found), 0.3)], labels


def split(labels: Any) -> list[Any]:
    """Each client's rows: two shards of 300 of one label or two each."""
    order = np.argsort(labels, kind="stable").reshape(2 * CLIENTS, -1)
    return list(order[np.random.default_rng(0).permutation(2 * CLIENTS)].reshape(CLIENTS, -1))


class Watched:
    """Accuracy after every round, of the mean of the models of the second half of the rounds so far."""

    def __init__(self, rows: Floats, labels: Any, strategy: Any) -> None:
        self.rows, self.labels, self.strategy = rows, labels, strategy
        self.models: list[Floats] = []
        self.found: list[dict[str, Any]] = []

    def __call__(self, round_: int, arrays: ArrayRecord) -> MetricRecord | None:
        self.models.append(arrays["w"].numpy().astype(np.float64))
        if round_:
            mean = np.mean(self.models[round_ // 2 + 1 :], axis=0)
            right = float((np.argmax(self.rows @ mean, 1) == self.labels).mean())
            received = getattr(self.strategy, "received", None)
            epsilon = self.strategy.epsilon() if received is not None else None
            self.found.append({"round": round_, "accuracy": right, "bytes": received, "epsilon": epsilon})
        return None


class Here:
    """A grid in this process, without Ray: the same apps, mods, messages and strategies, sooner."""

    def __init__(self, app: ClientApp) -> None:
        TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1
        self.app = app
        self.contexts = {n: Context(1, n, {"partition-id": n - 1}, RecordDict(), {}) for n in range(1, CLIENTS + 1)}

    def get_node_ids(self) -> list[int]:
        return list(self.contexts)

    def send_and_receive(self, messages: Iterable[Message], **_: Any) -> list[Message]:
        found = []
        for number, message in enumerate(messages):
            message.metadata.__dict__["_message_id"] = str(number)
            found.append(self.app(message, self.contexts[message.metadata.dst_node_id]))
        return found


def simulated(
    strategy: Any, told: dict[str, Any], mods: list[Any], folder: Path, test: Any, here: bool
) -> list[dict[str, Any]]:
    """One training under Flower's simulation, on Ray, or on a grid in this process."""
    watched = Watched(*test, strategy)
    server = ServerApp()

    @server.main()
    def main(grid: Grid, _: Any) -> None:
        arrays = ArrayRecord({"w": Array(np.zeros((FREQUENCIES**2 + 1, CLASSES), np.float32))})
        rounds = {"num_rounds": ROUNDS}
        strategy.start(grid, arrays, train_config=ConfigRecord(told), evaluate_fn=watched, timeout=600, **rounds)

    if here:
        arrays = ArrayRecord({"w": Array(np.zeros((FREQUENCIES**2 + 1, CLASSES), np.float32))})
        grid: Any = Here(client_app(folder, mods))
        strategy.start(grid, arrays, train_config=ConfigRecord(told), evaluate_fn=watched, num_rounds=ROUNDS)
        return watched.found
    run_simulation(
        server_app=server,
        client_app=client_app(folder, mods),
        num_supernodes=CLIENTS,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": 2}},
    )
    return watched.found


def modes() -> dict[str, Callable[[], tuple[Any, dict[str, Any], list[Any], Any]]]:
    """Each way: the strategy, what clients are told, their mods, and the loss."""
    both: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "rounds": ROUNDS}

    def central(kind: Any, rate: float = 1.0, compression: Any = None) -> Any:
        told, clip, server = kind
        plan = CentralPlan.calibrated(**both, rate=rate, cohort=rate * CLIENTS, clip=clip, neighbours="replace")
        mods = [Compressing(compression)] if compression else []
        strategy = Central(plan, compression=compression, rate=server, connected=CLIENTS)
        return strategy, told, mods, plan.loss

    def local(**shape: Any) -> Any:
        told, clip, server = AVERAGING
        plan = LocalPlan.calibrated(**both, clip=clip)
        return Local(plan, rate=server, connected=CLIENTS, **shape), told, [LocalNoise(plan, **shape)], plan.loss

    def distributed(bits: int, length: int = LENGTH, sums: str = "trusted", **shape: Any) -> Any:
        told, clip, server = AVERAGING
        plan = DistributedPlan.calibrated(
            **both, honest=CLIENTS, clients=CLIENTS, length=length, bits=bits, clip=clip, neighbours="replace"
        )
        strategy = Distributed(plan, rate=server, sums=sums, **shape)  # type: ignore[arg-type]
        return strategy, told, [Sharing(plan, sums=sums, **shape)], plan.loss  # type: ignore[arg-type]

    def plain() -> Any:
        everybody = {"fraction_evaluate": 0.0, "min_train_nodes": CLIENTS, "min_available_nodes": CLIENTS}
        strategy = FedAvgM(**everybody, server_learning_rate=AVERAGING[2])  # type: ignore[arg-type]
        return strategy, AVERAGING[0], [], None

    return {
        "no noise: Flower's FedAvgM": plain,
        "central, FedSGD": lambda: central(SGD),
        "central, FedAvg": lambda: central(AVERAGING),
        "central, FedAvg, half of the clients a round": lambda: central(AVERAGING, 0.5),
        "central, signs": lambda: central(AVERAGING, compression=Signs()),
        "central, top 10 %": lambda: central(AVERAGING, compression=Top(0.1)),
        "central, a random quarter": lambda: central(AVERAGING, compression=Mask(0.25)),
        "local": local,
        "local, a random quarter": lambda: local(mask=0.25),
        "local, signs of the noisy update": lambda: local(after=Signs()),
        "local, top 10 % of the noisy update": lambda: local(after=Top(0.1)),
        "distributed, 16 bits": lambda: distributed(16),
        "distributed, 12 bits": lambda: distributed(12),
        "distributed, 16 bits, masked sums": lambda: distributed(16, sums="masked"),
        "distributed, 16 bits, a random half": lambda: distributed(16, (LENGTH + 1) // 2, mask=0.5),
        "distributed, 12 bits, signs": lambda: distributed(12, signs=True),
    }


def dpsgd(clients: list[tuple[Floats, Any]], test: Any) -> dict[str, Any]:
    """DP-SGD whose record is a client: the same steps, clip norm, rate and averaging as "central, FedSGD"."""
    import torch
    from torch.nn.functional import cross_entropy

    from hubbub.learning.sgd import Plan, Run

    told, clip, server = SGD
    views = len(clients[0][1])
    plan = Plan.calibrated(
        epsilon=EPSILON, delta=DELTA, rows=CLIENTS, batch=CLIENTS, steps=ROUNDS, clip=clip, neighbours="replace"
    )
    model = torch.nn.Linear(FREQUENCIES**2 + 1, CLASSES, bias=False)
    torch.nn.init.zeros_(model.weight)
    data = tuple(torch.from_numpy(np.stack([c[k] for c in clients])) for k in (0, 1))
    rows = (data[0].float(), data[1])
    optimizer = torch.optim.SGD(model.parameters(), lr=told["rate"] * server)
    run = Run(model, optimizer, plan, lambda m, x, y: cross_entropy(m(x), y, reduction="none"), views=views)
    models = []
    for batch in run.batches(rows):
        run.step(batch)
        models.append(model.weight.detach().double().numpy().T.copy())
    mean = np.mean(models[ROUNDS // 2 :], axis=0)
    right = float((np.argmax(test[0] @ mean, 1) == test[1]).mean())
    return {"accuracy": right, "interval": plan.loss.epsilon_interval(DELTA)}


def table(rows: list[dict[str, Any]]) -> str:
    """One line a mode: mean and standard deviation of the accuracies."""
    lines = [
        f"| {CLIENTS} clients, {ROUNDS} rounds | accuracy | ± | epsilon at delta {DELTA:g} | bytes a client a round |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        low, high = row["interval"]
        price = "-" if high is None else f"{low:.4g} to {high:.4g}"
        size = "-" if row["bytes"] is None else f"{row['bytes']:.0f}"
        lines.append(f"| {row['mode']} | {row['accuracy']:.1%} | {row['spread']:.1%} | {price} | {size} |")
    return "\n".join(lines)


def summed_up(mode: str, runs: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    found = [run["accuracy"] for run in runs]
    spread = statistics.stdev(found) if len(found) > 1 else 0.0
    last = runs[0]
    return {
        "mode": mode, "clients": CLIENTS, "rounds": ROUNDS, "accuracy": statistics.mean(found), "spread": spread,
        "runs": found, "interval": last["interval"], "bytes": last.get("bytes"), "curve": last.get("curve"),
        "seconds": seconds,
    }  # fmt: skip


def main() -> None:
    global EPSILON
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "mnist")
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--here", action="store_true", help="on a grid in this process, for many repeats")
    parser.add_argument("--modes", nargs="*", help="words that occur in the modes wanted")
    options = parser.parse_args()
    EPSILON = options.epsilon
    logging.getLogger("flwr").setLevel(logging.ERROR)
    train, test = pictures(options.data, "train"), pictures(options.data, "t10k")
    clients = [(train[0][own], train[1][own]) for own in split(train[1])]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        for k, (own, labels) in enumerate(clients):
            np.savez(Path(place) / f"{k}.npz", rows=own, labels=labels)
        if not options.modes or "dp-sgd" in options.modes:
            began = time.perf_counter()
            runs = [dpsgd(clients, test) for _ in range(4 * options.repeats)]
            rows.append(summed_up("DP-SGD, record = client", runs, time.perf_counter() - began))
        for mode, make in modes().items():
            if options.modes and not any(word in mode for word in options.modes):
                continue
            began, runs = time.perf_counter(), []
            for _ in range(1 if mode.startswith("no noise") else options.repeats):
                strategy, told, mods, loss = make()
                curve = simulated(strategy, told, mods, Path(place), test, options.here)
                sent = curve[-1]["bytes"]
                asked = sum(getattr(strategy, "asked", {}).values())
                runs.append({
                    "accuracy": curve[-1]["accuracy"], "curve": curve, "bytes": sent and sent / asked,
                    "interval": loss.epsilon_interval(DELTA) if loss else (None, None),
                })  # fmt: skip
            rows.append(summed_up(mode, runs, time.perf_counter() - began))
            brief = {k: rows[-1][k] for k in ("mode", "runs", "bytes", "seconds")}
            print(json.dumps(brief), file=sys.stderr, flush=True)
    name = f"federated-{options.data.name}" + ("-here" if options.here else "")
    write(name, rows, table(rows))


if __name__ == "__main__":
    main()
