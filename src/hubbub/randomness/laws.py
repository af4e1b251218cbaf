"""What the exact integer laws share, and the geometric law.

Each law is a frozen value with a rational parameter. ``sample`` draws arrays, ``draw`` draws one Python int;
both follow the stated law exactly. ``pmf`` and ``tail`` are floating point, for error bars and checks.
A symmetric law is zero with a certified probability, else plus or minus one more than a ``Magnitude``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.numeric.enclosure import Enclosure
from hubbub.numeric.rational import positive
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.magnitude import Magnitude
from hubbub.randomness.thresholds import FINE, Chance, Fineness, Integers
from hubbub.randomness.wide import Wide

Floats = NDArray[np.float64]

CHUNK = 1 << 15
"""Draws made at a time, so that a chunk's arrays stay in the processor's cache and memory stays flat."""


def _in_chunks(size: int, draw: Callable[[int], Integers]) -> Integers:
    if size <= CHUNK:
        return draw(size)
    out = np.empty(size, np.int64)
    for start in range(0, size, CHUNK):
        piece = out[start : start + CHUNK]
        piece[:] = draw(len(piece))
    return out


@dataclass(frozen=True)
class Geometric:
    """k >= 0 with probability (1 - r) r**k, r = e**(-1/scale): an exponential of that scale, rounded down.

    >>> int(Geometric(0.001).sample(5).max())
    0
    """

    scale: Fraction
    fineness: Fineness = field(default=FINE, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale))

    def sample(self, size: int, bits: Bits = SECURE) -> Integers | NDArray[np.object_]:
        """``size`` draws: int64 where every value fits, Python ints (an object array) for enormous scales."""
        magnitude = geometric_magnitude(self.scale, None, self.fineness)
        if not magnitude.is_int64:
            return np.array([magnitude.draw(bits) for _ in range(size)], object)
        return _in_chunks(size, lambda n: magnitude.sample(n, bits))

    def draw(self, bits: Bits = SECURE) -> int:
        """One draw."""
        return geometric_magnitude(self.scale, None, self.fineness).draw(bits)

    def pmf(self, k: NDArray[np.integer]) -> Floats:
        """Probability of each k >= 0."""
        rate = float(1 / self.scale)
        return np.asarray(-math.expm1(-rate) * np.exp(-rate * k))


@lru_cache(maxsize=256)
def geometric_magnitude(scale: Fraction, last: int | None, fineness: Fineness) -> Magnitude:
    """The sampler of a geometric law, cut off at ``last`` where given; made once per parameter."""
    return Magnitude(1 / scale, Fraction(0), last=last, fineness=fineness)


class SymmetricLaw(ABC):
    """An integer law symmetric about zero. Subclasses give the chance of zero, the magnitude beyond it, and tails."""

    @abstractmethod
    def _parts(self) -> tuple[Chance, Magnitude]:
        """The event of zero, and the law of |x| - 1 otherwise."""

    @property
    def is_int64(self) -> bool:
        """Whether ``sample`` returns 64-bit integers; laws of enormous scale return Python ints."""
        return self._parts()[1].is_int64

    @property
    def is_wide(self) -> bool:
        """Whether the law is beyond 64-bit integers but within ``sample_wide``."""
        return self._parts()[1].is_wide

    @abstractmethod
    def tail(self, m: Floats | Integers) -> Floats:
        """P(x >= m) for each m >= 1."""

    @abstractmethod
    def pmf(self, k: Integers) -> Floats:
        """Probability of each integer k."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance, to about 14 digits."""

    @property
    @abstractmethod
    def mean_magnitude(self) -> float:
        """The mean of |x|, to about 14 digits."""

    def half_width(self, doubt: float) -> int:
        """The smallest w with P(|x| > w) <= doubt."""

        def within(w: int) -> bool:
            return 2 * float(self.tail(np.array([w + 1.0]))[0]) <= doubt

        low, high = -1, 1
        while not within(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if within(middle) else (middle, high)
        return high

    def sample_wide(self, size: int, bits: Bits = SECURE) -> Wide:
        """``size`` draws as pairs of 64-bit halves; only where ``is_wide``."""
        zero, magnitude = self._parts()
        out = Wide(np.empty(size, np.int64), np.empty(size, np.uint64))
        for start in range(0, size, CHUNK):
            words = bits.words(min(CHUNK, size - start))
            values = magnitude.sample_wide(len(words), bits)
            values.add(1)
            values.negate((words & np.uint64(1)).astype(np.bool_))
            values.erase(zero.happen(words, bits))
            out[start : start + CHUNK] = values
        return out

    def sample(self, size: int, bits: Bits = SECURE) -> Integers | NDArray[np.object_]:
        """``size`` draws: int64 where every value fits, Python ints (an object array) for enormous scales."""
        zero, magnitude = self._parts()
        if magnitude.is_wide:
            return self.sample_wide(size, bits).to_objects()
        if not magnitude.is_int64:
            return np.array([self.draw(bits) for _ in range(size)], object)

        def draw(n: int) -> Integers:
            words = bits.words(n)
            sign = -((words & np.uint64(1)).view(np.int64))  # 0 or -1; the zero event looks at the other 63 bits
            values = magnitude.sample(n, bits)
            values += 1
            values ^= sign
            values -= sign
            values[zero.happen(words, bits)] = 0
            return values

        return _in_chunks(size, draw)

    def draw(self, bits: Bits = SECURE) -> int:
        """One draw, as a Python int."""
        zero, magnitude = self._parts()
        word = bits.word()
        value = magnitude.draw(bits) + 1  # drawn whether needed or not: the work does not tell
        if zero.decide(word, bits):
            return 0
        return -value if word & 1 else value


def chance_of_zero(enclose: Callable[[int], Enclosure], fineness: Fineness) -> Chance:
    """An event that leaves a word's lowest bit alone, for the sign."""
    return Chance(enclose, Fineness(min(63, fineness.word_bits), fineness.margin))
