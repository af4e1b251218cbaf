"""``hubbub audit``: every shipped mechanism, what it claims, and what can be measured of it."""

from __future__ import annotations

import json
import sys

from rich.console import Console
from rich.progress import track
from rich.table import Table

from hubbub.audit import Report, audit
from hubbub.audit.catalogue import Cell, cells


def run(samples: int, words: str, *, as_json: bool) -> bool:
    """Audits every cell whose name has the words; prints a table or JSON; whether all claims hold."""
    chosen = [cell for cell in cells() if words.lower() in cell.name.lower()]
    shown = track(chosen, "auditing", console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
    found = [(cell, audit(cell.mechanism, cell.x, cell.neighbour, samples=samples)) for cell in shown]
    if as_json:
        print(json.dumps([{"name": cell.name, **report.to_dict()} for cell, report in found]))
    else:
        Console().print(table(found))
    return all(report.holds for _, report in found)


def table(found: list[tuple[Cell, Report]]) -> Table:
    """Mechanism, claim, measured lower bound and their ratio."""
    made = Table("mechanism", "claimed", "delta", "measured at least", "ratio", "")
    for cell, report in found:
        mu = report.mu_lower is not None
        made.add_row(
            cell.name,
            f"mu {report.claimed_mu:.4f}" if mu else f"{report.claimed:.4f}",
            f"{report.delta:g}",
            f"mu {report.mu_lower:.4f}" if mu else f"{report.epsilon_lower:.4f}",
            f"{report.power:.3f}",
            "holds" if report.holds else "[bold red]REFUTED[/]",
        )
    return made
