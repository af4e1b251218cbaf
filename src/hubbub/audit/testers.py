"""Testers: functions of an output whose value is large where one input is likelier and small where the other is.

Each is fitted to outputs with known origin and then scores fresh ones by (an estimate of) ln(P / P'). None needs to be
right: a poor score makes an audit weak, never wrong.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from hubbub.audit.bounds import Flags
from hubbub.privacy.pairs import Floats

MOST_VALUES = 4096
"""Distinct outputs beyond which they are not counted one by one."""
LARGEST = 1e150
"""Larger numbers count as this large: their squares are doubles."""
MOST_NUMBERS = 64
"""Numbers in an output beyond which a classifier does not look."""
BINS = (4, 64)
"""Into how many places a classifier sorts each number: few where runs are few or numbers many, or many."""
RUNS_A_BIN = 20
"""Fewer outputs than this a bin teach nothing."""
RIDGE, NEWTON_STEPS = 1.0, 12


class Tester(ABC):
    """Learns from outputs of both inputs to tell them apart."""

    words: str
    """What the tester looks at."""

    @abstractmethod
    def fit(self, outputs: Sequence[Any], first: Flags) -> bool:
        """Learns; False where it has nothing to say about such outputs."""

    @abstractmethod
    def scores(self, outputs: Sequence[Any]) -> Floats:
        """One number an output."""


class Listed(Tester):
    """The likelihood ratio of the mechanism's own listed law."""

    words = "the listed likelihood ratio"

    def __init__(self, mechanism: Any, x: Any, neighbour: Any) -> None:
        self._laws = (mechanism, x, neighbour)

    def fit(self, outputs: Sequence[Any], first: Flags) -> bool:  # noqa: ARG002
        mechanism, x, neighbour = self._laws
        try:
            listed = [_table(*mechanism.distribution(v)) for v in (x, neighbour)]
        except Exception:  # whatever a stranger's mechanism raises: it lists no law
            return False
        known = listed[0].keys() | listed[1].keys()
        floor = 1e-13
        self._ratios = {
            k: math.log(listed[0].get(k, 0.0) + floor) - math.log(listed[1].get(k, 0.0) + floor) for k in known
        }
        return True

    def scores(self, outputs: Sequence[Any]) -> Floats:
        return np.array([self._ratios.get(_key(y), 0.0) for y in outputs])


class Counted(Tester):
    """How often each output, or each value of something about it, was seen from either input."""

    def __init__(self, words: str, feature: Callable[[Any], Hashable]) -> None:
        self.words, self._feature = words, feature
        self._ratios: dict[Hashable, float] = {}

    def fit(self, outputs: Sequence[Any], first: Flags) -> bool:
        seen = Counter(zip(map(self._value, outputs), first.tolist(), strict=True))
        values = {k for k, _ in seen}
        if len(values) > MOST_VALUES:
            return False
        sizes = [max(1, int((first == side).sum())) for side in (True, False)]
        half = 0.5
        self._ratios = {
            k: math.log((seen[k, True] + half) / sizes[0]) - math.log((seen[k, False] + half) / sizes[1])
            for k in values
        }
        return True

    def scores(self, outputs: Sequence[Any]) -> Floats:
        return np.array([self._ratios.get(self._value(y), 0.0) for y in outputs])

    def _value(self, output: Any) -> Hashable:
        try:
            return self._feature(output)
        except (TypeError, ValueError, OverflowError):  # it has no such thing: that is a value too
            return type(output).__name__


class Classified(Tester):
    """A logistic regression on the numbers in an output, their squares and their places in bins (DP-Sniper)."""

    words = "a classifier of the output"

    def __init__(self, bins: int) -> None:
        self._bins = bins

    def fit(self, outputs: Sequence[Any], first: Flags) -> bool:
        self._layout = Layout(outputs)
        rows = self._layout.rows(outputs)
        if not self._layout.paths:
            return False
        bins = max(2, min(self._bins, len(rows) // (RUNS_A_BIN * rows.shape[1])))
        self._edges = [np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1])) for column in rows.T]
        self._centre, self._scale = np.median(rows, axis=0), rows.std(axis=0) + 1e-300
        design = self._design(rows)
        labels, weights = first.astype(float), np.zeros(design.shape[1])
        for _ in range(NEWTON_STEPS):
            chances = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
            slope = design.T @ (labels - chances) - RIDGE * weights
            curve = (design * (chances * (1 - chances))[:, None]).T @ design + RIDGE * np.eye(len(weights))
            step = np.linalg.solve(curve, slope)
            weights = weights + step
            if np.abs(step).max() < 1e-3:
                break
        self._weights = weights
        return True

    def scores(self, outputs: Sequence[Any]) -> Floats:
        return np.asarray(self._design(self._layout.rows(outputs)) @ self._weights, np.float64)

    def _design(self, rows: Floats) -> Floats:
        scaled = np.clip((rows - self._centre) / self._scale, -30, 30)
        columns = [np.ones(len(rows)), *scaled.T, *(scaled**2).T]
        for column, edges in zip(rows.T, self._edges, strict=True):
            place = np.searchsorted(edges, column)
            columns += [place == k for k in range(len(edges) + 1)]
        return np.column_stack(columns).astype(np.float64)


def all_testers(mechanism: Any, x: Any, neighbour: Any) -> list[Tester]:
    """Every way to look at outputs."""
    return [
        Listed(mechanism, x, neighbour),
        Counted("the output", _key),
        Counted("the finest digit of a number", granularity),
        Counted("the kind of output", kind),
        *map(Classified, BINS),
    ]


def granularity(output: Any) -> Hashable:
    """The exponents of the lowest set bit of each number: what a grid, or the lack of one, gives away."""
    if isinstance(output, dict):
        return tuple(sorted((repr(k), granularity(v)) for k, v in output.items()))
    if isinstance(output, list | tuple | np.ndarray):
        return tuple(granularity(v) for v in np.asarray(output).ravel()[:8].tolist())
    number = float(output)
    if not math.isfinite(number) or number == 0:
        return repr(number)
    numerator, denominator = number.as_integer_ratio()
    lowest = (numerator & -numerator).bit_length() - denominator.bit_length()
    return lowest, number > 0, math.frexp(number)[1]


def kind(output: Any) -> Hashable:
    """Type, length, and whether a number is odd in itself."""
    if isinstance(output, dict):
        return tuple(sorted((repr(k), kind(v)) for k, v in output.items()))
    if isinstance(output, list | tuple | np.ndarray):
        return len(output), tuple(kind(v) for v in np.asarray(output, object).ravel()[:8])
    finite = not isinstance(output, float) or math.isfinite(output)
    return type(output).__name__, repr(output) if not finite else ""


def _key(output: Any) -> Hashable:
    """An output as something that can be counted."""
    if isinstance(output, np.generic):
        output = output.item()
    if isinstance(output, dict):
        return tuple(sorted((repr(k), _key(v)) for k, v in output.items()))
    if isinstance(output, list | tuple | np.ndarray):
        return tuple(_key(v) for v in output)
    if isinstance(output, set | frozenset):
        return tuple(sorted(map(repr, output)))
    return repr(output) if isinstance(output, float) and math.isnan(output) else output


def _table(support: Any, chances: Any) -> dict[Hashable, float]:
    return {_key(y): float(p) for y, p in zip(support, chances, strict=True)}


class Layout:
    """Where the numbers of outputs are found, fixed by some of them: paths of keys and places."""

    def __init__(self, outputs: Sequence[Any]) -> None:
        plain = _plain(outputs)
        self.paths: list[tuple[Hashable, ...]]
        if plain is not None and plain.size:
            self.paths = [()] if plain.ndim == 1 else [(k,) for k in range(min(plain.shape[1], MOST_NUMBERS))]
        else:
            found = {path for y in outputs for path, leaf in _leaves(y) if not math.isnan(_float(leaf))}
            self.paths = sorted(found, key=repr)[:MOST_NUMBERS]
        self._shape = None if plain is None else plain.shape[1:]

    def rows(self, outputs: Sequence[Any]) -> Floats:
        """Outputs as rows of numbers; odd or missing ones become 0, with columns that say so and how many there are."""
        plain = _plain(outputs)
        if plain is not None and plain.shape[1:] == self._shape:
            rows = plain.reshape(len(outputs), -1)[:, :MOST_NUMBERS]
            sizes = np.full(len(outputs), float(len(self.paths)))
        else:
            rows, sizes = self._picked(outputs)
        odd = ~np.isfinite(rows)
        rows = np.clip(np.where(odd, 0.0, rows), -LARGEST, LARGEST)
        extra = [odd.any(axis=1).astype(float)]
        if rows.shape[1] > 1:
            extra += [rows.sum(axis=1), sizes]
        return np.column_stack([rows, *extra])

    def _picked(self, outputs: Sequence[Any]) -> tuple[Floats, Floats]:
        columns = {path: k for k, path in enumerate(self.paths)}
        rows, sizes = np.full((len(outputs), len(columns)), math.nan), np.zeros(len(outputs))
        for row, y in enumerate(outputs):
            for path, leaf in _leaves(y):
                sizes[row] += 1
                if path in columns:
                    rows[row, columns[path]] = _float(leaf)
        return rows, sizes


def _plain(outputs: Sequence[Any]) -> Floats | None:
    """Numbers, or lists of equally many, as an array."""
    try:
        made = np.array(outputs, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return made if made.ndim in (1, 2) else None


def _leaves(output: Any, path: tuple[Hashable, ...] = ()) -> Iterator[tuple[tuple[Hashable, ...], Any]]:
    """Everything in an output that is no container, and where."""
    if isinstance(output, np.ndarray):
        output = output.tolist()
    if isinstance(output, dict):
        for key, value in output.items():
            yield from _leaves(value, (*path, repr(key)))
    elif isinstance(output, list | tuple):
        for place, value in enumerate(output[:MOST_NUMBERS]):
            yield from _leaves(value, (*path, place))
    else:
        yield path, output


def _float(leaf: Any) -> float:
    try:
        return float(leaf)
    except (TypeError, ValueError, OverflowError):
        return math.nan
