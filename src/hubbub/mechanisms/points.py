"""Public weights of the points of a grid: even, or falling off from zero towards the bound where a far tail may lie."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from hubbub.randomness.thresholds import Integers

HALVINGS = 6
"""The first of 2**6 parts of a tail is even; then every doubling of the distance weighs the same."""
MOST_POINTS = 1 << 46
"""Longer grids are weighed evenly, so that sums of weights stay whole numbers a double can hold."""


@dataclass(frozen=True)
class Weights:
    """Whole weights of points 0..n-1, the same in each block: ``edges`` are the starts of blocks, then n."""

    edges: tuple[int, ...]
    each: tuple[int, ...]

    @classmethod
    def even(cls, points: int) -> Weights:
        """Weight 1 everywhere.

        >>> Weights.even(5).before(np.array([0, 3, 5])).tolist()
        [0, 3, 5]
        """
        return cls((0, points), (1,))

    @classmethod
    def falling(cls, points: int, start: int) -> Weights:
        """Weights that fall off like 1/distance from ``start`` up; points before it weigh as much as those on average.

        >>> Weights.falling(256, 0)
        Weights(edges=(0, 4, 8, 16, 32, 64, 128, 256), each=(32, 32, 16, 8, 4, 2, 1))
        """
        length = points - start
        first = max(1, length >> HALVINGS)
        ends = [first]
        while ends[-1] < length:
            ends.append(2 * ends[-1])
        if length < 1 or points > MOST_POINTS:
            return cls.even(points)
        edges = [0, *ends[:-1], length]
        each = [1 << max(len(ends) - 1 - max(i, 1), 0) for i in range(len(ends))]
        mass = sum((b - a) * w for a, b, w in zip(edges, edges[1:], each, strict=False))
        if not start:
            return cls(tuple(edges), tuple(each))
        return cls((0, *(start + e for e in edges)), (max(1, mass // length), *each))

    def mirrored(self) -> Weights:
        """The same from the other end."""
        last = self.edges[-1]
        return Weights(tuple(last - e for e in reversed(self.edges)), tuple(reversed(self.each)))

    def before(self, steps: Integers) -> Integers:
        """The weight of all points before each of these."""
        block = np.searchsorted(np.array(self.edges[1:-1], np.int64), steps, "right")
        edges, each = np.array(self.edges[:-1], np.int64), np.array(self.each, np.int64)
        return np.array(self._sums()[:-1], np.int64)[block] + (steps - edges[block]) * each[block]

    def point(self, place: int) -> int:
        """The point at this place, counted in weights: the last with no more than ``place`` before it.

        >>> [Weights.falling(4, 0).point(k) for k in range(6)]
        [0, 0, 1, 1, 2, 3]
        """
        sums = self._sums()
        block = next(i for i in range(len(self.each)) if place < sums[i + 1])
        return self.edges[block] + (place - sums[block]) // self.each[block]

    def _sums(self) -> list[int]:
        masses = ((b - a) * w for a, b, w in zip(self.edges, self.edges[1:], self.each, strict=False))
        return list(accumulate(masses, initial=0))
