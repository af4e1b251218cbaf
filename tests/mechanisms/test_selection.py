import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import SeededBits, assert_fits

import hubbub as hb
from hubbub.errors import DataTypeError, ParameterError

MAKERS = {
    "exponential": hb.Exponential,
    **{
        f"noisy max {n}": lambda s, n=n, **k: hb.NoisyMax(s, noise=n, **k) for n in ("exponential", "gumbel", "laplace")
    },
}


@pytest.mark.parametrize("noise", ["exponential", "gumbel", "laplace"])
def test_noise_really_added_gives_the_listed_law(noise: str) -> None:
    """The law against textbook simulation: continuous noise on each score, the largest wins."""
    generator = np.random.default_rng(1)
    scores, n = np.array([0.0, 1.0, 1.5]), 200_000
    shape = (n, 3)
    noisy = {"exponential": generator.exponential(2.0, shape), "gumbel": generator.gumbel(0, 2.0, shape)}
    noisy["laplace"] = generator.laplace(0, 2.0, shape)
    _, law = hb.NoisyMax(1.0, epsilon=1, noise=noise).distribution(scores)
    wins = np.bincount(np.argmax(scores + noisy[noise], axis=1), minlength=3) / n
    slack = 0.001 if noise == "laplace" else 0  # its grid reserves up to a thousandth of the sensitivity
    assert np.all(np.abs(wins - law) < 6.5 * np.sqrt(law * (1 - law) / n) + slack)


def test_permute_and_flip_by_brute_force() -> None:
    scores = [0, 1, 3]
    chances = [math.exp(-0.5 * (3 - s)) for s in scores]
    expected = np.zeros(3)
    for flips in np.ndindex(2, 2, 2):
        chance = math.prod(c if f else 1 - c for c, f in zip(chances, flips, strict=True))
        for i in range(3):
            if flips[i]:
                expected[i] += chance / sum(flips)
    assert hb.NoisyMax(1, epsilon=1).distribution(scores)[1] == pytest.approx(expected)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=8), st.sampled_from([0.1, 1, 5]))
def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism(scores: list[int], epsilon: float) -> None:
    def shortfall(m: hb.NoisyMax | hb.Exponential) -> float:
        return float(m.distribution(scores)[1] @ (max(scores) - np.array(scores)))

    assert shortfall(hb.NoisyMax(1, epsilon=epsilon)) <= shortfall(hb.Exponential(1, epsilon=epsilon)) + 1e-12


@given(
    st.lists(st.integers(-30, 30), min_size=1, max_size=6),
    st.floats(0.05, 8),
    st.floats(0.01, 0.99),
    st.sampled_from(sorted(MAKERS)),
)
def test_utility_bound_holds(scores: list[int], epsilon: float, confidence: float, name: str) -> None:
    m = MAKERS[name](1, epsilon=epsilon)
    within = m.utility_bound(len(scores), confidence)
    assert m.success_probability(scores, within) >= confidence - 1e-9


def test_the_notes_worked_example() -> None:
    assert hb.Exponential(1, epsilon=0.5).utility_bound(100, 0.99) == pytest.approx(36.84, abs=0.01)
    assert hb.NoisyMax(1, epsilon=0.5).utility_bound(100, 0.99) == pytest.approx(36.84, abs=0.01)
    assert hb.NoisyMax(1, epsilon=0.5, noise="laplace").utility_bound(100, 0.99) == pytest.approx(2 * 36.84, abs=0.02)


def test_voting_and_pricing() -> None:
    """The notes' examples: a clear winner among votes, and the price that earns most (sensitivity: the top price)."""
    votes = [400, 900, 350]
    assert hb.NoisyMax(1, epsilon=0.5, monotone=True).release(votes) == 1
    bids = np.array([1.0] * 500 + [3.0] * 400)
    prices = np.array([0.5, 1.0, 2.0, 3.0, 5.0])
    revenue = prices * [(bids >= p).sum() for p in prices]
    m = hb.Exponential(float(prices.max()), epsilon=1)
    assert prices[m.release(revenue)] == 3.0
    assert m.success_probability(revenue) > 0.99


@pytest.mark.parametrize("name", MAKERS)
def test_hostile_scores(name: str) -> None:
    m = MAKERS[name](1.0, epsilon=1)
    assert m.release([math.nan, 500.0, -math.inf]) == 1
    assert m.release([1e308, -1e308, math.inf]) in (0, 2)
    assert m.release(np.array([1e30, 0], np.float32)) == 0
    assert m.release([5.0]) == 0
    assert m.release([2**70, 0.5]) in (0, 1)
    whole = MAKERS[name](1, epsilon=1)
    assert whole.release([10**30, 0]) == 0
    assert whole.release(np.array([2**63 - 1, -(2**63)])) == 0
    assert whole.release(np.array([2**64 - 1, 0], np.uint64)) == 0


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    "bad", [[], np.zeros((2, 2)), ["a"], None, 5, [[1], [2, 3]], [Fraction(1, 2)], np.ma.array([1])]
)
def test_bad_scores(name: str, bad: object) -> None:
    with pytest.raises(DataTypeError):
        MAKERS[name](1, epsilon=1).release(bad)


def test_top_k() -> None:
    m = hb.TopK(1, k=2, epsilon=2)
    bits = SeededBits(1)
    orders, law = m.distribution([3, 1, 4])
    places = {tuple(o): i for i, o in enumerate(orders.tolist())}
    picks = np.array([places[tuple(m.release([3, 1, 4], bits))] for _ in range(6000)])
    assert_fits(picks, np.arange(6), law)
    assert m.success_probability([3, 1, 4], within=100) == pytest.approx(1)
    assert m.success_probability([300, 1, 400]) > 0.99
    with pytest.raises(DataTypeError):
        m.release([1])
    with pytest.raises(ParameterError, match="too many orders"):
        hb.TopK(1, k=6, epsilon=1).distribution(list(range(30)))


@pytest.mark.parametrize("bad", [{"epsilon": 0}, {"epsilon": 1, "monotone": "no"}, {"epsilon": 1, "neighbours": "x"}])
def test_bad_parameters(bad: dict) -> None:
    for make in (*MAKERS.values(), lambda s, **k: hb.TopK(s, k=1, **k)):
        with pytest.raises(ParameterError):
            make(1, **bad)
    with pytest.raises(ParameterError):
        hb.NoisyMax(1, epsilon=1, noise="uniform")
    with pytest.raises(ParameterError):
        hb.TopK(1, k=0, epsilon=1)


def test_int_and_float_sensitivity_are_different_mechanisms() -> None:
    assert hb.NoisyMax(1, epsilon=1, noise="laplace") != hb.NoisyMax(1.0, epsilon=1, noise="laplace")
    assert hb.Gaussian(1, sigma=2) != hb.Gaussian(1.0, sigma=2)
    with pytest.raises(DataTypeError, match="float sensitivity"):
        hb.NoisyMax(1, epsilon=1, noise="laplace").release([0.5, 1.5])
