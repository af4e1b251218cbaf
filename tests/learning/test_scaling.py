"""A private scaler: scikit-learn's where noise vanishes, and nothing blows up where it does not."""

from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler as Plain
from support import SeededBits

from hubbub.learning import StandardScaler

ROWS = np.random.default_rng(6).normal([3, -50, 0.2], [1, 10, 0.1], (4000, 3))
BOUNDS: Any = ([-5, -120, -1], [11, 20, 1])


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_without_noise_it_is_scikit_learns(neighbours: Any, delta: float) -> None:
    plain = Plain().fit(ROWS)
    model = StandardScaler(epsilon=1e7, delta=delta, bounds=BOUNDS, neighbours=neighbours).fit(ROWS)
    np.testing.assert_allclose(model.mean_, plain.mean_, rtol=1e-4)
    np.testing.assert_allclose(model.scale_, plain.scale_, rtol=1e-3)
    np.testing.assert_allclose(model.var_, plain.var_, rtol=2e-3)
    np.testing.assert_allclose(model.inverse_transform(model.transform(ROWS)), ROWS, rtol=1e-9)


def test_errors_are_as_small_as_the_noise_allows() -> None:
    off = []
    for seed in range(50):
        model = StandardScaler(epsilon=1.0, delta=1e-6, bounds=BOUNDS).fit(ROWS, bits=SeededBits(seed))
        off.append([(model.mean_ - ROWS.mean(axis=0)) / ROWS.std(axis=0), model.scale_ / ROWS.std(axis=0) - 1])
    assert np.abs(off).mean() < 0.06


def test_a_constant_column_has_a_scale_that_noise_could_hide() -> None:
    rows = np.full((1000, 2), 3.0)
    for epsilon in (0.1, 1.0, 1e6):
        model = StandardScaler(epsilon=epsilon, bounds=(0, 10)).fit(rows)
        assert (model.scale_ > 0).all()
        assert np.abs(model.transform(rows)).max() < 30
