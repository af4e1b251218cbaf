"""One-run audits: published values, false alarms no more often than stated, and power where there is something."""

import math

import numpy as np
import pytest

import hubbub as hb
from hubbub.audit import one_run
from hubbub.audit.canaries import chance_of
from hubbub.errors import ParameterError

PUBLISHED = [
    (100, 100, 3.49),
    (1000, 1000, 5.81),
    (900, 1000, 2.02),
    (750, 1000, 0.98),
    (600, 1000, 0.30),
    (5500, 10000, 0.17),
]


@pytest.mark.parametrize(("correct", "guesses", "epsilon"), PUBLISHED)
def test_published_values(correct: int, guesses: int, epsilon: float) -> None:
    half = (guesses + 1) // 2
    scores = np.arange(guesses, 0, -1.0)
    right = np.ones(guesses, bool)
    right[: guesses - correct] = False
    included = np.where(np.arange(guesses) < half, right, ~right)
    found = one_run(scores, included, guesses=guesses)
    assert found.correct == correct
    assert found.epsilon_lower == pytest.approx(epsilon, abs=0.006)


def experiment(rng: np.random.Generator, canaries: int, mu: float) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian release of one number for each canary: the strongest mu-private run there is."""
    included = rng.random(canaries) < 0.5
    return mu * included + rng.normal(size=canaries), included


@pytest.mark.parametrize("method", ["epsilon", "gaussian"])
def test_false_alarms(method: str) -> None:
    """The truth is refuted no more often than stated: of 200 runs at 0.9 at most 37 (chance below 1e-4)."""
    rng, epsilon = np.random.default_rng(1), hb.GaussianDP(1.0).epsilon(1e-5)
    runs = [
        one_run(*experiment(rng, 200, 1.0), delta=1e-5, confidence=0.9, guesses=60, method=method) for _ in range(200)
    ]
    assert sum(r.epsilon_lower > epsilon for r in runs) <= 37


def test_the_gaussian_form_sees_more() -> None:
    rng = np.random.default_rng(2)
    scores, included = experiment(rng, 2000, 2.0)
    plain, gaussian = (one_run(scores, included, delta=1e-5, guesses=400, method=m) for m in ("epsilon", "gaussian"))
    truth = hb.GaussianDP(2.0).epsilon(1e-5)
    assert 0.1 * truth < plain.epsilon_lower < gaussian.epsilon_lower <= truth


def test_randomised_response_in_one_run() -> None:
    rng, epsilon = np.random.default_rng(3), 2.0
    included = rng.random(4000) < 0.5
    honest = rng.random(4000) < 1 / (1 + math.exp(-epsilon))
    found = one_run(np.where(honest, included, ~included).astype(float), included, guesses=4000)
    assert 0.85 * epsilon < found.epsilon_lower <= epsilon


def test_delta_only_lowers() -> None:
    assert chance_of(100, 95, 200, 1.0, 1e-3) >= chance_of(100, 95, 200, 1.0, 0.0)
    assert chance_of(100, 95, 200, 1.0, 0.5) == 1.0


def test_refusals() -> None:
    for bad in (
        {"scores": [1.0], "included": [True, False]},
        {"scores": [math.nan], "included": [True]},
        {"scores": [], "included": []},
    ):
        with pytest.raises(ParameterError, match="scores"):
            one_run(**bad)
    for extra in ({"guesses": 0}, {"guesses": 5}, {"method": "other"}, {"method": "gaussian"}, {"confidence": 2}):
        with pytest.raises(ParameterError):
            one_run([1.0, 2.0], [True, False], **extra)
