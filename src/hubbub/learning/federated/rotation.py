"""Randomness that is public on purpose (rotations, masks: both sides must draw the same), and the rotation itself."""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from hubbub.randomness.bits import Words
from hubbub.randomness.choice import permutation
from hubbub.randomness.thresholds import Integers

Floats = NDArray[np.float64]


class PublicBits:
    """Words that everybody can compute from a public seed. They hide nothing, and no noise is made of them."""

    def __init__(self, seed: bytes, purpose: str) -> None:
        self._seed, self._asked = purpose.encode() + b":" + seed, 0

    def words(self, count: int) -> Words:
        """``count`` words."""
        self._asked += 1
        data = hashlib.shake_256(self._seed + self._asked.to_bytes(8, "big")).digest(8 * count)
        return np.frombuffer(data, np.dtype("<u8")).astype(np.uint64)

    def word(self) -> int:
        """One word."""
        return int(self.words(1)[0])


def chosen(seed: bytes, length: int, size: int) -> Integers:
    """So many of ``length`` coordinates, in order: a uniform set, the same for everybody who knows the seed.

    >>> chosen(b"seed", 5, 5).tolist()
    [0, 1, 2, 3, 4]
    """
    return np.sort(permutation(length, PublicBits(seed, "mask"))[:size])


def _signs(seed: bytes, width: int) -> Floats:
    words = PublicBits(seed, "rotation").words(-(-width // 64))
    flips = np.unpackbits(words.astype("<u8").view(np.uint8))[:width]
    return np.where(flips, -1.0, 1.0)


def _hadamard(values: Floats) -> Floats:
    """The Walsh-Hadamard transform, scaled to keep lengths; its own inverse."""
    out: Floats = values.copy()
    size, half = len(out), 1
    while half < size:
        pairs = out.reshape(-1, 2, half)
        pairs[:, 0], pairs[:, 1] = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
        half *= 2
    np.divide(out, math.sqrt(size), out=out)
    return out


def rotated(values: Floats, seed: bytes, width: int) -> Floats:
    """The values, filled up with zeros to a power of two and rotated at random: no coordinate stands out."""
    padded = np.zeros(width)
    padded[: len(values)] = values
    return _hadamard(padded * _signs(seed, width))


def unrotated(values: Floats, seed: bytes, length: int) -> Floats:
    """What ``rotated`` was given."""
    return np.asarray(_hadamard(values) * _signs(seed, len(values)))[:length]
