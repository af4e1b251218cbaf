"""Does the time of an answer tell whether somebody is in the data? Neighbouring data sets asked in turns over HTTP.

Two pairs of data sets. "rows": one person has ten of every eleven rows, or none. "hit": a condition that one person
meets, or nobody. Every question is new (a stored answer reads no rows). For each the area under the ROC curve of the
best threshold test on latency (in either direction), with a 95 % upper bound by DeLong's variance, once with answers
leaving at public times and once as fast as they come.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from report import write
from scipy.stats import norm, rankdata
from serving import analyst, free_port, serving

QUESTIONS = {
    "rows": "SELECT count(*) AS n FROM {name} WHERE age >= {number}",
    "hit": "SELECT count(*) AS n FROM {name} WHERE age = 101 AND age >= {number}",
}


def data(folder: Path, size: int) -> None:
    """Both pairs, each with and without one person."""
    draw = np.random.default_rng(1)
    base = pd.DataFrame({"person": draw.integers(0, size // 5, size), "age": draw.integers(0, 100, size)})
    heavy = pd.DataFrame({"person": np.full(10 * size, 10**9), "age": draw.integers(0, 100, 10 * size)})
    one = pd.DataFrame({"person": [10**9], "age": [101]})
    for name, extra in (("rows", heavy), ("hit", one)):
        base.to_parquet(folder / f"{name}_without.parquet")
        pd.concat([base, extra]).sample(frac=1, random_state=2).to_parquet(folder / f"{name}_with.parquet")


def config(folder: Path, lanes: int, port: int, every: float) -> Path:
    text = f'[server]\nledger = "sqlite:///{every}.db"\nport = {port}\nanswer_every = {every}\n'
    text += "requests_per_minute = 100000000\n"
    for name in (f"{q}_{side}" for q in QUESTIONS for side in ("with", "without")):
        for lane in range(lanes):
            text += f'[datasets.{name}{lane}]\nsource = "{name}.parquet"\nunit = "person"\nepsilon = 1000000.0\n'
            text += f"[datasets.{name}{lane}.columns]\nage = [0, 101]\n"
    path = folder / f"curator{every}.toml"
    path.write_text(text)
    return path


async def lane(address: str, token: str, question: str, number: int, pairs: int, found: Any) -> None:
    """One analyst, asking with and without in a random order, one question at a time."""
    order = random.Random(number)
    async with httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        for i in range(pairs + 5):
            for side in order.sample(["with", "without"], 2):
                name = f"{question}_{side}{number}"
                sql = QUESTIONS[question].format(name=name, number=(i + 1) / 2**20)
                began = time.perf_counter()
                got = await client.post(f"/v1/datasets/{name}/query", json={"sql": sql, "epsilon": 1.0})
                taken = time.perf_counter() - began
                assert got.status_code == 200, got.text
                if i >= 5:  # after the first few, which open files and connections
                    found[side].append(taken)


def auc(one: NDArray[Any], other: NDArray[Any]) -> tuple[float, float]:
    """The area, at least one half, and its 95 % upper bound (DeLong)."""
    m, n = len(one), len(other)
    ranks = rankdata(np.concatenate([one, other]))
    area = (ranks[:m].sum() - m * (m + 1) / 2) / (m * n)
    inside_one = (ranks[:m] - rankdata(one)) / n
    inside_other = 1 - (ranks[m:] - rankdata(other)) / m
    spread = np.sqrt(inside_one.var(ddof=1) / m + inside_other.var(ddof=1) / n)
    away = abs(area - 0.5)
    return 0.5 + away, 0.5 + away + float(norm.ppf(0.95)) * float(spread)


def measure(folder: Path, question: str, pairs: int, lanes: int, every: float) -> dict[str, Any]:
    port = free_port()
    path = config(folder, lanes, port, every)
    with serving(path, port) as address:
        names = [f"{question}_{side}{i}" for side in ("with", "without") for i in range(lanes)]
        token = analyst(f"sqlite:///{folder / f'{every}.db'}", names)
        found: dict[str, list[float]] = {"with": [], "without": []}

        async def all_lanes() -> None:
            await asyncio.gather(*(lane(address, token, question, i, pairs // lanes, found) for i in range(lanes)))

        asyncio.run(all_lanes())
    one, other = np.array(found["with"]), np.array(found["without"])
    area, bound = auc(one, other)
    late = float(np.mean(np.concatenate([one, other]) > 1.5 * every))
    return {
        "question": question,
        "bucket": every,
        "pairs": len(one),
        "auc": area,
        "upper": bound,
        "median_with": float(np.median(one)),
        "median_without": float(np.median(other)),
        "late": late,
    }


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| question | answers leave every | pairs | AUC | at most (95 %) | later than their time |",
        "|---|---|---|---|---|---|",
    ]
    for r in rows:
        every = f"{r['bucket']:g} s" if r["bucket"] > 0.01 else "at once"
        lines.append(
            f"| {r['question']} | {every} | {r['pairs']} | {r['auc']:.4f} | {r['upper']:.4f} | {r['late']:.4f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--size", type=int, default=100_000, help="rows of everybody else")
    parser.add_argument("--bucket", type=float, default=0.5)
    parser.add_argument("--questions", nargs="*", choices=list(QUESTIONS), default=list(QUESTIONS))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    data(folder, options.size)
    rows = []
    for question in options.questions:
        rows.append(measure(folder, question, min(options.pairs, 200), 1, 0.001))
        rows.append(measure(folder, question, options.pairs, options.lanes, options.bucket))
        print(table(rows), flush=True)
    write("latency", rows, table(rows))


if __name__ == "__main__":
    main()
