"""Other methods' prices: equal to the theorems they stand for, and never below the truth."""

import math

import pytest

import hubbub as hb
from hubbub.privacy import NoLoss, noise_for, other_methods, theorems
from hubbub.privacy.methods import METHODS, releases

BASIC, ADVANCED, RENYI = METHODS

LOSSES = {
    "pure": hb.PureDP(0.1) * 100,
    "stated": hb.ApproxDP(0.1, 1e-9) * 50,
    "Laplace": hb.LaplaceDP(0.1) * 500,
    "one Gaussian": hb.GaussianDP(1.0),
    "Gaussians": hb.GaussianDP(0.3) * 20,
    "DP-SGD": hb.SampledGaussian(1.0, 0.01) * 1000,
    "DP-SGD, replace": hb.SampledGaussian(1.0, 0.01, neighbours="replace") * 100,
    "DP-SGD, couples": hb.SampledGaussian(1.0, 0.01, people=2) * 100,
    "every record": hb.SampledGaussian(2.0, 1) * 10,
    "sampled Laplace": hb.LaplaceDP(1.0).subsample(0.01) * 1000,
    "fixed size": hb.GaussianDP(1.0, "replace").subsample(0.01, "without-replacement") * 100,
    "mixed": hb.PureDP(0.1) * 10 + hb.GaussianDP(0.3) * 5 + hb.ApproxDP(0.2, 1e-8) + hb.SampledGaussian(1, 0.1) * 3,
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("delta", [1e-7, 1e-5, 1e-2])
def test_no_method_is_below_the_certified_lower_end(name: str, delta: float) -> None:
    loss = LOSSES[name]
    low, _ = loss.epsilon_interval(delta)
    found = other_methods(loss, delta)
    assert BASIC in found
    assert list(found) == [method for method in METHODS if method in found]
    for epsilon in found.values():
        assert low <= epsilon < math.inf


def test_which_methods_apply() -> None:
    every = {name: set(other_methods(loss, 1e-5)) for name, loss in LOSSES.items()}
    assert every["one Gaussian"] == {BASIC, RENYI}  # nothing is composed
    assert every["mixed"] == {BASIC}  # ApproxDP has no Renyi price, and the parts differ
    assert every["stated"] == {BASIC, ADVANCED}
    for name in ("DP-SGD, replace", "DP-SGD, couples", "fixed size"):
        assert every[name] == {BASIC, ADVANCED}, "no Renyi price of that sampling is known"
    for name in ("pure", "Laplace", "Gaussians", "DP-SGD", "every record", "sampled Laplace"):
        assert every[name] == set(METHODS)
    assert other_methods(NoLoss(), 1e-5) == {}
    assert releases(NoLoss()) == 0
    assert releases(LOSSES["mixed"]) == 19


def test_pure_prices_are_composed_as_stated() -> None:
    found = other_methods(hb.PureDP(0.1) * 100, 1e-6)
    assert found[BASIC] == 10.0
    assert found[ADVANCED] == pytest.approx(theorems.advanced_composition(0.1, 0, 100, 1e-6)[0], rel=1e-12)
    assert other_methods(hb.PureDP(0.1) * 100, 0) == {BASIC: 10.0}
    assert other_methods(hb.GaussianDP(1.0), 0) == {}


def test_stated_deltas_are_paid_first() -> None:
    ten = hb.ApproxDP(0.1, 1e-7) * 10
    assert other_methods(ten, 1e-6) == {BASIC: 1.0}  # nothing is left for advanced composition
    assert other_methods(ten, 9.9e-7) == {}
    found = other_methods(ten, 3e-6)
    assert found[ADVANCED] == pytest.approx(theorems.advanced_composition(0.1, 1e-7, 10, 2e-6)[0], rel=1e-12)
    mixed = hb.PureDP(0.5) + hb.ApproxDP(0.25, 1e-6) + hb.GaussianDP(1.0) * 2
    assert other_methods(mixed, 3e-6)[BASIC] == pytest.approx(0.75 + 2 * hb.GaussianDP(1.0).epsilon(1e-6), rel=1e-9)
    assert BASIC not in other_methods(mixed, 1e-6)


def test_a_sampled_step_is_amplified_by_the_theorem() -> None:
    rate, steps, delta = 0.01, 1000, 1e-5
    found = other_methods(hb.SampledGaussian(1.0, rate) * steps, delta)
    for method, share in ((BASIC, delta / steps), (ADVANCED, delta / (2 * steps))):
        amplified, left = theorems.subsampling(hb.GaussianDP(1.0).epsilon(share / rate), share / rate, rate)
        assert left == pytest.approx(share)
        whole = (
            steps * amplified
            if method == BASIC
            else theorems.advanced_composition(amplified, share, steps, delta / 2)[0]
        )
        assert found[method] == pytest.approx(whole, rel=1e-9)
    assert found[RENYI] == pytest.approx(2.12, abs=0.03)
    same = other_methods(hb.GaussianDP(1.0).subsample(rate) * steps, delta)
    assert same == pytest.approx(found, rel=1e-9)


def test_odd_places() -> None:
    rarely = hb.SampledGaussian(1.0, 1e-3) * 2
    free = other_methods(rarely, 0.01)
    assert (free[BASIC], free[ADVANCED]) == (0.0, 0.0)  # delta covers taking part at all
    assert BASIC not in other_methods(rarely, 1e-300)  # a share of it is no longer a number
    assert set(other_methods(hb.SampledGaussian(0.01, 0.01) * 100, 1e-5)) == set(METHODS)  # epsilons of 10**5
    faint = hb.LaplaceDP(1e-100).subsample(1e-100) * 10
    assert 0 <= other_methods(faint, 1e-5)[ADVANCED] < 1e-150


def test_amplification_of_a_huge_price_does_not_overflow() -> None:
    assert theorems.subsampling(5000, 0, 0.01)[0] == pytest.approx(5000 + math.log(0.01))


def test_least_noise_under_replace() -> None:
    noise = noise_for(epsilon=2, delta=1e-5, rate=0.01, steps=10, neighbours="replace")
    step = hb.SampledGaussian(noise, 0.01, neighbours="replace")
    assert (step * 10).epsilon(1e-5) <= 2
    assert noise > noise_for(epsilon=2, delta=1e-5, rate=0.01, steps=10)
    with pytest.raises(hb.errors.ParameterError, match=r"epsilon=1e-08 needs a noise multiplier above 10000"):
        noise_for(epsilon=1e-8, delta=1e-5, rate=1, steps=100)
