"""A pair's transform M(z) = E_P[e**(z loss)], infinite losses apart, on lines Re z = tilt, and what it may be off by.

Gaussian, Laplace and finite laws have it in closed form. Of Gaussian mixtures it is an integral over the outcome of an
analytic function, and trapezoid sums of those are off by far less than a double's rounding (``_strip``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.privacy.pairs import (
    ROUNDING,
    Atoms,
    Floats,
    GaussianMixturePair,
    GaussianPair,
    LaplacePair,
    Pair,
    PoissonPair,
    Reversed,
)

Complex = NDArray[np.complex128]

FAR = 9.0
"""Deviations beyond where a tilted mixture could have its outermost centre: e**(-FAR**2/2) is nothing."""
NOTHING = 40.0
"""e**-40 of a sum is left out of it."""
MOST_NODES = 1 << 15
"""Outcomes, times centres, that a transform may be summed over."""
BITS = 64
"""Steps are whole multiples of a power of two, at most so many, so that multiples of them are exact."""
CELL = 0.125
"""Outcomes, in deviations, over which a density is bounded at once when bounding how fast a transform decays."""
LAPLACE_CELLS = 16
GAP = 1e-9
"""Relative; more than what rounding can do to a bound on a density."""


class TooCostly(Exception):
    """Too many terms, or no way at all: grids must do."""


@dataclass(frozen=True)
class Line:
    """M(tilt + i step k) = e**log_scale (values[k] + at most errors[k])."""

    log_scale: float
    values: Complex
    errors: Floats


class Transform(ABC):
    """A pair's transform."""

    smooth: bool = True
    """Whether there is a density."""

    @abstractmethod
    def line(self, tilt: float, step: float, count: int) -> Line:
        """At so many places from y = 0 on."""

    @abstractmethod
    def decay(self, tilt: float, beyond: Floats) -> Floats:
        """ln of a bound on |M(tilt + i y)| / M(tilt) at all |y| beyond each of these."""

    @abstractmethod
    def nodes(self, tilt: float, most: float) -> int:
        """Terms that each value costs on a line up to this y."""

    def log_moment(self, tilt: float) -> float:
        """ln M(tilt), rounded up."""
        line = self.line(tilt, 1.0, 1)
        return line.log_scale + 2 * float(line.errors[0]) + 4 * ROUNDING * abs(line.log_scale)


def transform_of(pair: Pair) -> Transform:
    """The pair's transform, where it is to be had."""
    inner = pair.pair if isinstance(pair, Reversed) else pair
    if isinstance(pair, GaussianPair):
        return GaussianTransform(pair.mu)
    if isinstance(pair, LaplacePair):
        return LaplaceTransform(pair.shift)
    if isinstance(inner, Atoms) or (isinstance(inner, PoissonPair) and isinstance(inner.base, Atoms)):
        return AtomsTransform(tuple((loss, p) for loss, p in pair.atoms() if p > 0))
    if isinstance(inner, PoissonPair) and isinstance(inner.base, GaussianPair):
        ends: tuple[Any, ...] = (((1 - inner.rate, 0.0), (inner.rate, inner.base.mu)), ((1.0, 0.0),))
        stddev = 1.0
    elif isinstance(inner, GaussianMixturePair):
        ends, stddev = (inner.upper, inner.lower), inner.stddev
    else:
        raise TooCostly
    upper, lower = (tuple((w, s / stddev) for w, s in end if w > 0) for end in ends)
    return MixtureTransform(upper, lower) if inner is pair else MixtureTransform(lower, upper)


@dataclass(frozen=True)
class GaussianTransform(Transform):
    """M(z) = e**(mu**2 z (z + 1) / 2)."""

    mu: float

    def line(self, tilt: float, step: float, count: int) -> Line:
        y = step * np.arange(count)
        half = self.mu**2 / 2
        scale = half * tilt * (tilt + 1)
        values = np.exp(half * (1j * y * (2 * tilt + 1) - y * y))
        turn = half * (2 * tilt + 1) * y
        return Line(scale, values, np.asarray(ROUNDING * (8 + 8 * scale + 4 * turn), np.float64))

    def decay(self, tilt: float, beyond: Floats) -> Floats:  # noqa: ARG002
        return np.asarray(-(self.mu**2) / 2 * beyond**2 * (1 - GAP), np.float64)

    def nodes(self, tilt: float, most: float) -> int:  # noqa: ARG002
        return 1


@dataclass(frozen=True)
class AtomsTransform(Transform):
    """M(z) = sum of p e**(z loss)."""

    atoms: tuple[tuple[float, float], ...]
    smooth: bool = False

    def line(self, tilt: float, step: float, count: int) -> Line:
        losses, masses = np.array(self.atoms).T
        logs = np.log(masses) + tilt * losses
        off = ROUNDING * (32 + 4 * np.abs(np.log(masses)) + 8 * tilt * np.abs(losses))
        return _summed(losses, logs, off, 8 * ROUNDING * np.abs(losses), step, count)

    def decay(self, tilt: float, beyond: Floats) -> Floats:  # noqa: ARG002
        return np.zeros(len(beyond))

    def nodes(self, tilt: float, most: float) -> int:  # noqa: ARG002
        return len(self.atoms)


@dataclass(frozen=True)
class LaplaceTransform(Transform):
    """Losses +-shift with P-masses 1/2 and e**-shift/2, and with density e**-((shift - l)/2)/4 in between.

    With c = z + 1/2: M(z) = e**(z shift) (1 + e**(-2 c shift) + (1 - e**(-2 c shift)) / (2 c)) / 2.
    """

    shift: float

    def _scale(self, tilt: float) -> float:
        """M(tilt) e**(-tilt shift) 2."""
        c = tilt + 0.5
        return 1 + math.exp(-2 * c * self.shift) - math.expm1(-2 * c * self.shift) / (2 * c)

    def line(self, tilt: float, step: float, count: int) -> Line:
        y, s = step * np.arange(count), self.shift
        c = tilt + 0.5 + 1j * y
        fall = np.expm1(-2 * s * c)
        total = self._scale(tilt)
        values = np.exp(1j * s * y) * (2 + fall - fall / (2 * c)) / total
        scale = tilt * s + math.log(total / 2)
        # |fall / c| <= 2 s, and a turn of fall by an error in y s turns as much as it
        errors = ROUNDING * (32 + 16 * s * (1 + tilt + y) + 8 * abs(scale))
        return Line(scale, values, np.asarray(errors, np.float64))

    def decay(self, tilt: float, beyond: Floats) -> Floats:
        edges = np.linspace(-self.shift, self.shift, LAPLACE_CELLS + 1)
        levels = np.exp((tilt + 0.5) * (edges[:-1] - self.shift)) / 2 / self._scale(tilt)
        return _layered(levels * (1 - GAP), np.diff(edges) * (1 - GAP), beyond)

    def nodes(self, tilt: float, most: float) -> int:  # noqa: ARG002
        return 1


Mixture = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class MixtureTransform(Transform):
    """Normal laws of deviation 1, mixed: (weight, centre) of P's and of Q's; the loss is monotone in the outcome.

    P = f A and Q = f B with the standard normal density f and A, B = sum of w e**(s x - s**2 / 2): M(z) is the integral
    of f A**(1 + z) B**-z.
    """

    upper: Mixture
    lower: Mixture

    def _ranges(self) -> tuple[float, float, float, float]:
        """The least and largest centre of P's and of Q's."""
        above, below = [s for _, s in self.upper], [s for _, s in self.lower]
        return min(above), max(above), min(below), max(below)

    def _reach(self, tilt: float) -> tuple[float, float]:
        """Outcomes between which every tilted centre lies.

        Beyond, the logarithm of the tilted density falls at least as fast as that of a standard normal around them:
        its slope is (1 + tilt) a - tilt b - x with means a and b of centres.
        """
        least, most, low, high = self._ranges()
        return (1 + tilt) * least - tilt * high, (1 + tilt) * most - tilt * low

    def _affordable(self, tilt: float, size: float) -> tuple[float, float]:
        """The reach, if steps of this size are not too many."""
        low, high = self._reach(tilt)
        if (high - low + 2 * FAR) / size * (len(self.upper) + len(self.lower)) > MOST_NODES:
            raise TooCostly
        return low, high

    def _strip(self, tilt: float, most: float) -> tuple[float, float]:
        """(step, relative error) of a trapezoid sum, up to this y.

        Claim: the sum over all multiples of the step is off by at most this error times M(tilt).
        Proof: TW14, Theorem 5.1: by 2 C / (e**(2 pi a / step) - 1), where C bounds the integrals along all lines
            x + i b, |b| < a. There, the terms of A and B are turned by b s and stay in a cone: |A| <= A(x), |B| >= B(x)
            times the cosine of half its angle, and their arguments differ by at most b times what centres are apart.
        Assumes: nothing beyond the mixtures themselves.
        """
        least, top, low, high = self._ranges()
        apart = max(top - low, high - least)
        widest = min(FAR, 3.0 / max(top - least, 1e-9), 2.8 / max(high - low, 1e-9))
        best, error = 0.0, 0.0
        for width in widest * np.array([1.0, 0.8, 0.6, 0.45, 0.3, 0.2]):
            grown = width**2 / 2 + most * width * apart - tilt * math.log(math.cos(width * (high - low) / 2))
            step = few_bits(2 * math.pi * width / (grown + NOTHING))
            if step > best:
                best, error = step, 2.1 * math.exp(grown - 2 * math.pi * width / step)
        return best, error

    def nodes(self, tilt: float, most: float) -> int:
        low, high = self._reach(tilt)
        return math.ceil((high - low + 2 * FAR) / self._strip(tilt, most)[0])

    def _logs(self, x: Floats, tilt: float) -> tuple[Floats, Floats, Floats, Floats]:
        """At each x: ln A - ln B; ln of A**(1 + tilt) B**-tilt e**(-x**2/2); what either may be off by."""
        above, below = _log_mixture(self.upper, x)[0], _log_mixture(self.lower, x)[0]
        off = np.zeros(len(x))
        for mixture in (self.upper, self.lower):
            weight = max(abs(math.log(w)) for w, _ in mixture)
            centre = max(abs(s) for _, s in mixture)
            off = np.maximum(off, ROUNDING * (16 + 4 * len(mixture) + 8 * (weight + centre * (np.abs(x) + centre))))
        losses = above - below
        return losses, above + tilt * losses - x * x / 2, 2 * off, (1 + 2 * tilt) * off + 4 * ROUNDING * x * x

    def line(self, tilt: float, step: float, count: int) -> Line:
        h, aliased = self._strip(tilt, step * (count - 1))
        low, high = self._affordable(tilt, h)
        x = np.asarray(h * np.arange(math.floor((low - FAR) / h), math.ceil((high + FAR) / h) + 1), np.float64)
        losses, logs, off_losses, off = self._logs(x, tilt)
        top = float(logs.max())
        used = np.flatnonzero(logs > top - NOTHING)
        kept = slice(int(used[0]), int(used[-1]) + 1)
        raw = np.exp(logs - top)
        total = float(raw[kept].sum())
        # beyond either end, each term is at most e**(-FAR h) of the one before
        left_out = float(raw[: kept.start].sum() + raw[kept.stop :].sum())
        left_out += float(raw[0] + raw[-1]) / math.expm1(FAR * h)
        missing = 1.01 * left_out / total + aliased
        line = _summed(losses[kept], logs[kept], off[kept], off_losses[kept], step, count)
        return Line(line.log_scale + math.log(h / math.sqrt(2 * math.pi)), line.values, line.errors + missing)

    def decay(self, tilt: float, beyond: Floats) -> Floats:
        least, top, _, _ = self._ranges()
        bend = max(0.0, (1 + tilt) * (top - least) ** 2 / 4 - 1)  # the second derivative of the logarithm is at most so
        size = min(CELL, math.sqrt(0.4 / max(bend, 1e-9)))
        low, high = self._affordable(tilt, size)
        edges = np.linspace(low - FAR, high + FAR, math.ceil((high - low + 2 * FAR) / size) + 1)
        size = float(edges[1] - edges[0])
        losses, logs, off_losses, off = self._logs(edges, tilt)
        used = np.flatnonzero(logs > logs.max() - NOTHING)
        kept = slice(int(used[0]), int(used[-1]) + 1)
        edges, losses, logs, off_losses, off = (a[kept] for a in (edges, losses, logs, off_losses, off))
        above, below = _log_mixture(self.upper, edges)[1], _log_mixture(self.lower, edges)[1]
        # the means of centres increase with x: so does the loss's slope lie between these
        steepest = np.maximum(np.abs(above[1:] - below[:-1]), np.abs(above[:-1] - below[1:])) * (1 + GAP)
        logs = logs - off - self.log_moment(tilt) - math.log(2 * math.pi) / 2
        smallest = np.minimum(logs[1:], logs[:-1]) - bend * size**2 / 8
        lengths = np.maximum(0.0, np.abs(np.diff(losses)) * (1 - GAP) - off_losses[1:] - off_losses[:-1])
        levels = np.divide(np.exp(smallest) * (1 - GAP), steepest, out=np.zeros(len(lengths)), where=lengths > 0)
        return _layered(levels, lengths, beyond)


def _log_mixture(mixture: Mixture, x: Floats) -> tuple[Floats, Floats]:
    """ln of the sum of w e**(s x - s**2/2), and the mean of s by these weights."""
    if len(mixture) == 1:
        ((weight, centre),) = mixture
        return math.log(weight) + centre * x - centre**2 / 2, np.full(len(x), centre)
    weights, centres = (np.array(column)[:, None] for column in zip(*mixture, strict=True))
    terms = np.log(weights) + centres * x - centres**2 / 2
    top = terms.max(axis=0)
    terms = np.exp(terms - top)
    total = terms.sum(axis=0)
    return top + np.log(total), (terms * centres).sum(axis=0) / total


def _summed(losses: Floats, logs: Floats, off: Floats, off_losses: Floats, step: float, count: int) -> Line:
    """The sum of e**(logs + i y losses) at so many y from 0 on, the logarithms and losses being off by so much."""
    top = float(logs.max())
    weights = np.exp(logs - top)
    total = float(weights.sum())
    weights /= total
    scale = top + math.log(total)
    block = math.isqrt(count - 1) + 1
    inner = np.exp(1j * step * np.arange(block)[:, None] * losses)
    outer = np.exp(1j * (step * block) * np.arange(-(-count // block))[:, None] * losses) * weights
    values = np.einsum("jn,bn->jb", outer, inner).reshape(-1)[:count]
    turn = float(weights @ (off_losses + 4 * ROUNDING * np.abs(losses)))
    fixed = float(weights @ np.expm1(off)) + ROUNDING * (32 + len(losses) + 8 * (abs(top) + abs(scale)))
    return Line(scale, values, np.asarray(1.001 * (fixed + turn * step * np.arange(count)), np.float64))


def _layered(levels: Sequence[float] | Floats, lengths: Floats, beyond: Floats) -> Floats:
    """ln of a bound on |E[e**(i y l)]|, |y| beyond each, where l has at least these densities on adjacent intervals.

    Let the densities fall from their largest on, to either side: layers of that are uniform laws on intervals of
    length r, whose transforms are |sin u / u|, u = y r / 2. All other mass counts fully.
    """
    levels = np.asarray(levels, np.float64)
    peak = int(np.argmax(levels))
    falling = np.concatenate((np.minimum.accumulate(levels[peak::-1])[:0:-1], np.minimum.accumulate(levels[peak:])))
    order = np.argsort(-falling, kind="stable")
    falling, widths = falling[order], np.cumsum(lengths[order])
    masses = (falling - np.append(falling[1:], 0.0)) * widths
    u = np.minimum(beyond[:, None] * widths / 2, 1e9)
    short = np.minimum(u, 2.0)  # up to there, sin u / u falls, and never comes back to its size
    gone = np.where(short < 0.1, short**2 / 6 - short**4 / 120, 1 - np.sin(short) / np.maximum(short, 0.1))
    gone = np.maximum(gone, 1 - 1 / np.maximum(u, 1.0))
    lost = np.minimum(np.einsum("yk,k->y", gone, masses) * (1 - GAP), 1 - GAP)
    return np.asarray(np.log1p(-lost), np.float64)


def few_bits(step: float) -> float:
    """A little smaller, such that multiples of it are exact."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.floor(mantissa * BITS), exponent) / BITS
