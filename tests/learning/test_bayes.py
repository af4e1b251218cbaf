"""Private naive Bayes: scikit-learn's where noise vanishes, and a guess that stays a guess where noise rules."""

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB as Plain
from support import SeededBits

from hubbub.learning import GaussianNB

GENERATOR = np.random.default_rng(8)
LABELS = GENERATOR.integers(0, 3, 2000)
ROWS = GENERATOR.normal(np.array([[0.0, 0.0], [2.0, 1.0], [-1.0, 3.0]])[LABELS], 0.7)
NAMES = np.array(["a", "b", "c"])[LABELS]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_without_noise_it_is_scikit_learns(neighbours: Any, delta: float) -> None:
    plain = Plain().fit(ROWS, NAMES)
    options: dict[str, Any] = {"bounds": (-8, 8), "classes": ["a", "b", "c"], "neighbours": neighbours}
    model = GaussianNB(epsilon=1e8, delta=delta, **options).fit(ROWS, NAMES)
    np.testing.assert_allclose(model.theta_, plain.theta_, atol=1e-3)
    np.testing.assert_allclose(model.var_, plain.var_, rtol=1e-2)
    np.testing.assert_allclose(model.predict_proba(ROWS), plain.predict_proba(ROWS), atol=1e-2)
    assert (model.predict(ROWS) == plain.predict(ROWS)).mean() > 0.995
    assert model.score(ROWS, NAMES) == pytest.approx(plain.score(ROWS, NAMES), abs=0.005)


def test_accuracy_grows_with_epsilon() -> None:
    found = []
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        scores = []
        for seed in range(20):
            model = GaussianNB(epsilon=epsilon, bounds=(-8, 8), classes=["a", "b", "c"])
            scores.append(model.fit(ROWS, NAMES, bits=SeededBits(seed)).score(ROWS, NAMES))
        found.append(np.mean(scores))
    assert all(after >= before - 0.01 for before, after in itertools.pairwise(found))
    assert found[-1] > Plain().fit(ROWS, NAMES).score(ROWS, NAMES) - 0.01


def test_a_class_nobody_is_in_and_a_label_nobody_declared() -> None:
    options: dict[str, Any] = {"epsilon": 1e6, "bounds": (-8, 8)}
    model = GaussianNB(classes=["a", "b", "z"], **options).fit(ROWS, NAMES)
    assert model.class_count_[2] == pytest.approx(1, abs=0.1)
    assert set(model.predict(ROWS)) == {"a", "b"}
    known = NAMES != "c"
    same = GaussianNB(classes=["a", "b", "z"], **options).fit(ROWS[known], NAMES[known])
    np.testing.assert_allclose(model.class_count_, same.class_count_, atol=0.1)


def test_public_classes_are_those_that_occur() -> None:
    model = GaussianNB(epsilon=1.0, bounds=(-8, 8), classes="public")
    assert model.fit(ROWS, np.zeros(len(ROWS))).predict(ROWS[:3]).tolist() == [0.0] * 3
    with pytest.raises(ValueError, match="no label occurs"):
        model.fit(np.zeros((0, 2)), [])
