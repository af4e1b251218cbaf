"""Logistic regression: the share of wrong labels of hubbub, diffprivlib and plain scikit-learn; and the time of a fit.

Adult (one-hot, its own test rows), bank marketing (one-hot, without the length of the call) and breast cancer; a fifth
of the latter two's rows, drawn anew with every seed, is kept for testing. Features lie within public bounds, mapped to
0..1, the same for all. diffprivlib offers no delta, and its guarantee is for replacing a row; hubbub is asked in both
relations, with delta 1e-5 and without.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from regression import CERTAIN, EPSILONS, VARIANTS, columns, shown, verdict
from report import write
from venvs import ROOT, run

LIMIT = 3000.0
TIMED = (10**5, 10**6)
WIDTH = 20


def hot(values: Any, levels: list[str]) -> Any:
    return np.asarray(values)[:, None] == np.array(levels)[None, :]


def adult(data: Path, _: int) -> Any:
    """Public bounds of six numbers, one column for every value of the other eight columns that the notes name."""
    numbers, tops = [0, 2, 4, 10, 11, 12], [90, 1.5e6, 16, 1e5, 4500, 100]
    words = [1, 3, 5, 6, 7, 8, 9, 13]
    parts = []
    for name in ("adult.data.gz", "adult.test.gz"):
        with gzip.open(data / "adult" / name, "rt") as file:
            parts.append(np.array([row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]))
    levels = [sorted(set(parts[0][:, c])) for c in words]
    found = []
    for part in parts:
        scaled = np.clip(part[:, numbers].astype(float) / tops, 0, 1)
        rows = np.hstack([scaled, *(hot(part[:, c], known) for c, known in zip(words, levels, strict=True))])
        found += [rows.astype(float), np.char.startswith(part[:, 14], ">50K").astype(int)]
    return (*found, len(numbers) + len(words))


def bank(data: Path, seed: int) -> Any:
    table = columns(data / "bank_marketing" / "bank-full.csv.gz")
    numbers = {"day": (1, 31), "campaign": (1, 40), "pdays": (-1, 400), "previous": (0, 20), "age": (18, 95)}
    numbers["balance"] = (-2000, 20000)
    parts = [
        np.clip((table[n].astype(float) - low) / (high - low), 0, 1)[:, None] for n, (low, high) in numbers.items()
    ]
    words = ["poutcome", "job", "marital", "education", "default", "housing", "loan", "contact", "month"]
    parts += [hot(table[name], sorted(set(table[name]))) for name in words]
    return split(np.hstack(parts).astype(float), (table["y"] == "yes").astype(int), seed, len(numbers) + len(words))


def cancer(data: Path, seed: int) -> Any:
    """Bounds are twice what was ever seen."""
    table = columns(data / "sklearn" / "breast_cancer.csv.gz")
    rows = np.stack([values.astype(float) for values in list(table.values())[:-1]], axis=1)
    return split(rows / (2 * rows.max(axis=0)), table["target"].astype(float).astype(int), seed, rows.shape[1])


def split(rows: Any, labels: Any, seed: int, most: int) -> Any:
    order = np.random.default_rng([17, seed]).permutation(len(rows))
    train, test = order[len(rows) // 5 :], order[: len(rows) // 5]
    return rows[train], labels[train], rows[test], labels[test], most


KINDS: dict[str, Callable[[Path, int], Any]] = {"adult": adult, "bank": bank, "breast cancer": cancer}


def hubbub_part(neighbours: Any, delta: float) -> Callable[[float, int], Any]:
    from hubbub.learning import LogisticRegression

    return lambda epsilon, _: LogisticRegression(
        epsilon=epsilon, delta=delta, neighbours=neighbours, bounds=(0, 1), classes=[0, 1]
    )


def diffprivlib_part(epsilon: float, most: int) -> Any:
    from diffprivlib.models import LogisticRegression

    return LogisticRegression(epsilon=epsilon, data_norm=most**0.5, max_iter=1000)


def plain_part(*_: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def parts(name: str) -> dict[tuple[str, float], Any]:
    if name == "hubbub":
        return {variant: hubbub_part(*variant) for variant in VARIANTS}
    return {("replace", 0.0): diffprivlib_part} if name == "diffprivlib" else {("", 0.0): plain_part}


def results(name: str, data: Path, seeds: int) -> None:
    """Prints a JSON line for every cell."""
    warnings.simplefilter("ignore")
    version = metadata.version({"plain": "scikit-learn"}.get(name, name))
    for kind, source in KINDS.items():
        fixed = source(data, 0)
        for (neighbours, delta), part in parts(name).items():
            for epsilon in EPSILONS if name != "plain" else (0.0,):
                errors = []
                for seed in range(seeds):
                    rows, labels, tests, truth, most = fixed if kind == "adult" else source(data, seed)
                    model = part(epsilon, most).fit(rows, labels)
                    errors.append(float(np.mean(model.predict(tests) != truth)))
                    if name == "plain" and kind == "adult":
                        errors *= seeds
                        break
                row = {"part": name, "version": version, "kind": kind, "neighbours": neighbours, "delta": delta}
                print(json.dumps({**row, "epsilon": epsilon, "errors": errors}), flush=True)
    if name != "diffprivlib":
        timed(name)


def timed(name: str) -> None:
    """Seconds of a fit on made-up rows, the least of three."""
    for size in TIMED:
        random = np.random.default_rng(size)
        rows = random.uniform(0, 1, (size, WIDTH))
        labels = (rows @ random.normal(size=WIDTH) + random.logistic(size=size) / 4 > 0).astype(int)
        part = parts(name)["add-remove", 1e-5] if name == "hubbub" else plain_part
        times = []
        for _ in range(3):
            start = time.perf_counter()
            part(1.0, WIDTH).fit(rows, labels)
            times.append(time.perf_counter() - start)
        print(json.dumps({"part": name, "size": size, "seconds": min(times)}), flush=True)


def table(rows: list[dict[str, Any]]) -> str:
    """Medians over the seeds, with hubbub's wins against diffprivlib on the same rows; and ratios of time."""
    missing = [f"{row['part']} is missing: {row['missing']}" for row in rows if "missing" in row]
    cells = [row for row in rows if "errors" in row]
    found = {(r["part"], r["kind"], r["neighbours"], r["delta"], r["epsilon"]): r["errors"] for r in cells}
    heads = ["data", "epsilon", "plain", "diffprivlib", *(f"{n}, delta {d:g}" for n, d in VARIANTS)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for kind in KINDS:
        for epsilon in EPSILONS:
            peer = found.get(("diffprivlib", kind, "replace", 0.0, epsilon), [])
            line = [kind, f"{epsilon:g}", shown(found.get(("plain", kind, "", 0.0, 0.0), [])), shown(peer)]
            for neighbours, delta in VARIANTS:
                ours = found.get(("hubbub", kind, neighbours, delta, epsilon), [])
                line.append(shown(ours) + verdict(ours, peer))
            lines.append("| " + " | ".join(line) + " |")
    words = [
        f"Medians (means ± standard errors) of wrong labels. +, -: better, worse than diffprivlib, {CERTAIN} sigma."
    ]
    times = {(r["part"], r["size"]): r["seconds"] for r in rows if "seconds" in r}
    for size in TIMED:
        if ("hubbub", size) in times and ("plain", size) in times:
            ratio = times["hubbub", size] / times["plain", size]
            words.append(f"A fit of {size:.0e} rows, {WIDTH} features: {ratio:.2f} times as long as scikit-learn's.")
    return "\n".join([*lines, "", *words, *missing])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.part:
        results(o.part, o.data, o.seeds)
        return
    rows = []
    for part, venv in (("hubbub", "hubbub"), ("diffprivlib", "diffprivlib"), ("plain", "diffprivlib")):
        asked = ("--part", part, "--data", o.data, "--seeds", o.seeds)
        rows += [{"part": part, **row} for row in run(venv, __file__, *asked, limit=LIMIT)]
    write("classification", rows, table(rows))


if __name__ == "__main__":
    main()
