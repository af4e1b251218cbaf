import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from support import SeededBits

import hubbub as hb
from hubbub.attacks import Membership, pair_columns, predicted_power, trace
from hubbub.errors import ParameterError

FALSE_ALARM = 1e-6
SCORES = st.lists(st.integers(-5, 5), min_size=1, max_size=30)


@given(SCORES, SCORES)
def test_the_report_against_plain_counting(members: list[int], others: list[int]) -> None:
    report = Membership(np.array(members), np.array(others))
    pairs = [(m > o) + (m == o) / 2 for m in members for o in others]
    assert report.auc == pytest.approx(np.mean(pairs))
    false, true = report.roc()
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert (np.diff(false) >= 0).all()
    assert (np.diff(true) >= 0).all()
    tests = [(np.mean(np.array(others) >= t), np.mean(np.array(members) >= t)) for t in range(-5, 7)]
    assert report.advantage == pytest.approx(max(t - f for f, t in tests))
    for rate in (0.0, 0.1, 0.5, 1.0):
        assert report.true_positive_rate(rate) == pytest.approx(max(t for f, t in tests if f <= rate))


def village(people: int, attributes: int, seed: int, others: int = 4000):
    rng = np.random.default_rng(seed)
    population = rng.uniform(0.2, 0.8, attributes)
    rows = rng.random((people + others, attributes)) < population
    return population, rows[:people].astype(int), rows[people:].astype(int)


def test_scores_are_what_they_are_called() -> None:
    population, members, others = village(20, 15, 1, others=5)
    means = members.mean(axis=0).clip(0.01, 0.99)
    ratio = trace(means, population).scores(others)
    plain = np.prod(np.where(others, means / population, (1 - means) / (1 - population)), axis=1)
    np.testing.assert_allclose(ratio, np.log(plain))
    inner = trace(means, population, statistic="inner-product").scores(others)
    np.testing.assert_allclose(inner, (others - population) @ (means - population))
    distance = trace(means, population, statistic="distance").scores(others)
    np.testing.assert_allclose(distance, (np.abs(others - population) - np.abs(others - means)).sum(axis=1))
    noisy = trace(means, population, people=20, stddev=0.1).scores(others)
    variance = population * (1 - population) / 20 + 0.01
    expected = population + (others - population) / 20
    gain = ((means - population) ** 2 - (means - expected) ** 2) / (2 * variance)
    np.testing.assert_allclose(noisy, gain.sum(axis=1))


@pytest.mark.parametrize("statistic", ["likelihood-ratio", "inner-product", "distance"])
def test_published_means_give_members_away(statistic: str) -> None:
    population, members, others = village(100, 2000, 2)
    report_on = trace(members.mean(axis=0), population, statistic=statistic)
    report = Membership(report_on.scores(members), report_on.scores(others))
    assert report.auc > 0.99
    assert report.true_positive_rate(0.01) > 0.9
    strangers = np.random.default_rng(3).random((100, 2000)) < population
    nothing = Membership(report_on.scores(strangers), report_on.scores(others))
    assert 0.4 < nothing.auc < 0.6


@pytest.mark.parametrize(("people", "attributes", "stddev"), [(100, 400, 0.0), (100, 400, 0.05), (200, 1000, 0.05)])
def test_power_is_what_theory_says(people: int, attributes: int, stddev: float) -> None:
    found = {0.01: [], 0.1: []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        population = np.full(attributes, 0.5)
        members, others = rng.random((people, attributes)) < 0.5, rng.random((4000, attributes)) < 0.5
        means = members.mean(axis=0) + rng.normal(0, stddev, attributes)
        tracer = trace(means, population, people=people, stddev=stddev)
        report = Membership(tracer.scores(members), tracer.scores(others))
        for rate, rates in found.items():
            rates.append(report.true_positive_rate(rate))
    for rate, rates in found.items():
        expected = predicted_power(rate, people=people, attributes=attributes, stddev=stddev)
        assert np.mean(rates) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("statistic", ["likelihood-ratio", "inner-product", "distance"])
@pytest.mark.parametrize("rate", [0.001, 0.05, 0.3])
def test_thresholds_keep_their_rate(statistic: str, rate: float) -> None:
    """False alarms of this test: at most 1e-6 each."""
    population, members, others = village(50, 1000, 4, others=10_000)
    tracer = trace(members.mean(axis=0), population, statistic=statistic)
    scores = tracer.scores(others)
    certain = tracer.threshold(rate)
    assert np.sum(scores >= certain) <= binom.isf(FALSE_ALARM, 10_000, rate)
    near = tracer.normal_threshold(rate)
    accused = np.sum(scores >= near)
    assert binom.ppf(FALSE_ALARM, 10_000, rate / 2) <= accused <= binom.isf(FALSE_ALARM, 10_000, 1.5 * rate)
    assert near < certain
    found = np.mean(tracer.scores(members) >= certain)
    assert found > 0.5  # a threshold that accuses nobody would pass the above


def test_thresholds_by_rank_keep_their_rate_for_attributes_that_hang_together() -> None:
    """Two-way marginals are not independent; ranks among reference rows do not mind."""
    accused, rate, runs = 0, 0.1, 400
    for seed in range(runs):
        population, members, others = village(30, 12, seed, others=60)
        rng = np.random.default_rng(seed)
        usual = np.outer(population, population)[np.triu_indices(12, 1)]
        tracer = trace(pair_columns(members).mean(axis=0), usual)
        stranger = pair_columns((rng.random((1, 12)) < population).astype(int))
        accused += tracer.scores(stranger)[0] >= tracer.threshold(rate, reference=pair_columns(others))
    assert accused <= binom.isf(FALSE_ALARM, runs, rate)
    assert accused >= binom.ppf(FALSE_ALARM, runs, 6 / 61)
    assert tracer.threshold(0.01, reference=pair_columns(others)) == math.inf  # too few to say


def test_means_that_say_nothing_accuse_nobody() -> None:
    usual = np.full(10, 0.5)
    tracer = trace(usual, usual)
    rows = np.random.default_rng(1).integers(0, 2, (100, 10))
    assert (tracer.scores(rows) < tracer.threshold(0.05)).all()


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_hubbub_keeps_members_within_the_ceiling(epsilon: float) -> None:
    """Found members are at most what the loss's trade-off allows: false alarms 1e-6. Exact means break the ceiling."""
    people, attributes, delta, rate = 200, 500, 1e-6, 0.05
    population, members, others = village(people, attributes, 5, others=20_000)
    noise = hb.Gaussian(math.sqrt(attributes), epsilon=epsilon, delta=delta, max_length=attributes)
    sums = noise.release(members.sum(axis=0).astype(float), SeededBits(2))
    stddev = math.sqrt(noise.variance) / people
    tracer = trace(sums / people, population, people=people, stddev=stddev)
    bare = trace(members.mean(axis=0), population)
    ceiling = 1 - noise.loss.tradeoff(rate)
    assert ceiling <= math.exp(epsilon) * rate + delta
    bar = binom.isf(FALSE_ALARM, people, ceiling) / people
    found = Membership(tracer.scores(members), tracer.scores(others)).true_positive_rate(rate)
    assert found <= bar
    assert Membership(bare.scores(members), bare.scores(others)).true_positive_rate(rate) > bar


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"published": [0.5]}, "one for every mean"),
        ({"published": [0.5, math.nan]}, "must be finite"),
        ({"population": [0.5, 1.0]}, "strictly between 0 and 1"),
        ({"statistic": "hunch"}, "must be one of"),
        ({"stddev": -1.0}, "stddev=-1.0 must be >= 0"),
        ({"stddev": 1.0}, "must be the size of the sample"),
    ],
)
def test_what_cannot_be_traced_is_refused(options: dict, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        trace(**({"published": [0.5, 0.6], "population": [0.5, 0.5]} | options))


def test_other_refusals() -> None:
    tracer = trace([0.6, 0.4], [0.5, 0.5])
    for rows in ([[1, 0, 1]], [1, 0], [[0.5, 0]]):
        with pytest.raises(ParameterError, match="must be rows of 2"):
            tracer.scores(rows)
    for rate in (0, 1, math.nan):
        with pytest.raises(ParameterError, match="strictly between 0 and 1"):
            tracer.threshold(rate)
    with pytest.raises(ParameterError, match="flat list of scores"):
        Membership(np.array([]), np.array([1.0]))
    with pytest.raises(ParameterError, match="flat list of scores"):
        Membership(np.array([1.0]), np.array([math.nan]))
