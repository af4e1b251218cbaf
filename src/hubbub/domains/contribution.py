"""What one person can add to a query: at most so many groups, rows per group and rows in all, and the norms of that."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hubbub.numeric.rational import count
from hubbub.privacy.loss import Neighbours


@dataclass(frozen=True)
class Contribution:
    """Bounds on one unit's rows: ``groups``, ``rows`` in each, ``total`` over all groups.

    Claim: let every kept row add to its group a vector whose parts lie in [low, high] with 1-norm <= norm1 and 2-norm
        <= norm2. Then adding or removing a unit moves the stacked result by at most l1(norm1) in the 1-norm and
        l2(norm2) in the 2-norm; replacing one unit by another moves it by at most twice the first and, since the
        parts of one row have one sign, sqrt(2) times the second (2 times for parts of either sign).
    Proof: a unit's part of group g is the sum of c_g row vectors, so of norm at most c_g times a row's; sum of c_g <=
        min(groups * rows, total), and the sum of c_g^2 under c_g <= rows, at most ``groups`` of them, sum <= total, is
        largest when filled up one by one (convexity). Two units: triangle inequality; for vectors a, b with entries
        >= 0, |a-b|^2 <= |a|^2 + |b|^2.
    Assumes: rows beyond the bounds are dropped by a rule that looks at the unit's own rows only.

    >>> Contribution(groups=3, rows=2).l1(1), Contribution(groups=3, rows=2, total=5).l1(1)
    (Fraction(6, 1), Fraction(5, 1))
    """

    groups: int
    rows: int
    total: int | None = None

    def __post_init__(self) -> None:
        count("max_groups", self.groups)
        count("max_rows", self.rows)
        if self.total is not None:
            count("max_total_rows", self.total)

    @classmethod
    def of(cls, max_groups: int | None, max_rows: int | None, max_total_rows: int | None) -> Contribution:
        """From the arguments of ``protect``; a cap not given is 1, or none of its own where the total is given."""
        otherwise = 1 if max_total_rows is None else max_total_rows
        return cls(
            groups=otherwise if max_groups is None else max_groups,
            rows=otherwise if max_rows is None else max_rows,
            total=max_total_rows,
        )

    def within(self, groups: int | None) -> Contribution:
        """The same for a query that has only so many groups in all."""
        return self if groups is None else Contribution(min(self.groups, max(groups, 1)), self.rows, self.total)

    @property
    def most_rows(self) -> int:
        """The most rows of one unit that are kept."""
        every = self.groups * self.rows
        return every if self.total is None else min(every, self.total)

    @property
    def most_groups(self) -> int:
        """The most groups one unit is kept in."""
        return self.groups if self.total is None else min(self.groups, self.total)

    def l1(self, norm1: Fraction | int, neighbours: Neighbours = "add-remove") -> Fraction:
        """The largest change in the 1-norm."""
        return Fraction(norm1) * self.most_rows * (1 if neighbours == "add-remove" else 2)

    def squared_l2(
        self, norm2: Fraction | int, neighbours: Neighbours = "add-remove", signed: bool = False
    ) -> Fraction:
        """The square of the largest change in the 2-norm; ``signed`` where a row's parts can have either sign."""
        full, rest = divmod(self.most_rows, self.rows)
        squares = full * self.rows**2 + rest**2
        factor = 1 if neighbours == "add-remove" else (4 if signed else 2)
        return Fraction(norm2) ** 2 * squares * factor
