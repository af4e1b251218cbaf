"""Excess risk of noisy gradient descent against people, coordinates and epsilon, on the data that are worst for each.

The loss is -z.w over a ball of radius 1, rows z of length at most 1: Lipschitz and convex, nothing more. The theory
(the notes' Theorem 12 with the noise of Bassily, Smith and Thakurta, 2014) says sqrt(d) / (n epsilon) up to logarithms,
and no method does better on the worst data. How long the mean row is decides how bad data are: every cell takes the
worst of several lengths, each the mean of several runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import product
from typing import Any

import numpy as np
from report import RESULTS, write

from hubbub import plots
from hubbub.learning import descend_privately

DELTA = 1e-6
STEPS = 100
MIDDLE = {"n": 4000, "d": 16, "epsilon": 1.0}
ALONG: dict[str, list[float]] = {
    "n": [1000, 2000, 4000, 8000, 16000],
    "d": [4, 8, 16, 32, 64],
    "epsilon": [0.25, 0.5, 1, 2, 4],
}
FORETOLD = {"n": -1.0, "d": 0.5, "epsilon": -1.0}
LENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Of the mean row, in units of sqrt(d) / (n epsilon)."""


def excess(n: int, d: int, epsilon: float, length: float, runs: int) -> float:
    """The mean over runs of the risk of the later half of the iterates, averaged, less the least risk."""
    random, found = np.random.default_rng([n, d, round(100 * epsilon), round(100 * length)]), []
    mean = min(0.5, length * d**0.5 / (n * epsilon))
    for _ in range(runs):
        way = random.normal(size=d)
        way /= np.linalg.norm(way)
        signs = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
        rows = mean * way + 0.5 * signs * random.permutation(way)
        # the least step that theory asks for grows with what noise allows: the radius over the length of a noisy step
        path, _ = descend_privately(
            lambda w, z: -z,  # noqa: ARG005 - the slope is the same everywhere
            rows,
            np.zeros(d),
            steps=STEPS,
            size=1 / (STEPS**0.5 * max(mean, (STEPS * d) ** 0.5 * 4 / (n * epsilon))),
            radius=1,
            clip=1,
            epsilon=epsilon,
            delta=DELTA,
        )
        centre = rows.mean(axis=0)
        found.append(float(np.linalg.norm(centre) - path[STEPS // 2 :].mean(axis=0) @ centre))
    return float(np.mean(found))


def table(rows: list[dict[str, Any]]) -> str:
    """The worst excess of every cell, and the fitted exponents."""
    lines = ["| along | value | worst excess risk |", "|---|---|---|"]
    lines += [f"| {r['along']} | {r['value']:g} | {r['excess']:.3g} |" for r in rows]
    for name, wanted in FORETOLD.items():
        cells = [r for r in rows if r["along"] == name]
        slope = np.polyfit(np.log([r["value"] for r in cells]), np.log([r["excess"] for r in cells]), 1)[0]
        lines += ["", f"Exponent of {name}: {slope:.2f} (foretold {wanted:g})."]
    return "\n".join(lines)


def picture(rows: list[dict[str, Any]]) -> Any:
    """Excess risk along each, on logarithmic axes."""
    import altair

    def one(name: str) -> Any:
        cells = [r for r in rows if r["along"] == name]
        return (
            altair.Chart(altair.Data(values=cells), width=200, height=200)
            .mark_line(point=True)
            .encode(
                x=altair.X("value:Q", scale=altair.Scale(type="log"), title=name),
                y=altair.Y("excess:Q", scale=altair.Scale(type="log"), title="worst excess risk"),
            )
        )

    return plots.side_by_side(*(one(name) for name in FORETOLD), title="Noisy gradient descent on its worst data")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    o = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, values in ALONG.items():
        for value in values:
            at = {**MIDDLE, name: value}
            cells = product(LENGTHS, [o.runs])
            worst = max(excess(int(at["n"]), int(at["d"]), at["epsilon"], length, runs) for length, runs in cells)
            rows.append({"along": name, "value": value, "excess": worst})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    write("risk", rows, table(rows))
    plots.save(picture(rows), RESULTS / "risk.png")


if __name__ == "__main__":
    main()
