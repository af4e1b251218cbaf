"""Where doubles are at their limits: bounds still hold, and nothing breaks, warns or runs on for ever."""

import math
import time
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import hubbub as hb
from hubbub.privacy import accountant
from hubbub.privacy.numerical import Law, Profile
from hubbub.privacy.pairs import GaussianPair, PoissonPair, Reversed

GAUSSIANS = [
    (hb.GaussianDP(0.001).subsample(1) * 10**6, 1.0, 15.5),
    (
        hb.SampledGaussian(35897249604930.27, 1, neighbours="replace") * 11_343_858,
        2 * math.sqrt(11_343_858) / 35897249604930.27,
        1.8765e-10,
    ),
]


@pytest.mark.parametrize(("loss", "mu", "epsilon"), GAUSSIANS, ids=["cases", "tiny losses"])
def test_deltas_of_gaussians_in_disguise(loss: hb.Loss, mu: float, epsilon: float) -> None:
    with mpmath.workdps(40):
        exact = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
        assert loss.delta(epsilon) >= float(exact)


def test_losses_smaller_than_the_error_of_a_mass() -> None:
    """Sampled responses whose losses are near 1e-12: delta as a binomial sum."""
    base, rate, times, epsilon = 0.03622496530116629, 2.9193519884118485e-11, 46014, 2.3695698524493215e-10
    with mpmath.workdps(50):
        q = mpmath.mpf(rate)
        of_q = [1 / (1 + mpmath.exp(base)), 1 / (1 + mpmath.exp(-base))]
        up, down = (mpmath.log1p(q * mpmath.expm1(sign * base)) for sign in (1, -1))
        p, exact = of_q[0] * mpmath.exp(up), mpmath.mpf(0)
        for k in range(round(times * p) - 2500, round(times * p) + 2500):
            loss = k * up + (times - k) * down
            if loss > epsilon:
                exact -= mpmath.binomial(times, k) * p**k * (1 - p) ** (times - k) * mpmath.expm1(epsilon - loss)
    assert (hb.PureDP(base).subsample(rate) * times).delta(epsilon) >= float(exact)


def wide_law(astray: float = 0.0) -> Law:
    """Losses from -600 to 0, evenly weighted."""
    weights = np.full(601, 1 / 601)
    return Law(-600.0, 1.0, np.arange(601), weights, -0.9 * 600, 0.9, 0.0, upper=True, astray=astray)


def test_a_wide_window_far_below_its_centre() -> None:
    losses = np.arange(-600.0, 1.0)
    beyond = losses[losses > -450]
    exact = float(np.sum(np.exp(-0.9 * (600 + beyond)) / 601 * -np.expm1(-450 - beyond)))
    assert exact * (1 - 1e-9) <= Profile(wide_law(), 0.0).delta(-450.0) <= exact * (1 + 1e-9)


def test_what_strayed_counts_however_far_below_it_is_asked() -> None:
    # e**(log_scale - tilt epsilon) of it is P's: here more than everything
    assert Profile(wide_law(astray=1e-12), 0.0).delta(-2000.0) == 1.0
    shifted = Law(200.0, 1.0, np.arange(2), np.full(2, 0.5), 3000.0, 20.0, 0.0, upper=True, astray=1e-12)
    assert Profile(shifted, 200.0).delta(10.0) == 1.0


def test_infinite_losses_are_rounded_up() -> None:
    failure, times, delta = 2.59e-09, 21, 5.438999859129902e-08
    assert 1 - (1 - Fraction(str(failure))) ** times > Fraction(str(delta))
    assert (hb.ApproxDP(1.0, failure) * times).epsilon(delta) == math.inf


def test_one_step_of_losses_that_round_to_nothing() -> None:
    # N(1) against N(-1) at this deviation: epsilon is about mu**2/2 + 32 mu, mu = 2/sigma
    assert hb.SampledGaussian(2.7e72, 1, neighbours="replace").epsilon(1e-228) > 32 * 2 / 2.7e72


@pytest.mark.parametrize(("mu", "rate"), [(5.4, 1 - 2.0**-45), (1 / 0.15, 1 - 2.0**-53), (2.0, 0.9), (1.0, 0.3)])
def test_one_step_of_nearly_everyone(mu: float, rate: float) -> None:
    """N(0, 1) against the mixture, near the largest loss there is: ln of one over the rate of absence."""
    with mpmath.workdps(40):
        for share in (0.9, 0.97, 0.999):
            epsilon = -share * math.log(1 - rate)
            low, high = accountant._step_delta(Reversed(PoissonPair(GaussianPair(mu), rate)), epsilon)
            q = mpmath.mpf(rate)
            x = mpmath.log((mpmath.exp(-mpmath.mpf(epsilon)) - (1 - q)) / q) / mu + mpmath.mpf(mu) / 2
            absent = mpmath.ncdf(x)
            exact = absent - mpmath.exp(epsilon) * ((1 - q) * absent + q * mpmath.ncdf(x - mu))
            assert low <= exact <= high


def test_a_thousand_million_steps_are_grouped_at_once() -> None:
    law = Law(0.0, 1.0, np.arange(2), np.full(2, 0.5), 0.0, 0.0, 0.0, upper=True)
    began = time.perf_counter()
    grouped = accountant._grouped([(law, 10**9 + 7)], 20.0, 2)
    assert sum(n * each.steps for each, n in grouped) == 10**9 + 7
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(("epsilon", "prior"), [(13.76, 0.9880909866551246), (1.0, 0.5), (0.3, 0.2), (2.0, 1e-7)])
def test_beliefs_are_rounded_outwards(epsilon: float, prior: float) -> None:
    loss = hb.PureDP(epsilon)
    low, high = loss.posterior(prior)
    with mpmath.workdps(40):
        p, factor = mpmath.mpf(prior), mpmath.exp(-mpmath.mpf(epsilon))
        assert low <= p * factor / (p * factor + 1 - p)
        assert high >= p / (p + (1 - p) * factor)
        assert loss.utility_factor() >= 1 / factor


EXTREME = [
    (hb.GaussianDP(1.0) * 10**4 + hb.PureDP(1.0), 1e-5, 1.0),
    (hb.SampledGaussian(1e100, 0.5, people=3) * 10, 1e-5, 0),
    (hb.SampledGaussian(1e-118, 1.0, people=2) + hb.PureDP(1.0), 1e-5, 0.004),
    (hb.SampledGaussian(0.18659580833235528, 5.256e-30, neighbours="replace") * 10**15, 0.9999999, 1.0),
    (hb.TruncatedLaplaceDP(1e69, 7e-50, steps=1000) + hb.PureDP(1.0) * 2, 0.9999999, 1.0),
    (hb.TruncatedLaplaceDP(1e-117, 1.7e-134, steps=10**100) + hb.PureDP(1.0) * 2, 1e-5, 1.9e154),
    (hb.DiscreteGaussianDP(2, 1e113) + hb.GaussianDP(1e-4) * 10**9, 0.9999999, 1e-10),
    (hb.LaplaceDP(0.12117513606088981) * 10**15, 1e-300, 1.0),
    (hb.BoundedRange(0.0046).subsample(9e-211) * 5 + hb.RandomizedResponseDP(3.3, 3, "add-remove") * 10, 1e-5, 1e5),
    (hb.BoundedRange(1e39), 1e-5, 0),
    (hb.SampledGaussian(155679371815.6334, 1, neighbours="replace") * 38021473179037, 0.02, 1e-4),
    (hb.SampledGaussian(0.5192865261875296, 2.8168233598489944e-07, neighbours="replace") * 2, 1.2646e-05, 1.0),
]


@pytest.mark.parametrize(("loss", "delta", "epsilon"), EXTREME, ids=repr)
def test_nothing_breaks_at_extremes(loss: hb.Loss, delta: float, epsilon: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low, high = loss.epsilon_interval(delta)
        assert 0 <= low <= high
        assert 0 <= loss.delta(epsilon) <= 1
