"""Private principal components: scikit-learn's where noise vanishes."""

from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA as Plain  # noqa: N811
from support import SeededBits

from hubbub.learning import PCA

GENERATOR = np.random.default_rng(7)
ROWS = GENERATOR.normal(size=(3000, 2)) @ [[3.0, 1.0, 0.0, 0.1], [0.0, 1.0, 1.0, 0.0]] + GENERATOR.normal(
    0, 0.2, (3000, 4)
)
BOUNDS: Any = ([-15, -8, -5, -1], [15, 8, 5, 1])


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_without_noise_they_are_scikit_learns(neighbours: Any, delta: float) -> None:
    rows = np.clip(ROWS, *BOUNDS)
    plain = Plain(2).fit(rows)
    model = PCA(2, epsilon=1e8, delta=delta, bounds=BOUNDS, neighbours=neighbours).fit(ROWS)
    np.testing.assert_allclose(np.abs(model.components_ @ plain.components_.T), np.eye(2), atol=1e-3)
    np.testing.assert_allclose(model.explained_variance_, plain.explained_variance_, rtol=1e-3)
    np.testing.assert_allclose(model.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-3)
    np.testing.assert_allclose(model.mean_, plain.mean_, atol=1e-3)
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(rows)), plain.inverse_transform(plain.transform(rows)), atol=1e-2
    )
    assert model.get_feature_names_out().tolist() == ["pca0", "pca1"]


def test_components_are_orthonormal_and_near_the_truth() -> None:
    plain = Plain(2).fit(ROWS)
    kept = []
    for seed in range(30):
        model = PCA(2, epsilon=2.0, delta=1e-6, bounds=BOUNDS).fit(ROWS, bits=SeededBits(seed))
        np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-9)
        assert (model.explained_variance_ >= 0).all()
        kept.append(model.transform(ROWS).var(axis=0).sum() / plain.explained_variance_.sum())
    assert np.mean(kept) > 0.97
