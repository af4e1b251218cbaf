"""Functions of released values: what SELECT, HAVING and ORDER BY may compute after the noise, at no cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.queries.aggregates import Aggregate

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Released:
    """A function of released columns; ``aggregate`` where it is one of them unchanged, ``key`` where it is a group
    key."""

    text: str
    evaluate: Callable[[Columns], NDArray[Any]] = field(repr=False, compare=False)
    aggregates: tuple[Aggregate, ...] = ()
    aggregate: Aggregate | None = None
    key: str | None = None


def of_aggregate(aggregate: Aggregate) -> Released:
    """An aggregate, as released."""
    return Released(aggregate.text, lambda columns: columns[aggregate.text], (aggregate,), aggregate)


def of_key(name: str) -> Released:
    """A group key."""
    return Released(name, lambda columns: columns[name], key=name)


def of_constant(value: Any) -> Released:
    """A constant."""
    return Released(repr(value), lambda columns: np.full(_length(columns), value))


def combine(text: str, function: Callable[..., Any], *parts: Released) -> Released:
    """A function of released columns; what floats cannot hold becomes nan."""

    def evaluate(columns: Columns) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            return np.asarray(function(*(_numbers(p.evaluate(columns)) for p in parts)))

    needed = dict.fromkeys(a for p in parts for a in p.aggregates)
    return Released(text, evaluate, tuple(needed))


def _numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Chosen numbers and keys as floats, so that all functions know them; anything else as it is."""
    if values.dtype == object and len(values) and all(isinstance(v, int | float) for v in values):
        return values.astype(bool if all(isinstance(v, bool) for v in values) else float)
    return values


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values()), ()))
