"""What is publicly known of a column: bounds and a grid, a list of categories, a span of time, or nothing but a key."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.numeric import rational as exact
from hubbub.numeric.rational import floor_log2, is_whole, positive, power_of_two

LEVELS = 20
"""A column of floats is split into about 2**20 steps unless a step is given."""
FINEST = 51
"""Nor finer than the farthest value's size over 2**51: doubles have few digits more."""
WIDEST = 1 << 52
"""More steps than this between the bounds would leave exact arithmetic."""

Value = str | int | bool
"""What a category can be."""


@dataclass(frozen=True)
class Number:
    """Numbers between public bounds, on a public grid: multiples of ``step``.

    Values beyond the bounds count as the nearest bound, also infinities; nan counts as missing. A step of None means 1
    for a column of integers, and a power of two about a millionth of the range for any other.

    >>> Number(0, 120)
    Number(low=0, high=120, step=None, nullable=True)
    """

    low: exact.Number
    high: exact.Number
    step: exact.Number | None = None
    nullable: bool = True

    def __post_init__(self) -> None:
        low, high = exact.rational("low", self.low), exact.rational("high", self.high)
        if low > high:
            raise ParameterError("bounds", (self.low, self.high), "must be a pair low <= high")
        if self.step is not None:
            positive("step", self.step)
        if max(-low, high) / self.grid(whole=False) > WIDEST:
            raise ParameterError("bounds", (self.low, self.high), "has more than 2**52 steps", "give a larger step=")

    def grid(self, whole: bool) -> Fraction:
        """The spacing of the grid, for a source column of whole numbers or of any."""
        if self.step is not None:
            return exact.rational("step", self.step)
        low, high = exact.rational("low", self.low), exact.rational("high", self.high)
        if whole or low == high == round(high):
            return Fraction(1)
        farthest = max(-low, high)
        return power_of_two(max(floor_log2(high - low or farthest) - LEVELS, floor_log2(farthest) - FINEST))

    def steps(self, whole: bool) -> tuple[int, int]:
        """The first and last grid point within the bounds, in steps; at least one point.

        >>> Number(0, 10, step=0.25).steps(whole=False)
        (0, 40)
        """
        grid = self.grid(whole)
        first = math.ceil(exact.rational("low", self.low) / grid)
        return first, max(first, math.floor(exact.rational("high", self.high) / grid))


@dataclass(frozen=True)
class Category:
    """One of a public list of values. Anything else counts as missing."""

    values: tuple[Value, ...]
    nullable: bool = True

    def __post_init__(self) -> None:
        if not self.values:
            raise ParameterError("categories", [], "must not be empty")
        if len({(type(v), v) for v in self.values}) < len(self.values):
            raise ParameterError("categories", list(self.values), "must all be different")
        for kind in (bool, str, int):
            if all(isinstance(v, kind) for v in self.values):
                return
        raise ParameterTypeError(
            "categories", list(self.values), "must be all texts, all whole numbers or all True and False"
        )


@dataclass(frozen=True)
class Moment:
    """Days or times between two public ones. Values beyond count as the nearest bound."""

    low: dt.date
    high: dt.date
    nullable: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.low, dt.date) or type(self.low) is not type(self.high):
            raise ParameterTypeError("bounds", (self.low, self.high), "must be two dates or two datetimes")
        if isinstance(self.low, dt.datetime) and (self.low.tzinfo or self.high.tzinfo):  # type: ignore[attr-defined]
            raise ParameterError("bounds", (self.low, self.high), "must carry no time zone", "give local times")
        if self.low > self.high:
            raise ParameterError("bounds", (self.low, self.high), "must be a pair low <= high")


@dataclass(frozen=True)
class Key:
    """A value that is not public: texts, whole numbers or dates that may be grouped by only through private
    selection."""

    nullable: bool = True


Column = Number | Category | Moment | Key


def column(name: str, spec: Any) -> Column:
    """The column a short declaration stands for: (low, high), a list of categories, "key", or a column itself.

    >>> column("ward", ["north", "south"])
    Category(values=('north', 'south'), nullable=True)
    """
    if isinstance(spec, Number | Category | Moment | Key):
        return spec
    if isinstance(spec, str):
        if spec != "key":
            raise ParameterError(f"columns[{name!r}]", spec, "is not a declaration", _FORMS)
        return Key()
    if isinstance(spec, tuple) and len(spec) == 2 and not any(isinstance(v, str | bool) for v in spec):
        if all(isinstance(v, dt.date) for v in spec):
            return Moment(*spec)
        return Number(*spec)
    if isinstance(spec, Sequence) and not isinstance(spec, tuple):
        return Category(tuple(v if isinstance(v, str | bool) or not is_whole(v) else int(v) for v in spec))
    raise ParameterTypeError(f"columns[{name!r}]", spec, "is not a declaration", _FORMS)


_FORMS = "give bounds (low, high), a list of public categories, or 'key' for private keys"
