"""Rows on their way into a model: whatever they hold, no longer than 1 and on the grid."""

import math
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.learning.rows import STEP, Encoding, clamped, differing, public_bounds, summed

ANY = st.floats(allow_nan=True, allow_infinity=True)


@given(
    rows=st.lists(st.lists(ANY, min_size=3, max_size=3), min_size=1, max_size=5),
    low=st.floats(-1e300, 1e300) | st.just(0.0),
    span=st.floats(1e-100, 1e300),
    longest=st.none() | st.floats(1e-3, 1e3),
    norm=st.sampled_from([1, 2]),
)
def test_whatever_a_row_holds_it_is_no_longer_than_1(
    rows: list[list[float]], low: float, span: float, longest: float | None, norm: Literal[1, 2]
) -> None:
    high = low + span
    if not low < high or max(abs(low), abs(high)) > 2.0**500:
        return
    encoding = Encoding.of((low, high), 3, longest=longest, norm=norm)
    for row in encoding(rows):
        assert len(row) == encoding.width
        assert sum(abs(Fraction(x)) ** norm for x in row) <= 1
        assert all((Fraction(x) / Fraction(STEP)).denominator == 1 for x in row)


def test_a_wide_row_too() -> None:
    for row in Encoding.of((0, 1), 20_000)(np.random.default_rng(1).random((2, 20_000))):
        assert 1 - 1e-2 < sum(Fraction(x) ** 2 for x in row) <= 1


def test_the_side_of_a_plane_is_kept() -> None:
    rows = np.random.default_rng(2).normal(size=(500, 4)) * 3
    w = np.array([1.0, -2.0, 0.5, 1.5, 0.3])
    plain = np.hstack([np.clip(rows, -5, 5) / 5, np.ones((500, 1))]) @ w
    agree = np.sign(Encoding.of((-5, 5), 4)(rows) @ w) == np.sign(plain)
    assert agree[np.abs(plain) > 1e-4].all()


def test_sums_do_not_depend_on_many_roundings() -> None:
    generator = np.random.default_rng(3)
    for n in (0, 1, 255, 256, 257, 1000):
        rows = np.trunc(generator.normal(size=(n, 3)) / STEP) * STEP
        weights = generator.normal(size=n)
        for j in range(3):
            exact = sum((Fraction(w) * Fraction(x) for w, x in zip(weights, rows[:, j], strict=True)), Fraction(0))
            size = math.fsum(abs(weights * rows[:, j]))
            assert abs(Fraction(summed(rows, weights)[j]) - exact) <= Fraction(size * 256 * 2.0**-53)


def test_clamping_and_nan() -> None:
    low, high = public_bounds(([-1, 2], 5), 2)
    assert clamped([[math.nan, math.nan], [math.inf, -math.inf]], low, high).tolist() == [[0, 2], [5, 2]]


@pytest.mark.parametrize("bounds", [None, 3, "ab", (1, 1), (0, math.inf), (math.nan, 1), ([0, 0, 0], 1), ("a", "b")])
def test_bounds_that_are_none_are_refused(bounds: object) -> None:
    with pytest.raises((ParameterError, ParameterTypeError), match=r"bounds=\(low, high\)"):
        Encoding.of(bounds, 2)
    with pytest.raises(ParameterError, match="longest"):
        Encoding.of((0, 1), 2, longest=0)


def test_rows_that_differ_are_counted_as_multisets() -> None:
    a = np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]])
    assert differing(a, a[[2, 0, 1]]) == (0, 0)
    assert differing(a, a[1:]) == (1, 0)
    assert differing(a[1:], np.vstack([a[:1], [[9.0, 9.0]]])) == (1, 1)
    assert differing(a, a[:, :1]) == (3, 3)
