"""The exact integer laws: geometric, Laplace (discrete, rounded, truncated) and Gaussian (discrete, rounded).

Each law is a frozen value with a rational parameter. ``sample`` draws arrays, ``draw`` draws one Python int;
both follow the stated law exactly. ``pmf`` and ``tail`` are floating point, for error bars and checks.
A symmetric law is zero with a certified probability, else plus or minus one more than a ``Magnitude``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.numeric.enclosure import Enclosure, erf_of_root, exp_minus, quotient, theta
from hubbub.numeric.rational import count, floor_log2, positive
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.magnitude import Magnitude
from hubbub.randomness.thresholds import FINE, Chance, Fineness, Integers
from hubbub.randomness.wide import Wide

Floats = NDArray[np.float64]

CHUNK = 1 << 15
"""Draws made at a time, so that a chunk's arrays stay in the processor's cache and memory stays flat."""


def _in_chunks(size: int, draw: Callable[[int], Integers]) -> Integers:
    if size <= CHUNK:
        return draw(size)
    out = np.empty(size, np.int64)
    for start in range(0, size, CHUNK):
        piece = out[start : start + CHUNK]
        piece[:] = draw(len(piece))
    return out


@dataclass(frozen=True)
class Geometric:
    """k >= 0 with probability (1 - r) r**k, r = e**(-1/scale): an exponential of that scale, rounded down.

    >>> int(Geometric(0.001).sample(5).max())
    0
    """

    scale: Fraction
    fineness: Fineness = field(default=FINE, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale))

    def sample(self, size: int, bits: Bits = SECURE) -> Integers | NDArray[np.object_]:
        """``size`` draws: int64 where every value fits, Python ints (an object array) for enormous scales."""
        magnitude = _geometric(self.scale, None, self.fineness)
        if not magnitude.is_int64:
            return np.array([magnitude.draw(bits) for _ in range(size)], object)
        return _in_chunks(size, lambda n: magnitude.sample(n, bits))

    def draw(self, bits: Bits = SECURE) -> int:
        """One draw."""
        return _geometric(self.scale, None, self.fineness).draw(bits)

    def pmf(self, k: NDArray[np.integer]) -> Floats:
        """Probability of each k >= 0."""
        rate = float(1 / self.scale)
        return np.asarray(-math.expm1(-rate) * np.exp(-rate * k))


@lru_cache(maxsize=256)
def _geometric(scale: Fraction, last: int | None, fineness: Fineness) -> Magnitude:
    return Magnitude(1 / scale, Fraction(0), last=last, fineness=fineness)


class SymmetricLaw:
    """An integer law symmetric about zero. Subclasses give the chance of zero, the magnitude beyond it, and tails."""

    def _parts(self) -> tuple[Chance, Magnitude]:
        """The event of zero, and the law of |x| - 1 otherwise."""
        raise NotImplementedError

    @property
    def is_int64(self) -> bool:
        """Whether ``sample`` returns 64-bit integers; laws of enormous scale return Python ints."""
        return self._parts()[1].is_int64

    @property
    def is_wide(self) -> bool:
        """Whether the law is beyond 64-bit integers but within ``sample_wide``."""
        return self._parts()[1].is_wide

    def tail(self, m: Floats | Integers) -> Floats:
        """P(x >= m) for each m >= 1."""
        raise NotImplementedError

    def pmf(self, k: Integers) -> Floats:
        """Probability of each integer k."""
        raise NotImplementedError

    @property
    def variance(self) -> float:
        """The variance, to about 14 digits."""
        raise NotImplementedError

    @property
    def mean_magnitude(self) -> float:
        """The mean of |x|, to about 14 digits."""
        raise NotImplementedError

    def half_width(self, doubt: float) -> int:
        """The smallest w with P(|x| > w) <= doubt."""

        def within(w: int) -> bool:
            return 2 * float(self.tail(np.array([w + 1.0]))[0]) <= doubt

        low, high = -1, 1
        while not within(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if within(middle) else (middle, high)
        return high

    def sample_wide(self, size: int, bits: Bits = SECURE) -> Wide:
        """``size`` draws as pairs of 64-bit halves; only where ``is_wide``."""
        zero, magnitude = self._parts()
        out = Wide(np.empty(size, np.int64), np.empty(size, np.uint64))
        for start in range(0, size, CHUNK):
            words = bits.words(min(CHUNK, size - start))
            values = magnitude.sample_wide(len(words), bits)
            values.add(1)
            values.negate((words & np.uint64(1)).astype(np.bool_))
            values.erase(zero.happen(words, bits))
            out[start : start + CHUNK] = values
        return out

    def sample(self, size: int, bits: Bits = SECURE) -> Integers | NDArray[np.object_]:
        """``size`` draws: int64 where every value fits, Python ints (an object array) for enormous scales."""
        zero, magnitude = self._parts()
        if magnitude.is_wide:
            return self.sample_wide(size, bits).to_objects()
        if not magnitude.is_int64:
            return np.array([self.draw(bits) for _ in range(size)], object)

        def draw(n: int) -> Integers:
            words = bits.words(n)
            sign = -((words & np.uint64(1)).view(np.int64))  # 0 or -1; the zero event looks at the other 63 bits
            values = magnitude.sample(n, bits)
            values += 1
            values ^= sign
            values -= sign
            values[zero.happen(words, bits)] = 0
            return values

        return _in_chunks(size, draw)

    def draw(self, bits: Bits = SECURE) -> int:
        """One draw, as a Python int."""
        zero, magnitude = self._parts()
        word = bits.word()
        value = magnitude.draw(bits) + 1  # drawn whether needed or not: the work does not tell
        if zero.decide(word, bits):
            return 0
        return -value if word & 1 else value


def _chance_of_zero(enclose: Callable[[int], Enclosure], fineness: Fineness) -> Chance:
    """An event that leaves a word's lowest bit alone, for the sign."""
    return Chance(enclose, Fineness(min(63, fineness.word_bits), fineness.margin))


@dataclass(frozen=True)
class DiscreteLaplace(SymmetricLaw):
    """The two-sided geometric: probability (1 - r)/(1 + r) r**|x|, r = e**(-1/scale).

    >>> round(DiscreteLaplace(2).variance, 4)
    7.8354
    """

    scale: Fraction
    fineness: Fineness = field(default=FINE, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale))

    def _parts(self) -> tuple[Chance, Magnitude]:
        return _discrete_zero(self.scale, self.fineness), _geometric(self.scale, None, self.fineness)

    def tail(self, m: Floats | Integers) -> Floats:
        rate = float(1 / self.scale)
        return np.asarray(np.exp(-rate * m) / (1 + math.exp(-rate)))

    def pmf(self, k: Integers) -> Floats:
        rate = float(1 / self.scale)
        return math.tanh(rate / 2) * np.exp(-rate * np.abs(k))

    @property
    def variance(self) -> float:
        rate = float(1 / self.scale)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    @property
    def mean_magnitude(self) -> float:
        rate = float(1 / self.scale)
        return -2 * math.exp(-rate) / math.expm1(-2 * rate)


@lru_cache(maxsize=256)
def _discrete_zero(scale: Fraction, fineness: Fineness) -> Chance:
    def enclose(bits: int) -> Enclosure:  # (1 - r) / (1 + r)
        one, (low, high) = 1 << bits, exp_minus(1 / scale, bits)
        return quotient((one - high, one - low), (one + low, one + high), bits)

    return _chance_of_zero(enclose, fineness)


@dataclass(frozen=True)
class RoundedLaplace(SymmetricLaw):
    """A continuous Laplace variable of the given scale, rounded to the nearest integer.

    Zero has probability 1 - e**(-1/(2 scale)); beyond a half the exponential forgets, so |x| - 1 is geometric.
    """

    scale: Fraction
    fineness: Fineness = field(default=FINE, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale))

    def _parts(self) -> tuple[Chance, Magnitude]:
        return _rounded_zero(self.scale, self.fineness), _geometric(self.scale, None, self.fineness)

    def tail(self, m: Floats | Integers) -> Floats:
        return np.asarray(np.exp(-float(1 / self.scale) * (m - 0.5)) / 2)

    def pmf(self, k: Integers) -> Floats:
        rate = float(1 / self.scale)
        beyond = np.exp(-rate * (np.abs(k) - 0.5)) * (-math.expm1(-rate) / 2)
        return np.where(k == 0, -math.expm1(-rate / 2), beyond)

    @property
    def variance(self) -> float:
        rate = float(1 / self.scale)
        r, gap = math.exp(-rate), -math.expm1(-rate)
        return math.exp(-rate / 2) * (1 + r) / gap**2  # P(x != 0) E[(1 + geometric)**2]

    @property
    def mean_magnitude(self) -> float:
        rate = float(1 / self.scale)
        return math.exp(-rate / 2) / -math.expm1(-rate)


@lru_cache(maxsize=256)
def _rounded_zero(scale: Fraction, fineness: Fineness) -> Chance:
    def enclose(bits: int) -> Enclosure:
        low, high = exp_minus(1 / (2 * scale), bits)
        return (1 << bits) - high, (1 << bits) - low

    return _chance_of_zero(enclose, fineness)


@dataclass(frozen=True)
class TruncatedDiscreteLaplace(SymmetricLaw):
    """The two-sided geometric restricted to -bound..bound and renormalised."""

    scale: Fraction
    bound: int
    fineness: Fineness = field(default=FINE, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale))
        object.__setattr__(self, "bound", count("bound", self.bound))

    def _parts(self) -> tuple[Chance, Magnitude]:
        magnitude = _geometric(self.scale, self.bound - 1, self.fineness)
        return _truncated_zero(self.scale, self.bound, self.fineness), magnitude

    def _mass(self) -> float:
        """The sum of r**|x| over -bound..bound."""
        rate = float(1 / self.scale)
        return 1 + 2 * math.exp(-rate) * math.expm1(-rate * self.bound) / math.expm1(-rate)

    def tail(self, m: Floats | Integers) -> Floats:
        rate = float(1 / self.scale)
        inside = np.exp(-rate * m) * -np.expm1(-rate * np.maximum(self.bound + 1 - m, 0))
        return np.asarray(inside / (-math.expm1(-rate) * self._mass()))

    def pmf(self, k: Integers) -> Floats:
        weights = np.where(np.abs(k) <= self.bound, np.exp(-float(1 / self.scale) * np.abs(k)), 0.0)
        return weights / self._mass()

    @property
    def variance(self) -> float:
        return self._moment(2)

    @property
    def mean_magnitude(self) -> float:
        return self._moment(1)

    def _moment(self, order: int) -> float:
        """E|x|**order: the closed forms cancel badly for bounds far below the scale, so with many bits."""
        n, bits = self.bound, 256 + 4 * max(0, floor_log2(self.scale))
        r, cut = (Fraction(exp_minus(k / self.scale, bits)[0], 1 << bits) for k in (1, n))
        gap = 1 - r
        if order == 1:
            total = r * (1 - cut * (1 + n * gap)) / gap**2
        else:
            total = r * (1 + r - cut * ((n * gap + 1) ** 2 + r)) / gap**3
        return float(2 * total * gap / (1 + r - 2 * r * cut))


@lru_cache(maxsize=256)
def _truncated_zero(scale: Fraction, bound: int, fineness: Fineness) -> Chance:
    lost = 16 + max(0, floor_log2(scale))  # both sides of the fraction below are about 1/scale

    def enclose(bits: int) -> Enclosure:  # (1 - r) / (1 + r - 2 r**(bound + 1))
        work = bits + lost
        one = 1 << work
        low, high = exp_minus(1 / scale, work)
        end_low, end_high = exp_minus((bound + 1) / scale, work)
        low, high = quotient((one - high, one - low), (one + low - 2 * end_high, one + high - 2 * end_low), work)
        return low >> lost, -(-high >> lost)

    return _chance_of_zero(enclose, fineness)


@dataclass(frozen=True)
class RoundedGaussian(SymmetricLaw):
    """A continuous normal variable of the given standard deviation, rounded to the nearest integer.

    Zero has probability erf(1/(2 sqrt(2) stddev)). Beyond a half, |z| = 1/2 + w has density e**-(w + w*w)/(2
    stddev**2), and |x| - 1 is the integer part of w.
    """

    stddev: Fraction
    fineness: Fineness = field(default=FINE, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stddev", positive("stddev", self.stddev))

    def _parts(self) -> tuple[Chance, Magnitude]:
        return _rounded_gaussian_parts(self.stddev, self.fineness)

    def tail(self, m: Floats | Integers) -> Floats:
        from scipy.special import ndtr

        return np.asarray(ndtr((0.5 - m) / float(self.stddev)))

    def pmf(self, k: Integers) -> Floats:
        stddev = float(self.stddev)
        if (
            stddev > 1e4
        ):  # the cell's integral by the midpoint and its first correction; the next is of order stddev**-4
            z = k / stddev
            density = np.exp(-(z**2) / 2) / (stddev * math.sqrt(2 * math.pi))
            return np.asarray(density * (1 + (z**2 - 1) / (24 * stddev**2)))
        magnitude = np.abs(k)
        beyond = self.tail(magnitude) - self.tail(magnitude + 1)
        return np.where(k == 0, math.erf(1 / (2 * math.sqrt(2) * stddev)), beyond)

    @property
    def variance(self) -> float:
        stddev = float(self.stddev)
        if stddev > 3:  # Sheppard's correction; what it leaves out is below e**(-2 pi**2 stddev**2)
            return stddev**2 + 1 / 12
        m = np.arange(1, 120)
        return float(2 * np.sum((2 * m - 1) * self.tail(m)))

    @property
    def mean_magnitude(self) -> float:
        stddev = float(self.stddev)
        if stddev > 1e5:  # the midpoint rule's correction is 1/(24 stddev sqrt(2 pi)), below 1e-11 of the mean
            return stddev * math.sqrt(2 / math.pi)
        return float(2 * np.sum(self.tail(np.arange(1, 40 * math.ceil(stddev) + 40))))


@lru_cache(maxsize=256)
def _rounded_gaussian_parts(stddev: Fraction, fineness: Fineness) -> tuple[Chance, Magnitude]:
    rate = 1 / (2 * stddev**2)
    zero = _chance_of_zero(lambda bits: erf_of_root(rate / 4, bits), fineness)
    return zero, Magnitude(rate, rate, continuous=True, fineness=fineness)


@dataclass(frozen=True)
class DiscreteGaussian(SymmetricLaw):
    """Integers with probability proportional to e**(-x*x / (2 variance_parameter)).

    The law's own variance is a little below its parameter (much below for tiny ones).
    """

    variance_parameter: Fraction
    fineness: Fineness = field(default=FINE, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance_parameter", positive("variance_parameter", self.variance_parameter))

    def _parts(self) -> tuple[Chance, Magnitude]:
        return _discrete_gaussian_parts(self.variance_parameter, self.fineness)

    def _weights(self) -> Floats:
        """e**(-m*m/(2 variance_parameter)) for m = 0, 1, ... to beyond double precision."""
        stddev = math.sqrt(float(self.variance_parameter))
        if stddev > 1e6:
            raise ParameterError(
                "stddev", stddev, "is too large to list its probabilities", "at most 1e6 can be listed"
            )
        m = np.arange(math.ceil(39 * stddev) + 2)
        return np.exp(-(m.astype(np.float64) ** 2) / float(2 * self.variance_parameter))

    def tail(self, m: Floats | Integers) -> Floats:
        weights = self._weights()
        beyond = np.cumsum(weights[::-1])[::-1]
        index = np.minimum(np.ceil(m).astype(np.int64), len(weights) - 1)
        return np.asarray(beyond[index] / (2 * beyond[0] - 1))

    def half_width(self, doubt: float) -> int:
        if self.variance_parameter > 10**6:  # CKS20, Proposition 25: P(x >= m) <= P(normal >= m - 1)
            z = -NormalDist().inv_cdf(doubt / 2)
            return math.ceil(z * math.sqrt(float(self.variance_parameter)) * (1 + 1e-9)) + 1
        return super().half_width(doubt)

    def pmf(self, k: Integers) -> Floats:
        weights = self._weights()
        inside = np.exp(-(k.astype(np.float64) ** 2) / float(2 * self.variance_parameter))
        return np.asarray(inside / (2 * np.sum(weights) - 1))

    @property
    def variance(self) -> float:
        if self.variance_parameter > 9:  # Poisson summation: the rest is below e**(-2 pi**2 variance)
            return float(self.variance_parameter)
        weights = self._weights()
        m = np.arange(len(weights))
        return float(2 * np.sum(m**2 * weights) / (2 * np.sum(weights) - 1))

    @property
    def mean_magnitude(self) -> float:
        if self.variance_parameter > 10**10:
            return math.sqrt(float(self.variance_parameter) * 2 / math.pi)
        weights = self._weights()
        return float(2 * np.sum(np.arange(len(weights)) * weights) / (2 * np.sum(weights) - 1))


@lru_cache(maxsize=256)
def _discrete_gaussian_parts(variance: Fraction, fineness: Fineness) -> tuple[Chance, Magnitude]:
    rate = 1 / (2 * variance)

    def enclose(bits: int) -> Enclosure:
        return quotient((1 << bits, 1 << bits), theta(rate, bits), bits)

    zero = _chance_of_zero(enclose, fineness)
    # given |x| = 1 + y:  (1 + y)**2 = 1 + 2 y + y**2
    return zero, Magnitude(2 * rate, rate, fineness=fineness)
