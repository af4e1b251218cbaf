"""Minimisers of convex risks, found by Newton's method and certified: how long the true gradient is at most."""

from __future__ import annotations

import math

import numpy as np

from hubbub.errors import FitFailure, ParameterError
from hubbub.learning.losses import PointLoss
from hubbub.learning.rows import CHUNK, STEP, Floats, summed
from hubbub.numeric.rational import Number, positive

INEXACT = 2e-6
"""How long the gradient of the risk may be at what counts as a minimiser, rounding included, for losses of slope 1."""
LEAST_WEIGHT = 1e-3
"""Of a regulariser: below it minimisers on few rows run away, and Newton's method might not end."""
MOST_ROWS = 10**7
"""For which rounding was reckoned; tables with more are refused."""
ROUNDS = 500
UNIT = 2.0**-53
BLOCK = 1 << 15
"""Rows of which a weighted copy is made at a time."""


def inexact(loss: PointLoss) -> float:
    """How long the gradient may be for this loss: more than rounding makes of it on MOST_ROWS rows."""
    return INEXACT * max(1.0, loss.slope, loss.curvature, loss.rounding)


def heavy_enough(loss: PointLoss, weight: Number | None, usual: float) -> float:
    """The weight of a regulariser: as asked, where too light ones are refused, or the usual one."""
    least = LEAST_WEIGHT * max(1.0, loss.slope, loss.curvature)
    if weight is None:
        return max(usual, least)
    asked = float(positive("regularisation", weight))
    if asked < least:
        raise ParameterError("regularisation", asked, f"must be at least {least:g}: a weight of squares, in rows")
    return asked


def minimiser(loss: PointLoss, rows: Floats, labels: Floats, weight: float, term: Floats) -> Floats:
    """Where sum loss(x.w, y) + (weight/2) |w|**2 + term.w is least, to a gradient no longer than ``inexact``.

    Claim: the gradient of the real function at the returned floats has Euclidean length at most ``inexact``.
    Proof: it is computed with its error: scores are exact but for one rounding and a part far below it (``_scores``),
        which moves a derivative by at most ``rounding`` and ``curvature`` times that; sums are right to CHUNK units.
    Assumes: rows of length at most 1 on the grid STEP; derivatives right to 8 units in the last place of the slope.
    """
    w, short = np.zeros(rows.shape[1]), inexact(loss)
    scores = rows @ w
    value = _value(loss, scores, labels, weight, term, w)
    for _ in range(ROUNDS):
        slope = summed(rows, loss.derivative(scores, labels)) + weight * w + term
        if float(np.linalg.norm(slope)) <= short / 4 and _length(loss, rows, labels, weight, term, w) <= short:
            return w
        try:
            step = np.linalg.solve(_curvature(loss, rows, labels, scores) + weight * np.eye(len(w)), slope)
        except np.linalg.LinAlgError:
            raise FitFailure from None
        falls, size = float(slope @ step), 1.0
        while True:
            tried = w - size * step
            scores = rows @ tried
            new = _value(loss, scores, labels, weight, term, tried)
            if new <= value - 1e-4 * size * falls + 1e-12 * abs(value) or size < 1e-9:
                break
            size /= 2
        w, value = tried, new
    raise FitFailure


def _value(loss: PointLoss, scores: Floats, labels: Floats, weight: float, term: Floats, w: Floats) -> float:
    return float(loss.value(scores, labels).sum() + weight / 2 * (w @ w) + term @ w)


def _curvature(loss: PointLoss, rows: Floats, labels: Floats, scores: Floats) -> Floats:
    """The matrix of second derivatives, a block of rows at a time."""
    seconds = np.sqrt(loss.second(scores, labels))
    found = np.zeros((rows.shape[1], rows.shape[1]))
    for start in range(0, len(rows), BLOCK):
        weighted = rows[start : start + BLOCK] * seconds[start : start + BLOCK, None]
        found += weighted.T @ weighted
    return found


def _length(loss: PointLoss, rows: Floats, labels: Floats, weight: float, term: Floats, w: Floats) -> float:
    """The length of the true gradient, at most."""
    total, off = gradient(loss, rows, labels, w)
    rest = weight * float(np.linalg.norm(w)) + float(np.linalg.norm(term)) + loss.slope * len(rows)
    length = float(np.linalg.norm(total + weight * w + term))
    return (length + len(rows) * off + 4 * UNIT * rest) * (1 + 1e-9)


def gradient(loss: PointLoss, rows: Floats, labels: Floats, w: Floats) -> tuple[Floats, float]:
    """The gradient of the sum of losses, and how far off it may be for each row."""
    scores, off = _scores(rows, w)
    each = 2 * loss.rounding * UNIT + loss.curvature * off + (CHUNK + 10) * loss.slope * UNIT
    return summed(rows, loss.derivative(scores, labels)), each


def _scores(rows: Floats, w: Floats) -> tuple[Floats, float]:
    """The scores, right to one unit in the last place and an absolute error that is returned.

    The leading bits of the weights, as many as leave every partial sum exact on the rows' grid, are taken apart.
    """
    top = float(np.abs(w).max(initial=2.0**-900))
    bits = 53 + round(math.log2(STEP)) - math.ceil(math.log2(len(w)) / 2)
    grid = 2.0 ** (math.ceil(math.log2(top)) - bits)
    leading = np.rint(w / grid) * grid
    return rows @ leading + rows @ (w - leading), len(w) * UNIT * math.sqrt(len(w)) * grid
