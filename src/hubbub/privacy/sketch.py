"""A rough picture of a composition in a few hundred losses per part: what grids, tilts and stages are chosen by.

Nothing here is certified, and nothing certified depends on it: a bad choice makes an interval wide, never wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.privacy.grids import Widths, reach
from hubbub.privacy.pairs import Floats, Pair

CELLS, FEW_CELLS, ALL_CELLS = 200, 40, 5000
"""Of each kind, evenly spread over a pair's range and growing from loss 0 outwards: most, least, and over all parts."""
SMALLEST = 1e-8
"""The finest cell, of the range."""
WIDEST = 1 << 8
"""Grid steps that a cell may span at most."""
FAR = 6.0
"""Deviations, and losses, above epsilon at which nothing of the sum is left below it."""
ENOUGH = 5.0
"""Logarithm of how much larger than delta what a rounding error is weighed by may be."""


@dataclass(frozen=True)
class Sketch:
    """For each part: losses with the logarithms of P's and Q's mass there, and how often the part occurs."""

    losses: Floats
    log_p: Floats
    log_q: Floats
    begins: NDArray[np.int64]
    counts: Floats
    lengths: Floats
    """The range of each part's losses."""

    @classmethod
    def of(cls, parts: Sequence[tuple[Pair, int]], tail: float) -> Sketch:
        """One look at every pair, tails of this mass apart."""
        cells = min(CELLS, max(FEW_CELLS, ALL_CELLS // len(parts)))
        drawn = [_outline(pair, tail, cells) for pair, _ in parts]
        sizes = [len(d[0]) for d in drawn]
        losses, log_p, log_q = (np.concatenate([d[k] for d in drawn]) for k in range(3))
        begins = np.cumsum([0, *sizes[:-1]])
        spans = [reach(pair, tail) for pair, _ in parts]
        lengths = np.array([high - low for low, high in spans])
        return cls(losses, log_p, log_q, begins, np.array([float(n) for _, n in parts]), lengths)

    def reversed(self) -> Sketch:
        """With P and Q exchanged."""
        return Sketch(-self.losses, self.log_q, self.log_p, self.begins, self.counts, self.lengths)

    def weights(self, tilt: float) -> tuple[Floats, Floats]:
        """The tilted chances, each part's scaled to one, and the logarithms of what they were scaled by."""
        logs = self.log_p + tilt * self.losses
        top = np.maximum.reduceat(logs, self.begins)
        sizes = np.diff(np.append(self.begins, len(logs)))
        raw = np.exp(logs - np.repeat(top, sizes))
        totals = np.add.reduceat(raw, self.begins)
        return raw / np.repeat(totals, sizes), top + np.log(totals)

    def moments(self, tilt: float) -> tuple[float, Floats, Floats]:
        """K(t) = sum of count * ln E[e**(t loss)], and each part's tilted mean and variance."""
        weights, logs = self.weights(tilt)
        means = np.add.reduceat(weights * self.losses, self.begins)
        sizes = np.diff(np.append(self.begins, len(weights)))
        squares = np.add.reduceat(weights * (self.losses - np.repeat(means, sizes)) ** 2, self.begins)
        return float(self.counts @ logs), means, squares

    def deviation(self, tilt: float) -> float:
        """The tilted deviation of the sum."""
        return math.sqrt(float(self.counts @ self.moments(tilt)[2]))

    def saddle(self, delta: float) -> tuple[float, float]:
        """(tilt, epsilon) of the best Chernoff bound: e**(K(t) - t epsilon) t**t / (1 + t)**(1 + t) = delta."""

        def epsilon(t: float, value: float) -> float:
            return (value + t * math.log(t) - (1 + t) * math.log1p(t) - math.log(delta)) / t

        def excess(t: float) -> float:  # minus t times the derivative of epsilon
            value, means, _ = self.moments(t)
            return epsilon(t, value) - float(self.counts @ means) - math.log(t / (1 + t))

        best = _crossing(excess)
        most = float(self.counts @ np.maximum.reduceat(self.losses, self.begins))
        return best, min(epsilon(best, self.moments(best)[0]), most)

    def tilt_for_delta(self, delta: float) -> tuple[float, float, float]:
        """(tilt, slope, epsilon): about as good as the best Chernoff bound's."""
        best, found = self.saddle(delta)
        gentle = self._gentle(best, found, math.log(delta))
        return gentle, self._slope(best, gentle, math.log(delta)), found

    def tilt_of_mean(self, epsilon: float) -> float:
        """The tilt whose mean is epsilon: K'(t) = epsilon."""
        return _crossing(lambda t: epsilon - float(self.counts @ self.moments(t)[1]))

    def tilt_for_epsilon(self, epsilon: float) -> tuple[float, float]:
        """(tilt, slope): about as good as the tilt whose mean is epsilon: K'(t) = epsilon."""
        best = self.tilt_of_mean(epsilon)
        gentle = self._gentle(best, epsilon, -math.inf)
        return gentle, self._slope(best, gentle, self.moments(best)[0] - best * epsilon)

    def all_beyond(self, epsilon: float) -> bool:
        """Whether nearly all of the sum lies above epsilon, so that delta is 1 for every purpose."""
        _, means, variances = self.moments(0.0)
        return float(self.counts @ means) - epsilon > FAR * math.sqrt(float(self.counts @ variances)) + FAR

    def _gentle(self, best: float, epsilon: float, log_delta: float) -> float:
        """The least tilt at which rounding, of which e**(K(t) - t epsilon) reaches epsilon, stays far below delta."""
        enough = max(log_delta + ENOUGH, self.moments(best)[0] - best * epsilon + 1)
        return min(best, _crossing(lambda t: self.moments(t)[0] - t * epsilon - enough))

    def _slope(self, best: float, gentle: float, log_delta: float) -> float:
        """How fast ln delta falls with epsilon: the best tilt, but no faster than a normal law would have it."""
        deviation = self.deviation(gentle)
        return min(best, (math.sqrt(2 * max(0.0, -log_delta)) + 2) / max(deviation, 1e-300))

    def widths(self, part: int, tilt: float) -> Widths:
        """How wide a part's cells may be: so that those that matter little add little error together."""
        ends = np.append(self.begins, len(self.losses))
        own = slice(ends[part], ends[part + 1])
        weights, losses = self.weights(tilt)[0][own], self.losses[own]
        order = np.argsort(losses)
        weights, losses = weights[order], losses[order]
        share = 0.25 / (len(weights) * np.maximum(weights, 1e-30))
        # a cell's neighbours matter too: its own picture is rough
        share = np.minimum(share, np.minimum(np.append(share[1:], 1.0), np.append(1.0, share[:-1])))
        factors = 2 ** np.clip(np.floor(np.log2(np.maximum(share, 1.0)) / 2), 0, math.log2(WIDEST)).astype(np.int64)
        change = np.flatnonzero(np.append(True, factors[1:] != factors[:-1]))
        return [(float(losses[k]), int(factors[k])) for k in change]


def _outline(pair: Pair, tail: float, cells: int) -> tuple[Floats, Floats, Floats]:
    """A pair in a few hundred losses: cells, even and growing outwards, each with the loss of its masses; and atoms."""
    low, high = reach(pair, tail)
    scale = max(high - low, 1e-12) * SMALLEST
    growing = scale * np.sinh(np.linspace(math.asinh(low / scale), math.asinh(high / scale), cells))
    edges = np.unique(np.concatenate((np.linspace(low, high, cells), growing)))
    p, q = pair.masses(edges)
    p, q = p[1:-1], q[1:-1]
    seen = (p > 1e-300) & (q > 1e-300)
    log_p, log_q = np.log(p[seen]), np.log(q[seen])
    losses = np.clip(log_p - log_q, edges[:-1][seen], edges[1:][seen])
    if atoms := [(loss, p) for loss, p in pair.atoms() if p > 0]:
        at, mass = np.array(atoms).T
        losses, log_p, log_q = (
            np.append(losses, at),
            np.append(log_p, np.log(mass)),
            np.append(log_q, np.log(mass) - at),
        )
    if not len(losses):  # all beyond what is looked at
        losses, log_p, log_q = np.array([high]), np.zeros(1), np.array([-high])
    return losses, log_p, log_q


def _crossing(excess: Callable[[float], float]) -> float:
    """A tilt within a hundredth of where a falling function reaches 0, between the least and the most worth trying."""
    low, high = 1e-7, 1.0
    while excess(high) > 0:
        if high > 1e6:
            return high
        low, high = high, 4 * high
    while excess(low * 1e3) > 0 and low * 1e3 < high:
        low *= 1e3
    while high / low > 1.03:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high
