"""Answers as JSON and back: values, how far the truth may lie from them, and the receipt."""

from __future__ import annotations

import datetime as dt
import json
import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.privacy.loss import Loss
from hubbub.queries.answers import CHUNK, Answer, Column, Receipt

SHARED, OWN = 400, 40
"""Levels at which errors are told: of all rows together where they have the same law, or of every row on its own."""
CONFIDENCE = 0.95


def to_json(answer: Answer) -> str:
    """The whole answer. What is not a finite number is null; no digit depends on anything but what was released."""
    intervals = {n: [_plain(low), _plain(high)] for n, (low, high) in answer.intervals(CONFIDENCE).items()}
    types = {c.name: kind for c in answer.columns if (kind := _time(c.values)) is not None}
    told = {
        "columns": {c.name: _plain(c.values) for c in answer.columns},
        "keys": [c.name for c in answer.columns if c.key],
        "types": types,
        "texts": {c.name: c.text for c in answer.columns},
        "shares": {c.name: c.share for c in answer.columns if c.share is not None},
        "intervals": intervals,
        "confidence": CONFIDENCE,
        "errors": {c.name: _errors(c, len(answer)) for c in answer.columns if c.simulate is not None},
        "receipt": {
            "epsilon": answer.receipt.epsilon,
            "delta": answer.receipt.delta,
            "unit": answer.receipt.unit,
            "neighbours": answer.receipt.neighbours,
            "note": answer.receipt.note,
            "loss": json.loads(answer.receipt.loss.to_json()),
        },
    }
    return json.dumps(told, allow_nan=False)


def from_json(text: str) -> Answer:
    """The answer that was written so; its intervals are as fine as the levels that were told."""
    told = json.loads(text)
    columns = []
    for name, listed in told["columns"].items():
        read = [_time_of(v, told["types"].get(name)) for v in listed]
        values = np.empty(len(read), dtype=object)
        values[:] = [tuple(v) if isinstance(v, list) else v for v in read]
        error = told["errors"].get(name)
        if error is not None:
            values = np.array([math.nan if v is None else v for v in read])
        columns.append(
            Column(
                name,
                values,
                key=name in told["keys"],
                simulate=None if error is None else partial(_simulated, error, values),
                text=told["texts"][name],
                share=told["shares"].get(name),
            )
        )
    paid = told["receipt"]
    loss = Loss.from_json(json.dumps(paid["loss"]))
    receipt = Receipt(loss, paid["epsilon"], paid["delta"], paid["unit"], paid["neighbours"], paid["note"])
    return Answer(tuple(columns), receipt)


def _errors(c: Column, size: int) -> dict[str, Any]:
    """The truth less the value at even levels: once where it is the same in all rows, else for every row."""
    assert c.simulate is not None
    if not size:
        return {"shared": []}
    values = c.values.astype(float)
    levels = np.linspace(0, 1, OWN + 1)
    parts = [slice(i, i + CHUNK) for i in range(0, size, CHUNK)]
    own = np.concatenate([np.quantile(c.simulate(p), levels, axis=0) - values[p] for p in parts], axis=1)
    if np.isfinite(own).all() and np.allclose(own, own[:, :1], rtol=1e-6, atol=1e-9 * (1 + np.abs(values).max())):
        first = np.quantile(c.simulate(slice(0, 1))[:, 0], np.linspace(0, 1, SHARED + 1)) - values[0]
        return {"shared": _plain(first)}
    return {"own": [_plain(row) for row in own.T]}


def _simulated(error: dict[str, Any], values: NDArray[Any], part: slice) -> NDArray[Any]:
    here = values[part].astype(float)
    if "shared" in error:
        around: NDArray[Any] = np.add.outer(np.array(error["shared"], dtype=float), here)
        return around
    own = np.array([[math.nan if v is None else v for v in row] for row in error["own"][part]], dtype=float)
    found: NDArray[Any] = here[None, :] + own.reshape(len(here), OWN + 1).T
    return found


def _plain(values: Any) -> list[Any]:
    return [_plain_one(v) for v in values]


def _plain_one(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple):
        return _plain(value)
    return value.isoformat() if isinstance(value, dt.date) else value


def _time(values: NDArray[Any]) -> str | None:
    first = next((v for v in values if v is not None), None)
    if isinstance(first, dt.datetime):
        return "datetime"
    return "date" if isinstance(first, dt.date) else None


def _time_of(value: Any, kind: str | None) -> Any:
    if kind is None or value is None:
        return value
    return dt.datetime.fromisoformat(value) if kind == "datetime" else dt.date.fromisoformat(value)
