"""Certified numerical composition: lower and upper bounds on the privacy profile of many pairs together.

1. *Discretise* each pair on a grid of losses, from above or from below (``grids``).
2. *Tilt* by e**(tilt loss), with the tilt at which the sum of losses centres on the epsilon asked for, so that
   relative, not absolute, accuracy is kept at any delta.
3. *Compose* by the discrete Fourier transform on a window around that centre: a power of T costs no more than one.
   Many repetitions are taken in stages, the grid growing coarser as the law grows wider (GKKM22), so that the cost
   grows with the logarithm of their number.
4. *Bound* what a window cuts off (Chernoff), what wraps around, and the rounding of the transforms; add it, or
   subtract it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.privacy.grids import LONGEST, Steps, TooLong, settle
from hubbub.privacy.pairs import RELATIVE_ERROR, Floats

CUT = 1e-12
"""Tilted mass that a window may leave out at either side (bounded and accounted for)."""
ROUNDING = 2.0**-52
LARGEST_EXPONENT = 500.0
"""Tilts are undone up to this exponent."""
DOUBLINGS = 30
"""Steps, each twice the last, in which an epsilon is looked for beyond the largest loss."""
BLOCKS, MANY = 256, 8
"""Pieces a law is summed up in where a rough idea of it is enough; and from how many laws on their sum is looked at."""


@dataclass(frozen=True)
class Law:
    """Losses start + spacing * points with tilted chances: P's mass there is weight * e**(log_scale - tilt * loss).

    From above, the weights dominate and ``astray`` bounds the tilted mass that is not among them; from below the
    weights are dominated, and nothing is said about the rest.
    """

    start: float
    spacing: float
    points: NDArray[np.int64]
    weights: Floats
    log_scale: float
    tilt: float
    infinity: float
    upper: bool
    astray: float = 0.0
    steps: int = 1

    @classmethod
    def of(cls, steps: Steps, spacing: float, tilt: float, upper: bool) -> Law:
        """A discretised pair, tilted."""
        if not len(steps.points):
            return cls(0.0, spacing, np.zeros(1, np.int64), np.zeros(1), 0.0, tilt, steps.infinity, upper)
        logs = np.log(steps.chances) + tilt * (steps.start + spacing * steps.points)
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        return cls(
            steps.start, spacing, steps.points, weights / total, top + math.log(total), tilt, steps.infinity, upper
        )

    def losses(self) -> Floats:
        """The losses there are."""
        return np.asarray(self.start + self.spacing * self.points, np.float64)

    def moments(self) -> tuple[float, float]:
        """Mean and variance of the tilted loss."""
        away = np.asarray(self.spacing * self.points, np.float64)
        total = float(self.weights.sum())
        mean = _dot(self.weights, away) / total
        return self.start + mean, max(0.0, _dot(self.weights, (away - mean) ** 2) / total)

    def rough(self) -> Law:
        """The same in few points: good enough to choose parameters by, not to bound anything."""
        if len(self.points) <= BLOCKS:
            return self
        size = int(self.points[-1]) // BLOCKS + 1
        blocks = _spread(self.points // size, self.weights, BLOCKS)
        start = self.start + self.spacing * (size - 1) / 2
        return replace(self, start=start, spacing=self.spacing * size, points=np.arange(len(blocks)), weights=blocks)

    def log_moment(self, tilt: float) -> float:
        """ln E[e**(tilt (loss - start))] of the tilted loss."""
        exponents = tilt * self.spacing * self.points
        top = float(exponents[-1 if tilt > 0 else 0])
        return math.log(max(_dot(self.weights, np.exp(exponents - top)), 1e-320)) + top

    def coarser(self, factor: int) -> Law:
        """On a grid of a multiple of the spacing; still above, or still below."""
        if factor == 1:
            return self
        if (1 + self.tilt) * self.spacing * factor > LARGEST_EXPONENT:
            raise TooLong
        size = int(self.points[-1]) + 1
        cells = _spread(self.points, self.weights, size + -size % factor).reshape(-1, factor)
        return self._coarser_above(cells) if self.upper else self._coarser_below(cells)

    def _coarser_above(self, cells: Floats) -> Law:
        """Each mass is split between the two coarse points around it, keeping P's and Q's."""
        factor, h, tilt = cells.shape[1], self.spacing, self.tilt
        rise, wide = h * np.arange(factor), h * factor
        up = np.expm1(-rise) / math.expm1(-wide)
        weights = np.append(_rows(cells, (1 - up) * np.exp(-tilt * rise)), 0.0)
        weights[1:] += _rows(cells, up * np.exp(tilt * (wide - rise)))
        return self._with(self.start, wide, weights)

    def _coarser_below(self, cells: Floats) -> Law:
        """Masses merge around coarse points that lie half way between fine ones."""
        factor, h, tilt = cells.shape[1], self.spacing, self.tilt
        rise, wide, half = h * (np.arange(factor) + 0.5), h * factor, factor // 2
        low, high = rise[:half], rise[half:] - wide
        weights, _ = settle(
            _rows(cells[:, :half], np.exp(-tilt * low)),
            _rows(cells[:, :half], np.exp(-(tilt + 1) * low)),
            _rows(cells[:, half:], np.exp(-tilt * high)),
            _rows(cells[:, half:], np.exp(-(tilt + 1) * high)),
            wide,
            math.exp(tilt * wide),
        )
        return self._with(self.start - h / 2, wide, weights)

    def _with(self, start: float, spacing: float, weights: Floats) -> Law:
        """Other weights at all points from a start on, scaled to one."""
        total = float(weights.sum())
        if total <= 0:
            return replace(self, start=start, spacing=spacing, points=np.zeros(1, np.int64), weights=np.zeros(1))
        return replace(
            self,
            start=start,
            spacing=spacing,
            points=np.arange(len(weights)),
            weights=weights / total,
            log_scale=self.log_scale + math.log(total),
            astray=self.astray / min(1.0, total) if self.upper else 0.0,
        )


def compose(laws: Sequence[tuple[Law, int]]) -> Law:
    """The law of the sum of so many independent losses of each kind, all of one spacing and tilt, on a window."""
    one = next((law for law, _ in laws if not law.weights.any()), laws[0][0])  # one without mass leaves none
    if not one.weights.any() or (len(laws) == 1 and laws[0][1] == 1):
        return one
    spacing, upper = one.spacing, one.upper
    centre = sum(n * law.moments()[0] for law, n in laws)
    below, above, missing = _window(laws, centre)
    if (below + above) / spacing > LONGEST:
        raise TooLong
    transforms: Any = _transforms()
    size = transforms.next_fast_len(math.ceil((below + above) / spacing) + 2, real=True)
    spectrum = np.ones(size // 2 + 1, complex)
    largest = np.zeros(size // 2 + 1)  # logarithm of what the spectrum's size may really be
    offset, steps = 0.0, 0
    for law, n in laws:
        weights = _spread(law.points % size, law.weights, size)
        factor = transforms.rfft(weights)
        error = ROUNDING * 8 * math.log2(size + 1) * math.sqrt(_dot(weights, weights) * 4)
        spectrum *= _power(factor, n)
        largest += n * (np.log(np.abs(factor) + error) + 8 * ROUNDING)
        offset += n * law.start
        steps += n * law.steps
    # a grid point is offset + spacing * (k + m size): take the m that puts it into the window
    first = math.floor((centre - below - offset) / spacing)
    weights = np.roll(transforms.irfft(spectrum, size), -(first % size))
    # |(f + e)**n - f**n| <= (|f| + |e|)**n - |f|**n; and never more than both together, the truth being at most 1
    strength = np.abs(spectrum)
    apart = np.where(largest <= 1.0, np.exp(np.minimum(largest, 1.0)) - strength, 1.0 + strength)
    noise = 2 * float(np.maximum(apart, 0.0).sum()) / size
    noise += ROUNDING * 8 * math.log2(size + 1) * math.sqrt(2 * _dot(strength, strength)) / size * 2
    astray = math.expm1(sum(n * math.log1p(law.astray) for law, n in laws)) + missing if upper else 0.0
    # what wraps around adds to an entry; it may all be in one
    weights = np.maximum(weights, 0.0) + noise if upper else np.maximum(weights - noise - missing, 0.0)
    composed = Law(
        start=offset + spacing * first,
        spacing=spacing,
        points=np.arange(size),
        weights=weights,
        log_scale=sum(n * law.log_scale for law, n in laws),
        tilt=one.tilt,
        infinity=infinite([(law.infinity, n) for law, n in laws]),
        upper=upper,
        astray=astray,
        steps=steps,
    )
    return composed._with(composed.start, spacing, weights)


def infinite(chances: Sequence[tuple[float, int]]) -> float:
    """The chance that some of so many steps of each chance has an infinite loss, rounded up."""
    whole = -math.expm1(sum(n * math.log1p(-min(chance, 1 - 1e-16)) for chance, n in chances))
    return min(1.0, whole * (1 + 2.0**-48))


def _power(base: Any, count: int) -> Any:
    """base**count by squaring: real multiplications only, whose rounding is known."""
    result = None
    while True:
        if count & 1:
            result = base if result is None else result * base
        count >>= 1
        if not count:
            return result
        base = base * base


def _window(laws: Sequence[tuple[Law, int]], centre: float) -> tuple[float, float, float]:
    """How far below and above the centre the tilted sum reaches, and the mass beyond: at most CUT at either side.

    Chernoff: P(sum - centre > r) <= E[e**(t (sum - centre))] e**(-t r) for every t > 0; solved for r. The t is chosen
    by a rough idea of the law, the bound computed from the law itself.
    """
    guard = -math.log(CUT)
    rough = [(law.rough(), n) for law, n in laws]
    deviation = math.sqrt(sum(n * law.moments()[1] for law, n in rough)) + 1e-3 * laws[0][0].spacing
    lowest = -11.0 if len(laws) < MANY else -2.0  # many losses together are nearly normal
    tries = [float(t) for t in math.sqrt(2 * guard) / deviation * 2.0 ** np.arange(lowest, 1.5)]

    slack = 1e-13 * sum(n for _, n in laws)  # rounding

    def bound(of: Sequence[tuple[Law, int]], t: float) -> float:
        grown = sum(n * (law.log_moment(t) + t * law.start) for law, n in of) - t * centre
        return (grown + guard + slack) / abs(t)

    first = sum(n * (law.start + law.spacing * int(law.points[0])) for law, n in laws)
    last = sum(n * (law.start + law.spacing * int(law.points[-1])) for law, n in laws)
    reaches, missing = [], 0.0
    for side, most in ((-1, centre - first), (1, last - centre)):
        best = min(tries, key=lambda t: bound(rough, side * t))
        far = max(bound(laws, side * best), 0.0)
        missing += CUT if far < most else 0.0
        reaches.append(min(far, most) + laws[0][0].spacing)
    return reaches[0], reaches[1], missing


class Profile:
    """Bounds on delta(epsilon) = E[(1 - e**(epsilon - loss))+] + P(infinity) from a law, for epsilons near a centre."""

    def __init__(self, law: Law, centre: float) -> None:
        self._law = law
        self._first, self.last = (law.start + law.spacing * int(law.points[k]) for k in (0, -1))
        # if P >= (1 - r) P' and Q <= (1 + r) Q', delta(e) <= (1 + r)**n delta'(e - 2 n r) for n steps, as r is small;
        # the rounding of losses moves them by less than r, which the tilt weighs
        self._grow = law.steps * RELATIVE_ERROR * (2 + law.tilt) + 1e-12
        self._shift = law.steps * RELATIVE_ERROR * (3 if law.upper else -3)
        self._summing = 2 * len(law.weights) * ROUNDING  # of a sum, what adding up may lose
        self._look_around(centre)

    def _look_around(self, centre: float) -> None:
        """Sums over all losses beyond each loss of a stretch, scaled so that they are of moderate size there."""
        law = self._law
        self._centre = min(max(centre, self._first), self.last)
        reach = LARGEST_EXPONENT / (1 + law.tilt)
        self._near, self._far = self._centre - reach, self._centre + reach
        losses = law.losses()
        kept = int(np.searchsorted(losses, self._near))
        self._losses = losses[kept:]
        away = self._losses - self._centre
        masses = law.weights[kept:] * np.exp(-law.tilt * away)
        self._tails = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
        self._discounted = np.append(np.cumsum((masses * np.exp(-away))[::-1])[::-1], 0.0)
        self._log_scale = law.log_scale - law.tilt * self._centre

    def delta(self, epsilon: float) -> float:
        """The bound at one epsilon."""
        return self._delta(epsilon - self._shift)

    def _delta(self, epsilon: float) -> float:
        """The same if the law's losses had no errors."""
        law = self._law
        at = max(epsilon, self._first - law.spacing)  # below, all losses lie beyond
        if not self._near <= at <= self._far:
            self._look_around(at)
        away = epsilon - self._centre
        k = int(np.searchsorted(self._losses, epsilon, "right"))
        tail = float(self._tails[k])
        inside = tail - math.exp(away) * float(self._discounted[k]) if tail else 0.0
        lost = self._summing * tail
        if law.upper:
            missing = _scaled(law.astray, law.log_scale - law.tilt * epsilon)
            whole = _scaled(max(inside, 0.0) + lost, self._log_scale) + missing
            return min(1.0, whole * (1 + self._grow) + law.infinity)
        return _scaled(inside - lost, self._log_scale) * max(0.0, 1 - self._grow) + law.infinity * (1 - 1e-9)

    def epsilon(self, delta: float) -> float:
        """The epsilon at which the bound meets delta: rounded up for an upper profile, down for a lower one."""
        ends = (max(0.0, self._first), self._centre, self.last)
        return where_met(self.delta, delta, ends, self._law.spacing, self._law.upper)


def where_met(
    bound: Callable[[float], float], delta: float, ends: tuple[float, float, float], step: float, upper: bool
) -> float:
    """Where a falling bound meets delta, looked for from a point on, between a least and a largest epsilon.

    Rounded up for an upper bound, down for a lower one; where it is not met, the end, infinity or 0 that is certain.
    """
    least, low, high = ends[0], max(ends[0], ends[1]), max(ends[1], ends[2])
    while bound(low) <= delta:  # down from where the bound is best until delta is exceeded
        if low <= least:
            return max(0.0, low) if upper else 0.0
        low, high, step = max(low - step, least), low, 2 * step
    if not upper and bound(high) > delta:
        return max(0.0, high)
    for _ in range(DOUBLINGS):  # beyond the largest loss there may still be doubt, falling with the tilt
        if bound(high) <= delta:
            break
        low, high, step = high, high + step, 2 * step
    else:
        return math.inf
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if bound(middle) > delta else (low, middle)
    return max(0.0, high if upper else low)


def _spread(points: NDArray[np.int64], weights: Floats, size: int) -> Floats:
    """The sum of the weights at each of so many points."""
    return np.bincount(points, weights, size).astype(np.float64, copy=False)


def _dot(a: Floats, b: Floats) -> float:
    """The sum of products, without the threads of a linear algebra library: they cost more than they bring here."""
    return float(np.einsum("i,i->", a, b))


def _rows(cells: Floats, factors: Floats) -> Floats:
    """The sum of products in each row."""
    return np.asarray(np.einsum("ij,j->i", cells, factors), np.float64)


def _scaled(value: float, log_scale: float) -> float:
    """value * e**log_scale, without overflow."""
    return math.exp(min(math.log(value) + log_scale, 700.0)) if value > 0 else 0.0


def _transforms() -> Any:
    import scipy.fft

    return scipy.fft
