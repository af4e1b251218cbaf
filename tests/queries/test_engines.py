"""DuckDB, PostgreSQL and Spark find the same exact integers, on hostile data too, whatever the order and the
threads."""

import datetime as dt
import math
import random
from collections import Counter
from typing import Any

import ibis
import pyarrow as pa
import pytest
from queries.tables import COLUMNS

import hubbub as hb
from hubbub.queries.plan import make_plan
from hubbub.queries.table import Table

KINDS = {
    "person": pa.string(),
    "age": pa.int64(),
    "price": pa.float64(),
    "ward": pa.string(),
    "day": pa.date32(),
    "shop": pa.string(),
    "member": pa.bool_(),
    "huge": pa.float64(),
    "same": pa.int64(),
}
HOSTILE: dict[str, list[Any]] = {
    "person": ["a", "b", "c", "d", None, "", "é", "e\u0301"],
    "age": [0, 7, 120, 121, -1, None, 2**63 - 1, -(2**63)],
    "price": [0.1, 2.5, math.nan, math.inf, -math.inf, None, 1e308, -5e-324, 100.00001, 33.333],
    "ward": ["north", "south", "west", "nowhere", None, "", "NORTH"],
    "day": [dt.date(2020, 2, 29), dt.date(1900, 1, 1), dt.date(2999, 12, 31), None, dt.date(2021, 12, 31)],
    "shop": ["s1", "s2", "é", "e\u0301", "", None, "s'; DROP TABLE t; --"],
    "member": [True, False, None],
    "huge": [2.0**50, 2.0**50 + 1, math.nan, -(2.0**60), None],
    "same": [5, 4, None, 10**15],
}
DECLARED = COLUMNS | {"huge": (2.0**50, 2.0**50 + 1), "same": (5, 5)}


def capped(table: Table) -> Any:
    """People's totals held within a bound: which SQL has no word for."""
    sums = {"s": hb.sum("price", max_total=150), "h": hb.sum("huge", max_total=2**51), "d": hb.sum("age - 60", 90)}
    return table.group_by("ward").agg(**sums, n=hb.count())


QUESTIONS: list[Any] = [
    "SELECT ward, count(*), count(age), sum(price), avg(age), count(DISTINCT person), count(DISTINCT shop) FROM t"
    " GROUP BY ward",
    "SELECT year(day) AS y, member, variance(price), sum(age * price), avg(price / age), median(price) FROM t"
    " GROUP BY y, member",
    "SELECT shop, count(*), mode(ward), max(age) FROM t WHERE NOT (price > 2 AND ward <> 'north') GROUP BY shop",
    "SELECT sum(huge), avg(huge), sum(CASE WHEN age % 7 = 0 THEN floor(price) ELSE -age END), sum(coalesce(price, 1)),"
    " avg(least(age, 50)), avg(same), variance(same - 1),"
    " sum(month(day)), count(*) FILTER (WHERE shop IN ('s1', '')), sum(CAST(price AS INTEGER))"
    " FROM t",
    "SELECT date_trunc('month', day) AS m, sum(round(price, 1)), sum(round(age, -1)), sum(round(-price * 3, 3)),"
    " count(*) FILTER (WHERE date_trunc('year', day) = '2021-01-01'), count(DISTINCT date_trunc('quarter', day))"
    " FROM t GROUP BY m",
    capped,
]


def rows(kind: str, count: int = 240) -> list[dict[str, Any]]:
    """Every value of every column, mixed by a fixed rule; or none, or one row."""
    count = {"hostile": count, "empty": 0, "one row": 1}[kind]
    return [
        {c: values[(i * (k + 3) + i // 7) % len(values)] for k, (c, values) in enumerate(HOSTILE.items())}
        for i in range(count)
    ]


def arrow(found: list[dict[str, Any]]) -> pa.Table:
    return pa.table({c: pa.array([r[c] for r in found], kind) for c, kind in KINDS.items()})


def integers(source: Any, question: Any, **caps: Any) -> tuple[Any, ...]:
    """Everything the engine computes for a question, before any noise."""
    table: Table = hb.protect(source, unit="person", columns=DECLARED, **caps)
    query = table._query(question if isinstance(question, str) else question(table))
    exact = table._engine.compute(make_plan(table.schema, query, 1, 1e-6))
    values = [[_plain(v) for v in groups] for groups in exact.values]
    people = None if exact.people is None else exact.people.tolist()
    return exact.keys, [s.tolist() for s in exact.sums], people, values


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted(value.items())
    return sorted(zip(value.values.tolist(), value.counts.tolist(), strict=True))


def on_duckdb(found: list[dict[str, Any]], threads: int = 2) -> Any:
    connection = ibis.duckdb.connect(threads=threads)
    connection.con.register("rows", arrow(found))
    return connection.table("rows")


def on_postgres(connection: Any, found: list[dict[str, Any]], name: str) -> Any:
    kinds = {
        "string": "text",
        "int64": "bigint",
        "double": "double precision",
        "date32[day]": "date",
        "bool": "boolean",
    }
    columns = ", ".join(f"{c} {kinds[str(k)]}" for c, k in KINDS.items())
    with connection.con.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
        cursor.execute(f"CREATE TABLE {name} ({columns})")
        if found:
            places = ", ".join(["%s"] * len(KINDS))
            cursor.executemany(f"INSERT INTO {name} VALUES ({places})", [tuple(r.values()) for r in found])
    connection.con.commit()
    return connection.table(name)


def on_spark(connection: Any, found: list[dict[str, Any]], name: str, partitions: int = 3) -> Any:
    kinds = {"string": "string", "int64": "bigint", "double": "double", "date32[day]": "date", "bool": "boolean"}
    schema = ", ".join(f"{c} {kinds[str(k)]}" for c, k in KINDS.items())
    frame = connection._session.createDataFrame([tuple(r.values()) for r in found], schema)
    frame.repartition(partitions).createOrReplaceTempView(name)
    return connection.table(name)


WIDE: dict[str, Any] = {"max_groups": 100, "max_rows": 300}
TIGHT: dict[str, Any] = {"max_groups": 2, "max_rows": 3}


@pytest.mark.parametrize("kind", ["hostile", "empty", "one row"])
@pytest.mark.parametrize("question", QUESTIONS, ids=range(1, 7))
def test_duckdb_and_postgresql_agree(question: Any, kind: str, postgres: Any) -> None:
    found = rows(kind)
    name = f"rows_{kind.split()[0]}"
    assert integers(on_postgres(postgres, found, name), question, **WIDE) == integers(
        on_duckdb(found), question, **WIDE
    )


@pytest.mark.parametrize("question", QUESTIONS, ids=range(1, 7))
def test_duckdb_and_spark_agree(question: Any, spark: Any) -> None:
    found = rows("hostile", 60)
    assert integers(on_spark(spark, found, "hostile"), question, **WIDE) == integers(on_duckdb(found), question, **WIDE)


def test_spark_on_an_empty_table_and_with_caps(spark: Any) -> None:
    assert integers(on_spark(spark, [], "nothing"), QUESTIONS[0], **WIDE) == integers(
        on_duckdb([]), QUESTIONS[0], **WIDE
    )
    found = rows("hostile", 60)
    shuffled = random.Random(1).sample(found, len(found))
    one = integers(on_spark(spark, found, "one", 1), QUESTIONS[0], **TIGHT)
    assert one == integers(on_spark(spark, shuffled, "other", 5), QUESTIONS[0], **TIGHT)


CROWDED: dict[str, Any] = {"max_groups": 4, "max_rows": 2}


@pytest.mark.parametrize(
    "caps",
    [WIDE, TIGHT, CROWDED, {"max_groups": None, "max_rows": None, "max_total_rows": 4}, TIGHT | {"max_total_rows": 5}],
)
@pytest.mark.parametrize("question", QUESTIONS, ids=range(1, 7))
def test_order_and_threads_do_not_matter(question: Any, caps: dict[str, Any], postgres: Any) -> None:
    found = rows("hostile")
    shuffled = random.Random(2).sample(found, len(found))
    first = integers(on_duckdb(found, 1), question, **caps)
    assert first == integers(on_duckdb(shuffled, 8), question, **caps)
    first = integers(on_postgres(postgres, found, "ordered"), question, **caps)
    assert first == integers(on_postgres(postgres, shuffled, "shuffled"), question, **caps)


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("most", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("size", [30, 240])
def test_caps_keep_what_they_say(groups: int, most: int, size: int) -> None:
    """Of every person so many groups, and all rows in each up to the cap; people within the caps are untouched."""
    found = rows("hostile", size)
    question = "SELECT ward, count(*), count(DISTINCT person), sum(age) FROM t GROUP BY ward"
    keys, [moments, people], *_ = integers(on_duckdb(found), question, max_groups=groups, max_rows=most)
    held = Counter((r["person"], r["ward"]) for r in found if r["person"] is not None and r["ward"] in DECLARED["ward"])
    wards = {p: [n for (q, _), n in held.items() if q == p] for p, _ in held}
    assert sum(people[0]) == sum(min(groups, len(w)) for w in wards.values())
    kept = sum(sum(column) for column in moments) // 120  # what the parts of one row add up to
    fewest = sum(sum(sorted(min(most, n) for n in w)[:groups]) for w in wards.values())
    largest = sum(sum(sorted(min(most, n) for n in w)[-groups:]) for w in wards.values())
    assert fewest <= kept <= largest
    assert len(keys) == 3


@pytest.mark.parametrize(
    "kind", [pa.uint64(), pa.int32(), pa.uint8(), pa.date32(), pa.large_string()], ids=lambda k: str(k)
)
def test_people_of_any_kind_are_bounded(kind: pa.DataType) -> None:
    """Two rows in one group and three groups each, of which one row in two groups count."""
    names = {
        "uint64": [2**64 - 1, 2**63, 5],
        "date32[day]": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2000, 1, 1)],
    }
    persons = names.get(str(kind), ["a", "b", "~"] if "string" in str(kind) else [0, 1, 2])
    source = {"person": [], "g": [], "x": []}
    for person in persons:
        for g, x in (("a", 1), ("a", 2), ("b", 3), ("c", 4)):
            for column, value in zip(source, (person, g, x), strict=True):
                source[column].append(value)
    table = pa.table({"person": pa.array(source["person"], kind), "g": source["g"], "x": source["x"]})
    protected = hb.protect(table, unit="person", columns={"g": ["a", "b", "c"]}, max_groups=2, max_rows=1)
    plan = make_plan(protected.schema, protected._reader.statement("SELECT g, count(*) FROM t GROUP BY g"), 1)
    assert protected._engine.compute(plan).sums[0].sum() == 6
