"""Laplace laws on the integers: discrete, rounded continuous, truncated."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.numeric.enclosure import Enclosure, exp_minus, quotient
from hubbub.numeric.rational import count, floor_log2, positive
from hubbub.randomness.laws import Floats, SymmetricLaw, chance_of_zero, geometric_magnitude
from hubbub.randomness.magnitude import Magnitude
from hubbub.randomness.thresholds import FINE, Chance, Fineness, Integers


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
        return _discrete_zero(self.scale, self.fineness), geometric_magnitude(self.scale, None, self.fineness)

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

    return chance_of_zero(enclose, fineness)


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
        return _rounded_zero(self.scale, self.fineness), geometric_magnitude(self.scale, None, self.fineness)

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

    return chance_of_zero(enclose, fineness)


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
        magnitude = geometric_magnitude(self.scale, self.bound - 1, self.fineness)
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

    return chance_of_zero(enclose, fineness)
