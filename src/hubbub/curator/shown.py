"""What is shown of columns and entries, as plain values: for the API and the pages alike."""

from __future__ import annotations

import json
from typing import Any

from hubbub.curator.chain import Entry
from hubbub.domains.columns import Category, Column, Moment, Number
from hubbub.queries.questions import Asked


def described(column: Column) -> dict[str, Any]:
    """A column's declaration.

    >>> described(Number(0, 120))
    {'kind': 'number', 'low': 0.0, 'high': 120.0, 'step': None, 'nullable': True}
    """
    match column:
        case Number(low, high, step, nullable):
            grid = None if step is None else float(step)
            return {"kind": "number", "low": float(low), "high": float(high), "step": grid, "nullable": nullable}
        case Category(values, nullable):
            return {"kind": "category", "values": list(values), "nullable": nullable}
        case Moment(low, high, nullable):
            return {"kind": "moment", "low": low.isoformat(), "high": high.isoformat(), "nullable": nullable}
        case _:
            return {"kind": "key", "nullable": column.nullable}


def asked(entry: Entry) -> str:
    """What was asked, in a line."""
    return Asked.from_json(json.loads(entry.question)).words


def line(entry: Entry) -> dict[str, Any]:
    """An entry of the ledger."""
    return {
        "number": entry.number,
        "analyst": entry.analyst,
        "key": entry.key,
        "at": entry.at,
        "question": json.loads(entry.question),
        "loss": json.loads(entry.loss.to_json()),
        "delta": entry.delta,
        "digest": entry.digest,
    }
