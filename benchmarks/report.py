"""What benchmarks share: timing, the machine's description, JSON out and a table made from it."""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The median wall time of ``work`` after one warm-up."""
    work()
    return warm_seconds(work, repeats)


def warm_seconds(work: Callable[[], object], repeats: int, before: Callable[[], object] = gc.collect) -> float:
    """The median wall time of ``work``, already warm; what comes ``before`` each call is not counted."""
    times = []
    for _ in range(repeats):
        gc.collect()
        before()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def write(name: str, rows: list[dict[str, Any]], table: str) -> None:
    """Writes results/NAME.json and results/NAME.md, and prints the table."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    packages = ("hubbub", "numpy", "opendp", "diffprivlib", "dp-accounting", "prv-accountant", "opacus", "autodp")
    packages += ("duckdb", "ibis-framework", "polars")
    about = {
        "commit": commit.stdout.strip(),
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "versions": {p: metadata.version(p) for p in packages if _installed(p)},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    heading = f"{name}: {about['date']}, commit {about['commit']}, {about['cores']} cores, " + ", ".join(
        f"{p} {v}" for p, v in about["versions"].items()
    )
    (RESULTS / f"{name}.md").write_text(f"{heading}\n\n{table}\n")
    print(heading, table, sep="\n\n")


def _installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
