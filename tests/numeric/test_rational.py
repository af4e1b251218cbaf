import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
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
def test_floor_log2(x: Fraction) -> None:
    k = r.floor_log2(x)
    assert r.power_of_two(k) <= x < r.power_of_two(k + 1)
