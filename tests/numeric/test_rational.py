import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.numeric import rational as r


def test_a_float_means_its_shortest_decimal() -> None:
    assert r.rational("x", 0.1) == Fraction(1, 10)
    assert r.rational("x", np.float32(0.1)) == Fraction(1, 10)
    assert r.rational("x", Decimal("0.30")) == Fraction(3, 10)
    assert r.rational("x", np.int64(7)) == 7
    assert r.rational("x", 1e-300) == Fraction(1, 10**300)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, Decimal("NaN")])
def test_not_finite(bad: float) -> None:
    with pytest.raises(ParameterError, match="must be finite"):
        r.rational("x", bad)


@pytest.mark.parametrize("bad", ["1", None, True, 1j, [1], np.bool_(True)])
def test_not_a_number(bad: object) -> None:
    with pytest.raises(ParameterTypeError, match="must be a number"):
        r.rational("x", bad)


def test_sizes_beyond_doubles_are_refused() -> None:
    for bad in (1e301, Fraction(1, 10**301), -Fraction(10**301)):
        with pytest.raises(ParameterError, match="between 1e-300 and 1e300"):
            r.rational("x", bad)
    for bad in (1e-121, 1e121):
        assert r.rational("x", bad)
        with pytest.raises(ParameterError, match="between 1e-120 and 1e120"):
            r.positive("x", bad)
    assert r.positive("x", 1e-120) == Fraction(1, 10**120)
    with pytest.raises(ParameterError, match="must be > 0; so there"):
        r.positive("x", 0, "so there")


def test_strictly_between() -> None:
    assert r.fraction_between("x", 0.5, 0, 1) == Fraction(1, 2)
    for bad in (0, 1, -0.1, 1.1):
        with pytest.raises(ParameterError, match="strictly between 0 and 1"):
            r.fraction_between("x", bad, 0, 1)


def test_whole_numbers() -> None:
    assert r.count("n", np.int64(1)) == 1
    assert r.count("n", 0, least=0) == 0
    for bad in (0, -1):
        with pytest.raises(ParameterError, match="must be >= 1"):
            r.count("n", bad)
    for bad in (1.0, True, "1"):
        with pytest.raises(ParameterTypeError, match="must be a whole number"):
            r.count("n", bad)
    assert [r.is_whole(x) for x in (3, np.int8(3), 3.0, True, "3")] == [True, True, False, False, False]


def test_exactly_one_of_several() -> None:
    assert r.one_of(epsilon=None, scale=2) == 2
    assert r.one_of(epsilon=0, scale=None) == 0
    with pytest.raises(ParameterError, match=r"epsilon=1 .*exactly one of epsilon or scale"):
        r.one_of(epsilon=1, scale=2)
    with pytest.raises(ParameterError, match="epsilon=None"):
        r.one_of(epsilon=None, scale=None)


def test_yes_or_no() -> None:
    assert r.yes_or_no("flag", True) is True
    assert r.yes_or_no("flag", False) is False
    for bad in (1, None, np.bool_(True)):
        with pytest.raises(ParameterTypeError, match="must be True or False"):
            r.yes_or_no("flag", bad)


def test_the_smaller_reading_of_a_float() -> None:
    assert r.smaller_reading("x", 0.1) == Fraction(1, 10) < Fraction(0.1)
    assert r.smaller_reading("x", 0.3) == Fraction(0.3) < Fraction(3, 10)
    assert r.smaller_reading("x", np.float32(0.3)) <= Fraction(3, 10)
    for exact in (3, Fraction(3, 10), Decimal("0.3")):
        assert r.smaller_reading("x", exact) == Fraction(str(exact))


@given(st.fractions())
def test_float_up_and_down_bracket(x: Fraction) -> None:
    up, down = r.float_up(x), r.float_down(x)
    assert r.rational("x", down) <= x <= r.rational("x", up) or Fraction(down) <= x <= Fraction(up)
    assert up <= math.nextafter(down, math.inf)


@given(st.floats(1e-290, 1e290) | st.floats(-1e290, -1e-290))
def test_float_up_gives_a_written_float_back(x: float) -> None:
    assert r.float_up(r.rational("x", x)) == x


def test_float_up_overflows_to_infinity() -> None:
    assert r.float_up(Fraction(10**400)) == math.inf
    assert r.float_up(Fraction(-(10**400))) == -1.7976931348623157e308


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30))
@example(Fraction(1))
@example(Fraction(8))
@example(Fraction(1, 4))
def test_floor_log2(x: Fraction) -> None:
    k = r.floor_log2(x)
    assert r.power_of_two(k) <= x < r.power_of_two(k + 1)
