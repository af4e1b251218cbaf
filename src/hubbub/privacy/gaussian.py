"""The Gaussian privacy profile, certified: delta from (mu, epsilon), epsilon from (mu, delta), mu from (epsilon,
delta).

mu is sensitivity / standard deviation. Every answer is confirmed by enclosures of ``hubbub.numeric`` and lies on
the private side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from hubbub.numeric.enclosure import gaussian_delta
from hubbub.numeric.rational import float_up

TIGHTNESS, MARGIN = 1e-11, 1e-9
"""Relative width to which an optimum is found, and what a calibrated mu keeps below it so that rounding fits."""
FAR = 39
"""Beyond this many standard deviations delta is below the smallest double."""


@lru_cache(maxsize=4096)
def delta_upper(mu: Fraction, epsilon: Fraction) -> float:
    """The smallest delta for which a Gaussian of this mu is (epsilon, delta)-private, rounded up.

    Claim: never below Phi(mu/2 - epsilon/mu) - e**epsilon Phi(-mu/2 - epsilon/mu).
    Proof: BW18, Theorem 8; evaluated by outward-rounded integer arithmetic.
    Assumes: mu > 0, epsilon >= 0.
    """
    if epsilon / mu - mu / 2 > FAR:  # delta < Phi(-39) < e**-760
        return 5e-324
    bits = 64
    while True:
        low, high = gaussian_delta(mu, epsilon, bits)
        if high - low <= low >> 50:
            return min(1.0, float_up(Fraction(high, 1 << bits)))
        bits *= 2


def epsilon_interval(mu: Fraction, delta: Fraction) -> tuple[float, float]:
    """(lower, upper) on the epsilon of a Gaussian at delta."""
    high = epsilon_upper(mu, delta)
    for short in (1e-10, 1e-8, 1e-5, 1e-2):  # confirmed: delta is still exceeded there
        low = high * (1 - short)
        if delta_upper(mu, Fraction(low)) * (1 - 1e-13) >= float(delta):
            return low, high
    return 0.0, high


@lru_cache(maxsize=1024)
def largest_mu(epsilon: Fraction, delta: Fraction) -> float:
    """The largest mu that is (epsilon, delta)-private, less about one part in 1e9, certified."""
    mu = last_within(lambda x: delta_upper(Fraction(x), epsilon), delta)
    return mu * (1 - MARGIN)


@lru_cache(maxsize=1024)
def epsilon_upper(mu: Fraction, delta: Fraction) -> float:
    """The smallest epsilon at which a Gaussian of this mu is (epsilon, delta)-private, rounded up."""
    if delta_upper(mu, Fraction(0)) <= delta:
        return 0.0
    # the last inverse at which delta still holds; delta_upper is asked at the very number that is returned
    return 1 / last_within(lambda inverse: delta_upper(mu, Fraction(1 / inverse)), delta)


def last_within(value: Callable[[float], float], limit: Fraction) -> float:
    """The largest x > 0 with value(x) <= limit, within one part in 1e11 and never beyond, for a growing value.

    Bracketed by factors of four, then by the secant of the logarithms, aimed a hair to the side that moved last;
    where the bracket has not halved, by its middle.
    """
    low = high = 1.0
    while value(high) <= limit:
        low, high = high, 4 * high
    while value(low) > limit:
        low, high = low / 4, low
    level = math.log(limit.numerator) - math.log(limit.denominator)
    below, above, aim, before = value(low), value(high), -1, math.inf
    while high / low > 1 + TIGHTNESS:
        rise, run = math.log(above) - math.log(below), math.log(high) - math.log(low)
        share = (level - math.log(below)) / rise if rise > 0 and run < before / 2 else 0.5
        before = run
        middle = low * math.exp(min(max(share * run + aim * TIGHTNESS / 3, run / 4096), run * 4095 / 4096))
        if value(middle) <= limit:
            low, below, aim = middle, value(middle), 1
        else:
            high, above, aim = middle, value(middle), -1
    return low
