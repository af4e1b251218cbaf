"""``hubbub audit``: every shipped mechanism, what it claims, and what can be measured of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import track

from hubbub import plots
from hubbub.audit import Report, audit
from hubbub.audit.blackbox import FEWEST
from hubbub.audit.catalogue import Cell, cells
from hubbub.cli.attack.showing import at_least, say_where
from hubbub.errors import ParameterError

LINE = "{:<24}{:>8}{:>11}{:>7}{:>11}{:>7}  {}"
TITLES = LINE.format("mechanism", "epsilon", "claimed", "delta", "at least", "ratio", "")


@dataclass(frozen=True)
class Plan:
    """What to audit, with how many releases of each input, in how many processes."""

    cells: tuple[Cell, ...]
    samples: int
    jobs: int


def planned(words: str, samples: int, jobs: int) -> Plan:
    """The mechanisms whose names have the words; refused if there are none, before any work."""
    chosen = tuple(cell for cell in cells() if words.lower() in cell.name.lower())
    if not chosen:
        raise ParameterError("only", words, "is in no mechanism's name", "without it, all are audited")
    return Plan(chosen, at_least("samples", samples, FEWEST), at_least("jobs", jobs, 1))


def run(plan: Plan, *, as_json: bool, picture: Path | None = None) -> bool:
    """Audits all of them; prints a line as each ends, or JSON, and draws them if asked; whether all claims hold."""
    shown = track(
        _reports(plan),
        "auditing",
        total=len(plan.cells),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    rows = []
    if not as_json:
        print(TITLES, flush=True)
    for cell, report in zip(plan.cells, shown, strict=True):
        rows.append({"name": cell.name, "price": cell.price, **report.to_dict()})
        if not as_json:
            print(line(cell, report), flush=True)
    if as_json:
        print(json.dumps(rows))
    if picture:
        plots.save(plots.audit_table(rows), picture)
        say_where(picture, as_json=as_json)
    return all(row["holds"] for row in rows)


def _reports(plan: Plan) -> Iterator[Report]:
    work = partial(_audited, samples=plan.samples)
    if plan.jobs == 1:
        yield from map(work, plan.cells)
        return
    with ProcessPoolExecutor(plan.jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, plan.cells)


def _audited(cell: Cell, samples: int) -> Report:
    return audit(cell.mechanism, cell.x, cell.neighbour, samples=samples * cell.effort)


def line(cell: Cell, report: Report) -> str:
    """Mechanism, claim, measured lower bound and their ratio, under ``TITLES``."""
    mu = report.mu_lower is not None
    claimed = f"mu {report.claimed_mu:.3f}" if mu else f"{report.claimed:.3f}"
    measured = f"mu {report.mu_lower:.3f}" if mu else f"{report.epsilon_lower:.3f}"
    return LINE.format(
        cell.name,
        f"{cell.price:g}",
        claimed,
        f"{report.delta:.0e}" if report.delta else "0",
        measured,
        f"{report.power:.3f}",
        "holds" if report.holds else "REFUTED",
    )
