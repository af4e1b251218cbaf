"""Answers as pages show them: values with error bars, and files to take away."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from hubbub.queries.answers import Answer

SHOWN = 200
"""Rows a page shows; a file has all of them."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would take for a formula."""


@dataclass(frozen=True)
class Measured:
    """One released column: a label, a value and its interval for every group, and the ends of the picture."""

    name: str
    text: str
    rows: list[tuple[str, float | None, float, float]]
    first: float
    last: float


@dataclass(frozen=True)
class Chosen:
    """Released columns without intervals: quantiles and most frequent values."""

    names: list[str]
    rows: list[tuple[str, list[Any]]]


@dataclass(frozen=True)
class Shown:
    """An answer as a page shows it."""

    answer: Answer
    keys: str
    measured: list[Measured]
    chosen: Chosen | None
    more: int
    """Groups that are not shown."""


def shown(text: str) -> Shown:
    """An answer from its JSON."""
    answer = Answer.from_json(text)
    size = min(len(answer), SHOWN)
    keys = [c for c in answer.columns if c.key]
    labels = [" · ".join(str(k.values[i]) for k in keys) or "everybody" for i in range(size)]
    measured = []
    for name, (low, high) in answer.intervals().items():
        column = next(c for c in answer.columns if c.name == name)
        rows = [_row(labels[i], column.values[i], low[i], high[i]) for i in range(size)]
        ends = [e for _, value, *pair in rows if value is not None for e in pair]
        measured.append(Measured(name, column.text, rows, min([0.0, *ends]), max([0.0, *ends]) or 1.0))
    plain = [c for c in answer.columns if not c.key and c.simulate is None]
    chosen = Chosen([c.name for c in plain], [(labels[i], [_said(c.values[i]) for c in plain]) for i in range(size)])
    title = " · ".join(k.name for k in keys) or "group"
    return Shown(answer, title, measured, chosen if plain else None, len(answer) - size)


def as_file(text: str, kind: str, name: str) -> Response:
    """An answer to take away, as CSV or JSON."""
    body, media = (text, "application/json") if kind == "json" else (table(text), "text/csv; charset=utf-8")
    return Response(body, media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}.{kind}"'})


def table(text: str) -> str:
    """An answer as CSV: keys, then every released column with the ends of its 95 % interval."""
    answer = Answer.from_json(text)
    ends = answer.intervals()
    out = io.StringIO()
    writer = csv.writer(out)
    names = [
        n for c in answer.columns for n in ([c.name, f"{c.name}_low", f"{c.name}_high"] if c.name in ends else [c.name])
    ]
    writer.writerow([_cell(n) for n in names])
    for i in range(len(answer)):
        row: list[Any] = []
        for c in answer.columns:
            row.append(_cell(c.values[i]))
            if c.name in ends:
                row += [_cell(float(end[i])) for end in ends[c.name]]
        writer.writerow(row)
    return out.getvalue()


def _row(label: str, value: Any, low: Any, high: Any) -> tuple[str, float | None, float, float]:
    finite = all(math.isfinite(float(v)) for v in (value, low, high))
    return (label, float(value), float(low), float(high)) if finite else (label, None, 0.0, 0.0)


def _said(value: Any) -> Any:
    """A chosen value for people: a list of the most frequent, one after another."""
    return ", ".join(str(v) for v in value) if isinstance(value, tuple) else value


def _cell(value: Any) -> Any:
    """A value that no spreadsheet takes for a formula.

    >>> _cell("=1+1"), _cell(-2.5), _cell("north")
    ("'=1+1", -2.5, 'north')
    """
    said = _said(value)
    if isinstance(said, float) and not math.isfinite(said):
        return ""
    return f"'{said}" if isinstance(said, str) and said.startswith(FORMULA) else said
