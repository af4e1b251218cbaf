"""Questions of a file from the command line: what columns may be, the answer, and what it would cost."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

import hubbub as hb
from hubbub import plots
from hubbub.errors import ParameterError
from hubbub.queries import Answer, Explanation, Table

FORMS = "write NAME=LOW:HIGH, NAME=one,two,three or NAME=key"


def declared(columns: list[str]) -> dict[str, Any]:
    """Column declarations as they are written on the command line.

    >>> declared(["age=0:120", "ward=north,south", "shop=key", "day=2020-01-01:2020-12-31"])["ward"]
    ['north', 'south']
    """
    found: dict[str, Any] = {}
    for text in columns:
        name, sign, spec = text.partition("=")
        if not sign or not name or not spec:
            raise ParameterError("column", text, "is not a declaration", FORMS)
        found[name] = _spec(text, spec)
    return found


def _spec(text: str, spec: str) -> Any:
    if spec == "key":
        return "key"
    low, sign, high = spec.partition(":")
    if sign:
        try:
            return _bound(low), _bound(high)
        except ValueError:
            raise ParameterError("column", text, "has bounds that are no numbers or dates", FORMS) from None
    values = spec.split(",")
    if {v.lower() for v in values} == {"true", "false"}:
        return [True, False]
    if all(v.lstrip("-").isdigit() for v in values):
        return [int(v) for v in values]
    return values


def _bound(text: str) -> Any:
    if text.count("-") >= 2 and not text.startswith("-"):
        return dt.date.fromisoformat(text)
    return int(text) if text.lstrip("-").isdigit() else float(text)


def opened(
    path: Path, columns: list[str], unit: str | None, caps: dict[str, Any], epsilon: float, delta: float
) -> Table:
    """The file as a protected table with a budget of exactly this question's price."""
    budget = hb.Budget(epsilon=epsilon, delta=delta)
    bounds = caps if unit else {}
    return hb.protect(path, unit=unit, columns=declared(columns), budget=budget, **bounds)


def ask(table: Table, sql: str, epsilon: float, delta: float) -> Answer:
    """The answer, with a sign of life while the engine works."""
    with Console(stderr=True).status("asking …"):
        return table.sql(sql, epsilon=epsilon, delta=delta)


def show(answer: Answer, as_json: bool, picture: Path | None) -> None:
    """Prints the answer, and draws it where asked."""
    typer.echo(answer.to_json() if as_json else repr(answer))
    if picture is not None:
        typer.echo(f"picture: {plots.save(answer.plot(), picture)}", err=True)


def foretell(explanation: Explanation, as_json: bool) -> None:
    """Prints what a question would cost."""
    typer.echo(explanation.to_json() if as_json else repr(explanation))
