"""Prices: those of the losses that run, for the relation that is stated."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.errors import ParameterError
from hubbub.learning.federated import CentralPlan, DistributedPlan, LocalPlan
from hubbub.privacy import GaussianDP, SampledGaussian, noise_for


def central(**changes: Any) -> CentralPlan:
    return CentralPlan(**({"rounds": 10, "rate": 0.1, "noise": 1.0, "cohort": 10.0} | changes))


def test_central_prices() -> None:
    assert central().loss == SampledGaussian(1.0, 0.1) * 10
    assert central(neighbours="replace").loss == SampledGaussian(1.0, 0.1, neighbours="replace") * 10
    everybody = central(rate=1.0, noise=2.0)
    assert everybody.loss.epsilon(1e-5) == pytest.approx((GaussianDP(0.5) * 10).epsilon(1e-5), rel=1e-9)
    assert central(rate=1.0, noise=2.0, neighbours="replace").spent(1).delta(1.0) >= GaussianDP(1.0, "replace").delta(
        1.0
    )


def test_fixed_cohorts_are_under_replace_and_two_clip_norms_apart() -> None:
    fixed = central(sampling="fixed", neighbours="replace", clients=100)
    assert fixed.loss == GaussianDP(fixed.spent(1).base.mu, "replace").subsample(0.1, "without-replacement") * 10  # type: ignore[attr-defined]
    assert fixed.spent(1).base.mu >= 2.0  # type: ignore[attr-defined]
    assert fixed.loss.epsilon(1e-5) > central().loss.epsilon(1e-5)


def test_adaptive_clipping_pays_for_its_count() -> None:
    adaptive = central(clipping="adaptive", cohort=100.0)
    assert adaptive.loss == central(cohort=100.0).loss
    z, b = adaptive.sum_noise, adaptive.count_noise
    assert 1 / z**2 + 1 / (2 * b) ** 2 <= 1.0
    assert z == pytest.approx(1.005, abs=0.01)


def test_calibrated_noise_is_the_least() -> None:
    stated = CentralPlan.calibrated(epsilon=3, delta=1e-5, rounds=40, rate=0.2, cohort=20)
    assert stated.noise == pytest.approx(noise_for(epsilon=3, delta=1e-5, rate=0.2, steps=40), rel=1e-4)


@settings(max_examples=4)
@given(st.floats(0.3, 30), st.integers(1, 200), st.floats(0.01, 1), st.integers(1, 6))
def test_calibration_never_overspends(epsilon: float, rounds: int, rate: float, exponent: int) -> None:
    delta = 10.0**-exponent
    plans = (
        CentralPlan.calibrated(epsilon=epsilon, delta=delta, rounds=rounds, rate=rate, cohort=5),
        LocalPlan.calibrated(epsilon=epsilon, delta=delta, rounds=rounds),
        DistributedPlan.calibrated(
            epsilon=epsilon, delta=delta, rounds=rounds, honest=60, clients=70, length=900, bits=20
        ),
    )
    for stated in plans:
        assert stated.loss.epsilon(delta) <= epsilon
        assert math.isinf(stated.loss.epsilon(0))


def test_prices_grow_with_rounds_and_nothing_is_free_but_nothing() -> None:
    for stated in (central(), LocalPlan(10, 2.0), DistributedPlan(10, 2.0, 5, 6, 50)):
        prices = [stated.spent(k).epsilon(1e-5) for k in range(4)]
        assert prices[0] == 0
        assert prices == sorted(set(prices))


def test_plans_are_plain_data() -> None:
    for stated in (central(), LocalPlan(10, 2.0), DistributedPlan(10, 2.0, 5, 6, 50, dishonest=1)):
        data = json.loads(json.dumps(stated.to_dict()))
        assert type(stated).from_dict(data) == stated
        with pytest.raises(ParameterError, match="plan"):
            type(stated).from_dict(data | {"plan": "other"})


@pytest.mark.parametrize(
    "changes",
    [
        {"rounds": 0}, {"rounds": 10**7}, {"rate": 0}, {"rate": 1.5}, {"noise": 0}, {"noise": float("nan")},
        {"cohort": 0}, {"clip": -1}, {"sampling": "all"}, {"clipping": "none"}, {"neighbours": "other"},
        {"clients": 0}, {"sampling": "fixed"}, {"sampling": "fixed", "neighbours": "replace"},
        {"sampling": "fixed", "neighbours": "replace", "clients": 7},
        {"clipping": "adaptive", "noise": 5.0, "cohort": 10.0},
    ],
)  # fmt: skip
def test_plans_that_cannot_be(changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        central(**changes)


def test_noise_is_not_typed_beside_epsilon() -> None:
    with pytest.raises(ParameterError, match="noise"):
        LocalPlan.calibrated(epsilon=1, delta=1e-5, rounds=1, noise=0.1)
    with pytest.raises(TypeError, match="sensitivity"):
        LocalPlan(rounds=1, noise=1.0, sensitivity=0.1)  # type: ignore[call-arg]


def test_no_classical_formula() -> None:
    """At epsilon 10 and delta 1e-5 it asks for too little noise: ours asks for what is needed."""
    stated = LocalPlan.calibrated(epsilon=10, delta=1e-5, rounds=1)
    classical = 2 * math.sqrt(2 * math.log(1.25e5)) / 10
    assert classical < stated.noise
    assert LocalPlan(1, classical).loss.epsilon(1e-5) > 10
