"""Gaussian laws on the integers: rounded continuous, and discrete."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from hubbub.errors import ParameterError
from hubbub.numeric.enclosure import Enclosure, erf_of_root, quotient, theta
from hubbub.numeric.rational import positive
from hubbub.randomness.laws import Floats, SymmetricLaw, chance_of_zero
from hubbub.randomness.magnitude import Magnitude
from hubbub.randomness.thresholds import FINE, Chance, Fineness, Integers


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
    zero = chance_of_zero(lambda bits: erf_of_root(rate / 4, bits), fineness)
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

    zero = chance_of_zero(enclose, fineness)
    # given |x| = 1 + y:  (1 + y)**2 = 1 + 2 y + y**2
    return zero, Magnitude(2 * rate, rate, fineness=fineness)
