"""The README's example of a table says what the README says it says."""

import numpy as np
import pandas as pd

import hubbub as hb


def test_the_readme() -> None:
    generator = np.random.default_rng(1)
    visits = pd.DataFrame(
        {
            "person": generator.integers(0, 4000, 12_000),
            "age": generator.integers(20, 80, 12_000),
            "ward": generator.choice(["north", "south"], 12_000),
            "shop": generator.choice(["grocer", "baker", "smith"], 12_000),
        }
    )
    table = hb.protect(
        visits,
        unit="person",
        columns={"age": (0, 120), "ward": ["north", "south"], "shop": "key"},
        max_groups=2,
        max_rows=5,
        budget=hb.Budget(epsilon=10.0, delta=1e-5),
    )
    answer = table.sql("SELECT ward, count(*) AS n, avg(age) AS age FROM t GROUP BY ward", epsilon=0.5)
    assert "north" in repr(answer)
    assert "epsilon 0.5, add-remove one person" in repr(answer)
    assert abs(answer["age"].astype(float) - 49.5).max() < 5
    assert abs(answer["n"].astype(float) - 6000).max() < 1000
    shops = table.group_by("shop").agg(n=hb.count()).release(epsilon=0.5, delta=1e-6)
    assert sorted(shops["shop"]) == ["baker", "grocer", "smith"]
    assert "rank within" in repr(table.explain("SELECT median(age) FROM t", epsilon=0.1))
    count = table.count(error=30)
    assert count.errors()["count"][0] <= 30.5
    assert count.receipt.epsilon < 1
    assert list(answer.to_pandas().columns) == ["ward", "n", "age"]
    assert answer.intervals(0.95)["n"][0][0] < answer["n"][0]
