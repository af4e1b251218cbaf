"""Counts and sums by group, a person having many rows: hubbub against its peers and hand-written queries, in one run.

A table of rows (uid, g, v): ten rows a person, 1000 public groups of unequal size, v in [0, 10]. Of a person count at
most 20 groups and one row in each, or (hubbub's ``max_total_rows``, SmartNoise) 20 rows in all. Asked are COUNT and SUM
together for epsilon 1, without delta (SmartNoise takes 1e-9). Times are medians after the first call, which is told
apart; loading is not timed. Memory is the most the process and what it started held. Errors are medians over the groups
against the exact answers of all rows: relative ones of COUNT and SUM, that of the average in the units of v.

Every library runs in a venv of its own (peers-queries.txt), and every part in a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from report import write
from venvs import run

GROUPS, MOST, HIGH = 1000, 20, 10
EPSILONS = (1.0, 0.1)
CHUNK = 10**7
LIMIT = 900.0
"""No part may take longer than this, in seconds."""
LONGEST = 60.0
"""Repeats stop after so many seconds."""

Totals = Callable[[float], tuple[Any, Any]]
"""From epsilon to counts and sums, by group."""
Averages = Callable[[float], Any]


@dataclass(frozen=True)
class Part:
    """One way to ask: its questions are made in a process of its own."""

    name: str
    peer: str
    package: str
    open: Callable[[argparse.Namespace], tuple[Totals, Averages | None]]
    private: bool = True


def file(data: str, rows: int, kind: str) -> Path:
    return Path(data) / f"rows_{rows}.{kind}"


def make(data: str, rows: int) -> None:
    """Writes the table in chunks, its columns as arrays (for peers that take lists), and the exact answers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file(data, rows, "exact.npz").exists():
        return
    Path(data).mkdir(parents=True, exist_ok=True)
    chance = 1 / (np.arange(GROUPS) + 20.0) ** 0.7
    edges = np.cumsum(chance / chance.sum())
    counts, sums, kept = np.zeros(GROUPS), np.zeros(GROUPS), []
    with pq.ParquetWriter(
        file(data, rows, "parquet"), pa.schema({"uid": "int64", "g": "int64", "v": "float64"})
    ) as out:
        for start in range(0, rows, CHUNK):
            random = np.random.default_rng([7, start])
            size = min(CHUNK, rows - start)
            g = np.minimum(np.searchsorted(edges, random.random(size)), GROUPS - 1)
            v = np.clip(random.normal(2 + 6 * (g % 97) / 97, 1.5), 0, HIGH)
            uid = random.integers(0, rows // 10, size)
            out.write_table(pa.table({"uid": uid, "g": g, "v": v}), row_group_size=10**6)
            counts += np.bincount(g, minlength=GROUPS)
            sums += np.bincount(g, weights=v, minlength=GROUPS)
            kept.append((uid, g, v))
            if rows > CHUNK:
                kept.clear()
    if kept:
        np.savez(file(data, rows, "npz"), **dict(zip(("uid", "g", "v"), kept[0], strict=True)))
    np.savez(file(data, rows, "exact.npz"), counts=counts, sums=sums)


def columns(o: argparse.Namespace) -> tuple[Any, Any, Any]:
    arrays = np.load(file(o.data, o.rows, "npz"))
    return arrays["uid"], arrays["g"], arrays["v"]


def by_group(keys: Any, values: Any) -> Any:
    found = np.zeros(GROUPS)
    found[np.asarray(keys, dtype=np.int64)] = np.asarray(values, dtype=float)
    return found


def duckdb_table(o: argparse.Namespace) -> Any:
    """The table in DuckDB, through Ibis: in memory, or as the file."""
    import ibis

    connection = ibis.duckdb.connect(memory_limit=o.limit)
    kind = "TABLE" if o.source == "memory" else "VIEW"
    connection.raw_sql(f"CREATE {kind} t AS SELECT * FROM '{file(o.data, o.rows, 'parquet')}'")
    return connection.table("t")


def hubbub_part(**bounds: Any) -> Callable[[argparse.Namespace], tuple[Totals, Averages]]:
    def opened(o: argparse.Namespace) -> tuple[Totals, Averages]:
        import hubbub as hb

        columns = {"g": list(range(GROUPS)), "v": (0, HIGH)}
        table = hb.protect(duckdb_table(o), unit="uid", columns=columns, budget=hb.Budget(epsilon=1000.0), **bounds)

        def totals(epsilon: float) -> tuple[Any, Any]:
            found = table.sql("SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g", epsilon=epsilon)
            return by_group(found["g"], found["c"]), by_group(found["g"], found["s"])

        def averages(epsilon: float) -> Any:
            found = table.sql("SELECT g, avg(v) AS a FROM t GROUP BY g", epsilon=epsilon)
            return by_group(found["g"], found["a"])

        return totals, averages

    return opened


def duckdb_part(sql: str) -> Callable[[argparse.Namespace], tuple[Totals, None]]:
    def opened(o: argparse.Namespace) -> tuple[Totals, None]:
        connection = duckdb_table(o)._find_backend().con

        def totals(_: float) -> tuple[Any, Any]:
            found = connection.execute(sql).fetchnumpy()
            return by_group(found["g"], found["c"]), by_group(found["g"], found["s"])

        return totals, None

    return opened


PLAIN = "SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g"
BOUNDED = f"""
    WITH pairs AS (SELECT uid, g, any_value(v) AS v FROM t GROUP BY uid, g),
         kept AS (SELECT g, v FROM pairs
                  QUALIFY row_number() OVER (PARTITION BY uid ORDER BY hash(uid, g, 42)) <= {MOST})
    SELECT g, count(*) AS c, sum(greatest(0, least({HIGH}, v))) AS s FROM kept GROUP BY g"""
BOUNDED_ROWS = f"""
    WITH kept AS (SELECT g, v FROM t QUALIFY row_number() OVER (PARTITION BY uid ORDER BY hash(uid, g, v)) <= {MOST})
    SELECT g, count(*) AS c, sum(greatest(0, least({HIGH}, v))) AS s FROM kept GROUP BY g"""


def polars_part(o: argparse.Namespace) -> tuple[Totals, None]:
    import polars as pl

    frame = pl.read_parquet(file(o.data, o.rows, "parquet"))
    place = pl.struct("uid", "g").hash(42).rank("ordinal").over("uid")

    def totals(_: float) -> tuple[Any, Any]:
        pairs = frame.lazy().group_by("uid", "g").agg(pl.col("v").first())
        sums = [pl.len().alias("c"), pl.col("v").clip(0, HIGH).sum().alias("s")]
        found = pairs.filter(place <= MOST).group_by("g").agg(sums).collect()
        return by_group(found["g"], found["c"]), by_group(found["g"], found["s"])

    return totals, None


def opendp_part(o: argparse.Namespace) -> tuple[Totals, None]:
    """Values as whole hundredths: its sums of floats are noisier. It keeps one group less than it pays for."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib", "honest-but-curious")
    frame = pl.read_parquet(file(o.data, o.rows, "parquet"))
    frame = frame.with_columns((pl.col("v") * 100).round().cast(pl.Int64))
    keys = pl.LazyFrame({"g": list(range(GROUPS))}, schema={"g": pl.Int64})
    margins = [dp.polars.Margin(max_length=2 * o.rows)]
    margins.append(dp.polars.Margin(by=["g"], max_length=o.rows, max_groups=GROUPS))

    def totals(epsilon: float) -> tuple[Any, Any]:
        context = dp.Context.compositor(
            data=frame.lazy(),
            privacy_unit=dp.unit_of(contributions=1, identifier="uid"),
            privacy_loss=dp.loss_of(epsilon=epsilon),
            split_evenly_over=1,
            margins=margins,
        )
        kept = context.query().truncate_per_group(1, by=["g"]).truncate_num_groups(MOST, by=["g"], keep="first")
        value = pl.col("v").fill_null(0).dp.sum((0, 100 * HIGH)).alias("s")
        asked = kept.group_by("g").agg(dp.len(signed=True).alias("c"), value).with_keys(keys)
        found = asked.release().collect()
        return by_group(found["g"], found["c"]), by_group(found["g"], found["s"]) / 100

    return totals, None


def tumult_part(o: argparse.Namespace) -> tuple[Totals, Averages]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-memory 8g --conf spark.ui.enabled=false pyspark-shell"
    from pyspark.sql import SparkSession
    from tmlt.analytics import (
        AddRowsWithID,
        KeySet,
        MaxGroupsPerID,
        MaxRowsPerGroupPerID,
        PureDPBudget,
        QueryBuilder,
        Session,
    )

    os.chdir(tempfile.mkdtemp())  # where Spark and Tumult leave things
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    frame = spark.read.parquet(str(file(o.data, o.rows, "parquet")))
    kept = QueryBuilder("t").enforce(MaxGroupsPerID("g", MOST)).enforce(MaxRowsPerGroupPerID("g", 1))
    grouped = kept.groupby(KeySet.from_dict({"g": list(range(GROUPS))}))

    def answers(epsilon: float, *asked: Any) -> list[Any]:
        session = Session.from_dataframe(PureDPBudget(epsilon), "t", frame, protected_change=AddRowsWithID("uid"))
        each = PureDPBudget(epsilon / len(asked))
        found = [session.evaluate(a, each).toPandas() for a in asked]
        return [by_group(f["g"], f["x"]) for f in found]

    def totals(epsilon: float) -> tuple[Any, Any]:
        counts, sums = answers(epsilon, grouped.count("x"), grouped.sum("v", 0, HIGH, "x"))
        return counts, sums

    return totals, lambda epsilon: answers(epsilon, grouped.average("v", 0, HIGH, "x"))[0]


def pipelinedp_part(o: argparse.Namespace) -> tuple[Totals, Averages]:
    import pipeline_dp as pdp

    rows = list(zip(*(c.tolist() for c in columns(o)), strict=True))
    extract = pdp.DataExtractors(
        privacy_id_extractor=lambda r: r[0], partition_extractor=lambda r: r[1], value_extractor=lambda r: r[2]
    )

    def answers(epsilon: float, metrics: list[Any]) -> list[Any]:
        account = pdp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=0)
        parameters = pdp.AggregateParams(
            noise_kind=pdp.NoiseKind.LAPLACE,
            metrics=metrics,
            max_partitions_contributed=MOST,
            max_contributions_per_partition=1,
            min_value=0.0,
            max_value=float(HIGH),
        )
        engine = pdp.DPEngine(account, pdp.LocalBackend())
        found = engine.aggregate(rows, parameters, extract, public_partitions=list(range(GROUPS)))
        account.compute_budgets()
        return list(found)

    def totals(epsilon: float) -> tuple[Any, Any]:
        found = answers(epsilon, [pdp.Metrics.COUNT, pdp.Metrics.SUM])
        keys = [k for k, _ in found]
        return by_group(keys, [m.count for _, m in found]), by_group(keys, [m.sum for _, m in found])

    def averages(epsilon: float) -> Any:
        found = answers(epsilon, [pdp.Metrics.MEAN])
        return by_group([k for k, _ in found], [m.mean for _, m in found])

    return totals, averages


def smartnoise_part(o: argparse.Namespace) -> tuple[Totals, Averages]:
    """It charges epsilon for every column of the answer."""
    import sqlite3

    import pandas as pd
    import snsql

    connection = sqlite3.connect(":memory:")
    pd.DataFrame(dict(zip(("uid", "g", "v"), columns(o), strict=True))).to_sql("t", connection, index=False)
    options = {"row_privacy": False, "censor_dims": False, "max_ids": MOST, "sample_max_ids": True}
    declared = {
        "uid": {"type": "int", "private_id": True},
        "g": {"type": "int"},
        "v": {"type": "float", "lower": 0.0, "upper": float(HIGH)},
    }
    facts = {"": {"": {"t": {**options, "clamp_counts": False, **declared}}}}

    def answers(epsilon: float, sql: str) -> list[Any]:
        privacy = snsql.Privacy(epsilon=epsilon, delta=1e-9)
        reader = snsql.from_connection(connection, privacy=privacy, metadata=facts, engine="sqlite")
        return reader.execute(sql)[1:]

    def totals(epsilon: float) -> tuple[Any, Any]:
        found = answers(epsilon / 2, "SELECT g, COUNT(*) AS c, SUM(v) AS s FROM t GROUP BY g")
        keys = [r[0] for r in found]
        return by_group(keys, [r[1] for r in found]), by_group(keys, [r[2] for r in found])

    def averages(epsilon: float) -> Any:
        found = answers(epsilon / 2, "SELECT g, AVG(v) AS a FROM t GROUP BY g")  # a sum and a count are charged
        return by_group([r[0] for r in found], [r[1] for r in found])

    return totals, averages


PARTS = [
    Part("hubbub, 20 groups", "hubbub", "duckdb", hubbub_part(max_groups=MOST, max_rows=1)),
    Part("hand-written, 20 groups, DuckDB", "hubbub", "duckdb", duckdb_part(BOUNDED), private=False),
    Part("hand-written, 20 groups, Polars", "hubbub", "polars", polars_part, private=False),
    Part("hubbub, 20 rows", "hubbub", "duckdb", hubbub_part(max_total_rows=MOST)),
    Part("hand-written, 20 rows, DuckDB", "hubbub", "duckdb", duckdb_part(BOUNDED_ROWS), private=False),
    Part("unbounded, DuckDB", "hubbub", "duckdb", duckdb_part(PLAIN), private=False),
    Part("SmartNoise SQL (SQLite), 20 rows", "smartnoise", "smartnoise-sql", smartnoise_part),
    Part("OpenDP (Polars), 20 groups", "opendp", "opendp", opendp_part),
    Part("PipelineDP (local), 20 groups", "pipelinedp", "pipeline-dp", pipelinedp_part),
    Part("Tumult (Spark), 20 groups", "tumult", "tmlt.analytics", tumult_part),
]
OURS = PARTS[0].name


def measured(part: Part, o: argparse.Namespace) -> dict[str, Any]:
    """Times of the totals at the first epsilon, and errors at all."""
    totals, averages = part.open(o)
    start = time.perf_counter()
    answers = [totals(EPSILONS[0])]
    first = time.perf_counter() - start
    times: list[float] = []
    while len(times) < o.repeats and sum(times) + (statistics.median(times) if times else first) < LONGEST:
        gc.collect()
        start = time.perf_counter()
        answers.append(totals(EPSILONS[0]))
        times.append(time.perf_counter() - start)
    result = {"seconds": statistics.median(times or [first]), "first": first, "repeats": len(times)}
    if o.errors and part.private:
        asked = {EPSILONS[0]: answers, **{e: [totals(e) for _ in answers[:3]] for e in EPSILONS[1:]}}
        own = {e: [averages(e) for _ in answers[:3]] if averages else [] for e in EPSILONS}
        errors = {str(e): error(o, asked[e], own[e]) for e in EPSILONS}
    else:
        errors = {str(EPSILONS[0]): error(o, answers, [])}
    return {**result, "errors": errors, "version": metadata.version(part.package), "load": os.getloadavg()[0]}


def error(o: argparse.Namespace, answers: list[tuple[Any, Any]], averages: list[Any]) -> dict[str, float]:
    """Median errors; an average that cannot be asked for is read off count and sum."""
    exact = np.load(file(o.data, o.rows, "exact.npz"))
    counts, sums = exact["counts"], exact["sums"]
    if not averages:
        averages = [s / np.maximum(c, 1) for c, s in answers]
    return {
        "count": float(np.median([np.abs(c - counts) / counts for c, _ in answers])),
        "sum": float(np.median([np.abs(s - sums) / sums for _, s in answers])),
        "average": float(np.median([np.abs(np.clip(a, 0, HIGH) - sums / counts) for a in averages])),
    }


def table(rows: list[dict[str, Any]]) -> str:
    heads = ["rows", "", "seconds", "first call", "of hubbub", "MiB"]
    heads += [f"{what} ε={e:g}" for e in EPSILONS for what in ("COUNT", "SUM", "AVG")]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    ours = {(r["rows"], r["source"]): r["seconds"] for r in rows if r["part"] == OURS and "seconds" in r}
    for row in rows:
        start = [f"{row['rows']:.0e}", row["part"]]
        if "missing" in row:
            lines.append("| " + " | ".join([*start, f"missing: {row['missing']}"]) + " |")
            continue
        own = ours.get((row["rows"], row["source"]))
        ratio = "-" if own is None else f"{row['seconds'] / own:.2f}"
        cells = [*start, f"{row['seconds']:.3g}", f"{row['first']:.3g}", ratio, f"{row['memory'] / 2**20:.0f}"]
        for e in EPSILONS:
            found = row["errors"].get(str(e))
            cells += ["-"] * 3 if found is None else [f"{found['count']:.2%}", f"{found['sum']:.2%}"]
            cells += [] if found is None else [f"{found['average']:.2g}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", "Of queries without noise, errors are what the bounds alone leave out."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=lambda n: int(float(n)), nargs="+", default=[10**6])
    parser.add_argument("--data", default=str(Path(tempfile.gettempdir()) / "hubbub-groupby"))
    parser.add_argument("--parts", nargs="+", default=[""], help="only parts whose names contain one of these")
    parser.add_argument("--source", choices=["memory", "parquet"], default="memory", help="where DuckDB has the table")
    parser.add_argument("--limit", default="8GB", help="memory DuckDB may take")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--errors", action=argparse.BooleanOptionalAction, default=True, help="all epsilons, averages")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.part:
        o.rows = o.rows[0]
        print(json.dumps(measured(next(p for p in PARTS if p.name == o.part), o)), flush=True)
        return
    rows = []
    for size in o.rows:
        make(o.data, size)
        same = ["--rows", size, "--data", o.data, "--source", o.source, "--limit", o.limit, "--repeats", o.repeats]
        same.append("--errors" if o.errors else "--no-errors")
        for part in (p for p in PARTS if any(word in p.name for word in o.parts)):
            for row in run(part.peer, __file__, "--part", part.name, *same, limit=LIMIT):
                rows.append({"rows": size, "part": part.name, "source": o.source, **row})
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    write("groupby", rows, table(rows))


if __name__ == "__main__":
    main()
