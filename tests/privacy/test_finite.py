"""Randomised response and truncated Laplace noise: their prices against laws listed outcome by outcome."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hubbub as hb
from hubbub.errors import ParameterError
from hubbub.privacy import finite, renyi
from hubbub.privacy.finite import TruncatedLaplacePair

NONE = mpmath.mpf(0)


def hockey_stick(p: list[mpmath.mpf], q: list[mpmath.mpf], epsilon: float) -> mpmath.mpf:
    return mpmath.fsum(max(NONE, a - mpmath.exp(mpmath.mpf(epsilon)) * b) for a, b in zip(p, q, strict=True))


def reports(epsilon: float, categories: int, truth: int) -> list[mpmath.mpf]:
    weights = [mpmath.exp(mpmath.mpf(epsilon)) if i == truth else mpmath.mpf(1) for i in range(categories)]
    return [w / mpmath.fsum(weights) for w in weights]


def cut_laplace(epsilon: float, steps: int, bound: int, centre: int, reach: int) -> list[mpmath.mpf]:
    """The two-sided geometric of scale steps/epsilon on centre - bound .. centre + bound, listed on -reach .. reach."""
    rate = mpmath.mpf(epsilon) / steps
    weights = [
        mpmath.exp(-rate * abs(x - centre)) if abs(x - centre) <= bound else NONE for x in range(-reach, reach + 1)
    ]
    return [w / mpmath.fsum(weights) for w in weights]


# Randomised response.


@given(st.floats(1e-3, 30), st.integers(2, 9), st.just(0.0) | st.floats(1e-6, 1.2))
def test_reports_cost_what_their_law_costs(bound: float, categories: int, fraction: float) -> None:
    loss, epsilon = hb.RandomizedResponseDP(bound, categories), fraction * bound
    with mpmath.workprec(200):
        truth = hockey_stick(reports(bound, categories, 0), reports(bound, categories, 1), epsilon)
        assert loss.delta(epsilon) >= truth or abs(epsilon - bound) < 1e-15 * bound  # read as one decimal
        assert loss.delta(epsilon) <= truth * (1 + mpmath.mpf(10) ** -12) + 1e-15 * bound
    if 1e-9 < truth < 0.999:
        low, high = loss.epsilon_interval(loss.delta(epsilon))
        assert low - 1e-9 <= epsilon <= high + 1e-9


@settings(max_examples=40)
@given(st.floats(0.1, 2), st.integers(2, 6), st.integers(1, 5), st.floats(-6, -1))
def test_many_reports_by_enumeration(bound: float, categories: int, people: int, log_delta: float) -> None:
    """Every vector of outcomes: kept, exchanged or neither, with their number of categories."""
    delta = 10**log_delta
    low, high = (hb.RandomizedResponseDP(bound, categories) * people).epsilon_interval(delta)
    p, q = reports(bound, categories, 0), reports(bound, categories, 1)

    def profile(epsilon: float) -> float:
        vectors = product(range(min(3, categories)), repeat=people)
        total = NONE
        for v in vectors:
            same = mpmath.mpf(max(1, categories - 2)) ** sum(i == 2 for i in v)
            a, b = (mpmath.fprod(law[i] for i in v) for law in (p, q))
            total += same * max(NONE, a - mpmath.exp(mpmath.mpf(epsilon)) * b)
        return total

    assert profile(high) <= delta * (1 + 1e-9)
    assert low == 0 or profile(low * (1 - 1e-9)) >= delta * (1 - 1e-9)
    assert high - low <= 0.05 * high + 1e-3


def test_more_categories_tell_less_but_never_nothing() -> None:
    prices = [(hb.RandomizedResponseDP(0.5, k) * 100).epsilon(1e-6) for k in (2, 3, 10, 1000)]
    assert prices == sorted(prices, reverse=True)
    assert prices[0] == pytest.approx((hb.PureDP(0.5) * 100).epsilon(1e-6), rel=1e-6)
    assert prices[2] < 15
    assert all((hb.RandomizedResponseDP(0.5, k) * 100).epsilon() == 50 for k in (2, 3, 10))


def test_the_mechanism_has_the_law_s_own_loss() -> None:
    m = hb.RandomizedResponse(epsilon=0.3, categories=7)
    assert m.loss == hb.RandomizedResponseDP(0.3, 7)
    assert m.loss.epsilon(0) == 0.3
    assert m.loss.neighbours == "replace"
    by_gamma = hb.RandomizedResponse(gamma=0.25).loss
    assert math.log(3) <= by_gamma.epsilon() <= math.log(3) * (1 + 1e-14)


@given(st.floats(1e-12, 40), st.integers(2, 50), st.floats(1.001, 300))
def test_renyi_of_reports_by_high_precision(bound: float, categories: int, order: float) -> None:
    with mpmath.workprec(400):
        p, q = reports(bound, categories, 0), reports(bound, categories, 1)
        a = mpmath.mpf(order)
        truth = mpmath.log(mpmath.fsum(x**a * y ** (1 - a) for x, y in zip(p, q, strict=True))) / (a - 1)
    ours = hb.RandomizedResponseDP(bound, categories).renyi(order)
    assert ours >= truth * (1 - mpmath.mpf(10) ** -14)
    assert ours <= truth * (1 + mpmath.mpf(10) ** -6 / bound) + mpmath.mpf(10) ** -10


def test_groups_and_relations_of_reports() -> None:
    one = hb.RandomizedResponseDP(0.5, 4)
    assert one.group(3) == one * 3
    assert (one * 2).group(3) == one * 6
    added = hb.RandomizedResponseDP(0.5, 4, neighbours="add-remove")
    assert added.to_replace() == one * 2
    with pytest.raises(ParameterError, match="cannot be mixed"):
        one + added
    assert one.subsample(0.1, "without-replacement").epsilon() < 0.1
    for bad in (1, 0, 2.5, True, 10**400):
        with pytest.raises(ParameterError, match="categories"):
            hb.RandomizedResponseDP(0.5, bad)


def test_lower_ends_near_certainty() -> None:
    """At a delta within rounding of all there is, nothing is claimed from below."""
    nearly = 1 - Fraction(1, 10**18)
    assert hb.RandomizedResponseDP(60).epsilon_interval(nearly)[0] == 0
    assert hb.PureDP(60).epsilon_interval(nearly)[0] == 0
    assert hb.RandomizedResponseDP(0.5).epsilon_interval(0.9) == (0, 0)


# Truncated Laplace noise.


@st.composite
def cut_laws(draw: st.DrawFn) -> tuple[float, int, int]:
    steps = draw(st.integers(1, 40))
    return draw(st.floats(0.01, 5)), steps, steps + draw(st.integers(0, 60))


def failure(epsilon: float, steps: int, bound: int) -> mpmath.mpf:
    law = cut_laplace(epsilon, steps, bound, 0, bound)
    return mpmath.fsum(law[:steps])


@settings(max_examples=60)
@given(cut_laws(), st.just(0.0) | st.floats(1e-6, 1.1))
def test_cut_noise_costs_what_its_law_costs(law: tuple[float, int, int], fraction: float) -> None:
    """Around 0 against around ``steps``, listed point by point, at every kind of epsilon."""
    bound, steps, cut = law
    with mpmath.workprec(200):
        p, q = (cut_laplace(bound, steps, cut, c, cut + steps) for c in (0, steps))
        loss = hb.TruncatedLaplaceDP(bound, float(failure(*law)), steps)
        truth = hockey_stick(p, q, fraction * bound)
        assert loss.delta(fraction * bound) >= truth * (1 - mpmath.mpf(10) ** -14)
        assert loss.delta(fraction * bound) <= truth * (1 + mpmath.mpf(10) ** -11) + mpmath.mpf(10) ** -300


@settings(max_examples=60)
@given(cut_laws(), st.floats(-12, -0.5))
def test_cut_noise_has_a_tight_epsilon(law: tuple[float, int, int], log_delta: float) -> None:
    bound, steps, cut = law
    loss = hb.TruncatedLaplaceDP(bound, float(failure(*law)), steps)
    delta = min(0.9, loss.delta_bound + 10**log_delta)
    low, high = loss.epsilon_interval(delta)
    with mpmath.workprec(200):
        p, q = (cut_laplace(bound, steps, cut, c, cut + steps) for c in (0, steps))
        assert hockey_stick(p, q, high) <= delta * (1 + 1e-13)
        assert low == 0 or hockey_stick(p, q, low) >= delta * (1 - 1e-13)
    assert high - low <= 1e-9


@pytest.mark.parametrize("steps", [1, 5, 16, 17, 64, 1000, None, 2**46])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-8), (1.0, 1e-6), (5.0, 1e-3)])
def test_the_pair_is_the_profile(steps: int | None, epsilon: float, delta: float) -> None:
    """Atoms and intervals of the pair add up to one, keep Q's masses, and give the closed profile."""
    pair = TruncatedLaplacePair(epsilon, delta, steps)
    edges = np.linspace(-epsilon, epsilon, 4001)
    p, q = pair.masses(edges)
    atoms = np.array(pair.atoms())
    assert p.sum() + atoms[:, 1].sum() + delta == pytest.approx(1, abs=1e-13)
    assert q.sum() + (atoms[:, 1] * np.exp(-atoms[:, 0])).sum() + delta == pytest.approx(1, abs=1e-13)
    assert np.all(p >= 0)
    for at in (500, 2000, 2600, 3999):
        beyond = atoms[atoms[:, 0] > edges[at] + 1e-12]
        listed = delta + p[at + 1 :].sum() - math.exp(edges[at]) * q[at + 1 :].sum()
        listed += (beyond[:, 1] * -np.expm1(edges[at] - beyond[:, 0])).sum()
        if edges[at] >= 0:
            loss = hb.TruncatedLaplaceDP(epsilon, delta, steps)
            assert listed == pytest.approx(loss.delta(float(edges[at])), rel=1e-9)


def test_continuous_cut_noise_by_integration() -> None:
    """The notes' law: density e**-|x|/scale cut at A = scale ln(1 + (e**epsilon - 1)/(2 delta)), sensitivity 1."""
    epsilon, delta = mpmath.mpf(1), mpmath.mpf("1e-3")
    cut = mpmath.log(1 + (mpmath.exp(epsilon) - 1) / (2 * delta)) / epsilon
    norm = 2 * (1 - mpmath.exp(-epsilon * cut)) / epsilon

    def noise(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.exp(-epsilon * abs(x)) / norm if abs(x) <= cut else NONE

    loss = hb.TruncatedLaplaceDP(1, 1e-3)
    for at in (0, 0.25, 0.8, 1):
        part = [-cut, 1 - cut, 0, (1 - mpmath.mpf(at)) / 2]
        truth = mpmath.quad(lambda x, at=at: max(NONE, noise(x) - mpmath.exp(at) * noise(x - 1)), part)
        assert loss.delta(at) == pytest.approx(float(truth), rel=1e-10)


@settings(max_examples=40)
@given(cut_laws(), st.lists(st.integers(0, 40), min_size=2, max_size=2))
def test_vectors_never_cost_more_than_one_number(law: tuple[float, int, int], shifts: list[int]) -> None:
    """Two coordinates share the sensitivity: their joint law, listed, against the price of one, at every epsilon."""
    bound, steps, cut = law
    first = min(shifts[0], steps)
    second = min(shifts[1], steps - first)
    x = np.arange(-cut - steps, cut + steps + 1)
    noise = np.where(np.abs(x) <= cut, np.exp(-bound * np.abs(x) / steps), 0.0)
    noise /= noise.sum()
    p = np.multiply.outer(noise, noise)
    q = np.multiply.outer(np.roll(noise, first), np.roll(noise, -second))
    loss = hb.TruncatedLaplaceDP(bound, float(failure(*law)), steps)
    for epsilon in (0.0, bound / 3, bound / 2, bound):
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= loss.delta(epsilon) + 1e-13


@settings(max_examples=25)
@given(st.floats(0.1, 2), st.integers(1, 4), st.integers(0, 6), st.integers(2, 3), st.floats(-3, -0.7))
def test_repeated_cut_noise_by_enumeration(bound: float, steps: int, extra: int, times: int, log_delta: float) -> None:
    cut = steps + extra
    p, q = (np.array([float(v) for v in cut_laplace(bound, steps, cut, c, cut + steps)]) for c in (0, steps))
    one = hb.TruncatedLaplaceDP(bound, float(failure(bound, steps, cut)), steps)
    many_p, many_q = p, q
    for _ in range(times - 1):
        many_p, many_q = np.multiply.outer(many_p, p).ravel(), np.multiply.outer(many_q, q).ravel()
    infinite = -math.expm1(times * math.log1p(-one.delta_bound))
    delta = min(0.95, infinite * 1.001 + 10**log_delta)
    low, high = (one * times).epsilon_interval(delta)

    def profile(epsilon: float) -> float:
        return float(np.maximum(many_p - math.exp(epsilon) * many_q, 0).sum())

    assert profile(high) <= delta * (1 + 1e-9)
    assert low == 0 or profile(low * (1 - 1e-9)) >= delta * (1 - 1e-9)
    assert high - low <= 0.05 * high + 5e-3
    assert high <= times * bound


def test_cut_noise_beats_knowing_only_its_two_numbers() -> None:
    for steps, gain in ((None, 0.981), (5, 0.982), (2**46, 0.981)):
        own = (hb.TruncatedLaplaceDP(0.1, 1e-8, steps) * 100).epsilon(1e-5)
        assert own < gain * (hb.ApproxDP(0.1, 1e-8) * 100).epsilon(1e-5)
    single = (hb.TruncatedLaplaceDP(0.1, 1e-8, 1) * 100).epsilon(1e-5)
    assert single == pytest.approx((hb.ApproxDP(0.1, 1e-8) * 100).epsilon(1e-5), rel=1e-9)


def test_below_its_delta_cut_noise_has_no_price() -> None:
    loss = hb.TruncatedLaplaceDP(0.5, 1e-6, 3)
    assert loss.epsilon() == loss.epsilon(9.9e-7) == math.inf
    assert loss.epsilon(1e-6) == 0.5
    assert loss.epsilon_interval(0.99) == (0, 0)
    assert loss.renyi(2) == math.inf
    assert (loss * 2).epsilon(2e-6) == 1
    assert (loss * 2).delta(1) <= 2e-6
    with pytest.raises(ParameterError, match="cannot be subsampled"):
        loss.subsample(0.1)
    with pytest.raises(ParameterError, match="order"):
        loss.renyi(1)


@given(cut_laws(), st.integers(2, 4))
def test_groups_of_cut_noise_by_enumeration(law: tuple[float, int, int], people: int) -> None:
    bound, steps, cut = law
    loss = hb.TruncatedLaplaceDP(bound, float(failure(*law)), steps)
    if people * steps > cut:
        with pytest.raises(ParameterError, match="smaller group"):
            loss.group(people)
        return
    group = loss.group(people)
    shift = people * steps
    p, q = (cut_laplace(bound, steps, cut, c, cut + shift) for c in (0, shift))
    for fraction in (0, 0.4, 1):
        truth = hockey_stick(p, q, fraction * people * bound)
        assert truth <= group.delta(fraction * people * bound) * (1 + 1e-9) + 1e-15
        assert group.delta(fraction * people * bound) <= truth * (1 + 1e-9) + 1e-13


def test_cut_noise_that_cannot_be() -> None:
    with pytest.raises(ParameterError, match="reaches as far"):
        hb.TruncatedLaplaceDP(1, 0.6)
    with pytest.raises(ParameterError, match="reaches as far"):
        hb.TruncatedLaplaceDP(3, 0.4, steps=1)
    with pytest.raises(ParameterError, match="smaller group"):
        hb.TruncatedLaplaceDP(300, 1e-12).group(3)
    for bad in ((0, 1e-6, 1), (1, 0, 1), (1, 1, 1), (1, 1e-6, 0), (1, 1e-6, 1.5), (1, 1e-6, 10**400)):
        with pytest.raises(ParameterError):
            hb.TruncatedLaplaceDP(*bad)


def test_cut_noise_as_a_value() -> None:
    loss = hb.TruncatedLaplaceDP(0.1, 1e-6, 5)
    pair = loss.group(2)
    assert loss.to_replace() == hb.TruncatedLaplaceDP(0.2, pair.delta_bound, 10, "replace")
    assert pair.delta_bound == pytest.approx(1e-6 * (1 + math.exp(0.1)))
    for value in (loss, hb.TruncatedLaplaceDP(0.1, 1e-6), loss * 3 + hb.PureDP(1)):
        assert hb.Loss.from_json(value.to_json()) == value
    assert hb.TruncatedLaplaceDP(0.1, 1e-6).group(3).steps is None


@settings(max_examples=40)
@given(st.sampled_from([1, 3, 50, 1.0, 0.7]), st.floats(1e-4, 20), st.floats(-40, -0.1))
def test_the_mechanism_keeps_its_promise(sensitivity: float, epsilon: float, log_delta: float) -> None:
    m = hb.TruncatedLaplace(sensitivity, epsilon=epsilon, delta=10**log_delta)
    assert m.loss.epsilon(m.delta) <= m.epsilon
    assert m.loss.delta(m.epsilon) <= m.delta
    budget = hb.Budget(epsilon, min(0.99, 2 * m.delta) if m.delta < 0.49 else 0.99)
    if m.loss.delta_bound <= budget.delta / 2:
        budget.spend(m.loss)


def test_extreme_cut_noise_stays_an_answer() -> None:
    for epsilon in (1e-9, 1e4):
        for delta in (1e-300, 1e-6, 0.4):
            for sensitivity in (1, 7, 1.0):
                m = hb.TruncatedLaplace(sensitivity, epsilon=epsilon, delta=delta)
                assert 0 <= m.loss.epsilon(delta) <= epsilon
                assert 0 <= m.loss.delta(epsilon / 2) <= 1


def test_searching_finds_neighbouring_points() -> None:
    held, broken = finite._last_holding(lambda x: x * x <= 2, 10)
    assert held <= math.sqrt(2) <= broken
    assert broken - held < 1e-15


def test_renyi_of_two_categories_is_the_old_form() -> None:
    for order in (1.5, 3, 200):
        for epsilon in (1e-6, 0.1, 2, 50):
            both = renyi.of_categories(order, epsilon, 2), renyi.of_randomised_response(order, epsilon)
            assert both[0] == pytest.approx(both[1], rel=1e-2)
