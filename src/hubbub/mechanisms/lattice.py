"""Private numbers as integers: the public grid floats are put on, and the public rules for odd data.

Rules, the same everywhere and never an exception: nan counts as 0; infinities and floats beyond the grid's range
count as the range's ends; integers beyond 64 bits in an array count as the nearest 64-bit integer. Each rule moves
two values no further apart than they were, so a sensitivity that holds before it holds after it (nan has no
distance: whoever states a sensitivity states it for nan counted as 0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import DataTypeError, ParameterError
from hubbub.numeric.rational import Number, floor_log2, is_whole, positive, power_of_two
from hubbub.randomness.thresholds import Integers
from hubbub.randomness.wide import Wide

Floats = NDArray[np.float64]

NOISE_STEPS = 10
"""The output grid is at least 2**10 times finer than the noise."""
SLACK_BITS = 22
"""Rounding inputs to the input grid adds at most 2**-22 of the sensitivity, reserved in the noise."""
SCORE_STEPS = 10
"""Scores and thresholds are floored to a grid 2**10 times finer than their sensitivity."""
EXPONENT_LIMIT = 1000
"""Grids outside 2**-1000 .. 2**900 would leave double precision."""

SCORE_LIMIT = 2.0**EXPONENT_LIMIT
"""Scores beyond plus or minus this count as this."""

INT64_MAX = (1 << 63) - 1


def clean(values: Floats, limit: float) -> Floats:
    """nan as 0, everything within [-limit, limit]."""
    return np.clip(np.where(np.isnan(values), 0.0, values), -limit, limit)


@dataclass(frozen=True)
class Lattice:
    """Two nested grids: inputs are floored to multiples of 2**fine, outputs are multiples of 2**(fine + shift).

    Claim: an output is a function of (floored input + integer noise) alone; it lies on the output grid, which depends
        on public parameters only.
    Proof: scaling by a power of two and floor are exact in floating point; the sum is exact in integers; the one
        floating-point addition joins two exact integers, so its rounding is a function of their exact sum.
    Assumes: IEEE-754 doubles.
    """

    fine: int
    shift: int

    @classmethod
    def beneath(cls, sensitivity: Fraction, noise: Fraction, rounded_coordinates: int) -> Lattice:
        """The grids for a noise of this scale, fine enough that the slack of so many coordinates does not matter."""
        coarse = floor_log2(noise) - NOISE_STEPS
        fine = min(coarse, floor_log2(sensitivity / rounded_coordinates) - SLACK_BITS)
        if fine < -EXPONENT_LIMIT or coarse > EXPONENT_LIMIT - 100:
            raise ParameterError(
                "sensitivity", float(sensitivity), "leaves no grid within double precision", "rescale the values"
            )
        return cls(fine, coarse - fine)

    @property
    def step(self) -> Fraction:
        """The spacing of the input grid."""
        return power_of_two(self.fine)

    @property
    def spacing(self) -> float:
        """The spacing of the output grid."""
        return math.ldexp(1.0, self.fine + self.shift)

    @property
    def limit(self) -> float:
        """Floats beyond plus or minus this are counted as this."""
        return math.ldexp(1.0, min(self.fine, 0) + EXPONENT_LIMIT)

    @property
    def half(self) -> int:
        """Half an output step, in input steps: added before rounding down, to round to nearest."""
        return 1 << (self.shift - 1) if self.shift else 0

    def floor(self, value: Any) -> int:
        """One number in input steps, rounded down, by the public rules."""
        if isinstance(value, float | np.floating):
            value = float(value)
            value = 0.0 if math.isnan(value) else min(max(value, -self.limit), self.limit)
            return math.floor(math.ldexp(value, -self.fine))
        bounded = min(max(int(value), -int(self.limit)), int(self.limit))
        return bounded << -self.fine if self.fine <= 0 else bounded >> self.fine

    def publish(self, steps: int) -> float:
        """A noisy number of input steps, as a float on the output grid."""
        rounded = (steps + self.half) >> self.shift
        try:
            return math.ldexp(float(rounded), self.fine + self.shift)
        except OverflowError:
            return math.copysign(self.limit, rounded)

    def publish_sums(self, values: Floats, noise: Integers) -> Floats:
        """Values floored to the input grid, plus integer noise, as floats on the output grid."""
        whole, rest = self._split(values)
        remainder = rest.astype(np.int64)
        remainder += noise
        remainder += self.half
        remainder >>= self.shift
        whole += remainder
        whole *= self.spacing
        return whole

    def publish_wide_sums(self, values: Floats, noise: Wide) -> Floats:
        """As ``publish_sums``, for noise of more than 64 bits; the noise array is used up."""
        whole, rest = self._split(values)
        size = np.abs(rest)
        high = np.floor(size * 2.0**-64)
        exact = Wide(high.astype(np.int64), (size - high * 2.0**64).astype(np.uint64))
        exact.negate(rest < 0)
        noise.add_each(exact)
        noise.add(self.half)
        whole += noise.shifted_down(self.shift)
        whole *= self.spacing
        return whole

    def _split(self, values: Floats) -> tuple[Floats, Floats]:
        """Values floored to input steps, as whole output steps and input steps left over, both of the value's sign.

        Both are exact: cutting a double's digits in two, its sign aside, leaves two doubles.
        """
        steps = np.floor(clean(values, self.limit) * math.ldexp(1.0, -self.fine))
        size = np.abs(steps)
        whole = np.floor(size * math.ldexp(1.0, -self.shift))
        rest = size - whole * math.ldexp(1.0, self.shift)
        return np.copysign(whole, steps), np.copysign(rest, steps)


def score_grid(sensitivity: Number) -> tuple[Fraction, int]:
    """The public grid single scores are floored to, and their sensitivity in whole steps of it, flooring included.

    A whole sensitivity keeps whole scores as they are.
    """
    largest = positive("sensitivity", sensitivity)
    if is_whole(sensitivity):
        return Fraction(1), int(largest)
    step = power_of_two(floor_log2(largest) - SCORE_STEPS)
    return step, math.floor(largest / step) + 1


def is_integer(value: object) -> bool:
    """Whether one datum is an integer, Python's or numpy's, truth values included."""
    return is_whole(value) or isinstance(value, bool | np.bool_)


def is_number(value: object) -> bool:
    """Whether one datum is an integer or a float of at most double precision."""
    return is_integer(value) or isinstance(value, float | np.float32 | np.float16)


def plain_array(values: Any) -> NDArray[Any]:
    """Anything array-like as a numpy array; masked arrays and what is not an array are refused."""
    masked = any(kind.__module__.startswith("numpy.ma") for kind in type(values).__mro__)  # without importing numpy.ma
    if masked or not hasattr(values, "__array__"):
        raise DataTypeError(f"release takes numbers, flat lists or plain arrays, not {type(values).__name__}")
    return np.asarray(values)


def integer_array(values: NDArray[Any]) -> Integers:
    """An array of any integer type as int64, by the public rules; other types are refused."""
    if values.dtype.kind == "u":
        return np.asarray(np.minimum(values, np.uint64(INT64_MAX)), np.int64)
    if values.dtype.kind in "bi":
        return values.astype(np.int64)
    if values.dtype.kind == "O" and all(is_integer(v) for v in values.flat):
        bounded = [min(max(int(v), -INT64_MAX - 1), INT64_MAX) for v in values.flat]
        return np.array(bounded, np.int64).reshape(values.shape)
    raise DataTypeError(
        f"an integer mechanism takes integers, not {values.dtype}; give a float sensitivity to release floats"
    )


def float_array(values: NDArray[Any]) -> Floats | None:
    """An array of floats, or of integers of a type that doubles hold exactly, as doubles; None for 64-bit integers."""
    if values.dtype.kind == "f" and values.dtype.itemsize <= 8:
        return values.astype(np.float64)
    if values.dtype.kind in "biu":
        return values.astype(np.float64) if values.dtype.itemsize < 8 else None
    raise DataTypeError(f"a float mechanism takes floats or integers, not {values.dtype}")


def exact_numbers(values: Any, name: str) -> Integers | Floats:
    """A flat list or one-dimensional array of scores or data as int64 or double, by the public rules.

    Integers stay integers and floats stay the doubles they are; in a list of both, integers beyond 2**53 count as
    2**53.
    """
    if isinstance(values, list | tuple):
        if not all(is_number(v) for v in values):
            raise DataTypeError(f"{name} must be a flat list of numbers")
        if values and all(is_integer(v) for v in values):
            return integer_array(np.array(values, object))
        most = 2**53
        listed = [min(max(int(v), -most), most) if is_integer(v) else float(v) for v in values]
        return clean(np.array(listed, np.float64), SCORE_LIMIT)
    array = plain_array(values)
    if array.ndim != 1:
        raise DataTypeError(f"{name} must be one-dimensional")
    if array.dtype.kind in "biuO":
        return integer_array(array)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise DataTypeError(f"{name} must be integers or floats, not {array.dtype}")
    return clean(array.astype(np.float64), SCORE_LIMIT)
