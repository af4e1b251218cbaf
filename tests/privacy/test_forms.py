"""Closed forms against high-precision arithmetic: each is on the safe side of the truth, and near it."""

import math

import mpmath
import numpy as np
import pytest
from privacy import truths
from privacy.truths import Sampled

import hubbub as hb
from hubbub.errors import ParameterError
from hubbub.privacy import renyi
from hubbub.privacy import theorems as t


def test_nothing_far_out_is_free() -> None:
    assert hb.GaussianDP(0.01).delta(50) > 0
    assert hb.GaussianDP(1).delta(1e4) > 0
    assert hb.GaussianDP(1).delta(38**2) < 1e-300


@pytest.mark.parametrize("order", [1.01, 1.5, 2, 10, 1000])
@pytest.mark.parametrize("divergence", [0.0, 1e-6, 0.3, 50.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-6, 0.1])
def test_conversion_is_the_proposition(order: float, divergence: float, delta: float) -> None:
    """CKS20, Proposition 12, evaluated with 50 digits; and back again."""
    with mpmath.workdps(50):
        a = mpmath.mpf(order)
        truth = divergence + mpmath.log((a - 1) / a) - (mpmath.log(delta) + mpmath.log(a)) / (a - 1)
    ours = renyi.epsilon_at(order, divergence, delta)
    assert ours == pytest.approx(float(truth), rel=1e-12, abs=1e-12)
    assert renyi.log_delta_at(order, divergence, ours) == pytest.approx(math.log(delta), abs=1e-9 * order)


@pytest.mark.parametrize("mu", [0.1, 1.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_conversion_never_beats_the_gaussian_it_converts(mu: float, delta: float) -> None:
    assert renyi.best_epsilon(lambda a: a * mu**2 / 2, delta) >= hb.GaussianDP(mu).epsilon_interval(delta)[0]
    epsilon = hb.GaussianDP(mu).epsilon(delta)
    assert renyi.best_delta(lambda a: a * mu**2 / 2, epsilon) >= delta * (1 - 1e-9)


def sampled_divergence(order: float, sigma: float, rate: float) -> float:
    """ln E_Q[(P/Q)**order] / (order - 1) by quadrature."""
    with mpmath.workdps(30):

        def integrand(x: float) -> mpmath.mpf:
            ratio = 1 - rate + rate * mpmath.exp((2 * x - 1) / (2 * mpmath.mpf(sigma) ** 2))
            return ratio**order * mpmath.npdf(x, 0, sigma)

        middle = [float(k) for k in np.linspace(-10 * sigma, order + 10 * sigma, 12)]
        return float(mpmath.log(mpmath.quad(integrand, middle)) / (order - 1))


@pytest.mark.parametrize("order", [1.25, 2, 2.25, 2.75, 5.1, 8])
@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.1), (2.0, 0.5), (0.8, 0.01)])
def test_renyi_of_a_sampled_gaussian_between_whole_orders(order: float, sigma: float, rate: float) -> None:
    truth = sampled_divergence(order, sigma, rate)
    ours = hb.SampledGaussian(sigma, rate).renyi(order)
    assert ours >= truth * (1 - 1e-9)
    assert ours <= truth * (1 + 1e-6 if order == int(order) else 2)


def test_very_high_orders_price_the_whole_gaussian() -> None:
    loss = hb.SampledGaussian(2.0, 0.01)
    assert loss.renyi(5000) == pytest.approx(5000 / 8)
    assert loss.renyi(4096) <= 4096 / 8 <= loss.renyi(4097)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-2, 1.0, 20.0])
@pytest.mark.parametrize("order", [1.01, 2, 50])
def test_renyi_of_response_and_laplace(epsilon: float, order: float) -> None:
    with mpmath.workdps(60):
        e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
        response = mpmath.log((mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) / (1 + mpmath.exp(e))) / (a - 1)
        laplace = a / (2 * a - 1) * mpmath.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mpmath.exp(-a * e)
        laplace = mpmath.log(laplace) / (a - 1)
    for ours, truth in ((hb.PureDP(epsilon).renyi(order), response), (hb.LaplaceDP(epsilon).renyi(order), laplace)):
        assert ours >= truth * (1 - mpmath.mpf(10) ** -12)
        assert epsilon < 1e-3 or ours <= truth * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("order", [1.5, 2, 10])
def test_bounded_range_covers_every_law_of_two_losses(epsilon: float, order: float) -> None:
    """Losses t and t - epsilon, with the chances that make a pair of laws of them."""
    worst = 0.0
    for at in np.linspace(0, epsilon, 401)[1:-1]:
        chance = math.expm1(epsilon - at) / (math.exp(epsilon - at) - math.exp(-at))
        terms = chance * math.exp((order - 1) * at) + (1 - chance) * math.exp((order - 1) * (at - epsilon))
        worst = max(worst, math.log(terms) / (order - 1))
    ours = hb.BoundedRange(epsilon).renyi(order)
    assert worst <= ours <= epsilon * (1 + 1e-12)
    if epsilon * order <= 1:
        assert ours <= 1.1 * worst


@pytest.mark.parametrize("at", [0.0, 0.3, 0.69])
def test_below_its_epsilon_an_approximate_loss_adds_its_delta(at: float) -> None:
    epsilon, delta = 0.7, 1e-2
    beyond = (math.exp(epsilon) - math.exp(at)) / (1 + math.exp(epsilon))
    assert hb.ApproxDP(epsilon, delta).delta(at) == pytest.approx(delta + (1 - delta) * beyond, rel=1e-12)


def test_failures_stay() -> None:
    loss = hb.ApproxDP(0.1, 1e-6) * 10
    assert loss.epsilon(1e-6) == math.inf
    assert loss.delta(1.0) >= -math.expm1(10 * math.log1p(-1e-6)) * (1 - 1e-14)
    with pytest.raises(ParameterError, match="cannot be subsampled"):
        hb.ApproxDP(1, 0.1).subsample(0.5)


def test_renyi_groups_triple_with_every_doubling() -> None:
    grouped = hb.RenyiDP((8, 16), (0.5, 1)).group(4)
    assert grouped.orders == (2, 4)
    assert grouped.epsilons == pytest.approx((4.5, 9))


def test_replacing_is_a_mixture_on_both_sides() -> None:
    truth = truths.by_one_step(Sampled(1.0, 0.3, replace=True), 1e-5).epsilon
    low, high = hb.SampledGaussian(1.0, 0.3, neighbours="replace").epsilon_interval(1e-5)
    assert low <= truth <= high <= truth * 1.005
    # of everybody: two steps of a Gaussian
    assert hb.SampledGaussian(1.0, 1, neighbours="replace").renyi(3) == pytest.approx(3 * 2**2 / 2)


def test_a_group_is_a_binomial_mixture() -> None:
    truth = truths.by_inversion([(Sampled(1.0, 0.3, people=3), 1)], 1e-5).epsilon
    low, high = hb.SampledGaussian(1.0, 0.3, people=3).epsilon_interval(1e-5)
    assert low <= truth <= high <= truth * 1.005
    assert hb.SampledGaussian(1.0, 1, people=3).renyi(3) == pytest.approx(3 * 3**2 / 2)


def test_advanced_composition_pays_for_its_slack() -> None:
    epsilon, delta = t.advanced_composition(0.1, 1e-9, 100, 1e-6)
    assert delta == pytest.approx(100 * 1e-9 + 1e-6)
    assert epsilon >= t.optimal_composition(0.1, 100, 1e-6)
