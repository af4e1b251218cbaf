"""Plants every known bug in a copy of the tree, one at a time, and sees whether its tests notice (make mutants).

python tests/mutants/run.py              all
python tests/mutants/run.py lock budget  those whose name or file contains one of the words

Exit status 1 when a fragment no longer occurs exactly once, when the tests fail without any bug, or when fewer than
95 % are caught.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mutants import (
    accounting,
    budgets,
    clusters,
    federations,
    ledgers,
    losses,
    numbers,
    pages,
    risks,
    surveys,
    teachers,
    totals,
    trainings,
)
from mutants.bug import ROOT, Bug

ROOMS = (
    numbers,
    losses,
    budgets,
    accounting,
    ledgers,
    surveys,
    pages,
    totals,
    clusters,
    risks,
    trainings,
    teachers,
    federations,
)
BUGS: list[Bug] = [bug for room in ROOMS for bug in room.BUGS]
WORKERS = int(os.environ.get("CORES", "2"))
NEEDED = 0.95
PATIENCE = 240
"""Seconds after which a bug counts as noticed: the tests hang."""


@dataclass(frozen=True)
class Verdict:
    """What the tests said about one bug."""

    bug: Bug
    caught: bool
    by: str
    seconds: float


def copy_of_tree(into: Path) -> Path:
    """The sources and tests, without anything compiled."""
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, into / part, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    shutil.copy(ROOT / "pyproject.toml", into / "pyproject.toml")
    return into


def run_tests(tree: Path, tests: tuple[str, ...], patience: float = PATIENCE) -> tuple[bool, str]:
    """Whether all pass, and the first that does not."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not long"]
    quiet = {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [*command, "--hypothesis-profile=mutants", *tests],
            cwd=tree,
            env=os.environ | quiet,
            capture_output=True,
            text=True,
            timeout=patience,
        )
    except subprocess.TimeoutExpired:
        return False, "never ends"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode == 0, failed[0].split(" - ")[0].split("::", 1)[-1] if failed else done.stdout[-300:]


def examine(bug: Bug, trees: SimpleQueue[Path]) -> Verdict:
    """Plants, tests, heals."""
    tree, start = trees.get(), time.perf_counter()
    before = bug.plant(tree)
    try:
        passed, by = run_tests(tree, bug.tests)
    finally:
        bug.heal(tree, before)
        trees.put(tree)
    verdict = Verdict(bug, not passed, "" if passed else by, time.perf_counter() - start)
    print("." if verdict.caught else "M", end="", flush=True)
    return verdict


def main(words: list[str]) -> int:
    """Runs and reports."""
    chosen = [b for b in BUGS if not words or any(w in f"{b.name} {b.file}" for w in words)]
    stale = [b for b in BUGS if b.occurrences() != 1]
    for bug in stale:
        print(f"stale: {bug.name!r}: its fragment occurs {bug.occurrences()} times in {bug.file}")
    if stale:
        return 1
    with tempfile.TemporaryDirectory() as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for k in range(WORKERS):
            trees.put(copy_of_tree(Path(folder) / str(k)))
        healthy = trees.get()
        passed, by = run_tests(healthy, tuple(sorted({t for b in chosen for t in b.tests})), 10 * PATIENCE)
        if not passed:
            print(f"the tests fail without any bug: {by}")
            return 1
        trees.put(healthy)
        with ThreadPoolExecutor(WORKERS) as pool:
            verdicts = list(pool.map(lambda bug: examine(bug, trees), chosen))
    print()
    for v in verdicts:
        print(f"{'caught' if v.caught else 'MISSED':7} {v.seconds:5.1f}s  {v.bug.file:24} {v.bug.name:48} {v.by}")
    caught = sum(v.caught for v in verdicts)
    share = caught / len(verdicts)
    print(f"{caught} of {len(verdicts)} planted bugs caught: {share:.1%} (at least {NEEDED:.0%} wanted)")
    return 0 if share >= NEEDED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
