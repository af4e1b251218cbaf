"""Losses against the laws they speak of, computed independently."""

import math
import pickle

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from hubbub.errors import ParameterError

LOSSES = [
    hb.PureDP(0.7),
    hb.ApproxDP(0.7, 1e-4),
    hb.GaussianDP(0.9),
    hb.ZCDP(0.3),
    hb.GaussianDP(0.01),
    hb.PureDP(30),
    hb.RandomizedResponseDP(0.7, 5),
    hb.TruncatedLaplaceDP(0.7, 1e-4, steps=7),
    hb.TruncatedLaplaceDP(0.7, 1e-70, neighbours="replace"),
    hb.DiscreteGaussianDP(2, 3.0),
    hb.DiscreteGaussianDP(1000, 5000.0),
    hb.BoundedRange(0.7),
    hb.LaplaceDP(0.7),
    hb.BoundedRange(40),
    hb.RenyiDP((2.0, 8.0), (0.1, 0.2)),
]


def gaussian_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workprec(400):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.untraced
@given(st.floats(0.01, 30), st.just(0.0) | st.floats(1e-9, 50))
def test_gaussian_delta_is_an_upper_bound_and_tight(mu: float, epsilon: float) -> None:
    truth = gaussian_delta(mu, epsilon)
    bound = hb.GaussianDP(mu).delta(epsilon)
    assert bound >= truth
    assert bound <= truth * (1 + mpmath.mpf(1e-12)) or bound < 1e-300


@pytest.mark.untraced
@given(st.floats(0.01, 30), st.floats(-30, -0.5))
def test_gaussian_epsilon_is_an_upper_bound_and_tight(mu: float, log_delta: float) -> None:
    delta = 10**log_delta
    epsilon = hb.GaussianDP(mu).epsilon(delta)
    assert gaussian_delta(mu, epsilon) <= mpmath.mpf(delta) * (1 + mpmath.mpf(1e-15))
    assert epsilon == 0 or gaussian_delta(mu, epsilon * (1 - 1e-9)) > delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"), [(1, 1e-5, 3.730632), (0.1, 1e-6, 36.30469), (3, 1e-5, 1.390593)]
)
def test_reference_calibrations(epsilon: float, delta: float, sigma: float) -> None:
    assert hb.Gaussian(1, epsilon=epsilon, delta=delta).sigma == pytest.approx(sigma, rel=1e-6)


def test_reference_values() -> None:
    assert hb.GaussianDP(1).delta(1) == pytest.approx(0.126936, abs=1e-6)
    assert hb.GaussianDP(1).epsilon(1e-5) == pytest.approx(4.37718, abs=1e-5)
    assert hb.GaussianDP(2).epsilon(1e-5) == pytest.approx(9.99726, abs=1e-5)
    assert hb.ZCDP(0.5).epsilon(1e-5) == pytest.approx(4.7284, abs=1e-4)


@pytest.mark.untraced
@given(st.floats(1e-6, 30), st.floats(1e-40, 0.9))
def test_calibration_never_overspends(epsilon: float, delta: float) -> None:
    m = hb.Gaussian(1, epsilon=epsilon, delta=delta)
    assert m.loss.delta(epsilon) <= delta
    assert m.loss.epsilon(delta) <= epsilon


@pytest.mark.untraced
@given(st.floats(0.01, 20), st.floats(1e-12, 0.5))
def test_discrete_gaussian_calibration_never_overspends(epsilon: float, delta: float) -> None:
    assert hb.DiscreteGaussian(1, epsilon=epsilon, delta=delta).loss.epsilon(delta) <= epsilon


@given(st.floats(0.01, 20), st.just(0.0) | st.floats(1e-6, 1))
def test_pure_is_randomised_response(bound: float, fraction: float) -> None:
    """The profile of the pair (e^b/(1+e^b), 1/(1+e^b)), the worst pair there is."""
    loss, epsilon = hb.PureDP(bound), fraction * bound
    with mpmath.workprec(300):
        keep = mpmath.exp(bound) / (1 + mpmath.exp(bound))
        truth = max(mpmath.mpf(0), keep - mpmath.exp(epsilon) * (1 - keep))
    assert truth <= loss.delta(epsilon) + 1e-300
    assert loss.delta(epsilon) <= truth * (1 + 1e-9) + 1e-15
    if truth < 0.999:
        assert loss.epsilon(loss.delta(epsilon)) == pytest.approx(epsilon, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_bounds_are_monotone_and_never_nan(loss: hb.Loss) -> None:
    deltas = [0, 1e-60, 1e-12, 1e-6, 1e-3, 0.1, 0.9, 0.999]
    epsilons = [loss.epsilon(d) for d in deltas]
    assert epsilons == sorted(epsilons, reverse=True)
    assert not any(math.isnan(e) or e < 0 for e in epsilons)
    back = [loss.delta(e) for e in (0, 1e-9, 0.1, 1, 5, 50, 1e4)]
    assert back == sorted(back, reverse=True)
    assert all(0 <= d <= 1 for d in back)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_are_values(loss: hb.Loss) -> None:
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert eval(repr(loss), vars(hb) | {n: getattr(hb, n) for n in hb.__all__}) == loss
    with pytest.raises(AttributeError):
        loss.neighbours = "replace"


def test_pure_and_approximate_keep_what_was_written() -> None:
    assert hb.PureDP(0.3).epsilon() == 0.3
    assert hb.PureDP(epsilon=0.1, neighbours="replace").epsilon() == 0.1
    assert hb.ApproxDP(epsilon=0.1, delta=1e-6).epsilon(1e-6) == 0.1
    assert hb.ApproxDP(0.1, 1e-6).epsilon(9e-7) == math.inf
    assert hb.GaussianDP(1).epsilon() == hb.ZCDP(1).epsilon() == math.inf


@pytest.mark.parametrize("bad", [-1, 0, math.nan, math.inf, "1", None])
def test_bad_losses(bad: object) -> None:
    for make in (hb.PureDP, hb.GaussianDP, hb.ZCDP):
        with pytest.raises(ParameterError):
            make(bad)
    with pytest.raises(ParameterError):
        hb.ApproxDP(1, bad)
    with pytest.raises(ParameterError):
        hb.PureDP(1, neighbours=bad)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("bad", [-0.1, 1, 2, math.nan, "x"])
def test_bad_questions(loss: hb.Loss, bad: object) -> None:
    with pytest.raises(ParameterError):
        loss.epsilon(bad)
    if bad not in (1, 2):
        with pytest.raises(ParameterError):
            loss.delta(bad)


def test_zcdp_covers_the_gaussian_it_speaks_of() -> None:
    for mu in (0.1, 1.0, 4.0):
        for delta in (1e-12, 1e-5, 0.1):
            assert hb.ZCDP(mu**2 / 2).epsilon(delta) >= hb.GaussianDP(mu).epsilon(delta)
        for epsilon in np.linspace(0, 10, 5):
            assert hb.ZCDP(mu**2 / 2).delta(epsilon) >= hb.GaussianDP(mu).delta(epsilon)
