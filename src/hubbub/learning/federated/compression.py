"""Fewer bits for an update: a public part of its coordinates, their signs, or the largest."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from hubbub.errors import ParameterError
from hubbub.learning.federated.rotation import Floats, chosen
from hubbub.numeric.rational import rational


class Compression(ABC):
    """What a vector becomes before it is sent. ``public``: which coordinates are sent does not depend on data."""

    public: ClassVar[bool]

    @abstractmethod
    def pack(self, vector: Floats, seed: bytes) -> bytes:
        """The vector in few bytes."""

    @abstractmethod
    def unpack(self, data: bytes, length: int, seed: bytes) -> Floats:
        """A vector like the one that was packed. Raises ValueError for what cannot have been packed."""


def _size(share: float, length: int) -> int:
    return max(1, math.ceil(Fraction(rational("share", share)) * length))


def _check(share: float) -> None:
    if not 0 < rational("share", share) <= 1:
        raise ParameterError("share", share, "must lie in (0, 1]", "it is the part of the coordinates that is sent")


@dataclass(frozen=True)
class Whole(Compression):
    """Every coordinate, as a 32-bit float."""

    public = True

    def pack(self, vector: Floats, seed: bytes) -> bytes:  # noqa: ARG002
        with np.errstate(over="ignore"):
            return vector.astype("<f4").tobytes()

    def unpack(self, data: bytes, length: int, seed: bytes) -> Floats:  # noqa: ARG002
        return _floats(data, length)


@dataclass(frozen=True)
class Mask(Compression):
    """A public random part of the coordinates, drawn afresh every round, as 32-bit floats; all others count as 0.

    >>> Mask(0.5).unpack(Mask(0.5).pack(np.ones(4), b"seed"), 4, b"seed").sum()
    np.float64(2.0)
    """

    share: float
    public = True

    def __post_init__(self) -> None:
        _check(self.share)

    def pack(self, vector: Floats, seed: bytes) -> bytes:
        return Whole().pack(vector[chosen(seed, len(vector), _size(self.share, len(vector)))], seed)

    def unpack(self, data: bytes, length: int, seed: bytes) -> Floats:
        return _spread(_floats(data, _size(self.share, length)), length, seed)


@dataclass(frozen=True)
class Signs(Compression):
    """One bit for each of a public random part of the coordinates: whether it is negative. So many signs have length
    sqrt(their number), which the clip norm then scales: their sensitivity is the clip norm's, like any vector's.
    """

    share: float = 1.0
    public = True

    def __post_init__(self) -> None:
        _check(self.share)

    def pack(self, vector: Floats, seed: bytes) -> bytes:
        part = vector[chosen(seed, len(vector), _size(self.share, len(vector)))]
        return np.packbits(part < 0).tobytes()

    def unpack(self, data: bytes, length: int, seed: bytes) -> Floats:
        size = _size(self.share, length)
        if len(data) != -(-size // 8):
            raise ValueError("length")
        bits = np.unpackbits(np.frombuffer(data, np.uint8))[:size]
        return _spread(np.where(bits, -1.0, 1.0) / math.sqrt(size), length, seed)


@dataclass(frozen=True)
class Top(Compression):
    """The largest coordinates, with where they are, as 32-bit floats. Which they are depends on the data: only behind
    the noise, or before a trusted server that adds noise to every coordinate.
    """

    share: float
    public = False

    def __post_init__(self) -> None:
        _check(self.share)

    def pack(self, vector: Floats, seed: bytes) -> bytes:
        size = _size(self.share, len(vector))
        places = np.sort(np.argpartition(-np.abs(vector), size - 1)[:size])
        return places.astype("<u4").tobytes() + Whole().pack(vector[places], seed)

    def unpack(self, data: bytes, length: int, seed: bytes) -> Floats:  # noqa: ARG002
        size = _size(self.share, length)
        places = np.frombuffer(data[: 4 * size], "<u4")
        values = _floats(data[4 * size :], size)
        if len(places) != size or (places >= length).any():
            raise ValueError("places")
        out = np.zeros(length)
        out[places] = values
        return out


def _floats(data: bytes, size: int) -> Floats:
    if len(data) != 4 * size:
        raise ValueError("length")
    return np.frombuffer(data, "<f4").astype(np.float64)


def _spread(values: Floats, length: int, seed: bytes) -> Floats:
    out = np.zeros(length)
    out[chosen(seed, length, len(values))] = values
    return out
