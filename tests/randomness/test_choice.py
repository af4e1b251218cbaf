from fractions import Fraction

import numpy as np
import pytest
from support import DRAWS, ScriptedBits, SeededBits, assert_fits

from hubbub.errors import ParameterError
from hubbub.randomness import (
    Bernoulli,
    BernoulliExp,
    Fineness,
    draw_below,
    permutation,
    uniform_below,
    weighted_choice,
)
from hubbub.randomness.choice import exp_choice, exp_events

COARSE = Fineness(word_bits=4)


@pytest.mark.parametrize("fineness", [Fineness(), COARSE], ids=["fine", "coarse"])
@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 2), Fraction(99, 100), Fraction(1, 1000)], ids=str)
def test_bernoulli(p, fineness) -> None:
    n = DRAWS if fineness is not COARSE else 50_000
    law = Bernoulli(p, fineness)
    assert_fits(law.sample(n, SeededBits(1)).astype(int), np.array([0, 1]), np.array([float(1 - p), float(p)]))
    bits = SeededBits(2)
    assert_fits(
        np.array([law.draw(bits) for _ in range(5000)]) * 1, np.array([0, 1]), np.array([float(1 - p), float(p)])
    )


@pytest.mark.parametrize("fineness", [Fineness(), COARSE], ids=["fine", "coarse"])
@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 7), Fraction(1), Fraction(5)], ids=str)
def test_bernoulli_exp(x, fineness) -> None:
    n = DRAWS if fineness is not COARSE else 50_000
    p = np.exp(-float(x))
    assert_fits(BernoulliExp(x, fineness).sample(n, SeededBits(3)).astype(int), np.array([0, 1]), np.array([1 - p, p]))
    assert isinstance(BernoulliExp(x, fineness).draw(), bool)


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 64, 100])
def test_uniform_below(bound: int) -> None:
    values = uniform_below(bound, DRAWS, SeededBits(4))
    assert_fits(values, np.arange(bound), np.full(bound, 1 / bound))
    bits = SeededBits(5)
    singles = np.array([draw_below(bound, bits) for _ in range(20_000)])
    assert_fits(singles, np.arange(bound), np.full(bound, 1 / bound))


def test_uniform_below_enormous_bounds() -> None:
    assert int(uniform_below(1 << 63, 1000).min()) >= 0
    with pytest.raises(ParameterError, match="draw_below"):
        uniform_below((1 << 63) + 1, 1)
    bound = 3 << 200
    bits = SeededBits(6)
    thirds = np.array([draw_below(bound, bits) >> 200 for _ in range(30_000)])
    assert_fits(thirds, np.arange(3), np.full(3, 1 / 3))


def test_permutation_is_uniform() -> None:
    bits = SeededBits(7)
    codes = np.array([permutation(4, bits) @ [64, 16, 4, 1] for _ in range(24_000)])
    support = np.unique(codes)
    assert len(support) == 24
    assert_fits(codes, support, np.full(24, 1 / 24))


def test_permutation_redraws_when_two_words_are_equal() -> None:
    bits = ScriptedBits([5, 5, 7, 3, 2, 1])
    assert permutation(3, bits).tolist() == [2, 1, 0]
    assert bits.read == 6


def test_weighted_choice() -> None:
    weights = [1, 0, 2**70, 3 * 2**69]
    bits = SeededBits(8)
    picks = np.array([weighted_choice(weights, bits) for _ in range(20_000)])
    assert_fits(picks, np.array([2, 3]), np.array([0.4, 0.6]))
    for bad in ([], [0, 0], [-1, 2]):
        with pytest.raises(ParameterError):
            weighted_choice(bad)


EXPONENTS = [Fraction(0), Fraction(1, 3), Fraction(2), Fraction(7, 2), Fraction(900)]


@pytest.mark.parametrize("margin", [2.0**-44, 0.5], ids=["float", "exact"])
def test_exp_events(margin: float) -> None:
    bits = SeededBits(9)
    approximate = np.array([float(x) for x in EXPONENTS])
    runs = 4000
    hits = sum(exp_events(approximate, EXPONENTS.__getitem__, bits, margin).astype(int) for _ in range(runs))
    expected = np.exp(-approximate)
    assert np.all(np.abs(hits / runs - expected) <= 6.5 * np.sqrt(expected * (1 - expected) / runs))


@pytest.mark.parametrize("margin", [2.0**-44, 0.5], ids=["float", "exact"])
@pytest.mark.parametrize("copies", [None, np.array([0, 3, 5, 40, 10**15])], ids=["plain", "copies"])
def test_exp_choice(margin: float, copies: np.ndarray | None) -> None:
    bits = SeededBits(10)
    approximate = np.array([float(x) for x in EXPONENTS])
    picks = np.array([exp_choice(approximate, EXPONENTS.__getitem__, bits, copies, margin) for _ in range(4000)])
    weights = np.exp(-approximate) * (1 if copies is None else copies)
    assert_fits(picks, np.arange(5), weights / weights.sum())


def test_exp_choice_among_many() -> None:
    """Over several blocks, both ways of deciding agree for the same uniform number."""
    exponents = [Fraction(k % 97, 31) for k in range(3000)]
    approximate = np.array([float(x) for x in exponents])
    words = SeededBits(11).words(20).tolist()
    fast = [exp_choice(approximate, exponents.__getitem__, ScriptedBits([w])) for w in words]
    slow = [exp_choice(approximate, exponents.__getitem__, ScriptedBits([w]), margin=0.9) for w in words]
    assert fast == slow
    assert exp_choice(approximate, exponents.__getitem__, ScriptedBits([0])) == 0
    assert exp_choice(approximate, exponents.__getitem__, ScriptedBits([2**64 - 1])) == 2999


@pytest.mark.parametrize("bad", [-1, 2, "half", float("nan")])
def test_bad_probabilities(bad: object) -> None:
    with pytest.raises(ParameterError):
        Bernoulli(bad)
    if bad != 2:
        with pytest.raises(ParameterError):
            BernoulliExp(bad)
