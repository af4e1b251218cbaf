"""The integer sums behind an answer: what each row adds to its group, how far one person can move them, what they mean.

A mean needs a sum and a count, a variance one more. They are not measured apart: a value y of a range D is written in
the Bernstein basis, (D-y, y) or ((D-y)^2, 2y(D-y), y^2), whose parts are >= 0 and add up to D or D^2 whatever y is. So
one row moves all parts together by no more than it would move a count alone, and count, sum and sum of squares are
read off them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from hubbub.domains.contribution import Contribution
from hubbub.errors import ParameterError
from hubbub.numeric.rational import rational
from hubbub.privacy.loss import Neighbours
from hubbub.queries.aggregates import Aggregate
from hubbub.queries.expressions import Expression, clamped
from hubbub.queries.kinds import Whole

Array: TypeAlias = Any
"""A numpy array of released sums, or of what is read off them."""

FINEST = {1: 24, 2: 16}
"""Levels (as powers of two) a value is kept at in moments of degree 1 and 2, so that sums of 2**31 rows stay 64-bit."""


MOST_CAP = 1 << 62
"""A person's total is held within this many steps, so that it is a 64-bit number."""


@dataclass(frozen=True)
class Measure:
    """One vector of integer sums per group.

    ``rows`` counts rows (with an argument, rows in which it is not missing), ``units`` people, ``distinct`` different
    values; ``total`` sums the argument's steps (with a ``cap``, each person's total in a group is held within -cap..cap
    first); ``moments`` sums its Bernstein parts, with a last part for missing
    values where the count of all rows is wanted too (or with missing values as ``zero``, where only totals are).

    Claim: one person moves the vector over all groups by at most l1 (1-norm) and the root of squared_l2 (2-norm).
    Proof: Contribution, with the norms of one row's vector: 1 for rows and distinct values (a row brings at most one),
        the larger bound for totals, D^degree for moments (parts >= 0 that add up to it); people are counted once a
        group. With a cap a person adds to each of most_groups groups at most the cap, or what their rows can bring.
    Assumes: the engine keeps at most the contribution's rows of a person.
    """

    kind: Literal["rows", "units", "distinct", "total", "moments"]
    argument: Expression | None = None
    degree: int = 0
    missing: bool = False
    zero: bool = False
    cap: int | None = None

    @classmethod
    def of_sum(cls, aggregate: Aggregate) -> Measure:
        """What a sum is read from, where nothing else is asked of its argument; its parameter is a person's most."""
        total = cls("total", aggregate.argument)
        if not aggregate.parameters:
            return total
        cap = math.floor(rational("max_total", aggregate.parameters[0]) / total.number.step)
        if not 1 <= cap <= MOST_CAP:
            size = f"{float(total.number.step):g}"
            raise ParameterError(
                "max_total", aggregate.parameters[0], f"must be 1 to 2**62 steps of the sum, each {size}"
            )
        return replace(total, cap=cap)

    @property
    def name(self) -> str:
        """A name that tells measures apart."""
        inside = "*" if self.argument is None else self.argument.text
        held = "" if self.cap is None else f", a person's within {float(self.cap * self.number.step):g}"
        return f"{self.kind}{self.degree or ''}({inside}{held})"

    @property
    def parts(self) -> int:
        """How many sums there are per group."""
        return self.degree + 1 + self.missing if self.kind == "moments" else 1

    @property
    def number(self) -> Whole:
        """The kind of the argument."""
        assert self.argument is not None
        return self.argument.number

    @property
    def shrink(self) -> int:
        """How many steps of the argument make one level of the moments; a power of two."""
        width = max(self.number.high - self.number.low, 1)
        return 1 << max(0, (width - 1).bit_length() - FINEST[self.degree])

    @property
    def levels(self) -> int:
        """D: the range of the argument, in levels."""
        return max(1, (self.number.high - self.number.low) // self.shrink)

    @property
    def whole(self) -> int:
        """What the parts of one row add up to."""
        return self.levels**self.degree if self.kind == "moments" else 1

    def largest(self) -> int:
        """The largest size of what one row adds."""
        if self.kind == "total":
            return max(abs(self.number.low), abs(self.number.high))
        return self.whole

    def l1(self, contribution: Contribution, neighbours: Neighbours, alone: bool, always: bool = False) -> int:
        """The sensitivity in the 1-norm. ``alone``: there is one group; ``always``: every unit has exactly one row."""
        if self.cap is not None:
            return self._capped(contribution, neighbours, alone)[0]
        if alone and neighbours == "replace" and self.kind != "moments":
            return self._spread(always) * self._most(contribution)
        return int(self.largest() * self._most(contribution) * (1 if neighbours == "add-remove" else 2))

    def squared_l2(self, contribution: Contribution, neighbours: Neighbours, alone: bool, always: bool = False) -> int:
        """The square of the sensitivity in the 2-norm."""
        if alone and self.parts == 1:
            return self.l1(contribution, neighbours, alone, always) ** 2
        if self.kind == "units":
            return contribution.most_groups * (1 if neighbours == "add-remove" else 2)
        if self.cap is not None:
            return self._capped(contribution, neighbours, alone)[1]
        return int(contribution.squared_l2(self.largest(), neighbours, self._signed))

    @property
    def _signed(self) -> bool:
        return self.kind == "total" and self.number.low < 0 < self.number.high

    def _capped(self, c: Contribution, neighbours: Neighbours, alone: bool) -> tuple[int, int]:
        """The sensitivities of totals of which each person's, in a group, is held within the cap."""
        assert self.cap is not None
        if alone and neighbours == "replace":
            ends = [min(self.cap, c.most_rows * max(n, 0)) for n in (self.number.high, -self.number.low)]
            return sum(ends), sum(ends) ** 2
        each = min(self.cap, min(c.rows, c.most_rows) * self.largest())
        l1 = min(each * c.most_groups, self.largest() * c.most_rows) * (1 if neighbours == "add-remove" else 2)
        factor = 1 if neighbours == "add-remove" else (4 if self._signed else 2)
        uncapped = int(c.squared_l2(self.largest(), neighbours, self._signed))
        return l1, min(each**2 * c.most_groups * factor, uncapped)

    def _most(self, contribution: Contribution) -> int:
        return contribution.most_groups if self.kind == "units" else contribution.most_rows

    def _spread(self, always: bool) -> int:
        """How far apart the contributions of two persons' rows can be."""
        if self.kind != "total":
            return 0 if always and self.argument is None else 1
        low, high = self.number.low, self.number.high
        return high - low if always and not self.number.nullable else max(high, 0) - min(low, 0)

    def sums(self, table: Any, unit: str | None, column: str) -> list[Any]:
        """The Ibis aggregates, one for each part; ``column`` holds the prepared argument."""
        if self.kind == "rows":
            return [table.count() if self.argument is None else table[column].count()]
        if self.kind == "units":
            return [table.count() if unit is None else table[unit].nunique()]
        if self.kind == "distinct":
            return [table[column].nunique()]
        value = table[column]
        if self.kind == "total":
            return [wide_sum(table, value)]
        y, top = value, self.levels
        basis = [top - y, y] if self.degree == 1 else [(top - y) * (top - y), (top - y) * y * 2, y * y]
        sums = [wide_sum(table, part) for part in basis]
        return [*sums, (table.count() - value.count()) * self.whole] if self.missing else sums

    def by_person(self, table: Any, by: list[str], column: str) -> Any:
        """One row for each person in each group: the total of the prepared argument, held within the cap."""
        totals = table.group_by(by).agg(hb_total=wide_sum(table, table[column]))
        assert self.cap is not None
        held = clamped(totals.hb_total, -self.cap, self.cap).cast("int64")
        return totals.mutate(held.name(column)).drop("hb_total")

    def prepared(self, table: Any) -> Any:
        """The argument as the engine needs it: steps, levels for moments, the value itself where it is only
        compared."""
        assert self.argument is not None
        if self.kind in ("rows", "distinct"):
            return self.argument.build(table)
        steps = self.argument.steps(table)
        if self.kind == "total":
            return steps
        if self.zero:
            steps = steps.fill_null(0)
        above = steps - self.number.low if self.number.low else steps
        if self.shrink == 1:
            return above
        # the last steps of an uneven range share the top level; missing stays missing
        level = (above.cast("float64") / float(self.shrink)).floor().cast("int64")
        return clamped(level, 0, self.levels)

    # what the released sums say

    def count(self, sums: Array) -> Array:
        """How many rows: those in which the argument is present, or all where missing ones are counted too."""
        return sums.sum(axis=0) / self.whole if self.kind == "moments" else sums[0]

    def present(self, sums: Array) -> Array:
        """How many rows have the argument."""
        return sums[: self.degree + 1].sum(axis=0) / self.whole if self.kind == "moments" else sums[0]

    def total(self, sums: Array) -> Array:
        """The sum of the argument."""
        if self.kind == "total":
            return sums[0] * float(self.number.step)
        low, width = self._scale()
        return low * self.present(sums) + width * self._first(sums)

    def mean(self, sums: Array) -> Array:
        """The average of the argument; the middle of its range where no rows can be seen."""
        low, width = self._scale()
        return low + width * _ratio(self._first(sums), self.present(sums))

    def variance(self, sums: Array) -> Array:
        """The sample variance of the argument, between 0 and its largest possible value."""
        _, width = self._scale()
        n = self.present(sums)
        first, second = _ratio(self._first(sums), n), _ratio(sums[2] / self.whole, n)
        spread = np.clip(second - first**2, 0, 0.25) * width**2
        return spread * np.where(n > 2, n / np.maximum(n - 1, 1), 1)

    def _first(self, sums: Array) -> Array:
        """The sum of y / D."""
        return sums[1] / self.levels if self.degree == 1 else (sums[1] / 2 + sums[2]) / self.whole

    def _scale(self) -> tuple[float, float]:
        low, high = self.number.bounds
        if self.shrink > 1:  # a level stands for the middle of its steps
            half = Fraction(self.shrink - 1, 2) * self.number.step
            low, high = low + half, low + half + self.levels * self.shrink * self.number.step
        return float(low), float(high - low)


def _ratio(part: Array, whole: Array) -> Array:
    with np.errstate(all="ignore"):
        share = np.where(whole > 0, part / np.where(whole > 0, whole, 1), 0.5)
    return np.clip(share, 0, 1)


def wide_sum(table: Any, value: Any) -> Any:
    """A sum that cannot overflow: engines that widen sums by themselves do, the others sum 38-digit decimals."""
    if _widens(table):
        return value.sum().cast("decimal(38, 0)")
    return value.cast("decimal(38, 0)").sum()


def _widens(table: Any) -> bool:
    backend = table._find_backend(use_default=False)
    return backend is not None and backend.name in ("duckdb", "postgres")


def exact_root(square: int) -> tuple[int, int]:
    """Integers (root, fineness) with root / fineness >= sqrt(square) by less than one part in 2**14.

    >>> exact_root(16), exact_root(20)
    ((4, 1), (18318, 4096))
    """
    if math.isqrt(square) ** 2 == square:
        return math.isqrt(square), 1
    fineness = 1
    while True:
        root = math.isqrt(square * fineness**2) + 1
        if root >= 1 << 14:
            return root, fineness
        fineness *= 2
