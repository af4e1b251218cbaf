"""Mechanisms as pairs P, Q, through F(t) = E_Q[e**(t loss)], loss = ln(P/Q), on lines t = t0 + i w, w >= 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Complex = NDArray[np.complex128]
Floats = NDArray[np.float64]

EXACT = 45.0
"""What is left out of any sum or integral is below e**-45 of it."""


class Unresolved(Exception):
    """This reference would take too long here."""


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
