"""A noisy tree of boxes over the data: its leaves are few weighted points that stand for all rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.learning.rows import Floats
from hubbub.learning.summing import ONE, Allowance, Counts, Labels, chunks, gathered
from hubbub.randomness.bits import Bits

LAST = 0.5
"""The share of a tree's allowance that its last level gets; the others share the rest."""
LEAST_DEPTH, MOST_DEPTH = 4, 11
LEAVES = 40
"""For each cluster; more would only be slower."""
FAINT = 0.8
"""Boxes of fewer rows than so many standard deviations of their count are not split."""
FORGOTTEN = 0.25
"""Leaves of less than this part of that are left out."""


class Weighted(NamedTuple):
    """Points and what each stands for, all released."""

    points: Floats
    weights: Floats


class _Boxes(NamedTuple):
    low: Floats
    high: Floats


def coreset(
    points: Floats, half: Floats, size: float, clusters: int, allowance: Allowance, share: float, bits: Bits
) -> Weighted:
    """The leaves of a tree of boxes, with noisy counts and means. ``size`` is about how many points there are.

    Every level releases the count and, offset by offset, the sums and squares of each box's points; boxes that hold
    enough are cut in two at the mean of the feature that varies most. Points whose box is a leaf leave the tree.

    Claim: costs at most the share.
    Proof: each level is one release of ``gathered`` statistics: boxes are disjoint, and which boxes there are follows
        from earlier releases. The levels' shares add up to one.
    Assumes: points are whole numbers within ``half``; ``size`` was released.
    """
    width = points.shape[1]
    fine = allowance.moments(share * LAST)
    noise = math.sqrt(fine.variance) / ONE * math.sqrt(width)
    depth = int(
        np.clip(math.log2(max(2.0, min(0.7 * size / max(noise, 1e-300), LEAVES * clusters))), LEAST_DEPTH, MOST_DEPTH)
    )
    coarse = allowance.moments(share * (1 - LAST) / depth, squares=ONE)
    least = FAINT * math.sqrt(coarse.variance) / ONE
    boxes = _Boxes(-half[None, :], half[None, :].copy())
    own: Labels = np.zeros(len(points), np.intp)
    found = []
    for level in range(depth + 1):
        last = level == depth
        middles, reach = (boxes.low + boxes.high) / 2, _reach(boxes, allowance.norm)
        sums = gathered(points, own, middles, reach, norm=allowance.norm, squares=0 if last else ONE)
        noisy = (fine if last else coarse).release(sums, bits)
        counts, means, spread = _read(noisy, boxes, middles, reach)
        split = (counts >= least) & (not last)
        kept = ~split & (counts >= least * FORGOTTEN)
        found.append((means[kept], counts[kept]))
        if not split.any():
            break
        axes = spread[split].argmax(axis=1)
        cuts = np.floor(means[split, axes])
        points, own = _descended(points, own, split, axes, cuts)
        boxes = _halves(boxes, split, axes, cuts)
    return Weighted(np.vstack([p for p, _ in found]), np.concatenate([w for _, w in found]))


def _reach(boxes: _Boxes, norm: int) -> Floats:
    """No less than the distance of a box's corners from its middle."""
    return np.asarray(np.maximum(1.0, np.linalg.norm((boxes.high - boxes.low) / 2, ord=norm, axis=1)))


def _read(noisy: Counts, boxes: _Boxes, middles: Floats, reach: Floats) -> tuple[Floats, Floats, Floats]:
    """Counts, means within their boxes, and variances (0 where no squares were released)."""
    width = middles.shape[1]
    parts = noisy / ONE
    counts = parts[:, 0]
    safe = np.maximum(counts, 1.0)[:, None]
    offsets = parts[:, 1 : 1 + width] / safe
    means = np.clip(middles + offsets * reach[:, None], boxes.low, boxes.high)
    if noisy.shape[1] == 1 + width:
        return counts, means, np.zeros_like(means)
    return counts, means, (parts[:, 1 + width :] / safe - offsets**2) * reach[:, None] ** 2


def _descended(
    points: Floats, own: Labels, split: NDArray[np.bool_], axes: Labels, cuts: Floats
) -> tuple[Floats, Labels]:
    """The points of the boxes that were split, and which half each is in now."""
    place = np.where(split, np.cumsum(split) - 1, -1)
    left, new = np.empty_like(points), np.empty_like(own)
    end = 0
    for part in chunks(len(points)):
        at = place[own[part]]
        staying = np.flatnonzero(at >= 0)
        at, start, end = at[staying], end, end + len(staying)
        np.take(points[part], staying, axis=0, out=left[start:end])
        values = left[start:end].ravel()[np.arange(len(at)) * points.shape[1] + axes[at]]
        new[start:end] = 2 * at + (values > cuts[at])
    return left[:end], new[:end]


def _halves(boxes: _Boxes, split: NDArray[np.bool_], axes: Labels, cuts: Floats) -> _Boxes:
    low, high = (np.repeat(ends[split], 2, axis=0) for ends in boxes)
    first = 2 * np.arange(len(axes))
    high[first, axes] = cuts
    low[first + 1, axes] = cuts
    return _Boxes(low, high)


def padded(found: Weighted, least: int, half: Floats, words: Floats) -> Weighted:
    """At least so many points: where there are fewer, random ones (``words``, between 0 and 1) that weigh next to
    nothing."""
    if len(found.points) >= least:
        return found
    more = np.rint((2 * words - 1) * half)
    return Weighted(np.vstack([found.points, more]), np.append(found.weights, np.full(len(more), 1e-3)))
