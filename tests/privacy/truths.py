"""True prices by other means than hubbub's: closed forms in high precision, and inversion of a Laplace transform.

Every mechanism here is a pair P, Q through F(t) = E_Q[e**(t loss)], loss = ln(P/Q). A composition's transform is the
product of its parts'; with K(s) = sum of n ln F(1 + s) (P against Q) or n ln F(-s) (Q against P),

    delta(epsilon) = (1 / 2 pi i) integral over Re s = tilt of e**(K(s) - s epsilon) / (s (1 + s)) ds,   tilt > 0.

Both integrals, over the outcome x inside F and over s, are trapezoid sums of analytic functions: their errors fall
geometrically. Nothing is ever put on a grid of losses, so mistakes of an accountant that does so are not shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import mpmath
import numpy as np
from numpy.typing import NDArray

Complex = NDArray[np.complex128]
Floats = NDArray[np.float64]

EXACT = 45.0
"""What is left out of any sum or integral is below e**-45 of it."""
BUDGET = 3e9
"""Terms a reference may cost (about three seconds)."""
DIGITS = 40


class Unresolved(Exception):
    """This reference would take too long here."""


# Pairs, through ln F(t) on a line t = t0 + i w, w >= 0


@dataclass(frozen=True)
class Nodes:
    """A sum of e**(logs + i w losses) that stands for F(t0 + i w): complex losses of positive imaginary part."""

    logs: Complex
    losses: Complex

    def values(self, step: float, first: int, count: int) -> Complex:
        """ln of the sum at w = step * (first, ..., first + count - 1)."""
        top = float(self.logs.real.max())
        width = min(256, count)
        rows = np.arange(-(-count // width))
        inner = np.exp(1j * step * np.outer(self.losses, np.arange(width)))
        outer = np.exp(self.logs - top + 1j * step * np.outer(first + width * rows, self.losses))
        sums = (outer @ inner).ravel()[:count]
        return np.asarray(np.log(np.where(sums == 0, 1e-300, sums)) + top)

    def __len__(self) -> int:
        return len(self.logs)


def log_mixture(weights: Sequence[float], shifts: Sequence[float], sigma: float, x: Complex) -> Complex:
    """ln of a mixture of N(shift, sigma**2) over N(0, sigma**2) at x, also where it is nearly 0 or huge."""
    grown = [(2 * s * x - s * s) / (2 * sigma**2) for w, s in zip(weights, shifts, strict=True) if w]
    kept = [w for w in weights if w]
    if len(kept) == 1:
        return np.asarray(grown[0])
    excess = np.zeros_like(x)
    for w, g in zip(kept, grown, strict=True):
        real, imaginary = np.minimum(g.real, 30), g.imag
        excess += w * (np.expm1(real) * np.cos(imaginary) - 2 * np.sin(imaginary / 2) ** 2)
        excess += 1j * w * np.exp(real) * np.sin(imaginary)
    a, b = excess.real, excess.imag
    small = np.abs(excess) < 0.5
    near = 0.5 * np.log1p(np.where(small, 2 * a + a * a + b * b, 0.0)) + 1j * np.arctan2(b, 1 + a)
    top = np.max([g.real for g in grown], axis=0)
    far = top + np.log(sum(w * np.exp(g - top) for w, g in zip(kept, grown, strict=True)))
    return np.asarray(np.where(small, near, far))


@dataclass(frozen=True)
class Sampled:
    """A Gaussian sum over a Poisson sample: so many people join or leave, or one takes another's place."""

    sigma: float
    rate: float
    people: int = 1
    replace: bool = False
    floor: float = -120.0
    """Outcomes of less probability than e**floor are faded out: with small losses the tilt is large, and e**(tilt loss)
    would put all its weight on outcomes hundreds of deviations away that never happen."""

    symmetric = property(lambda self: self.replace)

    def _mixture(self, sign: int, x: Complex) -> Complex:
        k, q = self.people, self.rate
        weights = [math.comb(k, j) * q**j * (1 - q) ** (k - j) for j in range(k + 1)]
        return log_mixture(weights, [sign * j for j in range(k + 1)], self.sigma, x)

    def reach(self) -> tuple[float, float, float]:
        """From where to where outcomes count, and over what width they fade."""
        far, width = self.sigma * math.sqrt(-2 * self.floor) * 1.02, self.sigma / 8
        return -far - (self.people if self.replace else 0), far + self.people, width

    def parts(self, x: Complex) -> tuple[Complex, Complex]:
        """ln of Q's density and the loss, at x."""
        from scipy.special import log_ndtr

        normal = -(x**2) / (2 * self.sigma**2) - math.log(self.sigma * math.sqrt(2 * math.pi))
        low, high, width = self.reach()
        normal = normal + log_ndtr((high - x) / width) + log_ndtr((x - low) / width)
        up = self._mixture(1, x)
        if not self.replace:
            return np.asarray(normal), up
        down = self._mixture(-1, x)
        return np.asarray(normal + down), np.asarray(up - down)

    def nodes(self, t0: float) -> Nodes:
        """The outcome's integral on a line above the real one, where e**(i w loss) dies away."""
        return _nodes(self, t0)

    def cost(self, t0: float) -> int:
        return len(self.nodes(t0))

    def values(self, t0: float, step: float, first: int, count: int) -> Complex:
        return self.nodes(t0).values(step, first, count)


@lru_cache(maxsize=64)
def _nodes(pair: Sampled, t0: float) -> Nodes:
    low, high, height = _relevant(pair, t0)
    step = 2 * math.pi * height / EXACT
    count = math.ceil((high - low) / step)
    if count > 10**6:
        raise Unresolved
    x = low + step * np.arange(count + 1) + 1j * height
    density, losses = pair.parts(x)
    return Nodes(density + t0 * losses + math.log(step), losses)


def _relevant(pair: Sampled, t0: float) -> tuple[float, float, float]:
    """The x over which density * e**(t0 loss) matters, and how far above the real line to integrate."""
    sigma, k = pair.sigma, pair.people
    low, high, width = pair.reach()
    step = min(width / 2, sigma**2 / (2 * k))
    while True:
        low, high = low - 12 * width, high + 12 * width
        x = np.arange(low, high, step)
        density, losses = pair.parts(x.astype(complex))
        size = (density + t0 * losses).real
        kept = np.flatnonzero(size > size.max() - EXACT)
        if kept[0] > 0 and kept[-1] < len(x) - 1:
            break
        if len(x) > 2 * 10**6:
            raise Unresolved
        width *= 2
    first, last = max(kept[0] - 1, 0), min(kept[-1] + 2, len(x) - 1)
    bend = float(np.max(-np.diff(size[max(first - 1, 0) : last + 2], 2))) / step**2
    # far enough to damp, yet within the loss's strip, the peaks' widths and the fading's
    height = min(math.pi * sigma**2 / (2 * k), 1 / math.sqrt(max(bend, 1e-300)), 3 * pair.reach()[2])
    return float(x[first]), float(x[last]), height


@dataclass(frozen=True)
class WithoutReplacement:
    """A Gaussian sum over a sample of fixed size, one record replaced: the mixture's positive losses, mirrored."""

    sigma: float
    rate: float
    symmetric = True

    def nodes(self, t0: float) -> Nodes:
        """The integral of N(0, sigma**2) e**(t loss) from loss 0 up: a step off the real line, then along it."""
        pair = Sampled(self.sigma, self.rate)
        _, high, height = _relevant(pair, t0)
        start, panel = 0.5, 2 * height
        places, sizes = np.polynomial.legendre.leggauss(40)
        corners = [start, start + 1j * height]
        corners += list(start + 1j * height + panel * np.arange(1, math.ceil((max(high, 1.0) - start) / panel) + 1))
        x = np.concatenate([(a + b) / 2 + (b - a) / 2 * places for a, b in pairwise(corners)])
        dx = np.concatenate([(b - a) / 2 * sizes for a, b in pairwise(corners)])
        density, losses = pair.parts(x)
        return Nodes(density + t0 * losses + np.log(dx), losses)

    def cost(self, t0: float) -> int:
        return len(_half_line(self, t0)) + len(_half_line(self, 1 - t0))

    def values(self, t0: float, step: float, first: int, count: int) -> Complex:
        up = _half_line(self, t0).values(step, first, count)
        down = np.conj(_half_line(self, 1 - t0).values(step, first, count))
        masses = [np.exp(_half_line(self, float(t)).values(0.0, 0, 1)[0]).real for t in (0, 1)]
        top = max(0.0, float(up.real.max()), float(down.real.max()))
        left = (1 - sum(masses)) * math.exp(-top)  # at loss 0
        return np.asarray(top + np.log(np.exp(up - top) + np.exp(down - top) + left))


@lru_cache(maxsize=64)
def _half_line(pair: WithoutReplacement, t0: float) -> Nodes:
    return pair.nodes(t0)


@dataclass(frozen=True)
class Gaussian:
    """N(mu, 1) against N(0, 1)."""

    mu: float
    symmetric = True

    def cost(self, t0: float) -> int:  # noqa: ARG002
        return 4

    def values(self, t0: float, step: float, first: int, count: int) -> Complex:
        t = t0 + 1j * step * np.arange(first, first + count)
        return np.asarray(self.mu**2 * t * (t - 1) / 2)


@dataclass(frozen=True)
class Laplace:
    """Two Laplace laws, ``shift`` scales apart."""

    shift: float
    symmetric = True

    def cost(self, t0: float) -> int:  # noqa: ARG002
        return 4

    def values(self, t0: float, step: float, first: int, count: int) -> Complex:
        a, u = self.shift, t0 - 0.5 + 1j * step * np.arange(first, first + count)
        u = np.where(u.real < 0, -u, u)  # F(t) = F(1 - t)
        fade = np.exp(-2 * a * u)
        small = np.abs(a * u) < 1e-4
        slope = np.where(small, a * (1 - a * u), (1 - fade) / np.where(small, 1.0, 2 * u))
        return np.asarray(a * u - a / 2 + np.log((1 + fade + slope) / 2))


@dataclass(frozen=True)
class Response:
    """Randomised response; with a rate below 1, of a record that takes part only so often."""

    epsilon: float
    rate: float = 1.0

    symmetric = property(lambda self: self.rate == 1)

    def atoms(self, forward: bool = True) -> list[tuple[float, float]]:
        """(loss, chance) under P, or under Q with losses reversed."""
        e, q = self.epsilon, self.rate
        up, down = math.log1p(q * math.expm1(e)), math.log1p(q * math.expm1(-e))
        of_q = [(up, 1 / (1 + math.exp(e))), (down, 1 / (1 + math.exp(-e)))]
        return [(loss, c * math.exp(loss)) for loss, c in of_q] if forward else [(-loss, c) for loss, c in of_q]

    def cost(self, t0: float) -> int:  # noqa: ARG002
        return 4

    def values(self, t0: float, step: float, first: int, count: int) -> Complex:
        t = t0 + 1j * step * np.arange(first, first + count)
        (up, p), (down, r) = ((-loss, c) for loss, c in self.atoms(forward=False))
        one, other = t * up + math.log(p), t * down + math.log(r)
        large, small = np.where(one.real > other.real, one, other), np.where(one.real > other.real, other, one)
        return np.asarray(large + np.log(1 + np.exp(small - large)))


Pair = Sampled | WithoutReplacement | Gaussian | Laplace | Response
Parts = Sequence[tuple[Pair, int]]


# The inversion


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
        raise ArithmeticError(f"{good[0]} but {good[1]}")
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
    epsilon = _root(above, low, high)
    value, doubt = line.log_delta(epsilon)
    gap = max(1e-6 * epsilon, 1e-4 / line.tilt)
    slope = (value - line.log_delta(epsilon + gap)[0]) / gap
    return Truth(epsilon, doubt / max(slope, 1e-300) + 3e-11 * epsilon)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
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


# Closed forms


def _where_it_falls(profile: Callable[[mpmath.mpf], mpmath.mpf], delta: float) -> Truth:
    """The epsilon >= 0 at which a falling profile meets delta."""
    with mpmath.workdps(DIGITS):
        goal = mpmath.mpf(delta)
        low, high = mpmath.mpf(0), mpmath.mpf(1)
        if profile(low) <= goal:
            return Truth(0.0)
        while profile(high) > goal:
            low, high = high, 2 * high
        while low == 0 and high > mpmath.mpf(10) ** -30 and profile(high / 16) <= goal:
            high /= 16
        while high - low > high * mpmath.mpf(10) ** -16:
            middle = (low + high) / 2
            low, high = (middle, high) if profile(middle) > goal else (low, middle)
        return Truth(float(high), 0.0)


def by_one_step(pair: Sampled, delta: float) -> Truth:
    """One sampled Gaussian step of one person: the likelihood-ratio test's threshold is a formula."""
    assert pair.people == 1
    return _where_it_falls(lambda e: one_step_profile(pair, e), delta)


def one_step_profile(pair: Sampled, epsilon: mpmath.mpf) -> mpmath.mpf:
    """delta(epsilon) of one step, the larger of both directions."""
    with mpmath.workdps(DIGITS):
        s, q, grown = mpmath.mpf(pair.sigma), mpmath.mpf(pair.rate), mpmath.exp(epsilon)
        if pair.replace:
            c, lack = q * mpmath.exp(-1 / (2 * s * s)), (1 - q) * (grown - 1)
            x = s * s * mpmath.log((lack + mpmath.sqrt(lack**2 + 4 * c * c * grown)) / (2 * c))
            away = -(1 - q) * (grown - 1) * mpmath.ncdf(-x / s)
            return away + q * (mpmath.ncdf((1 - x) / s) - grown * mpmath.ncdf((-1 - x) / s))
        best = mpmath.mpf(0)
        for e, sign in ((grown, 1), (1 / grown, -1)):
            if e > 1 - q:
                x = s * s * mpmath.log((e - 1 + q) / q) + mpmath.mpf(1) / 2
                if sign > 0:
                    found = q * mpmath.ncdf((1 - x) / s) - (e - 1 + q) * mpmath.ncdf(-x / s)
                else:  # Q(x < x*) - grown P(x < x*)
                    found = (1 - grown * (1 - q)) * mpmath.ncdf(x / s) - grown * q * mpmath.ncdf((x - 1) / s)
                best = max(best, found)
        return best


def by_gaussian(mu_squared: mpmath.mpf, delta: float) -> Truth:
    """Gaussians compose to one Gaussian, their mu adding up in squares."""

    def profile(e: mpmath.mpf) -> mpmath.mpf:
        return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)

    with mpmath.workdps(DIGITS):
        mu = mpmath.sqrt(mu_squared)
        return _where_it_falls(profile, delta)


def by_laplace(shift: float, times: int, delta: float) -> Truth:
    """Few Laplace steps: M(s)**times is a sum of e**(s c)/(s + 1/2)**m, each inverted by its residues."""
    with mpmath.workdps(DIGITS + 2 * times):
        a = mpmath.mpf(shift)
        half = mpmath.mpf(1) / 2
        terms: dict[tuple[int, int], mpmath.mpf] = {(0, 0): mpmath.mpf(1)}
        fall = mpmath.exp(-a)
        for _ in range(times):
            grown: dict[tuple[int, int], mpmath.mpf] = {}
            for (c, m), value in terms.items():
                for key, factor in (
                    ((c + 1, m), half),
                    ((c - 1, m), half * fall),
                    ((c + 1, m + 1), half / 2),
                    ((c - 1, m + 1), -half / 2 * fall),
                ):
                    grown[key] = grown.get(key, mpmath.mpf(0)) + value * factor
            terms = grown

        def profile(epsilon: mpmath.mpf) -> mpmath.mpf:
            total = mpmath.mpf(0)
            for (c, m), value in terms.items():
                d = c * a - epsilon
                if d > 0:
                    middle = mpmath.fsum(
                        4**k * d ** (m - 1 - 2 * k) / mpmath.factorial(m - 1 - 2 * k) for k in range((m + 1) // 2)
                    )
                    total += value * (2**m - (-2) ** m * mpmath.exp(-d) - 4 * mpmath.exp(-d / 2) * middle)
            return total

        return _where_it_falls(profile, delta)


def by_atoms(losses: Floats, logs: Floats, delta: float) -> Truth:
    """Finitely many losses with P's log-chances: between two losses e**epsilon = (P's tail - delta) / Q's tail."""
    order = np.argsort(-losses, kind="stable")
    losses, logs = losses[order], logs[order]
    tail_p, tail_q = np.logaddexp.accumulate(logs), np.logaddexp.accumulate(logs - losses)
    profile = np.exp(tail_p[:-1]) - np.exp(np.minimum(tail_q[:-1] + losses[1:], 700.0))  # delta at each next loss
    k = int(np.argmax(profile > delta)) if np.any(profile > delta) else len(losses) - 1
    gap = math.exp(tail_p[k]) - delta
    if gap <= 0:
        return Truth(0.0)
    return Truth(max(0.0, math.log(gap) - float(tail_q[k])), 1e-13 * math.exp(tail_p[k]) / gap)


def binomial_atoms(pair: Response, times: int, forward: bool = True) -> tuple[Floats, Floats]:
    """Losses and log-chances of repeated (sampled) randomised response, within what can matter."""
    with mpmath.workdps(DIGITS):
        (up, p), (down, _) = pair.atoms(forward)
        deviation = math.sqrt(times * p * (1 - p))
        low, high = (round(times * p + side * (14 * deviation + 120)) for side in (-1, 1))
        low, high = max(low, 0), min(high, times)
        chance = mpmath.mpf(p)
        logs = [
            mpmath.log(mpmath.binomial(times, low)) + low * mpmath.log(chance) + (times - low) * mpmath.log(1 - chance)
        ]
        odds = float(mpmath.log(chance / (1 - chance)))
    j = np.arange(low, high)
    growth = np.concatenate(([float(logs[0])], np.log((times - j) / (j + 1)) + odds))
    counts = np.arange(low, high + 1)
    return counts * up + (times - counts) * down, np.cumsum(growth)


def by_responses(parts: Sequence[tuple[Response, int]], delta: float, failure: float = 0.0) -> Truth:
    """Repeated randomised responses of one or two kinds, each after failing altogether with chance ``failure``."""
    kept = sum(n for _, n in parts) * math.log1p(-failure)
    left = (delta + math.expm1(kept)) / math.exp(kept)
    if left <= 0:
        return Truth(math.inf)
    answers = []
    for forward in (True, False):
        losses, logs = np.zeros(1), np.zeros(1)
        for pair, n in parts:
            more, chances = binomial_atoms(pair, n, forward)
            losses, logs = np.add.outer(losses, more).ravel(), np.add.outer(logs, chances).ravel()
        answers.append(by_atoms(losses, logs, left))
    return max(answers, key=lambda truth: truth.epsilon)


def by_enumeration(p: Sequence[Fraction], q: Sequence[Fraction], times: int, delta: float) -> Truth:
    """Any finite mechanism repeated: all multisets of outcomes, exactly."""
    terms = {(): (Fraction(1), Fraction(1))}
    for _ in range(times):
        grown: dict[tuple[int, ...], tuple[Fraction, Fraction]] = {}
        for key, (a, b) in terms.items():
            for k in range(len(p)):
                new = tuple(sorted((*key, k)))
                old = grown.get(new, (Fraction(0), Fraction(0)))
                grown[new] = (old[0] + a * p[k], old[1] + b * q[k])
        terms = grown
    with mpmath.workdps(DIGITS):
        laws = [tuple(mpmath.mpf(v.numerator) / v.denominator for v in law) for law in terms.values()]
        return _where_it_falls(
            lambda e: max(
                mpmath.fsum(max(mpmath.mpf(0), a - mpmath.exp(e) * b) for a, b in laws),
                mpmath.fsum(max(mpmath.mpf(0), b - mpmath.exp(e) * a) for a, b in laws),
            ),
            delta,
        )


def by_quadrature(pair: Sampled, delta: float) -> Truth:
    """Two sampled Gaussian steps: the profile of one, averaged over the loss of the other."""
    return max((_two_steps(pair, forward, delta) for forward in (True, False)), key=lambda truth: truth.epsilon)


def _two_steps(pair: Sampled, forward: bool, delta: float) -> Truth:
    from scipy.special import ndtr

    s, q = pair.sigma, pair.rate
    step = min(s / 16, s * s / 8) / 64  # smooth, but not analytic where the other step's losses end
    x = np.arange(-14 * s, 1 + 14 * s, step)
    density, losses = (v.real for v in pair.parts(x.astype(complex)))
    weights = np.exp(density + (losses if forward else 0)) * step

    def later(e: Floats) -> Floats:
        """The other step's profile, at any epsilon."""
        grown = np.exp(e if forward else -e)
        with np.errstate(divide="ignore", invalid="ignore"):
            at = s * s * np.log((grown - 1 + q) / q) + 0.5
        at = np.where(grown > 1 - q, at, -np.inf)
        if forward:
            return np.asarray(q * ndtr((1 - at) / s) - (grown - 1 + q) * ndtr(-at / s))
        below = ndtr(at / s) - (np.exp(e)) * ((1 - q) * ndtr(at / s) + q * ndtr((at - 1) / s))
        return np.asarray(np.where(grown > 1 - q, below, 0.0))

    def above(epsilon: float) -> float:
        return float(weights @ later(epsilon - (losses if forward else -losses))) - delta

    if above(0.0) <= 0:
        return Truth(0.0, 1e-12)
    high = 1.0
    while above(high) > 0:
        high *= 2
    return Truth(_root(above, 0.0, high), 1e-12)
