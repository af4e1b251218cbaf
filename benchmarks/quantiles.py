"""Quantiles of lognormal numbers and of ages: rank errors of hubbub, diffprivlib, OpenDP and Tumult, in one run.

Every record is a person; the bounds are public (0 and 100; 0 and 120, whole); one epsilon for each quantile. The rank
error is how far the share of records below the answer is from the share asked for. Every seed draws the data anew, the
same for all: on one data set a coarse list of candidates may happen to hold the truth. hubbub is asked through a
protected table, for OpenDP a thousand candidates are listed (with fewer it is worse), or all ages.
Tumult (the exponential mechanism with even weights) is slow: it gets fewer seeds, and only the smallest size.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from itertools import product
from typing import Any

import numpy as np
from report import write
from venvs import run

SHARES = (0.25, 0.5, 0.9, 0.99)
EPSILONS = (0.1, 1.0)
HIGH = {"lognormal": 100.0, "ages": 120}
"""The upper bounds; the lower ones are 0."""
CANDIDATES = 1000
LIMIT = 1800.0
SLOW = 20
"""Seeds of Tumult, at most."""

Ask = Callable[[float], float]
"""From a share to a quantile."""


def records(kind: str, size: int, seed: int) -> Any:
    random = np.random.default_rng([11, seed])
    if kind == "ages":
        return np.clip(random.normal(45, 18, size).round(), 0, HIGH[kind]).astype(np.int64)
    return np.clip(random.lognormal(1.0, 1.0, size), 0, HIGH[kind])


def rank_error(ordered: Any, share: float, answer: float) -> float:
    below, upto = (float(np.searchsorted(ordered, answer, side)) / len(ordered) for side in ("left", "right"))
    return max(0.0, below - share, share - upto)


def hubbub_part(kind: str, data: Any, epsilon: float) -> Ask:
    import pyarrow as pa

    import hubbub as hb

    budget = hb.Budget(epsilon=10**6)
    table = hb.protect(pa.table({"v": data}), columns={"v": (0, HIGH[kind])}, budget=budget)
    return lambda share: float(table.quantile("v", share, epsilon=epsilon))


def diffprivlib_part(kind: str, data: Any, epsilon: float) -> Ask:
    from diffprivlib.tools import percentile

    return lambda share: float(percentile(data, 100 * share, epsilon=epsilon, bounds=(0, HIGH[kind])))


def opendp_part(kind: str, data: Any, epsilon: float) -> Ask:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.symmetric_distance(), dp.max_divergence()
    candidates = np.linspace(0, HIGH[kind], (CANDIDATES if kind == "lognormal" else HIGH[kind]) + 1).tolist()

    def made(share: float, scale: float) -> Any:
        return dp.m.make_private_quantile(*space, candidates=candidates, alpha=share, scale=scale)

    ready = {share: made(share, made(share, 1.0).map(1) / epsilon * (1 + 1e-9)) for share in SHARES}
    return lambda share: float(ready[share](data.astype(float)))


def tumult_part(kind: str, data: Any, epsilon: float) -> Ask:
    """The measurement its sessions run on every group, without Spark around it, which takes seconds an answer."""
    import pandas as pd
    from tmlt.core.domains.numpy_domains import NumpyFloatDomain
    from tmlt.core.domains.pandas_domains import PandasSeriesDomain
    from tmlt.core.measurements.pandas_measurements.series import NoisyQuantile
    from tmlt.core.measures import PureDP
    from tmlt.core.utils.exact_number import ExactNumber

    domain, values = PandasSeriesDomain(NumpyFloatDomain()), pd.Series(data.astype(float))
    price, high = ExactNumber.from_float(epsilon, round_up=False), float(HIGH[kind])
    return lambda share: float(NoisyQuantile(domain, PureDP(), share, 0.0, high, price)(values))


PARTS = {
    "hubbub": (hubbub_part, "duckdb"),
    "diffprivlib": (diffprivlib_part, "diffprivlib"),
    "opendp": (opendp_part, "opendp"),
    "tumult": (tumult_part, "tmlt.analytics"),
}


def measured(part: str, kind: str, size: int, epsilon: float, seeds: int) -> dict[str, Any]:
    opened, package = PARTS[part]
    errors: dict[float, list[float]] = {share: [] for share in SHARES}
    times = []
    for seed in range(min(seeds, SLOW) if part == "tumult" else seeds):
        data = records(kind, size, seed)
        ordered, ask = np.sort(data), opened(kind, data, epsilon)
        for share in SHARES:
            start = time.perf_counter()
            answer = ask(share)
            times.append(time.perf_counter() - start)
            errors[share].append(rank_error(ordered, share, answer))
    found = {
        str(share): {
            "median": statistics.median(e),
            "mean": statistics.mean(e),
            "doubt": statistics.stdev(e) / len(e) ** 0.5,
        }
        for share, e in errors.items()
    }
    result = {"part": part, "kind": kind, "size": size, "epsilon": epsilon, "version": metadata.version(package)}
    return {**result, "seconds": statistics.median(times), "seeds": len(times) // len(SHARES), "errors": found}


def table(rows: list[dict[str, Any]]) -> str:
    heads = ["data", "records", "epsilon", "", *(f"rank error at {s}" for s in SHARES), "ms", "seeds"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in sorted(rows, key=lambda r: (r.get("kind", ""), r.get("size", 0), r.get("epsilon", 0))):
        if "missing" in row:
            lines.append(f"| | | | {row['part']} | missing: {row['missing']} |")
            continue
        cells = [row["kind"], f"{row['size']:.0e}", f"{row['epsilon']:g}", row["part"]]
        for share in SHARES:
            error = row["errors"][str(share)]
            cells.append(f"{error['median']:.1e} ({error['mean']:.1e} ± {error['doubt']:.0e})")
        lines.append("| " + " | ".join([*cells, f"{1000 * row['seconds']:.3g}", str(row["seeds"])]) + " |")
    return "\n".join([*lines, "", "Rank errors: medians over the seeds (and means, with their standard errors)."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=lambda n: int(float(n)), nargs="+", default=[10**4, 10**5])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--part", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.part:
        for kind, size, epsilon in product(HIGH, o.sizes, EPSILONS):
            if size == min(o.sizes) or (kind == "lognormal" and o.part != "tumult"):
                print(json.dumps(measured(o.part, kind, size, epsilon, o.seeds)), flush=True)
        return
    rows = []
    for part in o.parts:
        for row in run(part, __file__, "--part", part, "--seeds", o.seeds, "--sizes", *o.sizes, limit=LIMIT):
            rows.append({"part": part, **row})
    write("quantiles", rows, table(rows))


if __name__ == "__main__":
    main()
