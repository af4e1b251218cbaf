"""Sums that doubles cannot round are rounded by exact arithmetic, with as many bits as it takes."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import ScriptedBits, SeededBits

from hubbub.randomness.lazy import rounded_sum

WORDS = st.integers(2**44, 2**64 - 1)


def normal(radial: int, angular: int, cosine: bool, length: int = 64) -> mpmath.mpf:
    """The normal variable in the middle of what these bits leave open."""
    u, v = ((mpmath.mpf(n) + 0.5) / mpmath.mpf(2) ** length for n in (radial, angular))
    return mpmath.sqrt(-2 * mpmath.log(u)) * (mpmath.cos if cosine else mpmath.sin)(2 * mpmath.pi * v)


@given(WORDS, WORDS, st.booleans(), st.floats(-1e6, 1e6), st.floats(1e-3, 1e4))
def test_as_in_high_precision(radial: int, angular: int, cosine: bool, value: float, spread: float) -> None:
    with mpmath.workdps(60):
        total = mpmath.mpf(value) + mpmath.mpf(spread) * normal(radial, angular, cosine)
        near = int(mpmath.floor(total + 0.5))
        if abs(total + 0.5 - mpmath.nint(total + 0.5)) > 1e-6:
            assert rounded_sum(value, spread, radial, angular, cosine, ScriptedBits([])) == near


@pytest.mark.parametrize("cosine", [True, False])
def test_more_bits_decide_what_the_first_leave_open(cosine: bool) -> None:
    radial, angular, spread = 3 << 61, 1 << 60, 2.0**70
    found = set()
    with mpmath.workdps(120):
        for seed in range(20):
            bits = ScriptedBits([], seed)
            got = rounded_sum(0.0, spread, radial, angular, cosine, bits)
            assert bits.read >= 4
            again = ScriptedBits([], seed)
            u, v = ((p << 128) | (again.word() << 64) | again.word() for p in (radial, angular))
            if bits.read == 4:
                assert abs(spread * normal(u, v, cosine, 192) - got) <= 0.5 + 1e-9
            found.add(got)
    assert len(found) > 10


def test_no_first_uniform_number_is_taken_for_zero() -> None:
    bits = ScriptedBits([5, 7], 0)
    radius = mpmath.sqrt(-2 * mpmath.log(mpmath.mpf(5) / mpmath.mpf(2) ** 128))
    assert rounded_sum(0.0, 1.0, 0, 0, True, bits) == round(float(radius))
    assert bits.read == 4


def test_the_law() -> None:
    """With no bits known to begin with but random ones, the rounded sum is a rounded normal variable."""
    bits = SeededBits(3)
    draws = [rounded_sum(0.25, 2.0, bits.word(), bits.word(), k % 2 == 0, bits) for k in range(3000)]
    assert abs(np.mean(draws) - 0.25) < 5 * 2 / 3000**0.5
    assert abs(np.var(draws) / (4 + 1 / 12) - 1) < 5 * (2 / 3000) ** 0.5
