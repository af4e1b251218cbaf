"""The notes' theorems, corrected: each bound attained or violated by an explicit example."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from hubbub.errors import ParameterError
from hubbub.privacy import divergences as d
from hubbub.privacy import noise_for, rate_for, steps_for
from hubbub.privacy import theorems as t


def test_erratum_group_privacy_with_k_delta_is_false() -> None:
    """One step is (1, delta)-private for every neighbour, yet two steps exceed (2, 2 delta)."""
    epsilon, delta = 1.0, 0.01
    # an outcome's chance on data sets 0, 1, 2, neighbours in a row: each step multiplies by e**epsilon and adds delta
    first = 1e-3
    chances = [first, first * math.e + delta, (first * math.e + delta) * math.e + delta]
    table = {k: [c, 1 - c] for k, c in enumerate(chances)}
    assert d.finite_delta(table, [(0, 1), (1, 2)], epsilon) <= delta + 1e-12
    two_steps = d.finite_delta(table, [(0, 2)], 2 * epsilon)
    assert two_steps > 2 * delta * 1.5
    assert two_steps <= t.group_privacy(epsilon, delta, 2)[1] + 1e-12
    assert hb.ApproxDP(epsilon, delta).group(2).delta_bound >= two_steps - 1e-12


def test_erratum_pure_gives_half_order_epsilon_squared() -> None:
    for epsilon in (0.01, 0.1, 1.0):
        keep = 1 / (1 + math.exp(-epsilon))
        p, q = [keep, 1 - keep], [1 - keep, keep]
        for order in (1.5, 2, 10):
            exact = d.renyi_divergence(p, q, order)
            assert exact <= t.pure_to_renyi(epsilon, order) <= 2 * order * epsilon**2
            assert hb.PureDP(epsilon).renyi(order) == pytest.approx(exact, rel=1e-9)
    assert hb.PureDP(0.01).renyi(2) == pytest.approx(2 * 0.01**2 / 2, rel=0.01)


def test_erratum_total_variation_is_tanh() -> None:
    for epsilon in (0.1, 1.0, 3.0):
        keep = 1 / (1 + math.exp(-epsilon))
        attained = d.total_variation([keep, 1 - keep], [1 - keep, keep])
        assert attained == pytest.approx(t.total_variation_bound(epsilon))
        assert attained < 1 - math.exp(-epsilon)


def test_posterior_bound_is_attained() -> None:
    keep, prior = 0.75, 0.2  # randomised response at ln 3
    posterior = prior * keep / (prior * keep + (1 - prior) * (1 - keep))
    assert posterior == pytest.approx(t.posterior_bound(math.log(3), prior))


def test_belief_shift_is_attained_and_not_exceeded() -> None:
    for epsilon in (0.2, 1.0, 2.0):
        best = max(t.posterior_bound(epsilon, p) - p for p in np.linspace(0.001, 0.999, 999))
        assert best <= t.belief_shift_bound(epsilon) + 1e-12
        assert best == pytest.approx(t.belief_shift_bound(epsilon), rel=1e-3)
    assert t.belief_shift_bound(1, values_under_add_remove=True) == t.belief_shift_bound(2)


def test_beliefs_give_privacy_back() -> None:
    for epsilon in (0.1, 1.0):
        shift = t.posterior_bound(epsilon, 0.5) - 0.5
        assert t.private_from_beliefs(shift) == pytest.approx(epsilon)
        assert t.private_from_beliefs(t.belief_shift_bound(epsilon), every_prior=True) == pytest.approx(epsilon)
    assert t.private_from_beliefs(0.5) == math.inf


def test_simulation_there_and_back() -> None:
    """A mechanism within epsilon of one simulator on every data set: two data sets are within 2 epsilon, and can be."""
    epsilon = 0.5
    simulator = [0.5, 0.5]
    high = 0.5 * math.exp(epsilon)
    table = {0: [high, 1 - high], 1: [1 - high, high]}
    reach = max(d.max_divergence(a, b) for law in table.values() for a, b in ((law, simulator), (simulator, law)))
    assert d.max_divergence(table[0], table[1]) <= t.private_from_simulation(reach)
    assert d.max_divergence(table[0], table[1]) > t.simulation_from_private(reach)


def test_compositions_in_order_of_tightness() -> None:
    basic = t.basic_composition([(0.1, 0)] * 100)[0]
    advanced = t.advanced_composition(0.1, 0, 100, 1e-6)[0]
    optimal = t.optimal_composition(0.1, 100, 1e-6)
    low, high = (hb.PureDP(0.1) * 100).epsilon_interval(1e-6)
    assert optimal < advanced < basic
    assert low - 1e-9 <= optimal <= high + 1e-9
    assert t.optimal_composition(0.01, 2, 0.5) == 0


@given(st.floats(0.01, 5), st.floats(1e-6, 0.999))
def test_subsampling_is_exact_for_randomised_response(epsilon: float, rate: float) -> None:
    amplified, _ = t.subsampling(epsilon, 0, rate)
    keep = 1 / (1 + math.exp(-epsilon))
    p, q = np.array([keep, 1 - keep]), np.array([1 - keep, keep])
    mixed = rate * p + (1 - rate) * q
    assert d.max_divergence(mixed, q) == pytest.approx(amplified)


def test_limits_of_renyi_divergence() -> None:
    """Towards order 1 the KL divergence, towards infinity the max divergence (the notes print both limits at 1)."""
    p, q = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    assert d.renyi_divergence(p, q, 1 + 1e-6) == pytest.approx(d.kl_divergence(p, q), rel=1e-4)
    assert d.renyi_divergence(p, q, 1e5) == pytest.approx(d.max_divergence(p, q), rel=1e-4)
    assert d.renyi_divergence(p, q, 0.5) < d.kl_divergence(p, q)


def test_divergences_at_the_edges() -> None:
    p, q = [1.0, 0.0], [0.5, 0.5]
    assert d.max_divergence(q, p) == d.kl_divergence(q, p) == d.renyi_divergence(q, p, 2) == math.inf
    assert d.max_divergence(p, q) == pytest.approx(math.log(2))
    assert d.hockey_stick(p, q, 0) == d.total_variation(p, q) == 0.5
    assert d.renyi_divergence([1, 0], [0, 1], 0.5) == math.inf
    for bad in (([0.5, 0.6], q), (q, [0.5]), ([], []), ([[1.0]], q), ([-0.5, 1.5], q)):
        with pytest.raises(ParameterError, match="add up to 1"):
            d.total_variation(*bad)
    with pytest.raises(ParameterError, match="as many outcomes as p, 2"):
        d.total_variation(p, [1.0])
    for order in (0, 1, -1):
        with pytest.raises(ParameterError):
            d.renyi_divergence(p, q, order)
    with pytest.raises(ParameterError):
        d.finite_delta({0: p}, [], 1)
    with pytest.raises(ParameterError):
        t.renyi_to_approximate(1, 1, 1e-5)


def test_renyi_simple_form_is_looser() -> None:
    assert t.renyi_to_approximate(10, 0.5, 1e-5) > hb.RenyiDP((10,), (0.5,)).epsilon(1e-5)


def test_calibration_lands_on_the_safe_side() -> None:
    sigma = noise_for(epsilon=2, delta=1e-5, rate=0.02, steps=500)
    assert (hb.SampledGaussian(sigma, 0.02) * 500).epsilon(1e-5) <= 2
    assert (hb.SampledGaussian(sigma * 0.995, 0.02) * 500).epsilon(1e-5) > 2
    steps = steps_for(epsilon=2, delta=1e-5, rate=0.02, noise_multiplier=1, most=10**5)
    assert (hb.SampledGaussian(1, 0.02) * steps).epsilon(1e-5) <= 2
    assert (hb.SampledGaussian(1, 0.02) * int(steps * 1.02 + 1)).epsilon(1e-5) > 2
    rate = rate_for(epsilon=2, delta=1e-5, noise_multiplier=1, steps=500)
    assert (hb.SampledGaussian(1, rate) * 500).epsilon(1e-5) <= 2


def test_calibrate_directions_and_refusals() -> None:
    def gaussian(sigma: float) -> hb.Loss:
        return hb.GaussianDP(1 / sigma)

    assert hb.calibrate(gaussian, epsilon=100, delta=1e-5, low=1, high=9) == 1
    for most in range(1, 50):
        exact = Fraction(most, 10)
        assert hb.calibrate(lambda n: hb.PureDP(0.1) * n, epsilon=exact, delta=0, low=1, high=50) == most
    assert hb.calibrate(lambda n: hb.PureDP(0.1) * n, epsilon=100, delta=0, low=1, high=50) == 50
    with pytest.raises(ParameterError, match="met at neither"):
        hb.calibrate(gaussian, epsilon=0.01, delta=1e-5, low=1, high=2)
    with pytest.raises(ParameterError, match="must be below"):
        hb.calibrate(gaussian, epsilon=1, delta=1e-5, low=2, high=2)
