"""Enclosures hold the truth, computed independently by mpmath at 700 bits."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.numeric import enclosure

mpmath.mp.prec = 700

small = st.fractions(min_value=0, max_value=50, max_denominator=10**9)
positive = st.fractions(min_value=Fraction(1, 10**6), max_value=60, max_denominator=10**9)
precisions = st.sampled_from([8, 64, 150])


def exact(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def assert_encloses(pair: tuple[int, int], truth: mpmath.mpf, bits: int, width: int = 4) -> None:
    low, high = pair
    assert low <= truth * mpmath.mpf(2) ** bits <= high
    assert high - low <= width


@given(small, precisions)
def test_exp_minus(x: Fraction, bits: int) -> None:
    assert_encloses(enclosure.exp_minus(x, bits), mpmath.exp(-exact(x)), bits)


@pytest.mark.parametrize(
    "x", [Fraction(0), Fraction(1, 10**40), Fraction(10**6), Fraction(10**30, 7), Fraction(63), Fraction(65)]
)
def test_exp_minus_at_the_ends(x: Fraction) -> None:
    assert_encloses(enclosure.exp_minus(x, 64), mpmath.exp(-exact(x)), 64)


@given(small, precisions)
def test_erf(square: Fraction, bits: int) -> None:
    assert_encloses(enclosure.erf_of_root(square, bits), mpmath.erf(mpmath.sqrt(exact(square))), bits)


@given(st.fractions(min_value=-9, max_value=9, max_denominator=10**6), precisions)
def test_normal_cdf(x: Fraction, bits: int) -> None:
    assert_encloses(enclosure.normal_cdf(x, bits), mpmath.ncdf(exact(x)), bits)


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=60, max_denominator=10**12), precisions)
def test_theta(rate: Fraction, bits: int) -> None:
    q = exact(rate)
    if rate < 1:  # mpmath's own sum is slow there; Poisson's formula, again, but in floating point
        terms = mpmath.nsum(lambda k: mpmath.exp(-((mpmath.pi * k) ** 2) / q), [-30, 30])
        truth = mpmath.sqrt(mpmath.pi / q) * terms
    else:
        truth = mpmath.nsum(lambda k: mpmath.exp(-q * k * k), [-40, 40])
    assert_encloses(enclosure.theta(rate, bits), truth, bits)


def test_theta_agrees_on_both_sides_of_its_switch() -> None:
    direct = sum(mpmath.exp(-mpmath.mpf(99) / 100 * k * k) for k in range(-60, 61))
    assert_encloses(enclosure.theta(Fraction(99, 100), 120), direct, 120)


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=10**9),
    st.fractions(min_value=-4, max_value=14, max_denominator=10**9),
)
def test_gaussian_delta(mu: Fraction, distance: Fraction) -> None:
    epsilon = max(Fraction(0), mu * (distance + mu / 2))
    m, e = exact(mu), exact(epsilon)
    truth = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
    assert_encloses(enclosure.gaussian_delta(mu, epsilon, 100), truth, 100)


def test_pi_and_square_root() -> None:
    assert_encloses(enclosure.pi(300), mpmath.pi, 300)
    assert_encloses(enclosure.square_root(Fraction(7, 3), 90), mpmath.sqrt(mpmath.mpf(7) / 3), 90)


@given(positive, positive, precisions)
def test_quotient_rounds_outwards(a: Fraction, b: Fraction, bits: int) -> None:
    if b < 1:
        b += 1

    def enclose(x: Fraction) -> tuple[int, int]:
        low, rest = divmod(x.numerator << bits, x.denominator)
        return low, low + (rest > 0)

    low, high = enclosure.quotient(enclose(a), enclose(b), bits)
    assert Fraction(low, 1 << bits) <= a / b <= Fraction(high, 1 << bits)
