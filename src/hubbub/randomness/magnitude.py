"""Exact draws of a non-negative integer x with weight e**-(A x + C x**2): one sampler behind every noise law.

Write x = h B + o with B a power of two. Draw the high digit h with the weight of its first cell point,
e**-(A h B + C (h B)**2), from a certified table; draw the offset o uniformly from [0, B); keep the pair with
probability e**-(A o + C o (2 h B + o)), else start anew. Proposal times acceptance is the wanted weight, so kept
pairs have exactly the wanted law. With ``continuous`` the offset is a uniform *real* and x is the integer part of
a real variable of that density: the law of a rounded continuous noise. B is chosen so that the table has a few
hundred to a few thousand entries and all but about one pair in a hundred is kept.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.numeric.enclosure import Enclosure, exp_minus
from hubbub.numeric.rational import floor_log2, power_of_two
from hubbub.randomness.bits import Bits, Words
from hubbub.randomness.thresholds import FINE, Fineness, Integers, WeightTable, settle
from hubbub.randomness.wide import Wide

CELL_BITS, QUADRATIC_CELL_BITS = 5, 6
"""A cell is between 1/2**(bits+1) and 1/2**bits of the law's spread wide."""
FAR = 8
"""So many spreads out, with chance below 2**-49 for Gaussian tails, acceptance may take another path."""
INT64_BITS = 62
"""Results of more bits than this do not fit int64 with one to spare."""
WIDE_BITS = 120
"""Results of more bits than this are Python integers."""


class Magnitude:
    """The law of a non-negative integer with weight e**-(linear x + quadratic x**2), x <= last where given.

    Claim: exact output law. Work per trial is three words, one table look-up and, for a share of trials that does not
        depend on the value (unless it is beyond 8 spreads, chance below 2**-49), one floating-point exp; rejected
        trials are independent of the value kept; the exact path is entered with probability below 2**-40 per draw.
    Proof: module text; the acceptance is decided by 1 - e <= e**-e (exact integers), else by floating-point exp
        with relative doubt ``margin``, else by enclosures and further bits of the same uniforms.
    Assumes: independent uniform words; numpy's exp within 2**-45 of the truth (tested).
    """

    def __init__(
        self,
        linear: Fraction,
        quadratic: Fraction,
        *,
        last: int | None = None,
        continuous: bool = False,
        fineness: Fineness = FINE,
    ) -> None:
        self._linear, self._quadratic, self._last = linear, quadratic, last
        self._continuous, self._margin = continuous, fineness.margin
        spreads = [floor_log2(1 / linear)] if linear else []
        if quadratic:
            spreads.append(floor_log2(1 / (2 * quadratic)) // 2)
        if last is not None:
            spreads.append(floor_log2(Fraction(last + 1)))
        exponent = min(spreads) - (QUADRATIC_CELL_BITS if quadratic else CELL_BITS)
        self._shift = exponent if continuous else max(0, exponent)
        self._cell = power_of_two(self._shift)
        alpha, beta = linear * self._cell, quadratic * self._cell**2
        self._table = WeightTable(alpha, beta, None if last is None else last >> self._shift, fineness)
        self._always = not continuous and self._shift == 0
        # 1 - (largest exponent in any cell up to far), in units of 2**-64, rounded down: below it a pair is kept
        self._far = math.isqrt(math.ceil(FAR**2 / (2 * beta))) if beta else 1 << INT64_BITS
        most = alpha + beta * (2 * self._far + 1) if beta else alpha
        self._sure = max(0, 2**64 - 1 - math.ceil(most * 2**64))
        self._floats = float(linear), float(quadratic), float(self._cell)
        length = self._shift + len(self._table).bit_length()
        self.is_int64, self.is_wide = length <= INT64_BITS, INT64_BITS < length <= WIDE_BITS

    def sample(self, size: int, bits: Bits) -> Integers:
        """``size`` independent draws as int64; only where ``is_int64``."""
        high = self._table.look_up(bits.words(size), bits)
        if self._always:
            return high
        offsets, uniforms = bits.words(size), bits.words(size)
        doubtful = np.flatnonzero((uniforms >= np.uint64(self._sure)) | (high > self._far))
        kept = self._keep(high[doubtful], offsets[doubtful], uniforms[doubtful], bits)
        values = self._values(high, offsets)
        again = doubtful[~kept]
        if self._last is not None:
            again = np.union1d(again, np.flatnonzero(values > self._last))
        if len(again):
            values[again] = self.sample(len(again), bits)
        return values

    def sample_wide(self, size: int, bits: Bits) -> Wide:
        """``size`` independent draws of up to 120 bits; only where ``is_wide``."""
        high = self._table.look_up(bits.words(size), bits)
        offsets, more, uniforms = bits.words(size), bits.words(size), bits.words(size)
        doubtful = np.flatnonzero((uniforms >= np.uint64(self._sure)) | (high > self._far))
        kept = self._keep(high[doubtful], offsets[doubtful], uniforms[doubtful], bits, more[doubtful])
        if len(high) and int(high.max()).bit_length() + self._shift > WIDE_BITS + 5:  # chance below 2**-180, and loud
            raise OverflowError("a draw left the 128-bit integers; draw it singly to get a Python int")
        values = self._wide_values(high, offsets, more)
        again = doubtful[~kept]
        if self._last is not None:
            again = np.union1d(again, np.flatnonzero(values.exceeds(self._last)))
        if len(again):
            values[again] = self.sample_wide(len(again), bits)
        return values

    def _wide_values(self, high: Integers, offsets: Words, more: Words) -> Wide:
        above = self._shift - 64  # bits of the offset that reach into the high word
        if above < 0:
            low = (high << self._shift).view(np.uint64) | (offsets >> np.uint64(-above))
            return Wide(high >> -above, low)
        if above == 0:
            return Wide(high, offsets)
        low = (offsets << np.uint64(above)) | (more >> np.uint64(64 - above))
        return Wide((high << above) + (offsets >> np.uint64(64 - above)).view(np.int64), low)

    def draw(self, bits: Bits) -> int:
        """One draw, as a Python int of any size."""
        while True:
            high = self._table.draw(bits)
            if self._always:
                return high
            offset, known, uniform = bits.word(), 64, bits.word()
            while known < self._shift:
                offset, known = offset << 64 | bits.word(), known + 64
            if (uniform < self._sure and high <= self._far) or self._keeps_one(high, offset, known, uniform, bits):
                value = self._value(high, offset, known)
                if self._last is None or value <= self._last:
                    return value

    def _values(self, high: Integers, offsets: Words) -> Integers:
        if self._shift <= 0:
            return high >> min(-self._shift, 63)
        if len(high) and int(high.max()).bit_length() + self._shift > INT64_BITS:  # chance below 2**-180, and loud
            raise OverflowError("a draw left the 64-bit integers; draw it singly to get a Python int")
        return (high << self._shift) + (offsets >> np.uint64(64 - self._shift)).view(np.int64)

    def _value(self, high: int, offset: int, known: int) -> int:
        if self._shift <= 0:
            return high >> -self._shift
        return (high << self._shift) + (offset >> (known - self._shift))

    def _keep(
        self, high: Integers, offsets: Words, uniforms: Words, bits: Bits, more: Words | None = None
    ) -> NDArray[np.bool_]:
        """Which of these pairs are kept: by floating point with margin, then exactly where that leaves doubt.

        ``offsets`` hold the first 64 bits of each offset, ``more`` the next 64.
        """
        linear, quadratic, cell = self._floats
        unused = np.uint64(0 if self._continuous else max(0, 64 - self._shift))
        whole = offsets >> unused << unused
        offset = whole * (cell * 2.0**-64)
        exponent = linear * offset + quadratic * offset * (2 * cell * high + offset)
        chance = np.exp(-exponent)
        uniform = uniforms * 2.0**-64
        kept: NDArray[np.bool_] = uniform < chance
        for i in np.flatnonzero(np.abs(uniform - chance) <= self._margin * chance + 2.0**-63):
            offset_bits, known = (int(offsets[i]), 64) if more is None else (int(offsets[i]) << 64 | int(more[i]), 128)
            kept[i] = self._keeps(int(high[i]), offset_bits, known, int(uniforms[i]), bits)
        return kept

    def _keeps_one(self, high: int, offset: int, known: int, uniform: int, bits: Bits) -> bool:
        """As ``_keep``, for one pair."""
        linear, quadratic, cell = self._floats
        whole = offset if self._continuous else offset >> (known - self._shift) << (known - self._shift)
        place = whole / (1 << known) * cell
        chance = math.exp(-min(linear * place + quadratic * place * (2 * cell * high + place), 700.0))
        distance = uniform * 2.0**-64 - chance
        if abs(distance) > self._margin * chance + 2.0**-63:
            return distance < 0
        return self._keeps(high, offset, known, uniform, bits)

    def _keeps(self, high: int, offset: int, known: int, uniform: int, bits: Bits) -> bool:
        """Whether one pair is kept, exactly: U < e**-(A o + C o (2 h B + o)), more bits of U and o as needed."""
        start = high * self._cell
        if not self._continuous:
            steps = Fraction(offset >> (known - self._shift))
            exponent = self._linear * steps + self._quadratic * steps * (2 * start + steps)
            return settle(uniform, 64, lambda b: exp_minus(exponent, b), bits)
        offset_bits = known
        revealed = offset

        def enclose(b: int) -> Enclosure:
            """Encloses the acceptance of a real offset, revealing its bits as far as b asks."""
            nonlocal revealed, offset_bits
            while offset_bits < b:
                revealed, offset_bits = revealed << 64 | bits.word(), offset_bits + 64
            ends = [Fraction(revealed + i, 1 << offset_bits) * self._cell for i in (0, 1)]
            least, most = (self._linear * o + self._quadratic * o * (2 * start + o) for o in ends)
            return exp_minus(most, b)[0], exp_minus(least, b)[1]

        return settle(uniform, 64, enclose, bits)
