"""What is publicly known of an expression's values: exact bounds on a grid, a list, a span of time, or a private
key."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from hubbub.domains.columns import Value
from hubbub.errors import QueryRefused

LARGEST = 1 << 52
"""Integers up to this size are exact in every engine, also on the way through a double."""
FARTHEST = 10**130
"""Steps of a grid lie between one over this and this, so that squares of values are doubles."""


LONGEST_NUMBER = 40
"""Numbers are written in at most this many characters."""


def written(text: str) -> Fraction | None:
    """The number a text writes in digits, or None; never a power too large to hold.

    >>> written("1.5e3"), written("1e999999999"), written("1/0")
    (Fraction(1500, 1), None, None)
    """
    try:
        value = Decimal(text) if len(text) <= LONGEST_NUMBER else Decimal("nan")
    except ArithmeticError:
        return None
    return Fraction(value) if value.is_finite() and abs(value.adjusted()) <= 30 else None


@dataclass(frozen=True)
class Whole:
    """Whole numbers of steps: the value is n * step with low <= n <= high, or missing."""

    step: Fraction
    low: int
    high: int
    nullable: bool = True

    def __post_init__(self) -> None:
        if not Fraction(1, FARTHEST) <= self.step <= FARTHEST:
            raise QueryRefused("numbers that large or small", "use other units")
        if max(abs(self.low), abs(self.high)) > LARGEST:
            raise QueryRefused(
                "an expression can reach more than 2**52 steps of its grid",
                "declare tighter bounds or a larger step for its columns, or bound it with least() and greatest()",
            )

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The smallest and largest value."""
        return self.low * self.step, self.high * self.step

    def per(self, step: Fraction) -> int:
        """How many of the finer steps make one step of this grid."""
        return int(self.step / step)

    def near(self, value: Fraction) -> int:
        """The grid point nearest to a constant, in steps, as data are put on the grid; just outside if beyond."""
        return min(max(math.floor(value / self.step + Fraction(1, 2)), self.low - 1), self.high + 1)


def common_step(one: Fraction, other: Fraction) -> Fraction:
    """The largest step of which both are multiples.

    >>> common_step(Fraction(1, 4), Fraction(1, 6))
    Fraction(1, 12)
    """
    denominator = math.lcm(one.denominator, other.denominator)
    return Fraction(math.gcd(int(one * denominator), int(other * denominator)), denominator)


@dataclass(frozen=True)
class Truth:
    """True, false or missing."""

    nullable: bool = True


@dataclass(frozen=True)
class Listed:
    """One of a public list, or missing."""

    values: tuple[Value, ...]
    nullable: bool = True


@dataclass(frozen=True)
class Time:
    """A day or a moment between two public ones, or missing; of days, each or the first of every so many months."""

    low: dt.date
    high: dt.date
    nullable: bool = True
    months: int | None = None

    @property
    def daily(self) -> bool:
        """Whether these are whole days."""
        return not isinstance(self.low, dt.datetime)


@dataclass(frozen=True)
class Secret:
    """A private key: it may be compared with constants, counted and selected, and nothing else."""

    text: bool = True
    nullable: bool = True


Kind = Whole | Truth | Listed | Time | Secret

MOST_GROUPS = 1_000_000
"""Public groups are all reported, so there must not be more than this."""


def public_values(kind: Kind) -> list[object] | None:
    """Every value a grouping expression can have, in order; None for private keys."""
    match kind:
        case Listed(values):
            return list(values)
        case Truth():
            return [False, True]
        case Whole(step, low, high):
            if high - low >= MOST_GROUPS:
                raise QueryRefused(
                    f"grouping by a number with {high - low + 1} possible values",
                    "group by wider bins, such as floor(x / 10), or declare it as 'key'",
                )
            return [int(n * step) if step.denominator == 1 else float(n * step) for n in range(low, high + 1)]
        case Time(months=int(months)):
            first, last = (12 * d.year + d.month - 1 for d in (kind.low, kind.high))
            return [dt.date(m // 12, m % 12 + 1, 1) for m in range(first, last + 1, months)]
        case Time() if kind.daily:
            days = (kind.high - kind.low).days + 1
            return [kind.low + dt.timedelta(days=k) for k in range(days)]
        case Time():
            raise QueryRefused("grouping by a moment", "group by a part of it: year(x), month(x), date(x), hour(x)")
        case Secret():
            return None
