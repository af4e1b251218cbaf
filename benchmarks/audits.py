"""Audits: releases needed to refute planted bugs, by hubbub and by the histogram method of stochastic testers.

The other method is a plain re-implementation of what Google's stochastic tester is described to do: data sets of three
records from a Halton sequence, every subset against those with one record less, a histogram of outputs each, bucket
against bucket. It is made sound at the same confidence (exact binomial bounds, split over buckets), so that both
refute a true claim once in a million times at most.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from report import write

import hubbub as hb
from hubbub.audit import audit, worst_pair
from hubbub.audit.blackbox import CONFIDENCE
from hubbub.audit.bounds import at_least, at_most

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from audit.broken import Broken, broken, laplace

BUCKETS = 32
LADDER = (300, 1000, 3000, 10_000, 30_000, 100_000)
"""Releases of each input that are tried in turn."""
TRIES = 3
"""A bug counts as caught with so many releases if each of these tries catches it."""
DATASETS, PER_HISTOGRAM = 50, 10_000


def histogram_refutes(release: Callable[[Any], Any], x: Any, y: Any, epsilon: float, delta: float, runs: int) -> bool:
    """Whether some bucket is likelier on one input than the claim allows, at the audits' confidence."""
    outputs = [[_number(release(v)) for _ in range(runs)] for v in (x, y)]
    pooled = np.concatenate(outputs)
    finite = pooled[np.isfinite(pooled)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    edges = np.linspace(low, high, BUCKETS - 1) if high > low else np.array([low])
    counts = [np.bincount(_buckets(np.array(o), edges), minlength=BUCKETS + 1) for o in outputs]
    failure = (1 - CONFIDENCE) / (4 * (BUCKETS + 1))
    for one, other in (counts, counts[::-1]):
        for hits, other_hits in zip(one.tolist(), other.tolist(), strict=True):
            reach = math.exp(min(epsilon, 700)) * at_most(other_hits, runs, failure) + delta
            if hits and at_least(hits, runs, failure) > reach:
                return True
    return False


def _buckets(outputs: Any, edges: Any) -> Any:
    return np.where(np.isfinite(outputs), np.searchsorted(edges, outputs), BUCKETS)


def _number(output: Any) -> float:
    """An output as the number a histogram needs: of lists and tables the sum, as a tester of sums would."""
    if isinstance(output, dict):
        output = list(output.values())
    return float(sum(map(float, output))) if isinstance(output, list | tuple) else float(output)


def needed(refutes: Callable[[int], bool]) -> int | None:
    """The fewest releases of each input on the ladder that always refute, None if none do."""
    return next((n for n in LADDER if all(refutes(n) for _ in range(TRIES))), None)


def known_pair(bug: Broken) -> dict[str, Any]:
    loss = bug.claimed if isinstance(bug.claimed, hb.Loss) else hb.PureDP(bug.claimed)
    release, epsilon = getattr(bug.release, "release", bug.release), loss.epsilon(bug.delta)

    def by_audit(runs: int) -> bool:
        return not audit(bug.release, bug.x, bug.neighbour, samples=runs, claimed=bug.claimed, delta=bug.delta).holds

    def by_histogram(runs: int) -> bool:
        return histogram_refutes(release, bug.x, bug.neighbour, epsilon, bug.delta, runs)

    return {"bug": bug.name, "hubbub": needed(by_audit), "histogram": needed(by_histogram)}


SEARCHED: dict[str, Callable[[list[float]], float]] = {
    "sum that clips to 3 but claims 1": lambda rows: sum(min(max(r, 0), 3) for r in rows) + laplace(1.0),
    "no noise on an empty table": lambda rows: min(len(rows), 1) + laplace(1.0) if rows else 0.0,
    "noise for n records on a mean": lambda rows: sum(rows) / max(1, len(rows)) / 100 + laplace(1 / max(1, len(rows))),
    "nan passes through": lambda rows: sum(r if math.isnan(r) else min(max(r, 0), 1) for r in rows) + laplace(1.0),
    "counts records twice from three on": lambda rows: len(rows) * (1 if len(rows) < 3 else 2) + laplace(1.0),
}
DOMAIN = [0.0, 1.0, 100.0, math.nan]


def halton(base: int) -> Iterator[float]:
    for k in count(1):
        value, part = 0.0, 1.0
        while k:
            k, digit = divmod(k, base)
            part /= base
            value += digit * part
        yield value


def searched(name: str) -> dict[str, Any]:
    """Releases until the bug is refuted, looking for the pair as well."""
    asked = 0

    def release(rows: list[float]) -> float:
        nonlocal asked
        asked += 1
        return SEARCHED[name](rows)

    *_, report = worst_pair(release, DOMAIN, size=2, samples=PER_HISTOGRAM, claimed=1.0)
    ours = {"hubbub": None if report.holds else asked}
    asked, theirs = 0, None
    points = zip(halton(2), halton(3), halton(5), strict=True)
    for point, _ in zip(points, range(DATASETS), strict=False):
        rows = [100 * v for v in point]
        subsets = [[r for k, r in enumerate(rows) if mask >> k & 1] for mask in range(8)]
        pairs = ((s, s[:k] + s[k + 1 :]) for s in subsets for k in range(len(s)))
        if any(histogram_refutes(release, s, t, 1.0, 0.0, PER_HISTOGRAM) for s, t in pairs):
            theirs = asked
            break
    return {"bug": name, **ours, "histogram": theirs}


def table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for pair in ("given", "searched"):
        lines += ["", f"| pair {pair}: bug | releases, hubbub | releases, histogram method |", "|---|---|---|"]
        for row in (r for r in rows if r["pair"] == pair):
            figures = (f"{row[k]}" if row[k] else "not caught" for k in ("hubbub", "histogram"))
            lines.append(f"| {row['bug']} | {' | '.join(figures)} |")
    return "\n".join(lines[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="only bugs whose name has these words")
    words = parser.parse_args().only
    rows = []
    for bug in broken():
        if words in bug.name:
            rows.append({"pair": "given", **known_pair(bug)})
            print(rows[-1], file=sys.stderr)
    for name in SEARCHED:
        if words in name:
            rows.append({"pair": "searched", **searched(name)})
            print(rows[-1], file=sys.stderr)
    write("audits", rows, table(rows))


if __name__ == "__main__":
    main()
