"""Inversion against high-precision arithmetic, word by word, at the table's edges and on its ties."""

from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import mpmath
import numpy as np
import pytest
from support import ScriptedBits, SeededBits

from hubbub.randomness.magnitude import Magnitude
from hubbub.randomness.thresholds import FINE, Chance, Fineness, WeightTable

mpmath.mp.prec = 500

TABLES = [
    (Fraction(1, 3), Fraction(0), None),
    (Fraction(0), Fraction(1, 50), None),
    (Fraction(1, 8), Fraction(1, 100), None),
    (Fraction(1, 5), Fraction(0), 6),
    (Fraction(1, 5), Fraction(0), 0),
    (Fraction(3), Fraction(2), 500),
]


@lru_cache
def running_sums(linear: Fraction, quadratic: Fraction, last: int | None) -> list[mpmath.mpf]:
    a, c = (mpmath.mpf(x.numerator) / x.denominator for x in (linear, quadratic))
    weights = (mpmath.exp(-(a * k + c * k * k)) for k in range(2500 if last is None else last + 1))
    return list(accumulate(weights))


def inverse(linear: Fraction, quadratic: Fraction, last: int | None, u: Fraction) -> int:
    """min{k : u < F(k)}, by mpmath."""
    sums = running_sums(linear, quadratic, last)
    return bisect_right(sums, mpmath.mpf(u.numerator) / u.denominator * sums[-1])


@pytest.mark.parametrize(("linear", "quadratic", "last"), TABLES)
@pytest.mark.parametrize("word_bits", [8, 63, 64])
def test_ties_and_edges_are_inverted_exactly(linear, quadratic, last, word_bits) -> None:
    table = WeightTable(linear, quadratic, last, Fineness(word_bits))
    edges = {0, (1 << word_bits) - 1}
    for threshold in table.thresholds[:40]:
        edges |= {max(0, threshold - 1), threshold, min(threshold + 1, (1 << word_bits) - 1)}
    for prefix in sorted(edges):
        for more in (0, 2**63, 2**64 - 2):
            u = Fraction((prefix << 64) + more, 1 << (word_bits + 64)) + Fraction(1, 1 << (word_bits + 67))
            words = [prefix << (64 - word_bits), more, 1 << 61]
            expected = inverse(linear, quadratic, last, u)
            assert table.draw(ScriptedBits(words)) == expected
            one = np.array(words[:1], np.uint64)
            assert table.look_up(one, ScriptedBits(words[1:]))[0] == expected
            many = np.repeat(one, 600)  # the guided look-up
            assert table.look_up(many, ScriptedBits(words[1:] * 600))[0] == expected


@pytest.mark.parametrize(("linear", "quadratic", "last"), TABLES)
def test_guided_and_plain_look_ups_agree(linear, quadratic, last) -> None:
    table = WeightTable(linear, quadratic, last)
    words = SeededBits(1).words(20_000)
    guided = table.look_up(words, SeededBits(2))
    plain = np.concatenate([table.look_up(piece, SeededBits(2)) for piece in np.split(words, 100)])
    assert np.array_equal(guided, plain)


@pytest.mark.parametrize(
    "p", [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(3, 8), Fraction(1, 3), Fraction(2, 10**25)]
)
def test_chance_of_a_rational(p: Fraction) -> None:
    event = Chance.of(p)
    first = min(int(p * 2**64), 2**64 - 1)
    for prefix in {0, first, max(0, first - 1), min(first + 1, 2**64 - 1), 2**64 - 1}:
        for more in (0, 2**63, 2**64 - 1):
            truth = Fraction((prefix << 64) + more, 1 << 128) < p
            exactly_on = Fraction((prefix << 64) + more, 1 << 128) <= p < Fraction((prefix << 64) + more + 1, 1 << 128)
            if exactly_on and (p * 2**128).denominator > 1:
                continue  # would need a third word
            assert event.decide(prefix, ScriptedBits([more])) == truth
            assert event.happen(np.array([prefix], np.uint64), ScriptedBits([more]))[0] == truth


@pytest.mark.parametrize("continuous", [False, True])
def test_acceptance_is_exact(continuous: bool) -> None:
    """The exact decision against mpmath, for uniforms a hair below and above the true chance."""
    rate = Fraction(1, 2 * 1000**2)
    law = Magnitude(rate, rate, continuous=continuous)
    cell = float(law._cell)
    for high in (0, 5, 200, 900):
        for offset in (0, 2**62, 2**64 - 1):
            o = mpmath.mpf(offset) / 2**64 * cell if continuous else mpmath.mpf(offset >> (64 - law._shift))
            exponent = mpmath.mpf(rate.numerator) / rate.denominator * (o + o * (2 * high * cell + o))
            chance = mpmath.exp(-exponent)
            word = int(chance * 2**64)
            for near, truth in ((word - 3, True), (word + 3, False)):
                if 0 <= near < 2**64:
                    assert law._keeps(high, offset, 64, near, SeededBits(3)) == truth
                    arrays = [np.array([x], t) for x, t in ((high, np.int64), (offset, np.uint64), (near, np.uint64))]
                    assert law._keep(*arrays, SeededBits(3))[0] == truth
            assert law._sure <= chance * 2**64 or high > law._far


def test_numpy_exp_is_far_better_than_the_margin_granted_to_it() -> None:
    x = np.concatenate([SeededBits(4).words(2000) * 2.0**-64 * m for m in (1e-3, 1.0, 40.0, 700.0)])
    truth = [mpmath.exp(-mpmath.mpf(float(v))) for v in x]
    worst = max(abs(mpmath.mpf(float(a)) / b - 1) for a, b in zip(np.exp(-x), truth, strict=True))
    assert worst < 2.0**-50 < FINE.margin / 32
