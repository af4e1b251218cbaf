"""Every form of question replayed on neighbours: same path, same mechanisms, inputs no farther apart than is paid
for."""

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.audit import replay

FORMS: dict[str, Any] = {
    "count": "SELECT count(*) FROM t",
    "people": "SELECT count(DISTINCT person), count(DISTINCT shop) FROM t",
    "histogram": "SELECT ward, count(*) FROM t GROUP BY ward",
    "sum": "SELECT ward, sum(x * y), count(*) FROM t GROUP BY ward",
    "mean": "SELECT year(day) AS y, avg(x) FROM t WHERE y < 3 OR ward = 'a' GROUP BY y",
    "variance": "SELECT variance(x), stddev(y), count(*) FROM t",
    "quantiles": "SELECT ward, median(x), max(y) FROM t GROUP BY ward",
    "mode": "SELECT mode(ward) FROM t",
    "keys": "SELECT shop, count(*) AS n, avg(x) FROM t GROUP BY shop HAVING n > 1 ORDER BY n DESC LIMIT 3",
    "keys and choices": "SELECT shop, ward, median(x), mode(ward) FROM t GROUP BY shop, ward",
    "cases": "SELECT sum(CASE WHEN x > 1 THEN x / y ELSE coalesce(y, 1) END), count_if(x > y) FROM t",
    "months": "SELECT date_trunc('month', day) AS m, sum(round(x, 1)), count(*) FROM t GROUP BY m",
    "capped": lambda t: t.group_by("ward").agg(s=hb.sum("x", max_total=2), n=hb.count(), m=hb.mean("y")),
    "capped keys": lambda t: t.group_by("shop").agg(s=hb.sum("y", max_total=6), q=hb.quantile("y", 0.9)),
}
KINDS = {
    "person": pa.string(),
    "x": pa.float64(),
    "y": pa.int64(),
    "ward": pa.string(),
    "day": pa.date32(),
    "shop": pa.string(),
}
VALUES: dict[str, list[Any]] = {
    "x": [0.0, 2.5, -1e9, float("nan"), float("inf"), None],
    "y": [0, 1, 5, 10**12, None],
    "ward": ["a", "b", "nowhere", None],
    "day": [dt.date(2020, 1, 1), dt.date(2021, 5, 5), dt.date(1800, 1, 1), None],
    "shop": ["s", "t", "u", None, ""],
}
COLUMNS: dict[str, Any] = {
    "x": (-1.0, 4.0),
    "y": (0, 5),
    "ward": ["a", "b"],
    "day": (dt.date(2020, 1, 1), dt.date(2021, 12, 31)),
    "shop": "key",
}


def person(name: str, generator: random.Random) -> list[dict[str, Any]]:
    many = generator.randrange(6)
    return [{"person": name} | {c: generator.choice(v) for c, v in VALUES.items()} for _ in range(many)]


def pair(generator: random.Random, neighbours: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rest = [row for i in range(generator.randrange(30)) for row in person(f"p{i}", generator)]
    one, other = person("q", generator), person("q" if neighbours == "replace" else "z", generator)
    return (rest + one, rest + other) if neighbours == "replace" else (rest + one, rest)


def ask(form: str, neighbours: str, caps: dict[str, Any]) -> Any:
    def run(rows: list[dict[str, Any]]) -> Any:
        source = pa.table({c: pa.array([r[c] for r in rows], k) for c, k in KINDS.items()})
        budget = hb.Budget(epsilon=20, delta=0.5, neighbours=neighbours)
        table = hb.protect(source, unit="person", columns=COLUMNS, neighbours=neighbours, budget=budget, **caps)
        asked = FORMS[form]
        question = table.sql if isinstance(asked, str) else lambda _, **price: asked(table).release(**price)
        return question(asked, epsilon=2.0, delta=1e-2).to_pandas().to_dict("list")

    return run


def check(form: str, neighbours: str, pairs: int) -> None:
    generator = random.Random(f"{form} {neighbours}")
    for i in range(pairs):
        caps = [{}, {"max_groups": 2, "max_rows": 3}, {"max_groups": None, "max_rows": None, "max_total_rows": 3}][
            i % 3
        ]
        x, y = pair(generator, neighbours)
        found = replay(ask(form, neighbours, caps), x, y)
        assert found.holds, (form, caps, str(found))
        assert found.releases >= 1


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("form", FORMS)
def test_questions_hold_under_replay(form: str, neighbours: str) -> None:
    check(form, neighbours, 3)


@pytest.mark.long
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("form", FORMS)
def test_questions_hold_under_many_replays(form: str, neighbours: str) -> None:
    check(form, neighbours, 200)
