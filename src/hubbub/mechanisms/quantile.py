"""A private quantile of a column of numbers, chosen by rank."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.mechanisms.additive import LISTED_POINTS
from hubbub.mechanisms.laplace import MORE_PRIVACY
from hubbub.mechanisms.lattice import Floats, exact_numbers
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.mechanisms.points import Weights
from hubbub.mechanisms.selection import Gaps, permute_and_flip, permute_and_flip_law
from hubbub.numeric.rational import Number, count, float_up, floor_log2, is_whole, positive, power_of_two, rational
from hubbub.privacy.families import PureDP
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours
from hubbub.randomness.bits import Bits
from hubbub.randomness.choice import draw_below, exp_choice
from hubbub.randomness.thresholds import Integers

RANGE_STEPS = 40
"""A float range is split into at least 2**40 steps unless a spacing is given."""

LONG_DENOMINATOR = 10**8
"""Quantiles such as 0.3333333333333333 have longer denominators; their ranks are counted in Python integers."""
FEW_POINTS = 256
"""Up to so many grid points are flipped one by one; for more, which permute-and-flip hardly favours, runs are drawn."""
FARTHEST = 1 << 61
"""Bounds beyond this leave no room for 64-bit arithmetic."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Numbers and how often each occurs: how an engine hands over a column without its rows."""

    values: NDArray[Any]
    counts: Integers


def _weights(share: Fraction, low: Fraction, points: int, step: Fraction) -> Weights:
    """The public weights of the grid's points: falling off from zero on the side of the quantile, even for a median."""
    if points <= FEW_POINTS or 2 * share == 1:
        return Weights.even(points)
    if 2 * share > 1:
        return Weights.falling(points, min(max(math.ceil(-low / step), 0), points))
    above = points - 1 - math.floor(-low / step)
    return Weights.falling(points, min(max(above, 0), points)).mirrored()


def _tally(data: Any) -> Counter[Any]:
    if not isinstance(data, Counted):
        return Counter(exact_numbers(data, "values").tolist())
    tally: Counter[Any] = Counter()
    for value, times in zip(exact_numbers(data.values, "values").tolist(), data.counts.tolist(), strict=True):
        tally[value] += times
    return tally


@dataclass(frozen=True, init=False)
class Quantile(Mechanism):
    """Releases a value near the given quantile of the data: chosen by rank error, privately.

    Every point of a public grid between the bounds is a candidate, scored by how far its rank is from quantile * n.
    Whole bounds make a grid of integers; otherwise the grid is a power of two (``spacing`` to choose it). Data are
    clamped to the bounds and floored to the grid, record by record; ``release`` takes a list or array of numbers, or
    ``Counted`` ones. The public rules hold for odd data: nan counts as 0, and is then clamped.

    On a few points it is permute-and-flip; on more the exponential mechanism, in which for quantiles above the median
    the points above zero weigh the less the farther they are (below it, those below zero): beyond the data's tail
    there may be a long empty range, which would draw answers by its mere length.

    Claim: epsilon-DP for up to ``records`` records added or removed (sensitivity of the score max(q, 1-q) for each) or
        replaced by as many (sensitivity 1 for each).
    Proof: S11 and MT07, with a public base measure; on few points MS20, Theorem 1. The score is -max(0, below - q n,
        q n - at_or_below); adding a record moves n by 1 and each count by 0 or 1, so each difference moves by q or
        1-q; replacing one moves counts by at most 1 and leaves n.
    Assumes: at most ``records`` records per person (and as many in its replacement); public bounds.

    >>> Quantile(0.5, bounds=(0, 100), epsilon=10.0).release([42] * 1000)
    42
    """

    quantile: Number
    bounds: tuple[Number, Number]
    epsilon: float
    spacing: Number
    neighbours: Neighbours
    records: int
    _rate: Fraction = field(repr=False)
    _step: Fraction = field(repr=False)
    _weights: Weights = field(repr=False)

    def __init__(
        self,
        quantile: Number,
        *,
        bounds: tuple[Number, Number],
        epsilon: Number,
        spacing: Number | None = None,
        neighbours: Neighbours = "add-remove",
        records: int = 1,
    ) -> None:
        share = rational("quantile", quantile)
        if not 0 <= share <= 1:
            raise ParameterError("quantile", quantile, "must lie between 0 and 1")
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            raise ParameterError("bounds", bounds, "must be a pair (low, high)")
        low, high = (rational("bounds", b) for b in bounds)
        if low >= high:
            raise ParameterError("bounds", tuple(bounds), "must be a pair low < high")
        if max(-low, high) > FARTHEST:
            raise ParameterError("bounds", tuple(bounds), "must lie within 2**61 of 0", "use other units")
        price = positive("epsilon", epsilon, MORE_PRIVACY)
        if spacing is None:
            whole = all(is_whole(b) for b in bounds)
            step = Fraction(1) if whole else power_of_two(floor_log2(positive("bounds", high - low)) - RANGE_STEPS)
        else:
            step = positive("spacing", spacing)
        if (high - low) / step >= 2**52:
            raise ParameterError(
                "spacing", spacing, "splits the bounds into more than 2**52 steps", "give a larger spacing"
            )
        sensitivity = max(share, 1 - share) if check_neighbours(neighbours) == "add-remove" else Fraction(1)
        self._fill(
            quantile=quantile,
            bounds=(bounds[0], bounds[1]),
            epsilon=float_up(price),
            spacing=int(step) if step.denominator == 1 else float(step),
            neighbours=neighbours,
            records=count("records", records),
            _step=step,
            _rate=price / (2 * sensitivity * records),
            _weights=_weights(share, low, math.floor((high - low) / step) + 1, step),
        )

    @property
    def loss(self) -> Loss:
        return PureDP(self.epsilon, neighbours=self.neighbours)

    @property
    def candidates(self) -> int:
        """How many grid points there are, counted by their weights; the lightest weigh 1."""
        return int(self._weights.before(np.array([self._weights.edges[-1]]))[0])

    def _release(self, value: Any, bits: Bits) -> int | float:
        starts, sizes, misses = self._cells(value)
        rate = self._rate / rational("quantile", self.quantile).denominator
        if self._few:
            misses = np.repeat(misses - misses.min(), sizes)
            gaps = Gaps(misses.astype(np.float64) * float(rate), lambda i: int(misses[i]) * rate)
            return self._value(permute_and_flip(gaps, bits))
        before = self._weights.before(starts)
        weights = self._weights.before(starts + sizes) - before
        exponents = misses.astype(np.float64) * float(rate)
        chosen = exp_choice(exponents, lambda i: int(misses[i]) * rate, bits, copies=weights)
        return self._value(self._weights.point(int(before[chosen]) + draw_below(int(weights[chosen]), bits)))

    @property
    def _few(self) -> bool:
        return self._weights.edges[-1] <= FEW_POINTS

    def apart(self, value: Any, neighbour: Any) -> float:
        one, other = (_tally(v) for v in (value, neighbour))
        gone, come = (one - other).total(), (other - one).total()
        return float(gone + come if self.neighbours == "add-remove" else max(gone, come)) / self.records

    def distribution(self, value: Any) -> tuple[Integers | Floats, Floats]:
        """Every grid point and its probability, for grids that can be listed."""
        _, sizes, misses = self._cells(value)
        total = int(sizes.sum())
        if total > LISTED_POINTS:
            raise ParameterError(
                "spacing", self.spacing, f"makes {total} points, too many to list", "give a larger one"
            )
        rate = self._rate / rational("quantile", self.quantile).denominator
        points = np.array([self._value(k) for k in range(total)])
        exponents = np.repeat((misses - misses.min()).astype(np.float64) * float(rate), sizes)
        if self._few:
            return points, permute_and_flip_law(exponents)
        weights = np.exp(-exponents) * np.diff(self._weights.before(np.arange(total + 1)))
        return points, weights / weights.sum()

    def _value(self, step: int) -> int | float:
        exact = rational("bounds", self.bounds[0]) + step * self._step
        return int(exact) if exact.denominator == 1 and isinstance(self.spacing, int) else float(exact)

    def _cells(self, data: Any) -> tuple[Integers, Integers, NDArray[Any]]:
        """Runs of grid points of equal score: where each starts, its size, and its score's miss times the denominator.

        Runs are the points that occur in the data and the gaps between them, empty gaps left out.
        """
        low, high = (rational("bounds", b) for b in self.bounds)
        last = math.floor((high - low) / self._step)
        numbers = exact_numbers(data.values if isinstance(data, Counted) else data, "data")
        points, place = np.unique(self._to_steps(numbers, low, last), return_inverse=True)
        times = data.counts if isinstance(data, Counted) else np.ones(len(numbers), np.int64)
        counts = np.zeros(len(points), np.int64)
        np.add.at(counts, place, times)
        at_or_below = np.cumsum(counts)
        below = at_or_below - counts
        gap_starts = np.concatenate(([0], points + 1))
        gap_sizes = np.concatenate((points, [last + 1])) - gap_starts
        gap_ranks = np.concatenate(([0], at_or_below))
        starts = np.concatenate((points, gap_starts))
        sizes = np.concatenate((np.ones(len(points), np.int64), gap_sizes))
        share = rational("quantile", self.quantile)
        target, scale = share.numerator * int(counts.sum()), share.denominator
        # ranks times a long denominator would leave 64 bits; the type is chosen by the quantile, which is public
        kind = np.int64 if scale <= LONG_DENOMINATOR else object
        first = np.concatenate((below, gap_ranks)).astype(kind) * scale - target
        second = target - np.concatenate((at_or_below, gap_ranks)).astype(kind) * scale
        misses = np.maximum(0, np.maximum(first, second))
        order = np.argsort(starts, kind="stable")
        order = order[sizes[order] > 0]
        return starts[order], sizes[order], misses[order]

    def _to_steps(self, numbers: Integers | Floats, low: Fraction, last: int) -> Integers:
        """Data as grid steps above the lower bound, clamped. A float slip moves one record by one step, no more."""
        if numbers.dtype.kind == "f":
            inside = np.clip(numbers, float(self.bounds[0]), float(self.bounds[1]))
            steps = np.floor((inside - float(low)) / float(self._step))
            return np.asarray(np.clip(steps, 0, last), np.int64)
        bottom, top = math.floor(low), math.ceil(low + last * self._step)
        if is_whole(self.spacing) and low.denominator == 1:
            clipped = np.clip(numbers, max(bottom, -(1 << 62)), min(top, 1 << 62))
            return np.clip((clipped - bottom) // int(self._step), 0, last)
        return self._to_steps(numbers.astype(np.float64), low, last)
