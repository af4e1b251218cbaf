"""Comparing a lazily revealed uniform number with certified thresholds: the heart of every exact sampler.

U is a uniform real whose first 64 bits are one random word u, so U lies in [u, u+1) / 2**64. Against a number F
with L = floor(2**64 F):  u < L gives U < F,  u > L gives U > F, and only u == L leaves the question open. Then
more bits of the *same* U are drawn and F is enclosed more narrowly until it is settled. The outcome has exactly
the law of infinite precision: nothing is truncated and nothing is redrawn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.numeric.enclosure import Enclosure, exp_minus
from hubbub.randomness.bits import Bits, Words

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Fineness:
    """How finely first comparisons are made. Coarser values send more draws down the exact path; the law is the same.

    word_bits: bits of U used before the tie path. margin: relative doubt granted to floating-point exp.
    """

    word_bits: int = 64
    margin: float = 2.0**-44


FINE = Fineness()


def certain_floor(enclose: Callable[[int], Enclosure], bits: int) -> int:
    """floor(2**bits * value) but at most 2**bits - 1, from enclosures narrow enough that both ends agree."""
    guard, top = 32, (1 << bits) - 1
    while True:
        low, high = (min(end >> guard, top) for end in enclose(bits + guard))
        if low == high:
            return low
        guard *= 2


class Chance:
    """The event U < p for a fixed probability p, given by enclosures.

    >>> from hubbub.randomness.bits import SECURE
    >>> Chance.of(Fraction(1)).happens(SECURE)
    True
    """

    def __init__(self, enclose: Callable[[int], Enclosure], fineness: Fineness = FINE) -> None:
        self._enclose = enclose
        self._bits = fineness.word_bits
        self._first = certain_floor(enclose, self._bits)

    @classmethod
    def of(cls, p: Fraction, fineness: Fineness = FINE) -> Chance:
        """The event of rational probability p."""

        def enclose(bits: int) -> Enclosure:
            low, rest = divmod(p.numerator << bits, p.denominator)
            return low, low + (rest > 0)

        return cls(enclose, fineness)

    def happens(self, bits: Bits) -> bool:
        """One draw of the event."""
        return self.decide(bits.word(), bits)

    def decide(self, word: int, bits: Bits) -> bool:
        """Whether U < p, where ``word`` starts with the first word_bits bits of U."""
        prefix = word >> (64 - self._bits)
        if prefix != self._first:
            return prefix < self._first
        return settle(prefix, self._bits, self._enclose, bits)

    def happen(self, words: Words, bits: Bits) -> NDArray[np.bool_]:
        """The event for every word; the lowest 64 - word_bits bits of a word are not looked at."""
        prefixes = words >> np.uint64(64 - self._bits) if self._bits < 64 else words
        first = np.uint64(self._first)
        hits = prefixes < first
        for i in np.flatnonzero(prefixes == first):
            hits[i] = settle(self._first, self._bits, self._enclose, bits)
        return hits


def settle(prefix: int, prefix_bits: int, enclose: Callable[[int], Enclosure], bits: Bits) -> bool:
    """Whether U < p for a U with the given first bits, drawing as many more bits of U as it takes."""
    while True:
        low, high = enclose(prefix_bits + 8)
        if (prefix + 1) << 8 <= low:
            return True
        if prefix << 8 >= high:
            return False
        prefix, prefix_bits = prefix << 64 | bits.word(), prefix_bits + 64


def exp_event(exponent: Fraction, prefix: int, prefix_bits: int, bits: Bits) -> bool:
    """Whether U < e**-exponent, exactly, where ``prefix`` holds the first bits of U."""
    return settle(prefix, prefix_bits, lambda b: exp_minus(exponent, b), bits)


GUIDE_BITS = 14
GUIDE_FROM = 512
"""Fewer draws than this are looked up by plain binary search."""


class WeightTable:
    """Draws h in 0..last (or without end) with weight e**-(linear*h + quadratic*h*h), by inversion.

    Claim: the output law is exact. A single draw is one word and one binary search. In arrays all but the outermost
        0.3 % of values are one guided comparison, those are one binary search more; ties, of probability at most
        entries/2**64, take longer.
    Proof: h = min{k : U < F(k)} with F enclosed by outward-rounded sums; see the module's first lines.
    Assumes: independent uniform words.
    """

    def __init__(
        self, linear: Fraction, quadratic: Fraction, last: int | None = None, fineness: Fineness = FINE
    ) -> None:
        self._linear, self._quadratic, self._last = linear, quadratic, last
        self._bits = fineness.word_bits
        self.thresholds = self._certified_floors()
        # caches, filled without locks: a forked child must not inherit a held one, and filling twice is harmless
        self._cached_array: Words | None = None
        self._cached_guide: Integers | None = None
        self._cached_finer: tuple[list[int], list[int]] | None = None

    def __len__(self) -> int:
        return len(self.thresholds)

    def _cumulative(self, bits: int, guard: int) -> tuple[list[int], list[int]]:
        """Outward bounds on 2**bits F(k) for k = 0, 1, ... until fewer than one unit is left."""
        work = bits + guard
        one = 1 << work
        ratio_low, ratio_high = exp_minus(self._linear + self._quadratic, work)
        step_low, step_high = exp_minus(2 * self._quadratic, work)
        low = high = one
        sums_low, sums_high, total_low, total_high = [], [], 0, 0
        enough = 1 << (guard - 2)  # a quarter unit
        while True:
            total_low, total_high = total_low + low, total_high + high
            sums_low.append(total_low)
            sums_high.append(total_high)
            if len(sums_low) - 1 == self._last:
                rest_high = 0
                break
            low, high = low * ratio_low >> work, -(-high * ratio_high >> work)
            rest_high = self._rest(len(sums_low), high, one - ratio_high, work)
            if rest_high < enough:
                break
            ratio_low, ratio_high = ratio_low * step_low >> work, -(-ratio_high * step_high >> work)
        inverse_low = (1 << 2 * work) // (total_high + rest_high)
        inverse_high = -((-1 << 2 * work) // total_low)
        down = 2 * work - bits
        lows = [s * inverse_low >> down for s in sums_low]
        highs = [-(-s * inverse_high >> down) for s in sums_high]
        if len(lows) - 1 == self._last:
            lows[-1] = highs[-1] = 1 << bits
        return lows, highs

    def _rest(self, start: int, weight: int, gap: int, work: int) -> int:
        """An upper bound on the weights from ``start`` on: a geometric series, or as many equal ones as are left."""
        equal = weight * (self._last + 1 - start) if self._last is not None else None
        if gap <= 0:
            if equal is None:
                raise ArithmeticError("the weights hardly fall; a table needs a coarser cell")
            return equal
        geometric = -((-weight << work) // gap)
        return geometric if equal is None else min(geometric, equal)

    def _certified_floors(self) -> list[int]:
        """floor(2**word_bits F(k)) for each k until it stays at its largest value; certainty (F = 1) is left out."""
        guard, top = 32, (1 << self._bits) - 1
        while True:
            low, high = self._cumulative(self._bits + guard, guard + 32)
            floors: list[int] = []
            for k, (a, b) in enumerate(zip(low, high, strict=True)):
                if k == self._last:
                    return floors
                # F(k) < 1 here, so a floor of "one" is only the width of the enclosure
                a, b = min(a >> guard, top), min(b >> guard, top)
                if a != b:
                    break
                floors.append(a)
                if a == top:
                    return floors
            guard *= 2

    @property
    def _array(self) -> Words:
        """The thresholds, and one zero beyond the end that marks "look it up the long way"."""
        if self._cached_array is None:
            self._cached_array = np.array([*self.thresholds, 0], np.uint64)
        return self._cached_array

    @property
    def _guide(self) -> Integers:
        """For each value of the first bits: the entry to compare with, or a mark where several entries fall in it."""
        if self._cached_guide is None:
            self._cached_guide = self._make_guide()
        return self._cached_guide

    def _make_guide(self) -> Integers:
        buckets = min(GUIDE_BITS, self._bits)
        edges = np.arange(1 << buckets, dtype=np.uint64) << np.uint64(self._bits - buckets)
        entries = self._array[:-1]
        first = np.searchsorted(entries, edges, "left")
        following = np.append(first[1:], len(entries))
        guide = np.where(following - first > 1, len(entries), first)
        return guide.astype(np.int64)

    def look_up(self, words: Words, bits: Bits) -> Integers:
        """h for each word."""
        prefixes = words >> np.uint64(64 - self._bits) if self._bits < 64 else words
        entries = self._array
        end = len(entries) - 1
        if len(words) < GUIDE_FROM:
            found = np.searchsorted(entries[:-1], prefixes, "left")
            ties = np.flatnonzero(entries[found] == prefixes)
        else:
            shift = np.uint64(self._bits - min(GUIDE_BITS, self._bits))
            found = self._guide.take((prefixes >> shift).view(np.int64))
            near = entries.take(found)
            long_way = np.flatnonzero((found == end) | (near == prefixes))
            found += prefixes > near
            found[long_way] = np.searchsorted(entries[:-1], prefixes[long_way], "left")
            ties = long_way[entries[found[long_way]] == prefixes[long_way]]
        for i in ties:
            if found[i] < end:  # the mark beyond the end is no threshold
                found[i] = self._settle(int(prefixes[i]), bits)
        return found

    def draw(self, bits: Bits) -> int:
        """One h."""
        prefix = bits.word() >> (64 - self._bits)
        found = bisect_left(self.thresholds, prefix)
        if found < len(self.thresholds) and self.thresholds[found] == prefix:
            return self._settle(prefix, bits)
        return found

    @property
    def _finer(self) -> tuple[list[int], list[int]]:
        """The bounds that decide a first tie, kept because one more is rarely needed."""
        if self._cached_finer is None:
            self._cached_finer = self._cumulative(self._bits + 72, 64)
        return self._cached_finer

    def _settle(self, prefix: int, bits: Bits) -> int:
        """h for a U whose first bits tie with a threshold, drawing more bits of the same U."""
        known = self._bits
        while True:
            prefix, known = prefix << 64 | bits.word(), known + 64
            low, high = self._finer if known == self._bits + 64 else self._cumulative(known + 8, 64)
            found = bisect_left(low, (prefix + 1) << 8)
            if found < len(low) and (found == 0 or high[found - 1] <= prefix << 8):
                return found
