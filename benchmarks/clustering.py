"""k-means: inertia of hubbub and diffprivlib over that of scikit-learn without privacy, and the time a fit takes.

Data: mixtures of 10**5 points (bounds 0 and 1), and the SIPU sets, whose bounds are their own extremes
(given as public to both). Each repetition draws the mixture anew, the same for all. The ratio is of sums of squared
distances; the base is scikit-learn's k-means, the best of ten starts for SIPU, started at the truth for mixtures.
hubbub has delta 1e-6, and 0 where said; diffprivlib knows only 0. Both hide one row more or less. One-sided
Welch tests say whether hubbub's mean ratio is lower.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import statistics
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from report import write
from venvs import run

EPSILONS = (0.1, 0.5, 1.0, 3.0, 8.0)
WIDTHS, CLUSTERS = (2, 10, 50), (5, 20, 50)
DELTA = 1e-6
SIZE = 10**5
SPREAD = 0.05
SIPU = ("s1", "s2", "s3", "s4", "a1", "a2", "a3", "birch1", "birch2", "unbalance", "d31", "worms_2")
LIMIT = 36_000.0
PARTS = {"hubbub": "", "hubbub pure": "", "diffprivlib": "diffprivlib"}
"""Who is measured, and in whose venv."""


def mixture(width: int, clusters: int, size: int, seed: int) -> tuple[Any, Any]:
    random = np.random.default_rng([7, width, clusters, seed])
    centres = random.uniform(0.15, 0.85, (clusters, width))
    points = centres[random.integers(0, clusters, size)] + random.normal(0, SPREAD, (size, width))
    return np.clip(points, 0, 1), centres


def sipu(folder: Path, name: str) -> tuple[Any, int]:
    with (
        gzip.open(folder / f"sipu_{name}.data.gz", "rt") as data,
        gzip.open(folder / f"sipu_{name}.labels0.gz", "rt") as labels,
    ):
        return np.loadtxt(data), int(np.loadtxt(labels).max())


def inertia(points: Any, centres: Any) -> float:
    total = 0.0
    for start in range(0, len(points), 1 << 14):
        part = points[start : start + (1 << 14)]
        apart = (part**2).sum(1)[:, None] - 2 * part @ centres.T + (centres**2).sum(1)
        total += float(np.maximum(apart.min(axis=1), 0).sum())
    return total


def base(points: Any, clusters: int, start: Any) -> float:
    from sklearn.cluster import KMeans

    if start is None:
        return float(KMeans(clusters, n_init=10, random_state=0).fit(points).inertia_)
    return float(KMeans(clusters, init=start, n_init=1, random_state=0).fit(points).inertia_)


def fitted(part: str, points: Any, clusters: int, epsilon: float, bounds: Any) -> Any:
    if part == "diffprivlib":
        from diffprivlib.models import KMeans

        return KMeans(clusters, epsilon=epsilon, bounds=bounds).fit(points).cluster_centers_
    from hubbub.learning import KMeans as Private

    delta = DELTA if part == "hubbub" else 0.0
    return Private(clusters, epsilon=epsilon, delta=delta, bounds=bounds).fit(points).cluster_centers_


def cells(options: argparse.Namespace) -> Iterator[tuple[str, int, int, Any]]:
    """Names, features, clusters, and the points, truth and bounds of each repetition."""
    for width in options.widths:
        for clusters in options.clusters:
            made = ((*mixture(width, clusters, options.size, seed), (0.0, 1.0)) for seed in range(options.repetitions))
            yield f"mixture {options.size:.0e}", width, clusters, made
    for name in options.sets:
        if not (options.data / f"sipu_{name}.data.gz").exists():
            continue
        points, clusters = sipu(options.data, name)
        bounds = (points.min(axis=0).tolist(), points.max(axis=0).tolist())
        yield name, points.shape[1], clusters, [(points, None, bounds)] * options.repetitions


def measured(part: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    warnings.simplefilter("ignore")
    for name, width, clusters, repetitions in cells(options):
        ratios: dict[float, list[float]] = {epsilon: [] for epsilon in options.epsilons}
        times, known = [], {}
        for points, truth, bounds in repetitions:
            if truth is not None or not known:
                known["base"] = base(points, clusters, truth)
            for epsilon in options.epsilons:
                start = time.perf_counter()
                centres = fitted(part, points, clusters, epsilon, bounds)
                times.append(time.perf_counter() - start)
                ratios[epsilon].append(inertia(points, centres) / known["base"])
        for epsilon, found in ratios.items():
            cell = {"data": name, "width": width, "clusters": clusters, "epsilon": epsilon}
            yield {**cell, "ratios": found, "seconds": statistics.median(times)}


def speed(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A fit of a million rows, by hubbub and by scikit-learn."""
    from sklearn.cluster import KMeans

    for width, clusters in ((2, 20), (10, 20), (10, 50), (50, 20)):
        points, _ = mixture(width, clusters, options.speed, 0)
        cell = {"data": f"speed {options.speed:.0e}", "width": width, "clusters": clusters, "epsilon": 1.0}
        start = time.perf_counter()
        fitted("hubbub", points, clusters, 1.0, (0.0, 1.0))
        middle = time.perf_counter()
        KMeans(clusters, random_state=0).fit(points)
        yield {**cell, "seconds": middle - start, "sklearn": time.perf_counter() - middle}


def mean_and_doubt(values: list[float]) -> tuple[float, float]:
    doubt = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.mean(values), doubt


def compared(rows: list[dict[str, Any]]) -> None:
    """Notes, on hubbub's rows, how sure it is that their ratio is below diffprivlib's."""
    from scipy.stats import ttest_ind

    key = ("data", "width", "clusters", "epsilon")
    peers = {tuple(r[k] for k in key): r["ratios"] for r in rows if r["part"] == "diffprivlib" and "ratios" in r}
    for row in rows:
        peer = peers.get(tuple(row.get(k) for k in key))
        if row["part"] != "diffprivlib" and peer and min(len(peer), len(row.get("ratios", []))) > 1:
            row["p"] = float(ttest_ind(row["ratios"], peer, equal_var=False, alternative="less").pvalue)


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| data | features | clusters | epsilon | | inertia over scikit-learn's | p | s |", "|---" * 8 + "|"]
    order = {part: i for i, part in enumerate(PARTS)}
    speeds = [r for r in rows if "sklearn" in r]
    for row in sorted(
        (r for r in rows if "ratios" in r),
        key=lambda r: (r["data"], r["width"], r["clusters"], r["epsilon"], order[r["part"]]),
    ):
        mean, doubt = mean_and_doubt(row["ratios"])
        cells = [row["data"], row["width"], row["clusters"], f"{row['epsilon']:g}", row["part"]]
        cells += [f"{mean:.3f} ± {doubt:.3f}", f"{row['p']:.1g}" if "p" in row else "", f"{row['seconds']:.2f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += ["", "p: that hubbub's mean is no lower than diffprivlib's, by Welch's test.", ""]
    for row in speeds:
        times = row["seconds"] / row["sklearn"]
        lines.append(
            f"{row['data']}, {row['width']} features, {row['clusters']} clusters: hubbub {row['seconds']:.2f} s, "
            f"scikit-learn {row['sklearn']:.2f} s ({times:.2f} times)"
        )
    return "\n".join([*lines, *(f"{r['part']} missing: {r['missing']}" for r in rows if "missing" in r)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", default=Path(__file__).parents[2] / "shared/data/clustering_sipu")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--size", type=lambda n: int(float(n)), default=SIZE)
    parser.add_argument("--speed", type=lambda n: int(float(n)), default=10**6, help="rows of the timed fits; 0: none")
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--widths", type=int, nargs="*", default=list(WIDTHS))
    parser.add_argument("--clusters", type=int, nargs="+", default=list(CLUSTERS))
    parser.add_argument("--sets", nargs="*", default=list(SIPU))
    parser.add_argument("--quick", action="store_true", help="three repetitions, two epsilons, few sets")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.quick:
        o.repetitions, o.epsilons, o.sets, o.clusters = 3, [0.1, 1.0], o.sets[:1], [5, 20]
    if o.part:
        found = measured(o.part, o) if o.part != "speed" else speed(o)
        for row in found:
            print(json.dumps(row), flush=True)
        return
    passed: list[Any] = [o.data, "--repetitions", o.repetitions, "--size", o.size, "--speed", o.speed]
    passed += ["--epsilons", *o.epsilons, "--widths", *o.widths, "--clusters", *o.clusters, "--sets", *o.sets]
    rows = []
    for part, venv in {**PARTS, **({"speed": ""} if o.speed else {})}.items():
        rows += [{"part": part, **row} for row in run(venv, __file__, *passed, "--part", part, limit=LIMIT)]
    compared(rows)
    write("clustering", rows, table(rows))


if __name__ == "__main__":
    main()
