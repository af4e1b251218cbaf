"""Rows as whole numbers, and their exact sums by cluster: what a clustering tells its noise about."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.learning.rows import Floats, clamped, public_bounds
from hubbub.mechanisms import Gaussian, Laplace
from hubbub.numeric.rational import Number, positive
from hubbub.privacy.families import GaussianDP, PureDP
from hubbub.privacy.gaussian import largest_mu
from hubbub.privacy.loss import Loss, Neighbours, check_delta, check_neighbours

Labels = NDArray[np.intp]
Counts = NDArray[np.int64]

ONE = 1 << 20
"""Rows are measured in so many steps from the middle of the bounds to the end of the widest; offsets in so many
steps of their reach."""
CHUNK = 1 << 14
"""Rows whose sums are taken in doubles, exactly; those of chunks are added up as 64-bit integers."""
SLACK = 1 - 2.0**-40
"""What shares and lengths give away so that rounding cannot make them too large."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The public map from rows to whole numbers: clamped, measured from the middle, all features by one unit.

    Claim: whatever a row holds, its image is whole numbers within ``half``; products with other such points, squared
        distances and sums of CHUNK rows are exact in doubles, so no row's part in them depends on other rows.
    Proof: elementwise operations are correctly rounded; steps are chosen so that 4 features steps**2 <= 2**53, and
        every partial sum of whole numbers is a whole number below that.
    Assumes: IEEE-754 doubles; bounds chosen without looking at the data.
    """

    middle: Floats
    unit: float
    """One step, in the units of the data."""
    half: Floats
    """How many steps the middle is from the bounds, a feature each."""
    _ends: tuple[Floats, Floats]

    @classmethod
    def of(cls, bounds: Any, features: int) -> Grid:
        """The grid for public bounds.

        >>> Grid.of((0, [2, 1]), 2)([[2, 2], [1, float("nan")]]).tolist()
        [[1048576.0, 524288.0], [0.0, -524288.0]]
        """
        low, high = public_bounds(bounds, features)
        widest = float((high - low).max()) / 2
        unit = widest / steps_for(features)
        return cls((low + high) / 2, unit, np.ceil((high - low) / 2 / unit), (low, high))

    def __call__(self, rows: ArrayLike) -> Floats:
        """The rows in steps."""
        values = np.asarray(rows, dtype=np.float64)
        found = np.empty_like(values)
        for part in chunks(len(values)):
            steps = (clamped(values[part], *self._ends) - self.middle) / self.unit
            np.clip(np.rint(steps, out=steps), -self.half, self.half, out=found[part])
        return found

    def within(self, points: Floats) -> Floats:
        """Points in steps, made whole and brought within the bounds."""
        return np.clip(np.rint(points), -self.half, self.half)

    def back(self, points: Floats) -> Floats:
        """Points in steps, in the units of the data."""
        return np.clip(self.middle + points * self.unit, *self._ends)


def steps_for(features: int) -> int:
    """The most steps, up to ONE, with which squared distances of so many features are exact in doubles."""
    return min(ONE, 1 << ((51 - (features - 1).bit_length()) // 2))


@dataclass(frozen=True)
class Allowance:
    """What may be spent in all, and mechanisms for shares of it: Gaussian noise, or Laplace where delta is 0.

    Claim: releases whose shares add up to at most 1 cost at most ``loss`` together, which is (epsilon, delta)-DP.
    Proof: Gaussian: DRS22, Corollary 3.3: mu**2 adds up, and a share of it is taken. Laplace: epsilons add up (DMNS06).
        SLACK covers the rounding of each.
    Assumes: the sensitivities that mechanisms are asked for.
    """

    epsilon: Number
    delta: Number
    neighbours: Neighbours

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        check_delta(self.delta)
        check_neighbours(self.neighbours)

    @property
    def norm(self) -> int:
        """In which sensitivities are stated: 1 for Laplace, 2 for Gaussian noise."""
        return 2 if check_delta(self.delta) else 1

    @property
    def loss(self) -> Loss:
        """The whole of it."""
        if self.norm == 1:
            return PureDP(self.epsilon, neighbours=self.neighbours)
        return GaussianDP(self._mu, neighbours=self.neighbours)

    @property
    def _mu(self) -> float:
        return largest_mu(positive("epsilon", self.epsilon), check_delta(self.delta))

    def mechanism(self, share: float, sensitivity: int) -> Gaussian | Laplace:
        """The mechanism that a share of all pays for, for whole numbers."""
        if self.norm == 1:
            price = positive("epsilon", self.epsilon) * Fraction(share * SLACK)
            return Laplace(sensitivity, epsilon=price, neighbours=self.neighbours)
        sigma = sensitivity / (self._mu * math.sqrt(share) * SLACK)
        return Gaussian(sensitivity, sigma=sigma, neighbours=self.neighbours)

    def moments(self, share: float, *, count: int = ONE, squares: int = 0) -> Gaussian | Laplace:
        """The mechanism for ``gathered`` statistics.

        Claim: its sensitivity is true of them.
        Proof: a row adds (count, o, q) to one cluster, |o| <= ONE, q >= 0, |q| <= squares, in either norm. One row
            more: the norm of that. One row replaced within a cluster: the counts cancel, |o - o'| <= 2 ONE, and
            |q - q'| <= sqrt(2) squares (norm 2; none is negative). In another cluster: both rows' parts side by side.
        Assumes: nothing.
        """
        if self.norm == 1:
            most = count + ONE + squares
            return self.mechanism(share, most if self.neighbours == "add-remove" else 2 * most)
        most = count**2 + ONE**2 + squares**2
        if self.neighbours == "replace":
            most = max(2 * most, 4 * ONE**2 + 2 * squares**2)
        return self.mechanism(share, math.isqrt(most - 1) + 1)

    def counts(self, share: float) -> Gaussian | Laplace:
        """The mechanism for counts of rows in disjoint sets: one of them moves by 1, or two where a row is replaced."""
        return self.mechanism(share, 1 if self.neighbours == "add-remove" else 2)


def chunks(length: int) -> Iterator[slice]:
    """Slices that cover so many rows."""
    return (slice(start, start + CHUNK) for start in range(0, length, CHUNK))


def nearest(points: Floats, centres: Floats) -> Labels:
    """The centre nearest to each point, the first of equals; all whole numbers, so that each answer is its point's own.

    >>> nearest(np.array([[0.0], [9.0]]), np.array([[1.0], [5.0], [9.0]])).tolist()
    [0, 2]
    """
    labels = np.empty(len(points), np.intp)
    squares = np.einsum("ij,ij->i", centres, centres)
    for part in chunks(len(points)):
        apart = points[part] @ (-2 * centres.T)
        apart += squares
        np.argmin(apart, axis=1, out=labels[part])
    return labels


def lengths(points: Floats, labels: Labels, centres: Floats, norm: int) -> Floats:
    """How far each point is from its own centre."""
    found = np.empty(len(points))
    for part in chunks(len(points)):
        offsets = points[part] - centres[labels[part]]
        found[part] = length(offsets, norm)
    return found


def length(offsets: Floats, norm: int) -> Floats:
    """Of each row of whole numbers, in norm 1 or 2; right to the last place."""
    if norm == 1:
        return np.asarray(np.abs(offsets).sum(axis=1))
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", offsets, offsets)))


def totals(values: Floats, labels: Labels, clusters: int) -> Counts:
    """Whole numbers added up by label, column by column.

    >>> totals(np.array([[1.0], [2.0], [4.0]]), np.array([1, 0, 1]), 2).tolist()
    [[2], [5]]
    """
    from scipy.sparse import csr_array

    size = len(values)
    chosen = csr_array((np.ones(size), labels, np.arange(size + 1)), shape=(size, clusters))
    return np.asarray(chosen.T @ values).astype(np.int64)


def gathered(
    points: Floats,
    labels: Labels,
    centres: Floats,
    reach: Floats,
    *,
    norm: int,
    count: int = ONE,
    squares: int = 0,
) -> Counts:
    """A row for each cluster: ``count`` for each of its points, their offsets from its centre, and squares of those.

    Offsets are in units of the cluster's reach over ONE, and no longer than the reach; squares sum up to ``squares``
    at most.

    Claim: a point adds (count, o, q) to the row of its own cluster, and nothing else: |o| <= ONE in the norm, q >= 0,
        |q| <= squares.
    Proof: an offset is scaled by ONE over at least its length, a little less, and cut off towards zero. q is o * o *
        squares/ONE**2 rounded down, whose sum is at most squares |o|**2/ONE**2, and either norm is at most that.
    Assumes: whole numbers on a Grid, or halves; squares a power of two; labels that depend on their own point only.
    """
    width = points.shape[1]
    found = np.zeros((len(centres), 1 + width + (width if squares else 0)), np.int64)
    for part in chunks(len(points)):
        own = labels[part]
        offsets = points[part] - centres[own]
        offsets *= (ONE * SLACK / np.maximum(length(offsets, norm), reach[own]))[:, None]
        np.trunc(offsets, out=offsets)
        found[:, 0] += count * np.bincount(own, minlength=len(centres))
        found[:, 1 : 1 + width] += totals(offsets, own, len(centres))
        if squares:
            offsets *= offsets
            offsets *= squares / ONE**2
            found[:, 1 + width :] += totals(np.floor(offsets, out=offsets), own, len(centres))
    return found
