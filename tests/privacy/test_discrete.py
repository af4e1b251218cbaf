"""The discrete Gaussian in one dimension: its price against its law, summed with many digits."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hubbub as hb
from hubbub.errors import DataTypeError, ParameterError
from hubbub.privacy import discrete
from hubbub.privacy.discrete import DiscreteGaussianPair, integer_masses


def law(sigma: float, centre: int, reach: int) -> list[mpmath.mpf]:
    """Probabilities at -reach .. reach, around a centre; the tails beyond are far below the digits kept."""
    s = mpmath.mpf(sigma)
    weights = [mpmath.exp(-(mpmath.mpf(x - centre) ** 2) / (2 * s**2)) for x in range(-reach, reach + 1)]
    norm = mpmath.nsum(lambda k: mpmath.exp(-(k**2) / (2 * s**2)), [-mpmath.inf, mpmath.inf])
    return [w / norm for w in weights]


def profile(sigma: float, shift: int, epsilon: float) -> mpmath.mpf:
    with mpmath.workprec(200):
        reach = math.ceil(40 * sigma) + shift + 2
        p, q = law(sigma, shift, reach), law(sigma, 0, reach)
        grown = mpmath.exp(mpmath.mpf(epsilon))
        return mpmath.fsum(max(mpmath.mpf(0), a - grown * b) for a, b in zip(p, q, strict=True))


@settings(max_examples=40, deadline=None)
@given(st.floats(0.15, 6), st.integers(1, 6), st.just(0.0) | st.floats(1e-3, 3))
def test_delta_is_the_law_s(sigma: float, shift: int, fraction: float) -> None:
    epsilon = fraction * shift / sigma
    truth = profile(sigma, shift, epsilon)
    ours = hb.DiscreteGaussianDP(shift, sigma).delta(epsilon)
    assert ours >= truth * (1 - mpmath.mpf(10) ** -16)
    assert ours <= truth * (1 + mpmath.mpf(10) ** -10) + mpmath.mpf(10) ** -290


@settings(max_examples=40, deadline=None)
@given(st.floats(0.15, 6), st.integers(1, 6), st.floats(-25, -0.2))
def test_epsilon_is_tight(sigma: float, shift: int, log_delta: float) -> None:
    delta = 10**log_delta
    low, high = hb.DiscreteGaussianDP(shift, sigma).epsilon_interval(delta)
    assert profile(sigma, shift, high) <= delta
    assert low == 0 or profile(sigma, shift, low) >= delta
    assert high - low <= 1e-9 * high + 1e-12


@pytest.mark.parametrize("sigma", [0.4, 1.0, 2.5, 40.0])
def test_smaller_shifts_never_tell_more(sigma: float) -> None:
    """The claim's proof, checked: at every epsilon the largest shift is the worst, exactly."""
    for epsilon in (0.0, 0.1, 0.5, 1.3, 4.0):
        prices = [hb.DiscreteGaussianDP(t, sigma).delta(epsilon) for t in range(1, 9)]
        assert prices == sorted(prices)


def test_it_is_neither_the_continuous_law_nor_its_concentrated_bound() -> None:
    for sigma in (1.0, 2.0, 4.0):
        own = hb.DiscreteGaussianDP(1, sigma)
        assert own.epsilon(1e-6) < hb.ZCDP(1 / (2 * sigma**2)).epsilon(1e-6)
    assert hb.DiscreteGaussianDP(1, 2.0).epsilon(1e-6) > hb.GaussianDP(0.5).epsilon(1e-6)
    for sigma in (500, 10**5):
        assert hb.DiscreteGaussianDP(sigma // 4, sigma).epsilon(1e-6) == pytest.approx(
            hb.GaussianDP(0.25).epsilon(1e-6), rel=1e-3
        )


@settings(max_examples=20, deadline=None)
@given(st.floats(0.4, 3), st.integers(1, 3), st.integers(2, 3), st.floats(-8, -1))
def test_repeated_by_enumeration(sigma: float, shift: int, times: int, log_delta: float) -> None:
    """Sums of independent noise: the loss of many depends on the sum alone, so its law is a convolution."""
    delta = 10**log_delta
    reach = math.ceil(12 * sigma) + shift
    one = np.array([float(v) for v in law(sigma, 0, reach)])
    sums = one
    for _ in range(times - 1):
        sums = np.convolve(sums, one)
    total = np.arange(len(sums)) - times * reach
    losses = shift * (2 * total + times * shift) / (2 * sigma**2)

    def delta_at(epsilon: float) -> float:
        return float((sums * np.maximum(0, -np.expm1(epsilon - losses))).sum())

    low, high = (hb.DiscreteGaussianDP(shift, sigma) * times).epsilon_interval(delta)
    assert delta_at(high) <= delta * (1 + 1e-9)
    assert low == 0 or delta_at(low * (1 - 1e-9)) >= delta * (1 - 1e-9)
    assert high - low <= 0.05 * high + 1e-3


@pytest.mark.parametrize("sigma", [3.0, 700.0, 1999.0, 2001.0, 1e5, 1e9])
def test_masses_of_cells_by_high_precision(sigma: float) -> None:
    """Wide and narrow cells, in the middle and far out; sums over integers as corrected integrals of many digits."""
    z = np.array([-30.0, -12.0, -3.0, -0.01, 0.0, 1e-3, 0.5, 0.502, 4.0, 11.0, 11.001, 25.0, 36.0])
    cuts = np.unique(np.round(z * sigma))
    masses = integer_masses(cuts, sigma)
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    with mpmath.workprec(2500):
        s = mpmath.mpf(sigma)
        norm = mpmath.fsum(mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s**2)) for k in range(-200, 201))

        def beyond(x: float) -> mpmath.mpf:
            """P(noise >= x)."""
            if sigma < 100:
                terms = (mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s**2)) for k in range(int(x), 200))
                return mpmath.fsum(terms) / norm
            a = (mpmath.mpf(x) - mpmath.mpf(1) / 2) / s
            phi = mpmath.npdf(a)
            series = (-a / (24 * s**2) + 7 * (a**3 - 3 * a) / (5760 * s**4)) * phi
            series -= 31 * (a**5 - 10 * a**3 + 15 * a) / (967680 * s**6) * phi
            return mpmath.ncdf(-a) + series

        ends = [beyond(c) for c in cuts]
        truth = [1 - ends[0], *(a - b for a, b in pairwise(ends)), ends[-1]]
    for ours, exact in zip(masses, truth, strict=True):
        assert ours == pytest.approx(float(exact), rel=discrete.RELATIVE_ERROR, abs=1e-300)


def test_listed_and_corrected_masses_agree() -> None:
    cuts = np.arange(-80_000.0, 80_000.0, 7.0)
    listed = integer_masses(cuts, 1990.0)
    corrected = discrete._corrected((cuts - 0.5) / 1990.0, 1990.0)
    np.testing.assert_allclose(listed, corrected, rtol=1e-11, atol=1e-290)


@pytest.mark.parametrize("sigma", [1.0, 5.0, 3000.0])
def test_the_pair_keeps_both_masses(sigma: float) -> None:
    pair = DiscreteGaussianPair(2, sigma)
    low, high = pair.span(1e-12)
    edges = np.linspace(low, high, 500)
    p, q = pair.masses(edges)
    atoms = np.array(pair.atoms()).reshape(-1, 2)
    assert p.sum() + atoms[:, 1].sum() == pytest.approx(1, abs=1e-12)
    assert q.sum() + (atoms[:, 1] * np.exp(-atoms[:, 0])).sum() == pytest.approx(1, abs=1e-9)
    outside = atoms[(atoms[:, 0] < low) | (atoms[:, 0] > high), 1].sum()
    assert p[0] + p[-1] + outside <= 1e-12
    np.testing.assert_allclose(p, q[::-1], rtol=1e-6, atol=1e-12)  # symmetric


def test_as_a_value() -> None:
    loss = hb.DiscreteGaussianDP(2, 3.5)
    assert loss.epsilon() == math.inf
    assert loss.group(3) == hb.DiscreteGaussianDP(6, 3.5)
    assert loss.to_replace() == hb.DiscreteGaussianDP(4, 3.5, "replace")
    assert hb.Loss.from_json((loss * 3).to_json()) == loss * 3
    assert loss.renyi(4) == pytest.approx(4 * 4 / (2 * 3.5**2))
    for sigma in (0.7, 50, 5000):  # with atoms, listed, corrected
        one = hb.DiscreteGaussianDP(max(1, int(sigma) // 5), sigma)
        sampled = (one.subsample(0.1) * 10).epsilon_interval(1e-6)
        assert 0 < sampled[0] <= sampled[1] < (one * 10).epsilon(1e-6)
    assert hb.DiscreteGaussianDP(1, 0.01).epsilon(1e-6) <= hb.ZCDP(5000).epsilon(1e-6) * (1 + 1e-9)  # hardly overlap
    assert hb.DiscreteGaussianDP(1, 0.01).delta(1) == 1
    assert hb.DiscreteGaussianDP(1, 1e9).delta(1e-9) <= hb.ZCDP(5e-19).delta(1e-9) * (1 + 1e-9)
    assert loss.epsilon_interval(0.9) == (0, 0)
    for bad in ((0, 1), (1.5, 1), (1, 0), (1, -1), (1, math.inf), (10**60, 1e-3)):
        with pytest.raises(ParameterError):
            hb.DiscreteGaussianDP(*bad)


def test_many_losses_stay_quick_and_narrow_from_above() -> None:
    """Seven thousand different losses a step; the truth is a sum's, so the Gaussian's to within the lattice."""
    high = (hb.DiscreteGaussianDP(20, 100) * 50).epsilon(1e-6)
    assert high == pytest.approx((hb.GaussianDP(0.2) * 50).epsilon(1e-6), rel=2e-3)


# The mechanism.


def test_single_numbers_have_the_law_s_own_price() -> None:
    single = hb.DiscreteGaussian(2.7, sigma=3, max_length=1)
    assert single.loss == hb.DiscreteGaussianDP(2, 3.0)
    assert hb.DiscreteGaussian(0.5, sigma=3, max_length=1).loss == hb.DiscreteGaussianDP(1, 3.0)
    assert isinstance(hb.DiscreteGaussian(2, sigma=3, max_length=2).loss, hb.ZCDP)
    assert isinstance(single.release(5), int)
    assert len(single.release([5])) == 1
    for several in ([1, 2], np.array([1, 2]), np.zeros((2, 2), int)):
        with pytest.raises(DataTypeError, match="max_length=1"):
            single.release(several)
    assert len(hb.DiscreteGaussian(1, sigma=3).release([1, 2, 3])) == 3
    assert len(hb.DiscreteGaussian(1, sigma=3, max_length=2).release([1, 2, 3])) == 3  # the price does not depend on it


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 20), st.floats(1e-12, 0.5), st.integers(1, 5))
def test_single_calibration_never_overspends_and_gains(epsilon: float, delta: float, sensitivity: int) -> None:
    single = hb.DiscreteGaussian(sensitivity, epsilon=epsilon, delta=delta, max_length=1)
    assert single.loss.epsilon(delta) <= epsilon
    assert single.sigma <= hb.DiscreteGaussian(sensitivity, epsilon=epsilon, delta=delta).sigma * (1 + 1e-6)
