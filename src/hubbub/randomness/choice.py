"""Exact draws from finite sets: events, uniform integers, permutations, choices by whole or exponential weight."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.numeric.enclosure import exp_minus
from hubbub.numeric.rational import count, positive, rational
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.laws import Floats, Geometric
from hubbub.randomness.thresholds import FINE, Chance, Fineness, Integers, exp_event

Events = NDArray[np.bool_]

BLOCK = 1024
"""Weights added up at a time, which keeps the rounding error of long sums small."""


@dataclass(frozen=True)
class Bernoulli:
    """True with rational probability p.

    >>> Bernoulli(0).draw(), Bernoulli(1).draw()
    (False, True)
    """

    p: Fraction
    fineness: Fineness = field(default=FINE, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", rational("p", self.p))
        if not 0 <= self.p <= 1:
            raise ParameterError("p", self.p, "must lie between 0 and 1")

    def sample(self, size: int, bits: Bits = SECURE) -> Events:
        """``size`` independent events."""
        return _rational_chance(self.p, self.fineness).happen(bits.words(size), bits)

    def draw(self, bits: Bits = SECURE) -> bool:
        """One event."""
        return _rational_chance(self.p, self.fineness).happens(bits)


@dataclass(frozen=True)
class BernoulliExp:
    """True with probability e**-exponent, exponent a rational >= 0.

    >>> BernoulliExp(0).draw()
    True
    """

    exponent: Fraction
    fineness: Fineness = field(default=FINE, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", rational("exponent", self.exponent))
        if self.exponent < 0:
            raise ParameterError("exponent", self.exponent, "must be >= 0")

    def sample(self, size: int, bits: Bits = SECURE) -> Events:
        """``size`` independent events."""
        return _exp_chance(self.exponent, self.fineness).happen(bits.words(size), bits)

    def draw(self, bits: Bits = SECURE) -> bool:
        """One event."""
        return _exp_chance(self.exponent, self.fineness).happens(bits)


@lru_cache(maxsize=256)
def _rational_chance(p: Fraction, fineness: Fineness) -> Chance:
    return Chance.of(p, fineness)


@lru_cache(maxsize=256)
def _exp_chance(exponent: Fraction, fineness: Fineness) -> Chance:
    return Chance(lambda bits: exp_minus(exponent, bits), fineness)


@dataclass(frozen=True)
class GridExponential:
    """An exponential variable of the given scale, rounded down to a multiple of ``spacing``; drawn as that multiple.

    ``sample`` returns the integers k of the values k * spacing, so nothing is rounded twice.

    >>> GridExponential(scale=Fraction(3), spacing=Fraction(1, 4)).steps
    Geometric(scale=Fraction(12, 1))
    """

    scale: Fraction
    spacing: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale))
        object.__setattr__(self, "spacing", positive("spacing", self.spacing))

    @property
    def steps(self) -> Geometric:
        """The law of the number of grid steps."""
        return Geometric(self.scale / self.spacing)

    def sample(self, size: int, bits: Bits = SECURE) -> Integers | NDArray[np.object_]:
        """``size`` draws, in grid steps."""
        return self.steps.sample(size, bits)

    def draw(self, bits: Bits = SECURE) -> int:
        """One draw, in grid steps."""
        return self.steps.draw(bits)


def uniform_below(bound: int, size: int, bits: Bits = SECURE) -> Integers:
    """``size`` uniform integers in 0..bound-1, for bound up to 2**63: as many bits as bound needs, redrawn if too
    large.

    >>> uniform_below(1, 3).tolist()
    [0, 0, 0]
    """
    bound = count("bound", bound)
    if bound > 1 << 63:
        raise ParameterError("bound", bound, "must be at most 2**63 for arrays", "use draw_below for larger bounds")
    if bound == 1:
        return np.zeros(size, np.int64)
    shift = np.uint64(64 - (bound - 1).bit_length())
    values = bits.words(size) >> shift
    while len(again := np.flatnonzero(values >= np.uint64(bound))):
        values[again] = bits.words(len(again)) >> shift
    return values.view(np.int64)


def draw_below(bound: int, bits: Bits = SECURE) -> int:
    """One uniform integer in 0..bound-1, for any bound."""
    length = (count("bound", bound) - 1).bit_length()
    while True:
        value = 0
        for _ in range(-(-length // 64)):
            value = value << 64 | bits.word()
        value >>= -length % 64
        if value < bound:
            return value


def permutation(size: int, bits: Bits = SECURE) -> Integers:
    """A uniform permutation of 0..size-1: the order of independent words, all redrawn should two be equal.

    >>> sorted(permutation(4).tolist())
    [0, 1, 2, 3]
    """
    while True:
        words = bits.words(size)
        order = np.argsort(words, kind="stable")
        in_order = words[order]
        if not np.any(in_order[1:] == in_order[:-1]):
            return order


def weighted_choice(weights: Sequence[int], bits: Bits = SECURE) -> int:
    """An index drawn with probability proportional to whole, non-negative weights of any size.

    >>> weighted_choice([0, 5, 0])
    1
    """
    sums = list(accumulate(count("weight", w, least=0) for w in weights))
    if not sums or sums[-1] == 0:
        raise ParameterError("weights", list(weights), "must hold at least one positive weight")
    return bisect_right(sums, draw_below(sums[-1], bits))


def exp_events(exponents: Floats, exact: Callable[[int], Fraction], bits: Bits, margin: float = FINE.margin) -> Events:
    """Independent events of probability e**-exponents[i], i = 0, 1, ...

    ``exact(i)`` is the true exponent, of which ``exponents[i]`` must be a floating-point value with relative error
    at most 2**-50. Decided in floating point where that is certain, else exactly.
    """
    words = bits.words(len(exponents))
    uniform = words * 2.0**-64
    chance = np.exp(-exponents)
    events: Events = uniform < chance
    doubt = margin * chance * (1 + np.minimum(exponents, 1e6)) + 2.0**-63
    for i in np.flatnonzero(np.abs(uniform - chance) <= doubt):
        events[i] = exp_event(exact(int(i)), int(words[i]), 64, bits)
    return events


def exp_choice(
    exponents: Floats,
    exact: Callable[[int], Fraction],
    bits: Bits,
    copies: Integers | None = None,
    margin: float = FINE.margin,
) -> int:
    """An index drawn with probability proportional to copies[i] * e**-exponents[i], exactly.

    ``exponents`` are >= 0 with relative error at most 2**-50 against ``exact``. ``copies`` (all ones unless given)
    are whole numbers below 2**53. One uniform number is compared with the running sums in floating point; where it
    falls within the sums' error bound of an edge, the sums are enclosed in integers and more bits of the same number
    are drawn.
    """
    size = len(exponents)
    weights = np.exp(-exponents)
    if copies is not None:
        weights *= copies
    blocks = -(-size // BLOCK)
    padded = np.zeros(blocks * BLOCK)
    padded[:size] = weights
    by_block = padded.reshape(blocks, BLOCK)
    block_ends = np.cumsum(by_block.sum(axis=1))
    total = block_ends[-1]
    doubt = margin * float(np.sum(weights * (1 + np.minimum(exponents, 1e6)))) + total * (blocks + 2 * BLOCK) * 2.0**-52
    word = bits.word()
    target = word * 2.0**-64 * total
    block = min(int(np.searchsorted(block_ends, target, "right")), blocks - 1)
    ends = np.cumsum(by_block[block]) + (block_ends[block - 1] if block else 0.0)
    place = int(np.searchsorted(ends, target, "right"))
    found = block * BLOCK + place
    if place < BLOCK and found < size and total > 2.0**-900:
        start = ends[place - 1] if place else (block_ends[block - 1] if block else -np.inf)
        if target - start > doubt and ends[place] - target > doubt:
            return found
    return _exp_choice_exactly(size, exact, copies, word, bits)


def _exp_choice_exactly(
    size: int, exact: Callable[[int], Fraction], copies: Integers | None, prefix: int, bits: Bits
) -> int:
    """The choice for a U whose first 64 bits are ``prefix``, with every weight enclosed in integers."""
    factors = [1] * size if copies is None else [int(c) for c in copies]
    least = min(exact(i) for i in range(size) if factors[i])
    known = 64
    while True:
        parts = [exp_minus(exact(i) - least, known + 32) if factors[i] else (0, 0) for i in range(size)]
        low = list(accumulate(f * p[0] for f, p in zip(factors, parts, strict=True)))
        high = list(accumulate(f * p[1] for f, p in zip(factors, parts, strict=True)))
        # U < C[i]/T for certain, and U >= C[i-1]/T for certain
        found = next((i for i in range(size) if (prefix + 1) * high[-1] <= low[i] << known), size - 1)
        after_previous = found == 0 or prefix * low[-1] >= high[found - 1] << known
        if after_previous and factors[found]:
            return found
        prefix, known = prefix << 64 | bits.word(), known + 64
