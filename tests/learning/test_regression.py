"""Private least squares: scikit-learn's where noise vanishes, better as epsilon grows, with honest errors."""

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression as Plain
from support import SeededBits

from hubbub.errors import DataTypeError
from hubbub.learning import LinearRegression

GENERATOR = np.random.default_rng(5)
ROWS = GENERATOR.uniform([-1, 0, 50], [1, 10, 60], (3000, 3))
SLOPES = np.array([2.0, -0.3, 0.1])
TARGETS = ROWS @ SLOPES + 4 + GENERATOR.normal(0, 0.3, 3000)
BOUNDS: dict[str, Any] = {"bounds": ([-1, 0, 50], [1, 10, 60]), "target_bounds": (0, 20)}


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_without_noise_it_is_scikit_learns(neighbours: Any, delta: float) -> None:
    plain = Plain().fit(ROWS, TARGETS)
    model = LinearRegression(epsilon=1e8, delta=delta, neighbours=neighbours, **BOUNDS).fit(ROWS, TARGETS)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-4)
    np.testing.assert_allclose(model.predict(ROWS), plain.predict(ROWS), rtol=1e-4)
    assert model.score(ROWS, TARGETS) == pytest.approx(plain.score(ROWS, TARGETS), rel=1e-5)


def test_several_targets() -> None:
    both = np.stack([TARGETS, -TARGETS], axis=1)
    ends: Any = ([0, -20], [20, 0])
    model = LinearRegression(epsilon=1e8, bounds=BOUNDS["bounds"], target_bounds=ends).fit(ROWS, both)
    assert model.coef_.shape == model.coef_error_.shape == (2, 3)
    np.testing.assert_allclose(model.predict(ROWS), Plain().fit(ROWS, both).predict(ROWS), rtol=1e-4)


def error(epsilon: float, delta: float, seeds: int) -> float:
    """How much worse than the plain model, in mean squared error, on average."""
    plain = float(np.mean((Plain().fit(ROWS, TARGETS).predict(ROWS) - TARGETS) ** 2))
    worse = []
    for seed in range(seeds):
        model = LinearRegression(epsilon=epsilon, delta=delta, **BOUNDS).fit(ROWS, TARGETS, bits=SeededBits(seed))
        worse.append(float(np.mean((model.predict(ROWS) - TARGETS) ** 2)) - plain)
    return float(np.mean(worse))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_more_epsilon_is_never_worse(delta: float) -> None:
    found = [error(epsilon, delta, 16) for epsilon in np.geomspace(0.05, 30, 14)]
    assert all(after <= before * 1.1 for before, after in itertools.pairwise(found))
    assert found[-1] < found[0] / 100


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_errors_told_are_those_of_the_noise(delta: float) -> None:
    plain = Plain().fit(ROWS, TARGETS)
    off = []
    for seed in range(200):
        model = LinearRegression(epsilon=4.0, delta=delta, **BOUNDS).fit(ROWS, TARGETS, bits=SeededBits(seed))
        off.append((model.coef_ - plain.coef_) / model.coef_error_)
    spread = np.sqrt(np.mean(np.square(off), axis=0))
    assert ((spread > 0.6) & (spread < 1.4)).all(), spread


def test_collinear_columns_do_not_blow_up() -> None:
    rows = np.repeat(GENERATOR.uniform(-1, 1, (2000, 1)), 3, axis=1)
    for seed in range(20):
        model = LinearRegression(epsilon=1.0, delta=1e-5, bounds=(-1, 1), target_bounds=(-2, 2))
        model.fit(rows, rows[:, 0], bits=SeededBits(seed))
        assert np.abs(model.coef_).max() < 3
        assert np.mean((model.predict(rows) - rows[:, 0]) ** 2) < 0.05


def test_targets_that_are_no_numbers_are_not_shown() -> None:
    with pytest.raises(DataTypeError, match="must be a number") as caught:
        LinearRegression(**BOUNDS).fit(ROWS[:2], ["secret", 1.0])
    assert "secret" not in str(caught.value)
