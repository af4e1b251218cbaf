"""Numbers as people write them, made exact, and turned back into floats with a chosen rounding direction."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real

from hubbub.errors import ParameterError, ParameterTypeError

Number = int | float | Fraction | Decimal
"""What a public parameter may be. A float means its shortest decimal: 0.1 is 1/10."""

SMALLEST, LARGEST = Fraction(1, 10**300), Fraction(10**300)
MODEST = (Fraction(1, 10**120), Fraction(10**120))
"""Scales, sensitivities and prices are kept where their squares and ratios are doubles."""


def rational(name: str, value: object) -> Fraction:
    """The exact rational a parameter stands for; a float means its shortest decimal.

    >>> rational("epsilon", 0.1)
    Fraction(1, 10)
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise ParameterTypeError(name, value, "must be a number", "give an int, float, Fraction or Decimal")
    if isinstance(value, Rational):  # int, numpy integers, Fraction
        exact = Fraction(int(value.numerator), int(value.denominator))
    elif not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
        raise ParameterError(name, str(value), "must be finite")
    else:
        exact = Fraction(str(value))
    if exact and not SMALLEST <= abs(exact) <= LARGEST:
        raise ParameterError(name, value, "must be 0 or between 1e-300 and 1e300 in size", "use other units")
    return exact


def smaller_reading(name: str, value: object) -> Fraction:
    """The smaller of a float's two readings, as its shortest decimal and in binary: for bounds that hold for both."""
    exact = rational(name, value)
    return min(exact, Fraction(float(value))) if isinstance(value, Real) and not isinstance(value, Rational) else exact


def positive(name: str, value: object, remedy: str = "") -> Fraction:
    """The parameter as an exact rational, refused unless it is > 0."""
    exact = rational(name, value)
    if exact <= 0:
        raise ParameterError(name, value, "must be > 0", remedy)
    if not MODEST[0] <= exact <= MODEST[1]:
        raise ParameterError(name, value, "must be between 1e-120 and 1e120", "use other units")
    return exact


def fraction_between(name: str, value: object, low: int, high: int, remedy: str = "") -> Fraction:
    """The parameter as an exact rational, refused unless low < value < high."""
    exact = rational(name, value)
    if not low < exact < high:
        raise ParameterError(name, value, f"must lie strictly between {low} and {high}", remedy)
    return exact


def count(name: str, value: object, least: int = 1) -> int:
    """The parameter as an int, refused unless it is a whole number >= least."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ParameterTypeError(name, value, "must be a whole number")
    if value < least:
        raise ParameterError(name, value, f"must be >= {least}")
    return int(value)


def one_of(**alternatives: object) -> object:
    """The one alternative that was given; both or neither are refused.

    >>> one_of(epsilon=None, scale=2)
    2
    """
    given = {name: value for name, value in alternatives.items() if value is not None}
    if len(given) != 1:
        names = " or ".join(alternatives)
        name, value = next(iter(given.items()), (next(iter(alternatives)), None))
        raise ParameterError(name, value, "is not enough or too much", f"give exactly one of {names}")
    return next(iter(given.values()))


def yes_or_no(name: str, value: object) -> bool:
    """The parameter itself, refused unless it is True or False."""
    if not isinstance(value, bool):
        raise ParameterTypeError(name, value, "must be True or False")
    return value


def is_whole(value: object) -> bool:
    """Whether a parameter was written as an integer (Python or numpy), which makes an integer mechanism."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def float_up(value: Fraction) -> float:
    """The smallest float >= value; infinity where none is finite. A float whose shortest decimal is the value equals
    it.

    >>> float_up(Fraction(3, 10)), float_up(Fraction(1, 3)) > Fraction(1, 3)
    (0.3, True)
    """
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0.0)
    exact = Fraction(nearest) >= value or Fraction(str(nearest)) == value
    return nearest if exact else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """The largest float <= value."""
    return -float_up(-value)


def decimal_down(value: Fraction, digits: int = 12) -> Fraction:
    """A positive value cut to so many significant digits or one fewer: a float of it means exactly it, so sums fit.

    >>> float(decimal_down(Fraction(2, 3), 5))
    0.66666
    """
    unit = Fraction(10) ** (math.floor(math.log10(value)) + 1 - digits)
    return value // unit * unit


def floor_log2(value: Fraction) -> int:
    """The largest k with 2**k <= value, for value > 0.

    >>> floor_log2(Fraction(1, 3)), floor_log2(Fraction(8))
    (-2, 3)
    """
    k = value.numerator.bit_length() - value.denominator.bit_length()
    return k if power_of_two(k) <= value else k - 1


def power_of_two(exponent: int) -> Fraction:
    """2**exponent, exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)
