"""Two ways to centres: the one that is taught, and one that needs far fewer rows."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.learning.coresets import Weighted, coreset, padded
from hubbub.learning.rows import Floats
from hubbub.learning.summing import (
    ONE,
    Allowance,
    Counts,
    Grid,
    Labels,
    chunks,
    gathered,
    lengths,
    nearest,
    totals,
)
from hubbub.mechanisms import Laplace
from hubbub.numeric.rational import Number, count, positive
from hubbub.privacy.families import PureDP
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours
from hubbub.randomness.bits import Bits
from hubbub.randomness.choice import uniform_below

WIDE, PROJECTED = 6, 5
"""Trees over more than six features are grown on five random projections of them."""
OVER, FAR_OVER = 3, 6
"""The first stage has so many times the clusters: the more where rows are many."""
MANY = 5
"""Standard deviations of a count, times the root of the features, that many rows are for a cluster of it."""
SIZE, TREE, FIRST, LAST = 0.01, 0.39, 0.3, 0.3
"""The shares of the allowance that the number of rows, the tree, the first stage and the last steps get."""
STEPS = 2
RADIUS = 0.05
"""The share of a step that tells how far rows are from their centres."""
NEAR = 0.95
"""Offsets are shortened to a length that about this part of them does not exceed."""
RADII = 40
"""Of these lengths one is chosen, each sqrt(2) times the next."""


@dataclass(frozen=True)
class PlainLloyd:
    """k-means steps with Laplace noise on counts and sums, started anywhere: the algorithm of the notes.

    In units in which all rows lie in the L1 ball of radius 1: noise of scale 2/e on counts and sums, where e = epsilon
    / (2 rounds), if a row is replaced, and 1/e if one is added or removed. A row as near to two centres is counted
    at the first of them only (the notes count it at both, which their sensitivity does not allow). Centres are brought
    within the bounds, which takes them farther from no row.

    Claim: epsilon-DP.
    Proof: DMNS06: replacing a row moves one count, or two, by 1: L1 distance 2. It takes at most 1 out of the sums
        and puts at most 1 in, in the L1 norm: 2. Added or removed: 1 each. Two releases a round, of epsilon/(2 rounds).
    Assumes: points within the grid.

    >>> PlainLloyd(1.0, 5, "replace").loss
    PureDP(1.0, neighbours='replace')
    """

    epsilon: Number
    rounds: int
    neighbours: Neighbours

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        count("rounds", self.rounds)
        check_neighbours(self.neighbours)

    @property
    def loss(self) -> Loss:
        """What all rounds cost."""
        return PureDP(self.epsilon, neighbours=self.neighbours)

    def mechanisms(self, grid: Grid) -> tuple[Laplace, Laplace]:
        """For the counts and the sums of one round."""
        each = positive("epsilon", self.epsilon) / (2 * self.rounds)
        each *= 1 - Fraction(1, 2**50)  # so that the mechanisms' own prices, rounded up, still add up to epsilon
        moved = 1 if self.neighbours == "add-remove" else 2
        radius = int(grid.half.sum())
        return (
            Laplace(moved, epsilon=each, neighbours=self.neighbours),
            Laplace(moved * radius, epsilon=each, neighbours=self.neighbours),
        )

    def centres(self, points: Floats, grid: Grid, clusters: int, bits: Bits) -> Floats:
        """Centres, in steps of the grid."""
        counting, summing = self.mechanisms(grid)
        width = points.shape[1]
        random = _in_l1_ball((self.rounds + 1, clusters, width), bits) * grid.half.sum()
        centres = grid.within(random[0])
        for fresh in random[1:]:
            own = nearest(points, centres)
            counts = counting.release(np.bincount(own, minlength=clusters), bits)
            sums = summing.release(_sums(points, own, clusters), bits)
            means = sums / np.maximum(counts, 1)[:, None]
            centres = grid.within(np.where(counts[:, None] >= 1, means, fresh))
        return centres


@dataclass(frozen=True)
class Merging:
    """A tree's leaves merged into many clusters, those into few, then noisy k-means steps on short offsets.

    Over many features the tree sees random projections of the rows. A first stage has several times the clusters, found
    from the leaves, and their noisy means and counts are what is merged.

    Claim: costs at most the allowance.
    Proof: the number of rows, the tree and every step are releases whose shares add up to at most 1; all else is
        computed from what they released and numbers drawn at random before.
    Assumes: points within the grid.
    """

    allowance: Allowance

    @property
    def loss(self) -> Loss:
        """What all of it costs."""
        return self.allowance.loss

    def centres(self, points: Floats, grid: Grid, clusters: int, bits: Bits) -> Floats:
        """Centres, in steps of the grid."""
        width = points.shape[1]
        wide = width > WIDE
        shown = PROJECTED if wide else width
        spare = _uniform((FAR_OVER * clusters, shown), bits)
        seeds = uniform_below(1 << 31, 2, bits).tolist()
        signs = _signs((width, shown), bits)
        size = self.allowance.counts(SIZE).release(len(points), bits)
        many = self._many(size, clusters, width)
        seen, half = _projected(points, grid, signs) if wide else (points, grid.half)
        leaves = padded(coreset(seen, half, size, clusters, self.allowance, TREE, bits), many, half, spare)
        centres = np.clip(np.rint(merged(leaves, many, seeds[0])), -half, half)
        share = FIRST
        if wide:
            own, origin = nearest(seen, centres), np.zeros((many, width))
            centres = self._step(points, own, origin, grid, share * 2 / 3, bits).points
            share /= 3
        means = self._step(points, nearest(points, centres), centres, grid, share, bits)
        centres = grid.within(merged(means, clusters, seeds[1]))
        for _ in range(STEPS):
            own = nearest(points, centres)
            centres = self._step(points, own, centres, grid, LAST / STEPS, bits).points
        return centres

    def _many(self, size: float, clusters: int, width: int) -> int:
        """How many clusters the first stage has."""
        noise = math.sqrt(self.allowance.moments(FIRST).variance * width) / ONE
        return (FAR_OVER if size >= MANY * noise * FAR_OVER * clusters else OVER) * clusters

    def _step(self, points: Floats, own: Labels, centres: Floats, grid: Grid, share: float, bits: Bits) -> Weighted:
        """Noisy means of clusters, as offsets from where their centres are, and noisy counts."""
        norm, width = self.allowance.norm, points.shape[1]
        radius = self._radius(lengths(points, own, centres, norm), grid, share * RADIUS, bits)
        weight = ONE // 2 if self.allowance.neighbours == "add-remove" else ONE
        mechanism = self.allowance.moments(share * (1 - RADIUS), count=weight)
        reach = np.full(len(centres), radius)
        noisy = mechanism.release(gathered(points, own, centres, reach, norm=norm, count=weight), bits)
        spread = math.sqrt(mechanism.variance)
        counts, faint = noisy[:, 0] / weight, 2 * spread / weight
        safe = np.maximum(np.maximum(counts, faint), 1e-300)[:, None]
        offsets = noisy[:, 1:] / ONE / safe
        noise = width * (spread / ONE / safe[:, 0]) ** 2
        moved = np.maximum(0.0, 1 - noise / np.maximum(1e-300, np.einsum("ij,ij->i", offsets, offsets)))
        moved[counts < faint] = 0.0
        return Weighted(grid.within(centres + offsets * (moved * radius)[:, None]), np.maximum(counts, 1e-3))

    def _radius(self, apart: Floats, grid: Grid, share: float, bits: Bits) -> float:
        """About how long the longest offsets are, from a noisy histogram of their lengths."""
        longest = 2 * max(float(np.linalg.norm(grid.half, ord=self.allowance.norm)), 1.0)
        edges = longest * 2.0 ** (-np.arange(RADII)[::-1] / 2)
        found = np.zeros(RADII, np.int64)
        for part in chunks(len(apart)):
            found += np.bincount(np.minimum(np.searchsorted(edges, apart[part]), RADII - 1), minlength=RADII)
        mechanism = self.allowance.counts(share)
        noisy = mechanism.release(found, bits)
        sums = np.cumsum(np.maximum(0.0, noisy - 2 * math.sqrt(mechanism.variance)))
        return max(1.0, float(edges[np.searchsorted(sums, NEAR * sums[-1])])) if sums[-1] > 0 else longest


def merged(leaves: Weighted, clusters: int, seed: int) -> Floats:
    """k-means of weighted points, which are public by now."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer points that differ than clusters
        found: Floats = (
            KMeans(clusters, n_init=10, random_state=seed)
            .fit(leaves.points, sample_weight=leaves.weights)
            .cluster_centers_
        )
    return found


def _projected(points: Floats, grid: Grid, signs: Floats) -> tuple[Floats, Floats]:
    """Sums of features with random signs, in steps of ONE to the length of the bounds' half diagonal, no longer."""
    found = np.empty((len(points), signs.shape[1]))
    scale = ONE / float(np.linalg.norm(grid.half))
    for part in chunks(len(points)):
        found[part] = points[part] @ signs  # exact: whole numbers
    found *= scale
    half = np.full(signs.shape[1], float(ONE))
    return np.clip(np.trunc(found, out=found), -half, half, out=found), half


def _sums(points: Floats, own: Labels, clusters: int) -> Counts:
    found = np.zeros((clusters, points.shape[1]), np.int64)
    for part in chunks(len(points)):
        found += totals(points[part], own[part], clusters)
    return found


def _in_l1_ball(shape: tuple[int, int, int], bits: Bits) -> Floats:
    """Uniform points of the L1 ball of radius 1: exponential lengths over their sum and one more, random signs."""
    rounds, clusters, width = shape
    exponential = -np.log1p(-_uniform((rounds, clusters, width + 1), bits))
    signs = _signs(shape, bits)
    return np.asarray(signs * exponential[..., :-1] / np.maximum(exponential.sum(axis=-1, keepdims=True), 1e-300))


def _signs(shape: tuple[int, ...], bits: Bits) -> Floats:
    return 2.0 * uniform_below(2, math.prod(shape), bits).reshape(shape).astype(np.float64) - 1


def _uniform(shape: tuple[int, ...], bits: Bits) -> Floats:
    """Public random numbers from 0 up to 1."""
    return uniform_below(1 << 53, math.prod(shape), bits).reshape(shape).astype(np.float64) * 2.0**-53
