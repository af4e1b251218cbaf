"""Plans: prices, calibrations, refusals, and JSON."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning.sgd.toys import plan
from scipy.stats import binom

from hubbub.errors import ParameterError
from hubbub.learning.sgd import Plan
from hubbub.learning.sgd.plan import RARE, overflow, smallest_cap
from hubbub.privacy.families import GaussianDP
from hubbub.privacy.sampling import SampledGaussian

DELTA = 1e-5


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_price_of_poisson_batches(neighbours: Any) -> None:
    stated = plan(steps=100, neighbours=neighbours)
    direct = SampledGaussian(2.0, 0.25, neighbours=neighbours) * 100
    assert stated.loss.epsilon(DELTA) == direct.epsilon(DELTA)
    assert stated.spent(40).epsilon(DELTA) == (SampledGaussian(2.0, 0.25, neighbours=neighbours) * 40).epsilon(DELTA)
    assert stated.spent(0).epsilon(DELTA) == 0


def test_the_price_of_cut_batches() -> None:
    given = {"rows": 60_000, "rate": 0.01, "batch": 600.0, "steps": 500, "noise": 1.0}
    poisson = Plan(**given)
    cut = Plan(**given, sampling="truncated", cap=smallest_cap(60_000, 0.01, 500))
    assert poisson.loss.epsilon(DELTA) <= cut.loss.epsilon(DELTA) <= poisson.loss.epsilon(DELTA) * 1.001
    assert poisson.loss.delta(1.0) <= cut.loss.delta(1.0)


@settings(max_examples=30)
@given(st.integers(10, 5000), st.floats(0.001, 0.5), st.floats(0, 1))
def test_the_bound_on_cut_batches(rows: int, rate: float, where: float) -> None:
    cap = min(rows, math.ceil(rows * (rate + where * (1 - rate))))
    assert overflow(rows, rate, cap) >= binom.sf(cap, rows, rate) * (1 - 1e-6)
    chosen = smallest_cap(rows, rate, 100)
    assert 100 * overflow(rows, rate, chosen) <= RARE
    assert chosen > rate * rows or chosen == rows


def test_the_price_of_fixed_batches() -> None:
    stated = plan(sampling="fixed", neighbours="replace", noise=4.0)
    direct = GaussianDP(0.5, "replace").subsample(0.25, "without-replacement") * 8
    assert stated.loss.epsilon(DELTA) == pytest.approx(direct.epsilon(DELTA), rel=1e-6)
    assert stated.loss.epsilon(DELTA) > plan(noise=4.0).loss.epsilon(DELTA)


def test_shuffling_gains_nothing() -> None:
    """Each pass costs what it would if everybody were in its one batch, and a pass begun is a pass paid."""
    stated = plan(sampling="shuffled", neighbours="replace", steps=9)
    assert stated.steps_a_pass == 4
    for steps, passes in ((1, 1), (4, 1), (5, 2), (8, 2), (9, 3)):
        assert stated.spent(steps).epsilon(DELTA) == pytest.approx(
            GaussianDP(math.sqrt(passes), "replace").epsilon(DELTA)
        )
    assert stated.loss.epsilon(DELTA) > plan(steps=9, neighbours="replace").loss.epsilon(DELTA)


def test_the_share_of_adaptive_clipping() -> None:
    stated = plan(clipping="adaptive", batch=64.0, noise=1.5)
    assert stated.loss.epsilon(DELTA) == plan(noise=1.5).loss.epsilon(DELTA)
    assert stated.gradient_noise > 1.5
    whole = 1 / stated.gradient_noise**2 + 1 / (2 * stated.count_noise) ** 2
    assert whole <= 1 / 1.5**2 <= whole * (1 + 1e-9)
    assert plan(noise=1.5).gradient_noise == plan(noise=1.5, clipping="automatic").gradient_noise == 1.5


@pytest.mark.parametrize(
    "given",
    [
        {"batch": 512, "steps": 1000},
        {"batch": 512, "epochs": 2},
        {"batch": 512, "noise": 1.0},
        {"steps": 300, "noise": 1.0},
        {"rate": 0.01, "epochs": 3, "clipping": "adaptive"},
        {"batch": 512, "steps": 20, "sampling": "truncated"},
        {"batch": 600, "steps": 300, "sampling": "shuffled", "neighbours": "replace"},
        {"batch": 600, "epochs": 1, "sampling": "fixed", "neighbours": "replace"},
    ],
)
def test_calibrations_fit(given: dict[str, Any]) -> None:
    found = Plan.calibrated(epsilon=3, delta=DELTA, rows=60_000, **given)
    assert found.loss.epsilon(DELTA) <= 3
    worse = found.to_dict()
    if "noise" not in given:
        worse["noise"] *= 0.99
    elif "steps" not in given:
        worse["steps"] = int(worse["steps"] * 1.01) + 1
    else:
        worse["rate"], worse["batch"] = worse["rate"] * 1.01, worse["batch"] * 1.01
    assert Plan.from_dict(worse).loss.epsilon(DELTA) > 3
    assert found.batch == pytest.approx(found.rate * 60_000)


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 0},
        {"steps": 10**8},
        {"rate": 0},
        {"rate": 1.5},
        {"rate": -0.1},
        {"rate": math.nan},
        {"noise": 0},
        {"noise": math.inf},
        {"clip": -1},
        {"batch": 0},
        {"neighbours": "swap"},
        {"sampling": "cyclic"},
        {"clipping": "soft"},
        {"sampling": "fixed"},
        {"sampling": "shuffled"},
        {"sampling": "fixed", "neighbours": "replace", "rows": None},
        {"sampling": "fixed", "neighbours": "replace", "batch": 15.0},
        {"sampling": "fixed", "neighbours": "replace", "batch": 16.5},
        {"sampling": "shuffled", "neighbours": "replace", "rate": 0.2},
        {"sampling": "truncated"},
        {"sampling": "truncated", "cap": 16},
        {"sampling": "truncated", "cap": 30},
        {"sampling": "truncated", "rows": None, "cap": 64},
        {"clipping": "adaptive", "noise": 4.0},
        {"rows": 0},
    ],
)
def test_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError) as refused:
        plan(**changes)
    assert "must" in str(refused.value) or "does not go" in str(refused.value) or "would cut" in str(refused.value)


@pytest.mark.parametrize(
    "given",
    [
        {"batch": 512},
        {"batch": 512, "steps": 10, "noise": 1.0},
        {"rate": 0.01, "steps": 10, "rows": None},
        {"steps": 10, "noise": 1.0, "rows": None},
    ],
)
def test_calibrations_with_too_much_or_too_little(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Plan.calibrated(**{"epsilon": 3, "delta": DELTA, "rows": 60_000} | given)


@pytest.mark.parametrize("changes", [{}, {"sampling": "truncated", "cap": 64}, {"clipping": "adaptive"}])
def test_json(changes: dict[str, Any]) -> None:
    stated = plan(**changes)
    assert Plan.from_dict(json.loads(json.dumps(stated.to_dict()))) == stated
    assert stated.with_steps(3).steps == 3
