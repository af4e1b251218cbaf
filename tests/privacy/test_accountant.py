"""Certified intervals against references computed by other means: they hold the truth and are narrow."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import hubbub as hb
from hubbub.errors import ParameterError
from hubbub.privacy import Subsampled, accountant, grids, inversion, pairs, renyi, transforms
from hubbub.privacy.pairs import Reversed

NARROW = 1e-3


def sgm(rate: float, sigma: float, steps: int, neighbours: str = "add-remove") -> hb.Loss:
    return hb.SampledGaussian(sigma, rate, neighbours=neighbours) * steps


REFERENCE = [
    (sgm(256 / 60000, 1.1, 14063), 1e-5, 2.3818, 2e-4),
    (sgm(0.0025, 1.3, 6000), 1e-5, 0.6401, 1e-4),
    (sgm(0.01, 1, 1000), 1e-5, 1.8282, 1e-4),
    (sgm(0.01, 4, 10**4), 1e-5, 0.9469, 1e-4),
    (sgm(0.04, 1.5, 2250), 1e-5, 6.7688, 1e-4),
    (hb.GaussianDP(1.0), 1e-5, 4.37718, 1e-5),
    (hb.GaussianDP(2.0), 1e-5, 9.99726, 1e-5),
    (sgm(256 / 60000, 1.1, 14063, "replace"), 1e-5, 4.2215, 2e-4),
    (sgm(0.0025, 1.3, 6000, "replace"), 1e-5, 1.1585, 2e-4),
    (sgm(0.01, 1, 1000, "replace"), 1e-5, 2.8434, 2e-4),
    (sgm(0.01, 4, 10**4, "replace"), 1e-5, 1.9932, 2e-4),
    (sgm(0.01, 1, 1000).group(2), 1e-5, 3.9791, 2e-4),
    (hb.LaplaceDP(0.1) * 100, 1e-6, 4.6927, 1e-4),
    (hb.PureDP(0.1) * 100, 1e-6, 4.7746, 1e-4),
    (hb.LaplaceDP(0.1) * 500, 1e-5, 11.1906, 1e-4),
    (hb.PureDP(0.1) * 500, 1e-5, 11.4089, 1e-4),
    (sgm(0.01, 1, 10**4), 1e-5, 6.1877, 2e-4),
    (sgm(0.01, 1, 10**5), 1e-5, 25.573, 1e-3),
]


@pytest.mark.parametrize(("loss", "delta", "truth", "digits"), REFERENCE, ids=lambda x: repr(x)[:60])
def test_reference_table(loss: hb.Loss, delta: float, truth: float, digits: float) -> None:
    """The rows of the field's reference table (from dp_accounting and PRV accountants) fall in the interval."""
    low, high = loss.epsilon_interval(delta)
    assert low - digits <= truth <= high + digits
    assert high - low <= NARROW * high
    assert loss.epsilon(delta) == high


@pytest.mark.parametrize(("loss", "delta", "truth", "digits"), REFERENCE, ids=lambda x: repr(x)[:60])
def test_reference_table_by_grids(
    loss: hb.Loss, delta: float, truth: float, digits: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same where nothing can be inverted."""
    monkeypatch.setattr(inversion, "MOST_PLACES", 0)
    low, high = accountant.epsilon_interval.__wrapped__(loss._pairs(), delta)
    assert low - digits <= truth <= high + digits
    assert high - low <= NARROW * high


def test_a_million_steps_are_as_certain_as_one() -> None:
    low, high = sgm(0.01, 1, 10**6).epsilon_interval(1e-5)
    assert high - low <= NARROW * high


def test_integer_and_float_laplace_cost_what_their_laws_cost() -> None:
    assert (hb.Laplace(1, epsilon=0.1).loss * 500).epsilon(1e-5) == pytest.approx(11.41, abs=0.005)
    assert (hb.Laplace(1.0, epsilon=0.1).loss * 500).epsilon(1e-5) == pytest.approx(11.19, abs=0.005)


def gaussian_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workprec(200):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@settings(max_examples=25)
@given(st.floats(0.2, 50), st.integers(1, 10**5), st.floats(-20, -3))
def test_exact_gaussian_composition(sigma: float, steps: int, log_delta: float) -> None:
    """A Poisson sample at rate 1 is no sample: the truth is one Gaussian of mu = sqrt(T)/sigma."""
    delta = 10**log_delta
    low, high = (Subsampled(hb.GaussianDP(1 / sigma), 1) * steps).epsilon_interval(delta)
    mu = math.sqrt(steps) * hb.GaussianDP(1 / sigma).mu
    assert gaussian_delta(mu, high) <= delta
    assert gaussian_delta(mu, low) >= delta or low == 0
    assert high - low <= 2 * NARROW * high + 1e-9


def response_delta(epsilons: list[float], target: float) -> mpmath.mpf:
    """Exact profile of randomised responses of any epsilons: a sum over all sign patterns."""
    with mpmath.workprec(200):
        total = mpmath.mpf(0)
        for signs in np.ndindex(*(2,) * len(epsilons)):
            p, q = mpmath.mpf(1), mpmath.mpf(1)
            for e, sign in zip(epsilons, signs, strict=True):
                keep, flip = (mpmath.exp(x) / (1 + mpmath.exp(x)) for x in (mpmath.mpf(e), -mpmath.mpf(e)))
                p, q = (p * keep, q * flip) if sign else (p * flip, q * keep)
            total += max(mpmath.mpf(0), p - mpmath.exp(target) * q)
        return total


@settings(max_examples=80)
@given(st.lists(st.floats(0.05, 3), min_size=2, max_size=6), st.floats(-9, -1))
def test_enumerated_randomised_responses(epsilons: list[float], log_delta: float) -> None:
    delta = 10**log_delta
    low, high = hb.compose(hb.PureDP(e) for e in epsilons).epsilon_interval(delta)
    assert response_delta(epsilons, high) <= delta * (1 + 1e-12)
    assert low == 0 or response_delta(epsilons, low * (1 - 1e-12)) >= delta * (1 - 1e-12)
    assert high - low <= 0.03 * high + 1e-3


def sampled_delta(rate: float, sigma: float, epsilon: float) -> float:
    """One Poisson-sampled Gaussian step, both directions, by the likelihood-ratio test."""
    grown = math.exp(epsilon)
    removed = added = 0.0
    if grown > 1 - rate:
        x = sigma**2 * math.log((grown - 1 + rate) / rate) + 0.5
        removed = rate * ndtr((1 - x) / sigma) + (1 - rate - grown) * ndtr(-x / sigma)
    if 1 / grown > 1 - rate:
        x = sigma**2 * math.log((1 / grown - 1 + rate) / rate) + 0.5
        added = ndtr(x / sigma) - grown * ((1 - rate) * ndtr(x / sigma) + rate * ndtr((x - 1) / sigma))
    return max(removed, added)


@settings(max_examples=150)
@given(st.floats(1e-3, 0.99), st.floats(0.3, 20), st.floats(-10, -2))
def test_one_sampled_step(rate: float, sigma: float, log_delta: float) -> None:
    delta = 10**log_delta
    low, high = hb.SampledGaussian(sigma, rate).epsilon_interval(delta)
    assert sampled_delta(rate, sigma, high) <= delta * (1 + 1e-9)
    assert low == 0 or sampled_delta(rate, sigma, low) >= delta * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("steps", [1, 7, 300])
def test_delta_and_epsilon_agree(epsilon: float, steps: int) -> None:
    loss = sgm(0.05, 1.2, steps)
    delta = loss.delta(epsilon)
    assert 0 < delta < 1
    low, _ = loss.epsilon_interval(delta)
    assert low <= epsilon + 1e-9
    if steps == 1:
        assert delta >= sampled_delta(0.05, 1.2, epsilon) * (1 - 1e-12)
        assert delta <= sampled_delta(0.05, 1.2, epsilon) * 1.01 + 1e-12


def test_both_directions_count() -> None:
    """Where the sample is large, adding a person can tell more than removing one: a one-way accountant is unsound."""
    pair = pairs.PoissonPair(pairs.GaussianPair(1.0), 0.5)
    forward, backward = (accountant._step_delta(side, 0.3) for side in (pair, Reversed(pair)))
    assert forward != pytest.approx(backward, rel=1e-3)
    assert hb.SampledGaussian(1.0, 0.5).delta(0.3) >= max(forward[0], backward[0])


def test_where_no_grid_fits_the_price_is_renyis(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = sgm(0.02, 1.0, 50)
    monkeypatch.setattr(grids, "LONGEST", 0)
    monkeypatch.setattr(inversion, "MOST_PLACES", 0)
    accountant.epsilon_interval.cache_clear()
    assert accountant.epsilon_interval(loss._pairs(), 1e-5) == (0.0, math.inf)
    low, high = loss.epsilon_interval(1e-5)
    assert low == 0
    assert high == pytest.approx(renyi.best_epsilon(loss.renyi, 1e-5))
    accountant.epsilon_interval.cache_clear()


def test_one_step_beyond_what_doubles_hold() -> None:
    low, high = sgm(0.5, 0.02, 1, "replace").epsilon_interval(1e-6)
    assert 600 <= low <= high < math.inf


def test_approximate_losses_compose_with_their_failures() -> None:
    loss = hb.ApproxDP(0.1, 1e-6) * 10
    assert loss.epsilon(1e-6) == math.inf
    assert loss.epsilon(1.1e-5) <= 1.0
    assert loss.delta(1.0) >= -math.expm1(10 * math.log1p(-1e-6)) * (1 - 1e-14)


def test_answers_stay_answers_at_the_edges() -> None:
    for loss in (sgm(1e-6, 1, 1000), sgm(0.01, 1e4, 1000), sgm(0.01, 0.05, 1000), sgm(1, 30, 10)):
        for delta in (1e-20, 1e-5, 0.3):
            low, high = loss.epsilon_interval(delta)
            assert 0 <= low <= high < math.inf


def test_renyi_forms() -> None:
    assert hb.PureDP(0.3).renyi(3) <= 3 * 0.3**2 / 2
    assert hb.PureDP(0.3).renyi(10**6) == pytest.approx(0.3, rel=1e-5)
    assert hb.LaplaceDP(0.5).renyi(2) == pytest.approx(
        math.log((2 / 3) * math.exp(0.5) + (1 / 3) * math.exp(-1.0)), rel=1e-12
    )
    curve = [(1.5, 6.50070897e-4), (2.5, 1.085418056e-3), (5, 2.18076e-3), (50, 2.38460e-2)]  # by quadrature
    for order, value in curve:
        ours = (hb.SampledGaussian(2.5, 0.01) * 50).renyi(order)
        assert ours >= value * (1 - 1e-5 * (order == int(order)))
        assert ours == pytest.approx(value, rel=1e-5)


def test_between_whole_orders_there_is_a_chord(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = renyi.of_poisson_gaussian(2.25, 2.5, 0.01)
    monkeypatch.setattr(transforms, "MOST_NODES", 0)
    assert exact <= renyi.of_poisson_gaussian(2.25, 2.5, 0.01) <= 1.1 * exact


def test_renyi_prices_are_no_looser_than_those_of_others() -> None:
    """What dp_accounting and Opacus answer for 10**3 to 10**6 steps, the lower of the two."""
    for steps, theirs in ((10**3, 2.1014), (10**4, 6.7127), (10**5, 27.2319), (10**6, 145.1668)):
        assert renyi.best_epsilon(sgm(0.01, 1, steps).renyi, 1e-5) <= theirs


@pytest.mark.parametrize("loss", [sgm(0.01, 1, 1000), hb.LaplaceDP(0.1) * 100, hb.PureDP(0.1) * 100], ids=repr)
def test_conversion_only_loosens(loss: hb.Loss) -> None:
    assert renyi.best_epsilon(loss.renyi, 1e-5) >= loss.epsilon_interval(1e-5)[0]


def test_rate_is_read_exactly() -> None:
    assert hb.SampledGaussian(1, Fraction(1, 100)) == hb.SampledGaussian(1, 0.01)


# What a review found; each of these once gave an answer below the truth, or none.


def test_a_sample_of_everybody_is_no_sample_for_renyi_either() -> None:
    assert hb.GaussianDP(1.0).subsample(1).renyi(2) == pytest.approx(1)
    assert hb.SampledGaussian(1.0, 1).renyi(2.5) >= 1.25
    assert (hb.GaussianDP(1.0).subsample(1) * 1000 + hb.ZCDP(1e-9)).epsilon(1e-5) > 633
    assert (hb.GaussianDP(2.0).subsample(1) * 10**6).epsilon(1e-6) >= 2e6


@pytest.mark.parametrize("rate", [1.0, 0.999999, 0.5, 0.01, 1e-5])
@pytest.mark.parametrize("sigma", [0.5, 2, 50])
@pytest.mark.parametrize("order", [2, 5, 40])
def test_renyi_of_a_sampled_gaussian_by_high_precision(rate: float, sigma: float, order: int) -> None:
    with mpmath.workprec(300):
        q, s = mpmath.mpf(rate), mpmath.mpf(sigma)
        terms = [
            mpmath.binomial(order, k) * (1 - q) ** (order - k) * q**k * mpmath.exp(k * (k - 1) / (2 * s**2))
            for k in range(order + 1)
        ]
        truth = mpmath.log(mpmath.fsum(terms)) / (order - 1)
    ours = hb.SampledGaussian(sigma, rate).renyi(order)
    assert ours >= truth * (1 - mpmath.mpf(10) ** -15)
    assert ours <= truth * 1.01 + 1e-10


@pytest.mark.parametrize("epsilon", [1e-12, 1e-8, 1e-4, 1e-2, 1, 30])
@pytest.mark.parametrize("order", [1.001, 2, 50])
def test_small_renyi_divergences_do_not_vanish(epsilon: float, order: float) -> None:
    with mpmath.workprec(300):
        e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
        response = mpmath.log((mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) / (1 + mpmath.exp(e))) / (a - 1)
        laplace = mpmath.log(a / (2 * a - 1) * mpmath.exp(e * (a - 1)) + (a - 1) / (2 * a - 1) * mpmath.exp(-e * a)) / (
            a - 1
        )
    for ours, truth in ((hb.PureDP(epsilon).renyi(order), response), (hb.LaplaceDP(epsilon).renyi(order), laplace)):
        assert ours >= truth * (1 - mpmath.mpf(10) ** -12)


def test_failures_are_not_sampled_away() -> None:
    with pytest.raises(ParameterError, match="cannot be subsampled"):
        hb.ApproxDP(1, 0.1).subsample(0.5)


def test_large_steps_have_finite_honest_prices() -> None:
    assert hb.PureDP(1000).subsample(0.5).epsilon() >= 999.3
    assert hb.PureDP(1000).subsample(0.5).epsilon(1e-5) <= 1000
    assert hb.LaplaceDP(1000).epsilon(1e-5) <= 1000
    assert hb.LaplaceDP(2000).delta(10) > 0.99
    assert math.isfinite(hb.GaussianDP(50).subsample(0.5).epsilon(1e-5))
    low, high = hb.SampledGaussian(0.3, 0.01, people=10).epsilon_interval(1e-5)
    assert 0 < low <= high < 100


def test_grids_pass_through_atoms() -> None:
    lattice = pairs.Atoms(((-0.2, 0.3), (0.0, 0.3), (0.2, 0.4)))
    assert accountant.through_atoms([(lattice, 3)], 0.65) == pytest.approx(0.6)
    assert accountant.through_atoms([(lattice, 3)], 0.15) == pytest.approx(0.1)
    uneven = pairs.Atoms(((-0.2, 0.3), (0.1, 0.3), (0.2, 0.4)))
    assert accountant.through_atoms([(uneven, 3)], 0.15) == pytest.approx(0.4 / 3)
    assert accountant.through_atoms([(uneven, 3)], 0.65) == 0.65


def test_where_distances_in_variation_add_up_to_less_than_delta() -> None:
    loss = hb.SampledGaussian(2.3, 0.0004) * 2
    total = loss.delta(0)
    assert loss.epsilon_interval(2 * total) == (0.0, 0.0)
    assert loss.epsilon(total * 0.999) > 0


def test_parts_of_very_different_size() -> None:
    low, high = (hb.GaussianDP(1.0) + hb.PureDP(1e-9)).epsilon_interval(1e-5)
    assert low - 1e-6 <= 4.377178 <= high
    assert high - low <= NARROW * high


def test_bounded_ends_inside_the_last_cell() -> None:
    loss = hb.LaplaceDP(8, "replace").subsample(0.5, "without-replacement") + hb.PureDP(0.37, "replace") * 2
    low, high = loss.epsilon_interval(1e-7)
    assert low <= 8.047187 <= high


def test_lower_ends_are_confirmed() -> None:
    assert hb.ApproxDP(20, 1e-6).epsilon_interval(0.99999)[0] <= 8.5
    low, _ = hb.GaussianDP(1.0).epsilon_interval(0.38292492)
    assert low <= 8.2583993484e-9


def test_delta_is_one_far_below_the_mean_and_soon_known() -> None:
    assert accountant.delta_interval(sgm(0.01, 1, 10**9)._pairs(), 10.0) == (0.0, 1.0)
