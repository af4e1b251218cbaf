"""Arrays of integers of up to 128 bits, as two 64-bit halves: for noise too wide for int64 but still vectorised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.randomness.bits import Words

Integers = NDArray[np.int64]

_WORD = (1 << 64) - 1


@dataclass
class Wide:
    """The integers high * 2**64 + low, two's complement. Callers keep values below 2**126 in size.

    >>> Wide(np.array([-1]), np.array([2**64 - 3], np.uint64)).to_objects()
    array([-3], dtype=object)
    """

    high: Integers
    low: Words

    def __len__(self) -> int:
        return len(self.low)

    def __setitem__(self, index: Integers | slice, other: Wide) -> None:
        self.high[index], self.low[index] = other.high, other.low

    def add(self, number: int) -> None:
        """Adds one integer to all, in place."""
        self.add_each(Wide(np.int64(number >> 64), np.uint64(number & _WORD)))  # type: ignore[arg-type]

    def add_each(self, other: Wide) -> None:
        """Adds another array (or one value) to this one, in place."""
        self.low += other.low
        self.high += other.high
        self.high += self.low < other.low

    def negate(self, where: NDArray[np.bool_]) -> None:
        """Changes the sign where asked, in place."""
        flip = -where.astype(np.int64)
        self.low ^= flip.view(np.uint64)
        self.high ^= flip
        self.low += where
        self.high += where & (self.low == 0)

    def erase(self, where: NDArray[np.bool_]) -> None:
        """Sets to zero where asked, in place."""
        self.high[where] = 0
        self.low[where] = 0

    def exceeds(self, number: int) -> NDArray[np.bool_]:
        """Whether each value is greater than a non-negative integer."""
        high, low = np.int64(number >> 64), np.uint64(number & _WORD)
        return np.asarray((self.high > high) | ((self.high == high) & (self.low > low)))

    def shifted_down(self, bits: int) -> Integers:
        """Each value divided by 2**bits, rounded down; the quotients must fit 64 bits."""
        if bits >= 64:
            return self.high >> (bits - 64)
        return (
            (self.high << (64 - bits)) | (self.low >> np.uint64(bits)).view(np.int64)
            if bits
            else self.low.view(np.int64)
        )

    def to_objects(self) -> NDArray[np.object_]:
        """The values as Python integers."""
        return np.asarray(self.high.astype(object) * (1 << 64) + self.low.astype(object))
