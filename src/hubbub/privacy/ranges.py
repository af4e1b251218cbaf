"""The exponential mechanism: losses of bounded range, and what many of them cost an adversary who adapts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from hubbub.numeric.rational import Number, float_up, positive, rational
from hubbub.privacy import renyi as renyi_forms
from hubbub.privacy.loss import Loss, Neighbours, check_delta, check_neighbours, gap_below, nudged_up
from hubbub.privacy.pairs import Floats, LaplacePair, Pair

MOST_CELLS, FEWEST_CELLS = 400, 4
"""Into how many cells a range is cut at most; with fewer than the least, the grid says no more than Renyi does."""
MOST_POINTS = 2800
"""How many cells all ranges together may have: a curve takes a fraction of a second."""
MOST_LOSS = 300.0
"""Curves are computed for losses that add up to no more."""
ROUNDING = 1e-12
"""Relative error granted to each step of a curve: sums of a few positive products."""


@dataclass(frozen=True)
class BoundedRangePair(Pair):
    """The least pair that dominates all laws with losses within a range of length epsilon: density e**(loss/2).

    At e**eps the two-loss law tells most whose upper loss is t = (eps + epsilon)/2; that profile,
    (1 - e**((eps - epsilon)/2))**2 / (1 - e**-epsilon), is a Laplace pair's less its ends, scaled up.
    """

    epsilon: float

    def masses(self, edges: Floats) -> tuple[Floats, Floats]:
        p, q = LaplacePair(self.epsilon).masses(edges)
        grown = 2 / -math.expm1(-self.epsilon)
        return p * grown, q * grown

    def span(self, tail: float) -> tuple[float, float]:  # noqa: ARG002
        return -self.epsilon, self.epsilon

    def floor(self) -> float:
        return -self.epsilon

    def ceiling(self) -> float:
        return self.epsilon


class AdaptiveRange:
    """The profile of many releases of bounded range, each chosen after seeing the ones before.

    Claim: at every epsilon, delta lies between ``lower`` and ``upper``, for the worst choice of every release.
    Proof: let V_k(g) be the most that k releases can make E[(1 - e**(g - loss))+]. Then V_k(g) = sup over a law of
        E[V_{k-1}(g - loss)]. V is convex in e**g (a supremum of such), so the integrand is convex in e**-loss, and
        since E[e**-loss] = 1 the supremum is at a law with two losses, t and t - epsilon (as in DDR20). On a grid,
        ``lower`` takes t on the grid: a real adversary. ``upper`` takes every t, with V between grid points replaced by
        its chord in e**g, from above: then E is c0 + c1 e**t + c2 e**-t within a cell, largest at an end or at
        e**(2 t) = c2/c1.
    Assumes: nothing else is composed with the releases.
    """

    def __init__(self, epsilon: float, times: int, cells: int) -> None:
        self._spacing = epsilon / cells
        upper = lower = np.zeros(1)  # V_0 at g = 0
        for k in range(1, times + 1):
            left = min(k, times - k) * cells  # further left is not asked for by later steps
            upper = _step(self._around(upper, left, k, times, cells), epsilon, cells, exact=False) * (1 + ROUNDING)
            lower = _step(self._around(lower, left, k, times, cells), epsilon, cells, exact=True) * (1 - ROUNDING)
        self._upper, self._lower = upper, lower

    def _around(self, values: Floats, left: int, k: int, times: int, cells: int) -> Floats:
        """V_{k-1} from ``left`` points and a range below 0 up to a range beyond its last, known beyond its array."""
        had = min(k - 1, times - k + 1) * cells
        wanted = left + cells
        low = -np.expm1(-self._spacing * np.arange(wanted, had, -1))  # all losses are larger: 1 - e**g
        return np.concatenate((low, values[max(0, had - wanted) :], np.zeros(2 * cells)))

    def delta_interval(self, epsilon: float) -> tuple[float, float]:
        """(lower, upper) on the delta at epsilon."""
        k = math.floor(epsilon / self._spacing)
        if k + 1 >= len(self._upper):
            return 0.0, 0.0
        share = min(1.0, max(0.0, math.expm1(epsilon - k * self._spacing) / math.expm1(self._spacing)))
        return float(self._lower[k + 1]), float(self._upper[k] * (1 - share) + self._upper[k + 1] * share)

    def epsilon_interval(self, delta: float) -> tuple[float, float]:
        """(lower, upper) on the epsilon at delta: the upper from chords, the lower from a chord prolonged."""
        spacing, up, down = self._spacing, self._upper, self._lower
        k = int(np.argmax(up <= delta))
        if k == 0:
            return 0.0, 0.0
        share = (up[k - 1] - delta) / (up[k - 1] - up[k])
        high = (k - 1) * spacing + math.log1p(share * math.expm1(spacing))
        k = int(np.argmax(down < delta)) - 1
        low = max(0, k) * spacing
        if k > 0:  # a convex function lies above the line through the two points before
            share = (down[k] - delta) / (down[k - 1] - down[k]) * -math.expm1(-spacing)
            low += min(spacing, math.log1p(share))
        return low * (1 - 1e-9), nudged_up(high)


def _step(values: Floats, epsilon: float, cells: int, exact: bool) -> Floats:
    """sup over t of E[V(g - loss)] at every g: over t on the grid (``exact``), or over all t with V's chords."""
    rows = np.lib.stride_tricks.sliding_window_view(values, len(values) - 2 * cells)
    near, far = rows[cells::-1], rows[: cells - 1 : -1]  # V at g - t and at g - t + epsilon, t = 0, spacing .. epsilon
    t, spacing = np.linspace(0.0, epsilon, cells + 1)[:, None], epsilon / cells
    ends = _mean(t, epsilon, near, far)
    if exact:
        return np.asarray(np.max(ends, axis=0))
    # t = start + s within a cell, where V(g - t) rises by (1 - e**-s)/(1 - e**-spacing) of its rise over the cell
    start, near, far, rise, far_rise = t[:-1], near[:-1], far[:-1], np.diff(near, axis=0), np.diff(far, axis=0)
    curl, fall = -math.expm1(-spacing) * (near - far), np.exp(start - epsilon)
    bend = fall * (curl + rise - far_rise)  # this and slope are -c1 and -c2, up to one factor; excess is slope - bend
    slope = rise - math.exp(-epsilon) * far_rise
    excess = -np.expm1(start - epsilon) * rise + math.exp(-epsilon) * np.expm1(start) * far_rise - fall * curl
    peaks = (bend > 0) & (slope > 0) & (excess > 0)
    s = np.minimum(np.log1p(np.divide(excess, bend, out=np.zeros_like(bend), where=peaks)) / 2, spacing)
    share = np.expm1(-s) / math.expm1(-spacing)
    inside = _mean(start + s, epsilon, near + rise * share, far + far_rise * share)
    return np.asarray(np.maximum(np.max(ends, axis=0), np.max(inside, axis=0)))


def _mean(t: Floats, epsilon: float, near: Floats, far: Floats) -> Floats:
    """The mean of V over the law with losses t and t - epsilon: by its value at the one and at the other."""
    upper, lower = -np.expm1(t - epsilon), math.exp(-epsilon) * np.expm1(t)
    return np.asarray((upper * near + lower * far) / -math.expm1(-epsilon))


@lru_cache(maxsize=64)
def _curve(epsilon: float, times: int) -> AdaptiveRange | None:
    """The curve on as fine a grid as is quick; None where that is too coarse, or losses too large, to be of use."""
    cells = min(MOST_CELLS, MOST_POINTS // times)
    return AdaptiveRange(epsilon, times, cells) if cells >= FEWEST_CELLS and epsilon * times <= MOST_LOSS else None


@dataclass(frozen=True)
class BoundedRange(Loss):
    """The exponential mechanism: losses of one neighbouring pair lie within a range of length epsilon.

    Claim: epsilon-DP; at delta > 0 the price of the worst such mechanism, and of the worst adaptive sequence of them:
        exactly for one, within the grid of AdaptiveRange for some hundreds, by Renyi divergence beyond and
        together with other losses.
    Proof: DR19 for the range. One: the largest over two-loss laws, in closed form. Renyi: the largest over t at each
        order (``of_bounded_range``); divergences at one order add up, whatever is chosen (M17). A loss
        distribution at one fixed t would be too low: the best t depends on what came before (DDR20).
    Assumes: the stated epsilon is that of an exponential mechanism (also monotone), nothing weaker.

    >>> round((BoundedRange(0.1) * 100).epsilon(1e-6), 2)
    2.25
    """

    epsilon_bound: float
    neighbours: Neighbours
    tag: ClassVar[str] = "bounded range"

    def __init__(self, epsilon: Number, neighbours: Neighbours = "add-remove") -> None:
        object.__setattr__(self, "epsilon_bound", float_up(positive("epsilon", epsilon)))
        object.__setattr__(self, "neighbours", check_neighbours(neighbours))

    def __repr__(self) -> str:
        return f"BoundedRange({self.epsilon_bound!r}, neighbours={self.neighbours!r})"

    def _pure(self) -> Fraction:
        return rational("epsilon", self.epsilon_bound)

    def _pair(self) -> Pair:
        return BoundedRangePair(self.epsilon_bound)

    def _attained(self) -> bool:
        return False

    def _repeated(self, times: int) -> AdaptiveRange | None:
        return _curve(self.epsilon_bound, times)

    def epsilon_interval(self, delta: Number) -> tuple[float, float]:
        # epsilon + 2 ln(1 - sqrt(delta (1 - e**-epsilon)))
        bound = self.epsilon_bound
        root = math.sqrt(float(check_delta(delta)) * -math.expm1(-bound))
        high = bound + 2 * math.log1p(-root * (1 - 2.0**-50))
        low = bound + 2 * math.log1p(-root * (1 + 2.0**-50)) if root * (1 + 2.0**-50) < 1 else 0.0
        return max(0.0, low * (1 - 2.0**-48)), min(bound, max(0.0, nudged_up(high)))

    def delta(self, epsilon: Number) -> float:
        gap = gap_below(self.epsilon_bound, epsilon)
        return min(1.0, nudged_up(math.expm1(-gap / 2) ** 2 / -math.expm1(-self.epsilon_bound))) if gap else 0.0

    def renyi(self, order: Number) -> float:
        return nudged_up(renyi_forms.of_bounded_range(renyi_forms.check_order(order), self.epsilon_bound))

    def _group(self, size: int) -> Loss:
        return BoundedRange(float_up(self._pure() * size), self.neighbours)

    def _fields(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon_bound}
