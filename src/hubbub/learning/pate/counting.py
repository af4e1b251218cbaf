"""The two noisy looks at votes: which class has most, and whether the most are enough. Integers in, exact noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import DataTypeError
from hubbub.mechanisms.lattice import is_integer
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.rational import Number, float_down, float_up, positive, rational
from hubbub.privacy.families import GaussianDP
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours, nudged_up
from hubbub.randomness.bits import Bits
from hubbub.randomness.gaussian import RoundedGaussian


def whole_votes(value: Any) -> list[int]:
    """The counts as Python integers; anything else is refused by its type alone."""
    votes = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(votes, list | tuple) or len(votes) < 2 or not all(is_integer(n) for n in votes):
        raise DataTypeError("votes must be a list of integers, one for each of at least two classes")
    return [int(n) for n in votes]


@dataclass(frozen=True, init=False)
class MostVotes(Mechanism):
    """The place of the class with most votes, after Gaussian noise of standard deviation ``sigma`` on every count.

    Claim: GaussianDP(sqrt(2)/sigma) for each release, rounded up.
    Proof: one person changes one teacher, whose vote leaves one class and joins another: the counts move by at most
        sqrt(2) in Euclidean length (BW18, Theorem 8). Rounding the noise and taking the largest, the first among
        equals, are post-processing.
    Assumes: one person changes at most one teacher's vote.

    >>> MostVotes(sigma=40).release([3, 2000, 5])
    1
    """

    sigma: float
    neighbours: Neighbours
    _law: RoundedGaussian = field(init=False, repr=False)
    _mu: float = field(init=False, repr=False, compare=False)

    def __init__(self, sigma: Number, *, neighbours: Neighbours = "add-remove") -> None:
        width = positive("sigma", sigma)
        self._fill(
            sigma=float(width),
            neighbours=check_neighbours(neighbours),
            _law=RoundedGaussian(width),
            _mu=nudged_up(math.sqrt(2) / float_down(width)),
        )

    @property
    def loss(self) -> Loss:
        return GaussianDP(self._mu, neighbours=self.neighbours)

    def _release(self, value: Any, bits: Bits) -> int:
        votes = whole_votes(value)
        noisy = [n + self._law.draw(bits) for n in votes]
        return noisy.index(max(noisy))

    def apart(self, value: Any, neighbour: Any) -> float:
        one, other = whole_votes(value), whole_votes(neighbour)
        if len(one) != len(other):
            return math.inf
        return math.sqrt(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / 2)


@dataclass(frozen=True, init=False)
class EnoughVotes(Mechanism):
    """Whether the largest count, after Gaussian noise of standard deviation ``sigma``, is at least ``threshold``.

    Claim: GaussianDP(1/sigma) for each release, rounded up.
    Proof: one person changes one teacher, whose vote leaves one class and joins another: every count, hence the
        largest, moves by at most 1 (BW18, Theorem 8); comparing the rounded sum is post-processing.
    Assumes: one person changes at most one teacher's vote.

    >>> EnoughVotes(200, sigma=5).release([3, 2000, 5])
    True
    """

    threshold: float
    sigma: float
    neighbours: Neighbours
    _least: Fraction = field(init=False, repr=False)
    _law: RoundedGaussian = field(init=False, repr=False)
    _mu: float = field(init=False, repr=False, compare=False)

    def __init__(self, threshold: Number, *, sigma: Number, neighbours: Neighbours = "add-remove") -> None:
        width, least = positive("sigma", sigma), rational("threshold", threshold)
        self._fill(
            threshold=float(least),
            sigma=float(width),
            neighbours=check_neighbours(neighbours),
            _least=least,
            _law=RoundedGaussian(width),
            _mu=float_up(1 / width),
        )

    @property
    def loss(self) -> Loss:
        return GaussianDP(self._mu, neighbours=self.neighbours)

    def _release(self, value: Any, bits: Bits) -> bool:
        return max(whole_votes(value)) + self._law.draw(bits) >= self._least

    def apart(self, value: Any, neighbour: Any) -> float:
        one, other = whole_votes(value), whole_votes(neighbour)
        if len(one) != len(other):
            return math.inf
        return float(max(abs(a - b) for a, b in zip(one, other, strict=True)))

    def chance(self, most: int | NDArray[np.int64]) -> NDArray[np.float64]:
        """The probability that so many votes are found to be enough: private if the votes are."""
        return self._law.tail(math.ceil(self._least) - np.asarray(most, np.float64))
