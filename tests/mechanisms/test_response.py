import math
from fractions import Fraction

import numpy as np
import pytest
from support import SeededBits, assert_fits

import hubbub as hb
from hubbub.errors import DataTypeError, ParameterError


def test_erratum_gamma_a_quarter_costs_ln_3_and_not_1() -> None:
    """The notes bound the ratio by e**(4 gamma); the inequality points the other way."""
    m = hb.RandomizedResponse(gamma=0.25)
    assert m.loss.epsilon() == pytest.approx(math.log(3), rel=1e-12)
    assert m.loss.epsilon() >= math.log(3)
    assert m.loss.neighbours == "replace"
    _, p = m.distribution(0)
    _, q = m.distribution(1)
    assert np.max(p / q) == pytest.approx(3)
    assert np.max(p / q) > math.exp(4 * 0.25)
    for gamma in (0.001, 0.1, 0.4, 0.499):
        assert hb.RandomizedResponse(gamma=gamma).epsilon > 4 * gamma


def test_sample_sizes_of_the_notes() -> None:
    m = hb.RandomizedResponse(gamma=0.25)
    assert m.sample_size(0.05, 0.05, "chebyshev") == 8000
    assert m.sample_size(0.05, 0.05, "hoeffding") == math.ceil(math.log(40) / (8 * 0.0625 * 0.0025))
    # Hoeffding asks for fewer from beta = 0.23 down
    assert m.sample_size(0.05, 0.22) < m.sample_size(0.05, 0.22, "chebyshev")
    assert m.sample_size(0.05, 0.25) > m.sample_size(0.05, 0.25, "chebyshev")


@pytest.mark.parametrize(
    "m", [hb.RandomizedResponse(gamma=0.1), hb.RandomizedResponse(epsilon=1, categories=5)], ids=repr
)
def test_estimates_are_unbiased_and_intervals_hold(m: hb.RandomizedResponse) -> None:
    truth = np.repeat(np.arange(m.categories), [700, 300] if m.categories == 2 else [400, 300, 200, 100, 0])
    shares = np.bincount(truth, minlength=m.categories) / 1000
    wanted = shares[1] if m.categories == 2 else shares
    bits = SeededBits(1)
    estimates = [m.estimate(m.release(truth, bits)) for _ in range(2000)]
    values = np.array([e.value for e in estimates])
    assert np.all(np.abs(values.mean(0) - wanted) < 6.5 * values.std(0) / math.sqrt(2000))
    inside = np.mean([(e.low <= wanted) & (wanted <= e.high) for e in estimates], axis=0)
    assert np.all(inside >= 0.95 - 6.5 * math.sqrt(0.05 * 0.95 / 2000))
    assert np.all(values.var(0) <= m.variance(1000) * 1.25)
    if m.categories == 2:
        assert values.var() == pytest.approx(m.variance(1000), rel=0.2)
        assert m.variance(1000) <= 1 / (16 * 1000 * 0.1**2)
    assert m.error(people=1000) == pytest.approx(
        (estimates[0].high - estimates[0].low).max() / 2
        if m.categories > 2
        else (estimates[0].high - estimates[0].low) / 2
    )


def test_reports_follow_the_law() -> None:
    m = hb.RandomizedResponse(epsilon=1.5, categories=4)
    support, law = m.distribution(2)
    assert_fits(m.release(np.full(100_000, 2), SeededBits(2)), support, law)
    bits = SeededBits(3)
    assert_fits(np.array([m.release(2, bits) for _ in range(10_000)]), support, law)


def test_types() -> None:
    m = hb.RandomizedResponse(epsilon=50)
    assert m.release(True) is True
    assert m.release(np.bool_(False)) is False
    assert m.release(1) == 1
    assert m.release([0, 1, True]) == [0, 1, 1]
    assert m.release(np.array([[True], [False]])).tolist() == [[1], [0]]
    assert m.release([]) == []
    assert m.release([2**63, -5, 10**30]) == [1, 0, 1]  # others count as the nearest
    for bad in (0.5, [0.5], "yes", None, [None], np.array(["a"])):
        with pytest.raises(DataTypeError):
            m.release(bad)


@pytest.mark.parametrize("bad", [[], [2], [-1], [0.5], "01", np.zeros((2, 2), int)])
def test_bad_reports(bad: object) -> None:
    with pytest.raises(DataTypeError):
        hb.RandomizedResponse(gamma=0.1).estimate(bad)


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"epsilon": 1, "gamma": 0.1},
        {"gamma": 0},
        {"gamma": 0.5},
        {"gamma": -0.1},
        {"gamma": 0.1, "categories": 3},
        {"epsilon": 1, "categories": 1},
        {"epsilon": 1, "categories": 2.0},
        {"epsilon": 1, "categories": 1 << 40},
        {"epsilon": math.nan},
    ],
)
def test_bad_parameters(bad: dict) -> None:
    with pytest.raises(ParameterError):
        hb.RandomizedResponse(**bad)


def test_bad_sample_size_arguments() -> None:
    m = hb.RandomizedResponse(gamma=0.1)
    for arguments in ((0, 0.1), (0.1, 0), (0.1, 1), (0.1, 0.1, "guess")):
        with pytest.raises(ParameterError):
            m.sample_size(*arguments)


@pytest.mark.parametrize("epsilon", [1e-15, 1e-6, 30, 800])
def test_extreme_prices_stay_accurate(epsilon: float) -> None:
    m = hb.RandomizedResponse(epsilon=epsilon)
    assert m.gamma == pytest.approx(math.tanh(epsilon / 2) / 2, rel=1e-12)
    assert m.release(1) in (0, 1)
    assert math.isfinite(m.estimate([1, 0]).value)
    tiny = hb.RandomizedResponse(gamma=Fraction(1, 10**20))
    assert tiny.epsilon == pytest.approx(4e-20, rel=1e-9)
