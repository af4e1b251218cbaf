"""Mechanisms that add integer noise: the release itself, and what can be said of its error."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import DataTypeError, ParameterError
from hubbub.mechanisms.lattice import (
    INT64_MAX,
    Floats,
    Lattice,
    float_array,
    integer_array,
    is_integer,
    is_number,
    plain_array,
)
from hubbub.mechanisms.mechanism import Mechanism, strays, watcher
from hubbub.numeric.rational import Number, fraction_between, positive
from hubbub.privacy.loss import Neighbours
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.laws import SymmetricLaw
from hubbub.randomness.thresholds import Integers

MAX_LENGTH = 1 << 24
"""The longest float vector a mechanism takes unless told otherwise: rounding slack is reserved for it."""
UNLISTED_MASS = 1e-12
"""Probability a listed distribution may leave out."""
LISTED_POINTS = 1 << 24
"""The longest distribution that is listed."""


class AdditiveNoise(Mechanism):
    """Adds noise of an exact integer law: to integers as they are, to floats on a public grid.

    Subclasses set ``_law`` (in input steps) and ``_lattice`` (None for an integer mechanism).
    """

    norm: ClassVar[Literal[1, 2]]
    """The norm in which the sensitivity of vectors is stated."""
    sensitivity: Number
    neighbours: Neighbours
    max_length: int
    _law: SymmetricLaw
    _lattice: Lattice | None

    @property
    def grid(self) -> float | int:
        """The spacing of the values that can come out: 1 for an integer mechanism, else a power of two."""
        return 1 if self._lattice is None else self._lattice.spacing

    def release(self, value: Any, bits: Bits = SECURE) -> Any:
        """The value plus noise: int for int, float for float, lists and arrays element by element.

        An int64 array whose noisy value leaves 64 bits is held at the nearest 64-bit integer; Python ints are exact.
        ``bits`` is for tests and audits; leave it alone otherwise.
        """
        if is_number(value) and watcher.get() is None and not strays:
            return self._release_one(value, bits)
        return super().release(value, bits)

    def _release(self, value: Any, bits: Bits) -> Any:
        if is_number(value):
            return self._release_one(value, bits)
        if isinstance(value, list | tuple):
            return self._release_list(value, bits)
        array = plain_array(value)
        return self._release_array(array.reshape(-1), bits).reshape(array.shape)

    def _release_one(self, value: Any, bits: Bits) -> int | float:
        lattice = self._lattice
        if lattice is None:
            if isinstance(value, float | np.floating):
                raise DataTypeError("an integer mechanism takes integers, not floats; give a float sensitivity")
            return int(value) + self._law.draw(bits)
        return lattice.publish(lattice.floor(value) + self._law.draw(bits))

    def _release_list(self, values: list[Any] | tuple[Any, ...], bits: Bits) -> list[Any]:
        self._check_length(len(values))
        if self._lattice is not None and all(type(v) is float for v in values):
            released: list[Any] = self._release_array(np.array(values, np.float64), bits).tolist()
            return released
        if self._lattice is None and all(is_integer(v) for v in values):
            noise = self._law.sample(len(values), bits).tolist()
            return [int(v) + n for v, n in zip(values, noise, strict=True)]
        if not all(is_number(v) for v in values):
            raise DataTypeError("release takes flat lists of numbers; use an array for more dimensions")
        return [self._release_one(v, bits) for v in values]

    def _release_array(self, values: NDArray[Any], bits: Bits) -> Any:
        self._check_length(values.size)
        if self._lattice is None:
            return self._noisy_integers(integer_array(values), bits)
        floats = float_array(values)
        if floats is not None and self._law.is_wide:
            return self._lattice.publish_wide_sums(floats, self._law.sample_wide(len(values), bits))
        if floats is None or not self._law.is_int64:
            return np.array([self._release_one(v.item(), bits) for v in values], np.float64)
        noise: Any = self._law.sample(len(values), bits)
        return self._lattice.publish_sums(floats, noise)

    def _noisy_integers(self, values: Integers, bits: Bits) -> Integers:
        noise: Any = self._law.sample(len(values), bits)
        if not self._law.is_int64:
            pairs = zip(values, noise, strict=True)
            held = [min(max(int(v) + n, -INT64_MAX - 1), INT64_MAX) for v, n in pairs]
            return np.array(held, np.int64)
        sums: Integers = values + noise
        over = ((values ^ sums) & (noise ^ sums)) < 0  # both summands have the sign the sum has lost
        if over.any():
            sums[over] = np.where(noise[over] > 0, INT64_MAX, -INT64_MAX - 1)
        return sums

    def apart(self, value: Any, neighbour: Any) -> float:
        one, other = (np.asarray(v) for v in (value, neighbour))
        if one.shape != other.shape or isinstance(value, list) != isinstance(neighbour, list):
            return math.inf
        floor = int if self._lattice is None else self._lattice.floor
        steps = [abs(floor(a) - floor(b)) for a, b in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)]
        most = positive("sensitivity", self.sensitivity)
        if self._lattice is not None:
            most = most / self._lattice.step
            steps = [max(0, n - 1) for n in steps]  # flooring may add one step to each; that is reserved for
        if self.norm == 1:
            return float(sum(steps) / most)
        return math.sqrt(float(sum(n * n for n in steps) / most**2))

    def _check_length(self, length: int) -> None:
        if self._lattice is not None and length > self.max_length:
            raise DataTypeError(
                f"{length} values are more than max_length={self.max_length}, for which rounding slack is reserved; "
                "give the mechanism a larger max_length"
            )

    @property
    def variance(self) -> float:
        """The variance of one released number, rounding to the grid included."""
        if self._lattice is None:
            return self._law.variance
        return self._law.variance * float(self._lattice.step) ** 2 + self._lattice.spacing**2 / 12

    def expected_error(self) -> float:
        """The mean distance between one released number and the truth."""
        step = 1.0 if self._lattice is None else float(self._lattice.step)
        return self._law.mean_magnitude * step

    def error(self, confidence: Number = 0.95) -> float | int:
        """A half-width: one released number is within it of the truth with at least this probability.

        The smallest such integer for integers; for floats, grid rounding is added on top.
        """
        doubt = float(1 - fraction_between("confidence", confidence, 0, 1))
        steps = self._law.half_width(doubt)
        if self._lattice is None:
            return steps
        return float((steps + 1) * self._lattice.step) + self._lattice.spacing / 2

    def distribution(self, value: float) -> tuple[Integers | Floats, Floats]:
        """The values that can come out for this input, and their probabilities: all but 1e-12 of the mass."""
        lattice = self._lattice
        if not is_number(value) or (lattice is None and not is_integer(value)):
            raise DataTypeError("distribution takes one number of the kind that release takes")
        reach = self._law.half_width(UNLISTED_MASS)
        points = 2 * (reach >> (lattice.shift if lattice else 0))
        if points > LISTED_POINTS:
            raise ParameterError("grid", self.grid, f"is too fine to list {points} points", "ask for less noise")
        if lattice is None:
            offsets = np.arange(-reach, reach + 1)
            support = offsets if abs(value) < 2**62 else offsets.astype(object)  # beyond 64 bits, Python integers
            return support + int(value), self._law.pmf(offsets)
        start = lattice.floor(value)
        outputs = np.arange((start - reach - 1) >> lattice.shift, ((start + reach + 1) >> lattice.shift) + 2)
        size = 1 << lattice.shift
        # a cell collects the noise values n with  low <= n < low + size
        lows = [int(k) * size - start - lattice.half for k in outputs]
        low, high = np.array(lows, np.float64), np.array([n + size for n in lows], np.float64)
        right = self._law.tail(np.maximum(low, 1)) - self._law.tail(np.maximum(high, 1))
        left = self._law.tail(np.maximum(1 - high, 1)) - self._law.tail(np.maximum(1 - low, 1))
        middle = np.where((low <= 0) & (high > 0), 1 - 2 * float(self._law.tail(np.array([1.0]))[0]), 0.0)
        return (outputs * lattice.spacing).astype(np.float64), left + middle + right
