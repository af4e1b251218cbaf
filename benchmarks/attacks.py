"""Reconstruction: time and peak memory of each attack, in a process of its own; dense numpy beside it where it fits.

Noise has a standard deviation of c sqrt(people), so that accuracy can be held against theory, Phi(sqrt(k - 1)/(4 c)).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from report import write

from hubbub.attacks import AllSubsets, RandomSubsets, exact, made_up_bits, predicted_accuracy, reconstruct

JOBS: dict[str, dict[str, Any]] = {
    "least squares, 1 000 people": {"people": 1000, "k": 5, "c": 0.25},
    "least squares, 2 000 people": {"people": 2000, "k": 4, "c": 0.25},
    "numpy lstsq (dense), 2 000 people": {"people": 2000, "k": 4, "c": 0.25, "method": "dense"},
    "least squares, 10 000 people": {"people": 10_000, "k": 4, "c": 0.25},
    "least squares, 20 000 people": {"people": 20_000, "k": 4, "c": 0.25},
    "L1 program, 256 people, a fifth gross errors": {"people": 256, "k": 5, "c": 0, "gross": 0.2, "method": "lp"},
    "L1 program, 1 000 people": {"people": 1000, "k": 5, "c": 0.25, "method": "lp"},
    "L1 program, 1 000 people, a fifth gross errors": {"people": 1000, "k": 5, "c": 0, "gross": 0.2, "method": "lp"},
    "max-error program, 1 000 people": {"people": 1000, "k": 5, "c": 0.25, "method": "lp", "objective": "max-error"},
    "exhaustive, 20 people, all subsets": {"people": 20, "method": "exhaustive"},
    "exhaustive, 24 people, 480 random subsets": {"people": 24, "k": 20, "c": 0, "method": "exhaustive"},
}


def attack(people: int, k: int | None = None, c: float = 0, gross: float = 0, **options: Any) -> dict[str, Any]:
    asked = AllSubsets(people) if k is None else RandomSubsets(k * people, people, 1)
    secret, generator = made_up_bits(people, 0.5, 2), np.random.default_rng(3)
    answers = exact(secret)(asked) + generator.normal(0, c * people**0.5, len(asked))
    wild = generator.random(len(asked)) < gross
    answers[wild] = generator.uniform(0, people, int(wild.sum()))
    start = time.perf_counter()
    if options.get("method") == "dense":
        matrix = np.unpackbits(asked.packed, axis=0, count=people, bitorder="little").T.astype(np.float64)
        accuracy = float(np.mean((np.linalg.lstsq(matrix, answers)[0] > 0.5) == secret))
    else:
        accuracy = reconstruct(asked, answers, **options).accuracy(secret)
    taken = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    squares = options.get("method") in (None, "dense")
    theory = predicted_accuracy(c * people**0.5, people=people, count=len(asked)) if squares else None
    return {"questions": len(asked), "seconds": taken, "peak_mib": peak, "accuracy": accuracy, "theory": theory}


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| attack | questions | seconds | peak MiB | bits right | theory |", "|---|---|---|---|---|---|"]
    for row in rows:
        theory = "-" if row["theory"] is None else f"{row['theory']:.3f}"
        figures = f"{row['questions']} | {row['seconds']:.2f} | {row['peak_mib']} | {row['accuracy']:.3f} | {theory}"
        lines.append(f"| {row['attack']} | {figures} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", choices=JOBS, help="run one attack here and print JSON")
    options = parser.parse_args()
    if options.job:
        print(json.dumps(attack(**JOBS[options.job])))
        return
    rows = []
    for job in JOBS:
        run = subprocess.run([sys.executable, __file__, "--job", job], capture_output=True, text=True, check=True)
        rows.append({"attack": job, **json.loads(run.stdout)})
        print(table(rows[-1:]).splitlines()[-1], file=sys.stderr)
    write("attacks", rows, table(rows))


if __name__ == "__main__":
    main()
