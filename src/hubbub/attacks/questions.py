"""Counting questions: each asks how many of a subset of people have the bit. Subsets are public."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.attacks.coins import coins
from hubbub.attacks.demands import whole
from hubbub.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from scipy.sparse import csc_array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

BYTE_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.float64)
"""The eight bits of every byte, lowest first."""
MOST_LISTED = 24
"""With more people than this, all subsets are too many to list."""
MOST_NUMBERED = 62
"""With more people than this, a subset has no 64-bit number."""


class Questions(ABC):
    """Subsets of people, one a question."""

    people: int

    @abstractmethod
    def __len__(self) -> int:
        """How many questions there are."""

    @abstractmethod
    def dot(self, values: Floats) -> Floats:
        """For every question, the sum of its people's values."""

    @abstractmethod
    def dot_transposed(self, weights: Floats) -> Floats:
        """For every person, the sum of the weights of the questions that count them."""

    @abstractmethod
    def matrix(self) -> csc_array[np.float64]:
        """One row a question, one column a person."""

    @abstractmethod
    def numbers(self) -> Integers:
        """For every question, the sum of 2**i over the people i it counts."""

    @abstractmethod
    def only(self, keep: NDArray[np.bool_]) -> Questions:
        """The questions kept, in order."""

    def counts(self, bits: Integers) -> Integers:
        """The exact answers."""
        if len(bits) != self.people:
            raise ParameterError("people", self.people, "are asked about", "the secret must have a bit for each")
        return np.rint(self.dot(bits.astype(np.float64))).astype(np.int64)

    @cached_property
    def overlap(self) -> int:
        """The most questions any one person is counted in: by so much, in sum, one bit moves all answers together."""
        return int(self.dot_transposed(np.ones(len(self))).max(initial=0))

    @cached_property
    def holds_every_subset(self) -> bool:
        """Whether every subset of one or more people is asked about."""
        if self.people > MOST_LISTED or len(self) < 2**self.people - 1:
            return False
        asked = np.zeros(2**self.people, bool)
        asked[self.numbers()] = True
        return bool(asked[1:].all())


class PackedQuestions(Questions):
    """Questions as bits, eight people to a byte: ``packed[j, q]`` has the people 8j to 8j + 7 of question q.

    Products go byte by byte through tables of 256 partial sums, so a question costs an eighth of a look-up a person and
    the matrix is never unpacked.
    """

    packed: Bytes

    def __len__(self) -> int:
        return int(self.packed.shape[1])

    def dot(self, values: Floats) -> Floats:
        padded = np.zeros(8 * len(self.packed))
        padded[: self.people] = values
        tables = padded.reshape(-1, 8) @ BYTE_BITS.T
        sums = np.zeros(len(self))
        for table, column in zip(tables, self.packed, strict=True):
            sums += table.take(column)
        return sums

    def dot_transposed(self, weights: Floats) -> Floats:
        byte_sums = np.empty((len(self.packed), 256))
        for sums, column in zip(byte_sums, self.packed, strict=True):
            sums[:] = np.bincount(column, weights, 256)
        return (byte_sums @ BYTE_BITS).reshape(-1)[: self.people]

    def matrix(self) -> csc_array[np.float64]:
        from scipy.sparse import csc_array

        bits = np.unpackbits(self.packed, axis=0, count=self.people, bitorder="little")
        return csc_array(csc_array(bits.T), dtype=np.float64)

    def numbers(self) -> Integers:
        _check_numbered(self.people)
        numbers = np.zeros(len(self), np.int64)
        for place, column in enumerate(self.packed):
            numbers |= column.astype(np.int64) << (8 * place)
        return numbers

    def only(self, keep: NDArray[np.bool_]) -> Questions:
        return GivenSubsets(np.ascontiguousarray(self.packed[:, keep]), self.people)


@dataclass(frozen=True, eq=False)
class GivenSubsets(PackedQuestions):
    """Questions given as bits."""

    packed: Bytes
    people: int


@dataclass(frozen=True)
class RandomSubsets(PackedQuestions):
    """Independent uniformly random subsets, from a public seed: each person is in each with probability 1/2.

    >>> RandomSubsets(count=4, people=3, seed=1).matrix().toarray().astype(int).tolist()
    [[1, 1, 1], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """

    count: int
    people: int
    seed: int = 0

    def __post_init__(self) -> None:
        whole("count", self.count, 1)
        whole("people", self.people, 1)
        whole("seed", self.seed, 0)

    @cached_property
    def packed(self) -> Bytes:  # type: ignore[override]
        width = -(-self.people // 8)
        drawn = np.frombuffer(coins(self.seed).bytes(width * self.count), np.uint8).reshape(width, self.count).copy()
        drawn[-1] &= 0xFF >> (8 * width - self.people)
        return drawn


@dataclass(frozen=True)
class AllSubsets(PackedQuestions):
    """Every subset, the empty one first: question q counts person i if bit i of q is set."""

    people: int

    def __post_init__(self) -> None:
        whole("people", self.people, 1)
        if self.people > MOST_LISTED:
            raise ParameterError("people", self.people, f"must be at most {MOST_LISTED} to list all subsets of them")

    @cached_property
    def packed(self) -> Bytes:  # type: ignore[override]
        shifts = range(0, self.people, 8)
        return np.stack([(self.numbers() >> shift).astype(np.uint8) for shift in shifts])

    def __len__(self) -> int:
        return int(2**self.people)

    def numbers(self) -> Integers:
        return np.arange(2**self.people, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SparseSubsets(Questions):
    """Questions about few people each, as a sparse matrix."""

    given: csc_array[np.float64]

    @property
    def people(self) -> int:  # type: ignore[override]
        return int(self.given.shape[1])

    def __len__(self) -> int:
        return int(self.given.shape[0])

    def dot(self, values: Floats) -> Floats:
        return np.asarray(self.given @ values)

    def dot_transposed(self, weights: Floats) -> Floats:
        return np.asarray(self.given.T @ weights)

    def matrix(self) -> csc_array[np.float64]:
        return self.given

    def numbers(self) -> Integers:
        _check_numbered(self.people)
        return np.asarray(self.given.astype(np.int64) @ (1 << np.arange(self.people)))

    def only(self, keep: NDArray[np.bool_]) -> Questions:
        return SparseSubsets(self.given.tocsr()[np.flatnonzero(keep)].tocsc())


def questions(queries: Questions | ArrayLike | Any) -> Questions:
    """Questions from questions, from a 0/1 matrix with a row a question, or from a scipy sparse matrix of that kind.

    >>> questions([[1, 0, 1], [0, 1, 1]]).counts(np.array([1, 1, 0])).tolist()
    [1, 1]
    """
    if isinstance(queries, Questions):
        return queries
    if hasattr(queries, "tocsc"):
        return _sparse(queries)
    try:
        matrix = np.asarray(queries)
        fits = matrix.ndim == 2 and matrix.size > 0 and bool(np.isin(matrix, (0, 1)).all())
    except (TypeError, ValueError):
        fits = False
    if not fits:
        shape = getattr(queries, "shape", type(queries).__name__)
        raise ParameterTypeError("queries", shape, "must be a 0/1 matrix, a row a question and a column a person")
    packed = np.packbits(matrix.astype(bool), axis=1, bitorder="little")
    return GivenSubsets(np.ascontiguousarray(packed.T), matrix.shape[1])


def _sparse(queries: Any) -> SparseSubsets:
    from scipy.sparse import csc_array

    matrix = csc_array(queries, dtype=np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not (matrix.ndim == 2 and min(matrix.shape) > 0 and bool((matrix.data == 1).all())):
        raise ParameterTypeError(
            "queries", matrix.shape, "must be a 0/1 matrix, a row a question and a column a person"
        )
    return SparseSubsets(matrix)


def _check_numbered(people: int) -> None:
    if people > MOST_NUMBERED:
        raise ParameterError("people", people, f"must be at most {MOST_NUMBERED} for subsets to have numbers")
