"""Totals that models are made of: how many rows, sums of numbers, of squares and of products, released at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.learning.rows import Floats, clamped
from hubbub.mechanisms import Gaussian, Laplace
from hubbub.mechanisms.additive import AdditiveNoise
from hubbub.numeric.rational import Number
from hubbub.privacy.loss import Neighbours, check_delta, check_neighbours

Norm = Literal[1, 2]
WHOLE = 8
"""The size of a column that counts in full."""
STEPS = 1 << 17
"""Steps of the grid for each unit of size: a column of size s holds integers from -s STEPS to s STEPS."""
TOP = WHOLE * STEPS
CHUNK = 4096
"""Rows added up at a time in floats, exactly: CHUNK * TOP**2 = 2**52."""
TANGENTS = 256
GUESS = 0.3
"""How far from the middle of bounds a mean is thought to lie, in units of half a range, before anything is known."""


@dataclass(frozen=True)
class Weights:
    """How loudly each kind of total is released: a louder one gets less noise and leaves more for the others."""

    count: int
    linear: int
    square: int
    cross: int = 0
    """Products of two features; 0: none are released."""
    target: int = 0
    product: int = 0
    """Products of a feature and a target."""


@dataclass(frozen=True)
class Totals:
    """Totals of columns measured from the middle of their bounds in units of half their range; noisy, or their noise's
    standard deviations."""

    count: float
    sums: Floats
    products: Floats
    """Of two features; zero off the diagonal where products were not asked for."""
    target_sums: Floats
    target_products: Floats
    """One row a feature, one column a target."""


@dataclass(frozen=True)
class Moments:
    """The totals of rows whose columns (features, then targets) are clamped to public bounds and put on a grid.

    Column j becomes an integer x_j with |x_j| <= s_j STEPS. Released are, times their weights and in common units: the
    number of rows (public and not released under "replace", unless there are classes), sums of x_j, of 2 x_j**2 -
    (s_j STEPS)**2, of x_i x_j, of targets and of features times targets; once for each class of rows.

    Claim: totals of neighbouring tables are at most ``sensitivity(norm)`` apart in the 1-norm and in the 2-norm, in
        both relations. Add-remove: no smaller number will do.
    Proof: put |x_j| <= 1. One row more adds a vector whose entries are at most their weights in size; the row at the
        upper ends reaches them all. Rows of several classes: the vectors of one class. Replacing x by x' in a class:
        with u = (x+x')/2, v = (x-x')/2, p_j = 1 - |v_j| >= |u_j|, entries change by 2 v_j, 2 (u_i v_j + u_j v_i) and
        8 u_j v_j, in size at most 2 (1-p_j), 2 (p_i (1-p_j) + p_j (1-p_i)) and 8 p_j (1-p_j). Squared and weighted,
        the first two are convex in each p_j; the third is at most 16 c**2 p_j (1-p_j), so that with 4 c**2 <= b**2
        (c, b the weights of square and column) the whole is convex in each p_j and largest where all p_j are 0 or 1,
        and the third vanishes. Without products 2 c**2 <= b**2 is enough: the derivative of (1-p)**2 (b**2 + 16 c**2
        p**2) has the sign of -b**2 + 16 c**2 p - 32 c**2 p**2 <= 2 c**2 - b**2. Otherwise the third is at most 4 c**2.
        In the 1-norm 2 b (1-p) + 8 c p (1-p) is concave and lies below its tangents, 2 b + 8 c q**2 at p = 0 and
        8 c (1-q)**2 at p = 1 for the one at q, so the whole is below something linear in each p_j. A row that changes
        its class moves the totals of both by what one row adds.
    Assumes: bounds and weights chosen without looking at the data.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    sizes: tuple[int, ...]
    """Of the features, 1 to WHOLE; targets are of full size."""
    weights: Weights
    neighbours: Neighbours
    classes: int = 1

    @property
    def targets(self) -> int:
        """How many columns are targets."""
        return len(self.low) - len(self.sizes)

    @property
    def counted(self) -> bool:
        """Whether the number of rows is private, and released."""
        return self.neighbours == "add-remove" or self.classes > 1

    def sensitivity(self, norm: Norm) -> int:
        """How far apart the totals of neighbours can be."""
        if self.neighbours == "add-remove":
            most = self._one_row(norm)
        elif self.classes == 1:
            most = self._replaced(norm)
        else:
            most = max(2 * self._one_row(norm), self._replaced(norm))
        if norm == 1:
            return most * STEPS**2
        return math.isqrt(most * STEPS**4 - 1) + 1

    def _one_row(self, norm: Norm) -> int:
        """The largest length (squared in the 2-norm) of what one row adds."""
        entries = np.asarray(self._sizes(), dtype=object) ** norm
        return int(entries.sum())

    def _sizes(self) -> list[int]:
        """The largest size of each entry of one class, in units of STEPS**2."""
        w, s = self.weights, self.sizes
        cross = [w.cross * s[i] * s[j] for i, j in self._pairs()]
        found = [w.linear * WHOLE * size for size in s] + [w.square * size**2 for size in s] + cross
        found += [w.target * WHOLE**2] * self.targets
        found += [w.product * WHOLE * size for size in s for _ in range(self.targets)]
        return [w.count * WHOLE**2, *found] if self.counted else found

    def _pairs(self) -> list[tuple[int, int]]:
        if not self.weights.cross:
            return []
        return [(i, j) for i in range(len(self.sizes)) for j in range(i + 1, len(self.sizes))]

    def _replaced(self, norm: Norm) -> int:
        """The largest length (squared in the 2-norm) of the change when a row of a class is replaced."""
        w, targets = self.weights, self.targets
        whole = sum(size**norm for size in self.sizes)
        flips = [(t, whole - t, k, targets - k) for t in _subset_sums(self.sizes, norm) for k in range(targets + 1)]

        def largest(flipped: int, kept: int) -> int:
            """Of the corners, when features cost this for each unit of size flipped or kept."""
            unit = WHOLE**norm
            lengths = [
                flipped * t
                + kept * rest
                + 2**norm * (w.cross**norm * t * rest + w.target**norm * unit**2 * k)
                + 2**norm * w.product**norm * unit * (t * stay + k * rest)
                for t, rest, k, stay in flips
            ]
            return int(max(lengths))

        if norm == 2:
            steep = (4 if w.cross or targets else 2) * (w.square * max(self.sizes)) ** 2 > (w.linear * WHOLE) ** 2
            bulge = sum(4 * w.square**2 * size**4 for size in self.sizes) if steep else 0
            return largest(4 * w.linear**2 * WHOLE**2, 0) + bulge
        scale = TANGENTS**2  # a column's square has weight c s**2 <= c s WHOLE
        bend = 8 * w.square * WHOLE
        bounds = (
            largest(2 * w.linear * WHOLE - (-bend * q**2 // scale), -(-bend * (TANGENTS - q) ** 2 // scale))
            for q in range(TANGENTS + 1)
        )
        return min(bounds)

    def totals(self, rows: Floats, classes: NDArray[np.intp] | None = None) -> list[int]:
        """The exact weighted totals, one class after another; rows of class -1 count nowhere."""
        found: list[int] = []
        for k in range(self.classes):
            found += self._weighted(*self._sums(rows if classes is None else rows[classes == k]))
        return found

    def _sums(self, rows: Floats) -> tuple[int, NDArray[Any], NDArray[Any]]:
        """Rows counted, columns and products added up: integers, whatever the order of rows."""
        width = len(self.low)
        sums, products = np.zeros(width, dtype=object), np.zeros((width, width), dtype=object)
        for start in range(0, len(rows), CHUNK):
            x = self.encoded(rows[start : start + CHUNK])
            sums += _whole(x.sum(axis=0))
            if self.weights.cross or self.targets:
                products += _whole(x.T @ x)
            else:
                products[np.diag_indices(width)] += _whole((x * x).sum(axis=0))
        return len(rows), sums, products

    def encoded(self, rows: Floats) -> Floats:
        """Rows clamped and put on the grid."""
        low, high = np.array(self.low), np.array(self.high)
        tops = np.array([*self.sizes, *[WHOLE] * self.targets]) * float(STEPS)
        scaled = (clamped(rows, low, high) - (low + high) / 2) / ((high - low) / 2)
        return np.asarray(np.clip(np.rint(scaled * tops), -tops, tops))

    def _weighted(self, count: int, sums: NDArray[Any], products: NDArray[Any]) -> list[int]:
        w, d = self.weights, len(self.sizes)
        found = [w.linear * TOP * sums[j] for j in range(d)]
        found += [w.square * (2 * products[j, j] - count * (self.sizes[j] * STEPS) ** 2) for j in range(d)]
        found += [w.cross * products[i, j] for i, j in self._pairs()]
        found += [w.target * TOP * sums[d + k] for k in range(self.targets)]
        found += [w.product * products[j, d + k] for j in range(d) for k in range(self.targets)]
        return [w.count * TOP**2 * count, *found] if self.counted else found

    def read(self, released: Sequence[int], count: int) -> list[Totals]:
        """What was released, in units of the bounds, a class at a time; the count is used only where it is public."""
        entries = np.array([v / (s * STEPS**2) for v, s in zip(released, self._sizes() * self.classes, strict=True)])
        return [self._read(part, 0.0 if self.counted else count) for part in np.split(entries, self.classes)]

    def noise(self, mechanism: AdditiveNoise) -> Totals:
        """The standard deviations of released totals."""
        spread = math.sqrt(mechanism.variance)
        noise = np.array([spread / (s * STEPS**2) for s in self._sizes()])
        return self._read(noise, 0.0, join=np.hypot)

    def loudness(self) -> float:
        """The sum of entries' variances for noise of variance 1."""
        return self.classes * math.fsum(1 / (s * STEPS**2) ** 2 for s in self._sizes())

    def _read(self, entries: Floats, count: float, join: Callable[[Any, Any], Any] = np.add) -> Totals:
        d, q = len(self.sizes), self.targets
        parts = iter(entries)
        n = float(next(parts)) if self.counted else count
        sums = _next(parts, d)
        products = np.diag(join(_next(parts, d), n) / 2)
        pairs = self._pairs()
        for (i, j), value in zip(pairs, _next(parts, len(pairs)), strict=True):
            products[i, j] = products[j, i] = value
        return Totals(n, sums, products, _next(parts, q), _next(parts, d * q).reshape(d, q))


def quietest(
    make: Callable[[Norm], Moments], *, epsilon: Number, delta: Number, neighbours: Neighbours
) -> tuple[Moments, AdditiveNoise]:
    """The totals and the mechanism to release them at this price: Laplace or, where delta allows, Gaussian noise,
    whichever is less."""
    check_neighbours(neighbours)
    failure = check_delta(delta)
    pure = make(1)
    options: list[tuple[Moments, AdditiveNoise]] = [
        (pure, Laplace(pure.sensitivity(1), epsilon=epsilon, neighbours=neighbours))
    ]
    if failure:
        other = make(2)
        options.append((other, Gaussian(other.sensitivity(2), epsilon=epsilon, delta=failure, neighbours=neighbours)))
    return min(options, key=lambda option: option[1].variance * option[0].loudness())


def means(totals: Totals, noise: Totals) -> tuple[float, Floats, Floats]:
    """The count, at least 1; the means of features and of targets, the noisier the nearer to the middle of bounds.

    A mean is weighed against a guess of 0, give or take GUESS.
    """
    count = max(totals.count, 1.0)

    def mean(sums: Floats, spread: Floats) -> Floats:
        return np.asarray(np.clip(sums / count / (1 + (spread / count / GUESS) ** 2), -1.0, 1.0))

    return count, mean(totals.sums, noise.sums), mean(totals.target_sums, noise.target_sums)


def _subset_sums(sizes: Iterable[int], power: int) -> set[int]:
    """Every sum of powers of some of the sizes: few, as sizes are small."""
    found = {0}
    for size in sizes:
        found |= {t + size**power for t in found}
    return found


def _whole(values: Floats) -> NDArray[Any]:
    """Floats that are integers, as Python's, which do not overflow."""
    return values.astype(np.int64).astype(object)


def _next(parts: Iterator[Any], count: int) -> Floats:
    return np.array([next(parts) for _ in range(count)], dtype=np.float64)
