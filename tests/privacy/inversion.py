"""True prices by inversion of a Laplace transform.

A composition's transform is the product of its parts'; with K(s) = sum of n ln F(1 + s) (P against Q) or n ln F(-s)
(Q against P),

    delta(epsilon) = (1 / 2 pi i) integral over Re s = tilt of e**(K(s) - s epsilon) / (s (1 + s)) ds,   tilt > 0.

Both integrals, over the outcome x inside F and over s, are trapezoid sums of analytic functions: their errors fall
geometrically. Nothing is ever put on a grid of losses, so mistakes of the accountant's grids are not shared. Where the
accountant inverts a transform itself, that is checked against its own grids, which share nothing (test_inversion).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from privacy.transforms import EXACT, Complex, Parts, Sampled, Unresolved

BUDGET = 3e9
"""Terms a reference may cost (about three seconds)."""


@dataclass(frozen=True)
class Truth:
    """An epsilon, and how far off it may be."""

    epsilon: float
    doubt: float = 0.0


class Line:
    """K on Re s = tilt, sampled so that delta follows at one epsilon, where it is roughly the given delta."""

    def __init__(self, parts: Parts, forward: bool, tilt: float, epsilon: float, delta: float) -> None:
        self.parts, self.forward, self.tilt = parts, forward, tilt
        self.total = sum(n for _, n in parts)
        _, self.deviation = derivatives(parts, forward, tilt)
        self.window = self.needed_window(epsilon, delta)
        self.step = 2 * math.pi / self.window
        self.k = self._values()

    def needed_window(self, epsilon: float, delta: float) -> float:
        """The period at which wrapped-around copies, delta(epsilon + w) e**(tilt w) and so on, no longer matter.

        Chernoff's bound: delta(epsilon) <= e**(K(t) - t epsilon) for every t >= 0.
        """

        def excess(t: float) -> float:
            return moment(self.parts, self.forward, t) - t * epsilon - math.log(delta) + EXACT - 13

        above = [excess(self.tilt + t) / t for t in self.tilt * 2.0 ** np.arange(-5.0, 3.0)]
        below = [excess(self.tilt * u) / (self.tilt * (1 - u)) for u in (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)]
        return max(min(above), min(below), self.deviation)

    def _values(self) -> Complex:
        """K at s = tilt + i step k, for k = 0, 1, ... until the integrand no longer matters."""
        chunks: list[Complex] = []
        t0 = 1 + self.tilt if self.forward else -self.tilt
        done, spent, size = 0, 0.0, 64
        while True:
            k = k_values(self.parts, self.forward, self.tilt, self.step, done, size)
            chunks.append(k)
            w = self.step * np.arange(done, done + size)
            s = self.tilt + 1j * w
            # the tail from here on is at most its size times w; compared with the peak's height times its width
            first = chunks[0][0].real
            left = np.exp(k.real - first) / np.abs(s * (1 + s)) * (w + self.step)
            peak = min(self.tilt, 1 / self.deviation) / (self.tilt * (1 + self.tilt))
            done += size
            if np.all(left[-min(64, size) :] < 1e-14 * peak):
                return np.concatenate(chunks)
            spent += size * sum(p.cost(t0) for p, _ in self.parts)
            if spent > BUDGET or done > 2 * 10**7:
                raise Unresolved
            size = min(2 * size, 1 << 16)

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """ln delta(epsilon), and how far off it may be; -inf where that is all."""
        w = self.step * np.arange(len(self.k))
        s = self.tilt + 1j * w
        first = self.k[0].real
        terms = np.exp(self.k - first - 1j * w * epsilon) / (s * (1 + s)) * self.step / math.pi
        terms[0] /= 2
        total = float(terms.real.sum())
        noise = (1e-15 * self.total + 2e-13) * float(np.abs(terms).sum())
        if total <= noise:
            return -math.inf, math.inf
        return float(first - self.tilt * epsilon + math.log(total)), noise / total


def k_values(parts: Parts, forward: bool, tilt: float, step: float, first: int, count: int) -> Complex:
    """K(tilt + i step k)."""
    t0 = 1 + tilt if forward else -tilt
    total = np.zeros(count, complex)
    for pair, n in parts:
        total = total + n * pair.values(t0, step, first, count)
    return total if forward else np.conj(total)


def moment(parts: Parts, forward: bool, tilt: float) -> float:
    """K at a real tilt; 0 at 0."""
    return float(k_values(parts, forward, float(tilt), 0.0, 0, 1)[0].real) if tilt else 0.0


def derivatives(parts: Parts, forward: bool, tilt: float) -> tuple[float, float]:
    """K'(tilt) and the root of K''(tilt), about."""
    low, here, high = (moment(parts, forward, tilt * (1 + k * 1e-3)) for k in (-1, 0, 1))
    gap = tilt * 1e-3
    return (high - low) / (2 * gap), math.sqrt(max((high - 2 * here + low), 1e-14 * abs(here) + 1e-300)) / gap


def by_inversion(parts: Parts, delta: float) -> Truth:
    """epsilon at delta for any composition with a smooth part, the larger of both directions."""
    floor = math.log(delta) - math.log(sum(n for _, n in parts)) - 32
    parts = [(replace(p, floor=floor) if isinstance(p, Sampled) else p, n) for p, n in parts]
    best = _one_direction(parts, True, delta)
    if all(p.symmetric for p, _ in parts) or _surely_less(parts, delta, best.epsilon):
        return best
    other = _one_direction(parts, False, delta)
    return max(best, other, key=lambda truth: truth.epsilon)


def _surely_less(parts: Parts, delta: float, epsilon: float) -> bool:
    """Whether Chernoff's bound alone puts the other direction's epsilon below this one."""
    tilt = _tilt(parts, True, delta)
    for t in tilt * 2.0 ** np.array([0.0, 1.0, 2.0, 3.0]):
        # (1 - e**-x)+ <= e**(t x) t**t / (1 + t)**(1 + t)
        sharper = t * math.log(t) - (1 + t) * math.log1p(t)
        try:
            if moment(parts, False, t) - t * epsilon + sharper < math.log(delta):
                return True
        except Unresolved:
            break
    return False


def _one_direction(parts: Parts, forward: bool, delta: float) -> Truth:
    """The answer on the best of a few lines; another one must agree."""
    from scipy.optimize import minimize_scalar

    tilt = _tilt(parts, forward, delta)
    found = []
    for factor in (1.0, 0.85, 0.7):
        with suppress(Unresolved):
            found.append(_at_tilt(parts, forward, delta, factor * tilt))
        good = sorted((t for t in found if t.doubt <= 1e-6 * t.epsilon or t.epsilon == 0), key=lambda t: t.doubt)
        if len(good) >= 2:
            break
        if factor == 1 and found and found[0].doubt > 1e-10 * found[0].epsilon:
            best = minimize_scalar(  # the line on which the integrand is smallest
                lambda log: moment(parts, forward, math.exp(log)) - math.exp(log) * found[0].epsilon,
                bounds=(math.log(tilt) - 3, math.log(tilt) + 3),
                method="bounded",
            )
            tilt = math.exp(best.x) / 0.9
    if len(good) < 2:
        raise Unresolved
    if abs(good[0].epsilon - good[1].epsilon) > 2 * (good[0].doubt + good[1].doubt):
        raise Unresolved(f"{good[0]} but {good[1]}")
    return good[0]


def _at_tilt(parts: Parts, forward: bool, delta: float, tilt: float) -> Truth:
    """On one line, refined until its window suits the epsilon found."""
    epsilon = max(0.0, derivatives(parts, forward, tilt)[0])
    for _ in range(6):
        line = Line(parts, forward, tilt, epsilon, delta)
        truth = _on_line(line, epsilon, delta)
        epsilon = truth.epsilon
        if line.needed_window(epsilon, delta) <= line.window * (1 + 1e-6):
            return truth
    raise Unresolved


def _on_line(line: Line, near: float, delta: float) -> Truth:
    goal = math.log(delta)

    def above(epsilon: float) -> float:
        return line.log_delta(epsilon)[0] - goal

    step = 0.2 / line.tilt
    low = high = near
    if above(low) <= 0:
        while above(low) <= 0:
            if low == 0 and above(0.0) == -math.inf:
                raise Unresolved
            if low == 0:
                return Truth(0.0, 1e-12)
            low, high, step = max(0.0, low - step), low, 2 * step
    else:
        while above(high) > 0:
            low, high, step = high, high + step, 2 * step
    epsilon = root(above, low, high)
    value, doubt = line.log_delta(epsilon)
    gap = max(1e-6 * epsilon, 1e-4 / line.tilt)
    slope = (value - line.log_delta(epsilon + gap)[0]) / gap
    return Truth(epsilon, doubt / max(slope, 1e-300) + 3e-11 * epsilon)


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses 0."""
    from scipy.optimize import brentq

    return low if low == high else float(brentq(lambda x: max(function(x), -1e3), low, high, xtol=1e-300, rtol=1e-15))


def _tilt(parts: Parts, forward: bool, delta: float) -> float:
    """Where the saddle point puts delta, about."""
    goal = math.log(delta)

    def is_low(tilt: float) -> bool:
        centre, deviation = derivatives(parts, forward, tilt)
        saddle = moment(parts, forward, tilt) - tilt * centre
        return saddle - math.log1p(2.5 * tilt * (1 + tilt) * deviation) > goal

    low = high = 1.0
    while is_low(high):
        low, high = high, 2 * high
        if high > 1e9:
            raise Unresolved
    while not is_low(low):
        low, high = low / 2, low
        if low < 1e-7:
            break
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return math.sqrt(low * high)
