"""Adult by PATE: 250 teachers vote on who earns more than 50K, a student learns from the labels they agree on.

    python examples/people/adult_pate.py --data DATA/adult [--epsilon 1.9] [--sigma 220] [--runs 5] [--jobs 2]

DATA/adult holds adult.data.gz, adult.test.gz and adult.names. The rows of the first are private; of the second, all but
4,000 are public and without labels, and the student is judged by those. Columns' bounds and categories are those of
adult.names, which is public. One line of JSON for each run, and one for the mean.

Many labels from very noisy votes teach this student more than few from less noisy ones. That was found by the public
rows' true labels; where there are none, choosing costs too.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import hubbub as hb
from hubbub.learning.pate import PATE, GaussianMax, most_answers

DELTA = 1e-5
NUMBERS = {0: 100.0, 4: 16.0, 10: 1e5, 11: 5e3, 12: 100.0}
"""Columns that hold numbers, and what stands for 1; gains and losses by their logarithm. Weights are left out."""
CATEGORIES = (1, 3, 5, 6, 7, 8, 9, 13)
HELD_BACK = 4000


def read(path: Path) -> list[list[str]]:
    """The rows of a file, as text."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return [[cell.strip() for cell in line.split(",")] for line in lines if line.count(",") == 14]


def categories(names: Path) -> dict[int, list[str]]:
    """What adult.names says may stand in each column."""
    lines = [line for line in names.read_text().splitlines() if ":" in line and not line.startswith("|")]
    return {k: [v.strip() for v in lines[k].split(":")[1].rstrip(".").split(",")] for k in CATEGORIES}


def encoded(rows: list[list[str]], known: dict[int, list[str]]) -> tuple[np.ndarray, np.ndarray]:
    """Every row by itself as numbers up to about 1, and whether it earns more."""
    columns = []
    for k, largest in NUMBERS.items():
        values = np.array([float(row[k]) for row in rows])
        columns.append(np.log1p(values) / np.log1p(largest) if largest > 1000 else values / largest)
    ages = columns[0]
    columns += [ages**2, columns[4] * columns[1]]
    for k, words in known.items():
        columns += [np.array([row[k] == word for row in rows], float) for word in words]
    return np.column_stack(columns).astype(np.float32), np.array([row[14].startswith(">") for row in rows], np.int64)


def main() -> None:
    """Reads, teaches and judges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epsilon", type=float, default=1.9)
    parser.add_argument("--sigma", type=float, default=220)
    parser.add_argument("--teachers", type=int, default=250)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    known = categories(given.data / "adult.names")
    rows, labels = encoded(read(given.data / "adult.data.gz"), known)
    others, truth = encoded(read(given.data / "adult.test.gz"), known)
    aggregator, found = GaussianMax(given.sigma), []
    answers = most_answers(aggregator, epsilon=given.epsilon, delta=DELTA)
    for run in range(given.runs):
        start = time.perf_counter()
        order = np.random.default_rng(run).permutation(len(others))
        held, public = order[:HELD_BACK], order[HELD_BACK:]
        model = PATE(
            LogisticRegression(C=5, max_iter=300),
            LogisticRegression(C=0.3, max_iter=500),
            teachers=given.teachers,
            aggregator=aggregator,
            classes=[0, 1],
            answers=answers,
            budget=hb.Budget(given.epsilon, DELTA),
            jobs=given.jobs,
        ).fit(rows, labels, others[public])
        right = 100 * np.mean(model.predict(others[held]) == truth[held])
        found.append(right)
        votes = model.for_owner().votes.counts
        line = {
            "run": run, "epsilon": given.epsilon, "spent": model.loss_.epsilon(DELTA), "delta": DELTA,
            "answers": answers, "student": round(float(right), 2),
            "labels right": round(float(100 * np.mean(model.labels_ == truth[public][:answers])), 2),
            "votes right, private": round(float(100 * np.mean(votes.argmax(1) == truth[public])), 2),
            "seconds": round(time.perf_counter() - start, 1),
        }  # fmt: skip
        print(json.dumps(line), flush=True)
    openly = RandomForestClassifier(200, min_samples_leaf=3, random_state=0).fit(rows, labels)
    line = {"summary": True, "epsilon": given.epsilon, "runs": given.runs, "mean": round(float(np.mean(found)), 2)}
    print(json.dumps(line | {"forest without privacy": round(float(100 * openly.score(others, truth)), 2)}))


if __name__ == "__main__":
    main()
