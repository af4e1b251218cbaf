"""The README's code runs from top to bottom, on made-up rows, and comes to what it says."""

from pathlib import Path

import numpy as np
import pages
import pandas as pd
import pytest
from curator.village import configured, served

README = pages.ROOT / "README.md"


def visits() -> pd.DataFrame:
    generator = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "person": generator.integers(0, 4000, 12_000),
            "age": generator.integers(20, 80, 12_000),
            "ward": generator.choice(["north", "south"], 12_000),
            "shop": generator.choice(["grocer", "baker", "smith"], 12_000),
        }
    )


def test_every_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    generator = np.random.default_rng(2)
    people = generator.uniform(17, 90, (2000, 2)) * [1, 1000]
    network = torch.nn.Linear(2, 2)
    names = {
        "means": np.array([0.25, 0.5]),
        "votes": [30, 20, 10],
        "ages": generator.integers(0, 100, 500),
        "answer": 1,
        "visits": visits(),
        "rows": people,
        "labels": np.where(people[:, 1] > 50_000, "yes", "no"),
        "others": people[:5],
        "network": network,
        "optimizer": torch.optim.SGD(network.parameters(), lr=0.5),
        "losses": lambda model, x, y: torch.nn.functional.cross_entropy(model(x), y, reduction="none"),
        "images": torch.randn(60_000, 2),
    }
    blocks = pages.blocks(README.read_text())
    assert len(blocks) == 8
    with served(configured(tmp_path, visits().assign(vote="yes"))) as here:
        for line, code in blocks:
            if "hb.connect(" in code:
                names["token"] = here.analyst
                code = code.replace("http://127.0.0.1:8800", here.address).replace('"visits"', '"village"')
                code = code.replace("FROM visits", "FROM village")
            if "sgd" in code:
                names["labels"] = torch.randint(0, 2, (60_000,))
                code = code.replace("epochs=30", "epochs=1")
            pages.run_block(README, line, code, names)
            check(code, names)


def check(code: str, names: dict[str, object]) -> None:
    """What the blocks show without saying it in numbers."""
    if "hb.protect(" in code:
        answer, table = names["answer"], names["table"]
        assert "north" in repr(answer)
        assert "epsilon 0.5, add-remove one person" in repr(answer)
        assert abs(answer["age"].astype(float) - 49.5).max() < 5
        assert abs(answer["n"].astype(float) - 6000).max() < 1000
        shops = table.group_by("shop").agg(n=names["hb"].count()).release(epsilon=0.5, delta=1e-6)
        assert sorted(shops["shop"]) == ["baker", "grocer", "smith"]
        assert "rank within" in repr(table.explain("SELECT median(age) FROM t", epsilon=0.1))
        count = table.count(error=30)
        assert count.errors()["count"][0] <= 30.5
        assert count.receipt.epsilon < 1
        assert list(answer.to_pandas().columns) == ["ward", "n", "age"]
        assert answer.intervals(0.95)["n"][0][0] < answer["n"][0]
    if "replay(" in code:
        found = names["replay"](names["mean"], [0.2, 0.9, 0.5], [0.2, 0.9])
        assert "more than what was released" in str(found)
    if "curve.png" in code:
        assert Path("curve.png").stat().st_size > 1000
