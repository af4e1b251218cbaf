"""Attempts to make a table leak, fail on a row, or work without end; each was a defect once."""

import datetime as dt
import gzip
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from queries.tables import SURE, protected, visits

import hubbub as hb
from hubbub.domains import Number
from hubbub.errors import EngineFailure, HubbubError, ParameterError, QueryRefused
from hubbub.queries.measures import Measure
from hubbub.queries.plan import Noisy, make_plan
from hubbub.queries.release import _noised


def rows(frame: Any, columns: dict[str, Any], **options: Any) -> Any:
    """A table in which every row is a person, behind a large budget."""
    budget = hb.Budget(epsilon=1e9, delta=0.5, neighbours=options.get("neighbours", "add-remove"))
    return hb.protect(frame, columns=columns, budget=budget, **options)


@pytest.mark.parametrize("key", ["CASE WHEN age > 42 THEN 'x' END", "ward"])
def test_a_single_group_does_not_hold_every_row(key: str) -> None:
    """Replacing a row can take it out of the only group, so its count is not public."""
    frame = pd.DataFrame({"age": [10, 50, 60], "ward": ["a", "a", "b"]})
    table = rows(frame, {"age": (0, 120), "ward": ["a"]}, neighbours="replace")
    question = f"SELECT {key} AS k, count(*) AS n, median(age) FROM t GROUP BY k"
    assert all(n.mechanism is not None for n in table.explain(question, epsilon=1.0).plan.noisy)
    assert table.sensitivity(f"SELECT {key} AS k, count(*) AS n FROM t GROUP BY k") == 1
    assert {float(table.sql(question, epsilon=0.01)["n"][0]) for _ in range(20)} != {2.0}


def test_what_is_public_already_is_said_to_be() -> None:
    table = rows(pd.DataFrame({"age": [1]}), {"age": (0, 120)}, neighbours="replace")
    with pytest.raises(QueryRefused, match="public already"):
        table.sql("SELECT count(*) FROM t", epsilon=1.0)


@pytest.mark.parametrize("odd", [float("nan"), None])
def test_a_column_that_is_never_missing_is_not(odd: float | None) -> None:
    """Else a row with nan would move a sum of values near 100 by 100, at the noise for a range of 1."""
    columns = {"x": Number(100, 101, nullable=False)}
    sums = []
    for value in (100.0, odd):
        frame = pd.DataFrame({"x": pd.array([100.5, value], dtype="float64")})
        table = rows(frame, columns, neighbours="replace")
        sums.append(float(table.sum("x", epsilon=SURE)))
    assert abs(sums[0] - sums[1]) <= table.sensitivity("SELECT sum(x) FROM t") + 0.01


BAD_LINES = {
    "text": b"abc,a\n",
    "fraction": b"1.5,a\n",
    "too many": b"5,a,more\n",
    "too few": b"5\n",
    "encoding": b"5,\xff\xfe\n",
    "large": b"99999999999999999999999,a\n",
    "nan": b"nan,a\n",
    "line end": b"5,a\r\n",
    "long": b"5," + b"z" * 3_000_000 + b"\n",
    "quoted": b'5,"a\nb ""c"""\n',
}


@pytest.mark.parametrize("where", [2, 25_000])
@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES.keys())
def test_no_line_of_a_file_can_raise_or_change_a_type(tmp_path: Path, line: bytes, where: int) -> None:
    lines = [b"%d,a\n" % (i % 100) for i in range(30_000)]
    found = []
    for more in ([], [line]):
        path = tmp_path / f"{len(more)}.csv"
        path.write_bytes(b"age,ward\n" + b"".join([*lines[:where], *more, *lines[where:]]))
        table = rows(path, {"age": (0, 120), "ward": ["a", "b"]})
        explained = repr(table.explain("SELECT ward, count(*), sum(age) FROM t GROUP BY ward", epsilon=1.0))
        found.append((explained, table.count(epsilon=SURE).value, table.sum("age", epsilon=SURE).value))
    assert found[0][0] == found[1][0]
    assert abs(found[0][1] - found[1][1]) <= 1.001
    assert abs(found[0][2] - found[1][2]) <= 120.1


def test_files_keep_their_types(tmp_path: Path) -> None:
    path = tmp_path / "visits.tsv.gz"
    frame = visits()
    path.write_bytes(gzip.compress(frame.to_csv(index=False, sep="\t").encode()))
    table = protected(path)
    question = "SELECT ward, count(*) AS n, sum(price) AS p, sum(age) AS a, count(day) AS d FROM t GROUP BY ward"
    one, other = table.sql(question, epsilon=SURE), protected().sql(question, epsilon=SURE)
    for name in ("n", "p", "a", "d"):
        assert np.allclose(one[name], other[name], atol=0.05)
    (tmp_path / "none.csv").write_bytes(b"")
    with pytest.raises(HubbubError, match="header"):
        rows(tmp_path / "none.csv", {})


DAYS = (dt.date(2000, 1, 1), dt.date(2001, 1, 1))
MOMENTS = (dt.datetime(2000, 1, 1), dt.datetime(2001, 1, 1))


@pytest.mark.parametrize("bounds", [DAYS, MOMENTS])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([0, 10**8], pa.int32()).cast(pa.date32()),
        pa.array([0, 10**17], pa.int64()).cast(pa.timestamp("s")),
        pa.array([0, 9 * 10**18], pa.int64()).cast(pa.timestamp("ms")),
    ],
    ids=["date", "seconds", "milliseconds"],
)
def test_years_far_away_are_the_nearest_bound(bounds: tuple[Any, Any], values: Any) -> None:
    table = rows(pa.table({"d": values}), {"d": bounds})
    answer = table.sql("SELECT year(d) AS y, count(*) AS n FROM t GROUP BY y", epsilon=SURE)
    assert np.round(answer["n"].astype(float)).tolist() == [1, 1]


def test_a_key_of_a_year_python_does_not_know_is_a_key() -> None:
    days = pa.array([0, 0, 10**8], pa.int32()).cast(pa.date32())
    table = rows(pa.table({"d": days}), {"d": "key"})
    assert table.sql("SELECT d, count(*) AS n FROM t GROUP BY d", epsilon=50.0, delta=0.4)["d"].tolist() == [
        dt.date(1970, 1, 1)
    ]


@pytest.mark.parametrize("bounds", [(0, 1000), (-5, 3), (0.5, 2.5)])
def test_unsigned_columns(bounds: tuple[float, float]) -> None:
    table = rows(pa.table({"x": pa.array([1, 2, 2**64 - 1, None], pa.uint64())}), {"x": bounds})
    assert abs(float(table.sum("x", epsilon=SURE)) - (1 + 2 + np.floor(bounds[1]))) < 0.1


def test_endless_decimals_do_not_fail(postgres: Any) -> None:
    postgres.raw_sql("CREATE TABLE endless (id int, n numeric)")
    postgres.raw_sql("INSERT INTO endless VALUES (1, 1e400), (2, -1e400), (3, 'NaN'), (4, 5)")
    postgres.con.commit()
    table = rows(postgres.table("endless"), {"n": (-1, 10)}, unit="id")
    assert abs(float(table.sum("n", epsilon=SURE)) - 14) < 0.1
    assert table.suggest_bounds("n", epsilon=SURE)[1] == 2.0**40


def test_what_an_engine_says_is_not_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    table = protected()

    def fail(*_: Any) -> Any:
        raise ValueError("could not convert 'alice@example.org'")

    monkeypatch.setattr(table._engine, "_fetch", fail)
    with pytest.raises(EngineFailure) as caught:
        table.count(epsilon=1.0)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


HEAVY: list[tuple[str, int]] = [
    ("abs({})", 50),
    ("greatest({}, 3)", 30),
    ("greatest(3, {}, age, 4)", 20),
    ("coalesce({}, 3)", 30),
    ("nullif({}, 3)", 30),
    ("1 / (1 + floor({}))", 15),
    ("CASE WHEN {} BETWEEN 1 AND 2 THEN 1 END", 18),
    ("CASE WHEN {} IN (1, 2, 3) THEN 1 END", 18),
    ("CASE {} WHEN 1 THEN 2 WHEN 2 THEN 1 END", 18),
    ("CASE WHEN ({} > 1) IS TRUE THEN 1 ELSE 0 END", 12),
    ("CAST(CASE WHEN {} > 1 THEN '1' WHEN age > 3 THEN '2' END AS INT)", 12),
]


@pytest.mark.parametrize(("form", "levels"), HEAVY)
def test_nested_questions_end_soon(form: str, levels: int) -> None:
    table, inside = protected(), "price"
    for _ in range(levels):
        inside = form.format(inside)
    start = time.monotonic()
    with suppress(QueryRefused):
        table.sql(f"SELECT sum({inside}) FROM t", epsilon=1.0)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.sql("SELECT count(*) FROM t WHERE age < 1e999999999", epsilon=1.0),
        lambda t: t.sql("SELECT sum(CAST(CASE WHEN age > 3 THEN '1e999999999' END AS INT)) FROM t", epsilon=1.0),
        lambda t: t.sql("SELECT sum(CAST(CASE WHEN age > 3 THEN '1/0' END AS INT)) FROM t", epsilon=1.0),
        lambda t: t.sql("SELECT avg(age" + " * 1e30" * 12 + ") FROM t", epsilon=1.0),
        lambda t: t.sql("SELECT sum(floor(age" + " / 1e30" * 12 + ")) FROM t", epsilon=1.0),
        lambda t: t.sql("SELECT count(*) AS n FROM t HAVING n > 'a'", epsilon=1.0),
        lambda t: t.sql("SELECT ward, count(*) AS n FROM t GROUP BY ward HAVING ward > 3", epsilon=1.0),
        lambda t: t.sql("SELECT shop, count(*) AS n FROM t GROUP BY shop HAVING shop + 1 > 3", epsilon=1.0, delta=0.1),
        lambda t: t.sql("SELECT count(*) FROM t WHERE shop = 0.5", epsilon=1.0),
        lambda t: t.sql("SELECT count(*) FROM t WHERE day > '2020-01-01T00:00:00+02:00'", epsilon=1.0),
        lambda t: t.top("member", 3, epsilon=1.0),
        lambda t: t.group_by("age", "day").agg(m=hb.mode("age")).release(epsilon=1.0),
    ],
)
def test_what_cannot_be_answered_is_not_paid_for(ask: Callable[[Any], Any]) -> None:
    table = protected()
    with pytest.raises((QueryRefused, ParameterError)):
        ask(table)
    assert not table.budget.receipts


def test_long_lists_and_chosen_values_in_arithmetic() -> None:
    table = protected()
    ages = ", ".join(str(a) for a in range(3000))
    assert abs(table.sql(f"SELECT count(*) AS n FROM t WHERE age IN ({ages})", epsilon=SURE).value - 60) < 0.1
    assert abs(table.sql("SELECT round(median(age) / 10) AS m FROM t", epsilon=SURE).value - 4) <= 1
    assert table.sql("SELECT coalesce(member, TRUE) AS m, count(*) FROM t GROUP BY m", epsilon=1.0)["m"].tolist() == [
        False,
        True,
    ]


def test_joins_are_between_keys_of_one_kind() -> None:
    zones = pd.DataFrame(
        {
            "shop": ["s0", "s1"],
            "age": [20, 25],
            "price": [0.0, 1.25],
            "number": [1, 2**60],
            "member": [True, False],
            "zone": ["a", "b"],
        }
    )
    table = protected(public={"zones": zones}, max_rows=60)
    for keys in ("t.age = zones.shop", "t.shop = zones.age", "t.price = zones.price", "t.member = zones.age"):
        with pytest.raises(QueryRefused, match="joining"):
            table.sql(f"SELECT count(*) FROM t JOIN zones ON {keys}", epsilon=1.0)
    found = table.sql("SELECT count(zones.zone) AS n FROM t LEFT JOIN zones ON t.shop = zones.shop", epsilon=SURE)
    assert abs(found.value - 24) < 0.1
    groups = table.sql(
        "SELECT count(*) FROM t JOIN zones ON t.shop = zones.shop GROUP BY t.member, zones.member", epsilon=1.0
    )
    assert len(groups) == 4


def test_a_price_of_many_digits_is_not_exceeded() -> None:
    """The last share is rounded up to a float, which once added an ulp to the whole."""
    for k in range(40):
        epsilon = 2.2158102243748212 + k * 0.0371310273
        explained = protected().explain(
            "SELECT ward, count(DISTINCT person), count(price), sum(age) FROM t GROUP BY ward", epsilon=epsilon
        )
        assert explained.epsilon <= epsilon
        hb.Budget(epsilon=epsilon).spend(explained.loss)


def test_finer_steps_do_not_wrap_around() -> None:
    """A sum near 2**62, multiplied for Gaussian noise of an irrational sensitivity, is still itself."""
    measure = Measure("rows")
    noisy = Noisy(measure, hb.Gaussian(18318, sigma=1000.0), 4096)
    sums = np.array([[2**61, -(2**61), 7]])
    assert _noised(noisy, sums)[0].tolist() == pytest.approx([2.0**61, -(2.0**61), 7.0], rel=1e-12, abs=5)


@pytest.mark.parametrize("asked", ["count(*)", "count(DISTINCT person)", "avg(age), median(price)", "mode(ward)"])
@pytest.mark.parametrize("caps", [{"max_groups": 20, "max_rows": 1}, {"max_groups": 3, "max_rows": 2}])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_private_keys_use_all_of_epsilon_and_no_more(asked: str, caps: dict[str, Any], neighbours: Any) -> None:
    table = protected(neighbours=neighbours, **caps)
    query = table._reader.statement(f"SELECT shop, {asked} FROM t GROUP BY shop")
    for epsilon, delta in ((1.0, 1e-6), (0.3, 1e-9), (4.0, 1e-3)):
        plan = make_plan(table.schema, query, epsilon, delta)
        assert 0.97 * epsilon <= plan.loss.epsilon(delta) <= epsilon
        budget = hb.Budget(epsilon=2 * epsilon, delta=4 * delta, neighbours=neighbours)
        for _ in range(2):
            budget.spend(plan.loss, delta=delta)


def test_days_as_private_keys_are_rehearsed_as_days() -> None:
    """A sum of a day and a number would fail only if a key was selected: it is refused before it is paid for."""
    days = pd.DataFrame({"person": range(40), "day": [dt.date(2024, 1, 1)] * 40})
    budget = hb.Budget(epsilon=1, delta=1e-5)
    table = hb.protect(days, unit="person", columns={"day": "key"}, budget=budget)
    with pytest.raises(QueryRefused):
        table.sql("SELECT day, count(*) AS n FROM t GROUP BY day ORDER BY day + 1", epsilon=1, delta=1e-6)
    assert budget.remaining == 1
    assert len(table.sql("SELECT day, count(*) AS n FROM t GROUP BY day ORDER BY day", epsilon=1, delta=1e-6)) <= 1
