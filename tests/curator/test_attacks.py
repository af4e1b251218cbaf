"""The attacks of ``hubbub.attacks`` over HTTP: they succeed where answers are all but exact, and fail at a price."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from curator.village import Served, served
from numpy.typing import NDArray

import hubbub as hb
from hubbub.attacks import Questions, RandomSubsets, difference, made_up_bits, reconstruct
from hubbub.curator.guarding import Log

PEOPLE, ASKED = 32, 128
SURE = 40.0
"""At this price a count is off with probability e**-40: as good as exact, and the budget says so."""


@pytest.fixture(scope="module")
def secret() -> NDArray[np.int64]:
    return made_up_bits(PEOPLE, seed=11)


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory, secret: NDArray[np.int64]) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("attacked")
    pd.DataFrame({"person": range(PEOPLE), "id": range(PEOPLE), "vote": secret}).to_parquet(folder / "v.parquet")
    text = "[server]\nrequests_per_minute = 1000000\nanswer_every = 0.005\n"
    for name, limit in (("exact", 1e6), ("private", 1.0), ("shown", 1.0)):
        text += f'[datasets.{name}]\nsource = "v.parquet"\nunit = "person"\nepsilon = {limit}\n'
        text += f"[datasets.{name}.columns]\nid = [0, {PEOPLE - 1}]\nvote = {{ categories = [0, 1] }}\n"
    (folder / "curator.toml").write_text(text)
    with served(folder / "curator.toml", Log(io.StringIO())) as found:
        yield found


class Answerer:
    """Puts every question of an attack to a curator's table, as SQL over HTTP."""

    def __init__(self, table: hb.curator.RemoteTable, epsilon: float) -> None:
        self.table, self.epsilon = table, epsilon

    def count(self, ids: list[int]) -> float:
        condition = f"vote = 1 AND id IN ({', '.join(map(str, ids))})"
        sql = f"SELECT count(*) AS n FROM {self.table.name} WHERE {condition}"
        return float(self.table.sql(sql, epsilon=self.epsilon).value)

    def __call__(self, asked: Questions) -> list[float]:
        rows = asked.matrix().toarray()
        return [self.count(np.flatnonzero(row).tolist()) for row in rows]


@pytest.mark.parametrize(("name", "epsilon"), [("exact", SURE), ("private", 0.0075)])
def test_reconstruction(village: Served, secret: NDArray[np.int64], name: str, epsilon: float) -> None:
    client = hb.connect(village.address, village.analyst)
    asked = RandomSubsets(count=ASKED, people=PEOPLE, seed=5)
    found = reconstruct(asked, Answerer(client.table(name), epsilon))
    right = float(np.mean(found.bits == secret))
    if name == "exact":
        assert right == 1
        return
    # 32 fair coins are guessed better than this less than once in a hundred million times
    assert right < 0.5 + 2.8 / np.sqrt(PEOPLE)
    with pytest.raises(hb.BudgetExceeded):
        client.table(name).count(epsilon=0.1)


def test_differencing(village: Served, secret: NDArray[np.int64]) -> None:
    client = hb.connect(village.address, village.analyst)
    everybody, others = list(range(PEOPLE)), list(range(1, PEOPLE))
    exact = Answerer(client.table("exact"), SURE)
    learnt = difference(exact.count(everybody), exact.count(others))
    assert learnt.value == secret[0]
    private = Answerer(client.table("shown"), 0.5)
    noise = hb.Laplace(1, epsilon=0.5)
    doubt = difference(private.count(everybody), private.count(others), noise=noise.distribution(0))
    assert doubt.value is None
    assert max(doubt.posterior.values()) <= noise.loss.posterior(0.5)[1] + 1e-9
