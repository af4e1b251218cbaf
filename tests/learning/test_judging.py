"""Accuracies with errors, the best of several models, and cards."""

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

import hubbub as hb
from hubbub.audit import replay
from hubbub.errors import BudgetExceeded, ParameterError
from hubbub.learning import LogisticRegression, accuracy, best, card


class Says:
    def __init__(self, word: int) -> None:
        self.word = word

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), self.word)


ROWS, LABELS = np.zeros((1000, 1)), np.array([1] * 900 + [0] * 100)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_an_accuracy_is_near_and_its_error_true(neighbours: Any) -> None:
    found = [accuracy(Says(1), ROWS, LABELS, epsilon=0.5, neighbours=neighbours) for _ in range(200)]
    assert np.mean([abs(a.value - 0.9) <= a.error for a in found]) >= 0.93
    assert found[0].loss.epsilon() <= 0.5
    assert found[0].loss.neighbours == neighbours
    assert "%" in str(found[0])
    nobody = accuracy(Says(1), ROWS[:0], LABELS[:0], epsilon=0.5)
    assert 0 <= nobody.value <= 1
    assert 0 <= nobody.error <= 1


def test_the_best_is_chosen() -> None:
    places = [best([Says(0), Says(1), Says(2)], ROWS, LABELS, epsilon=1) for _ in range(50)]
    assert places == [1] * 50
    with pytest.raises(ParameterError, match="models"):
        best([], ROWS, LABELS, epsilon=1)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_replayed_on_neighbours(neighbours: Any) -> None:
    other = (ROWS[1:], LABELS[1:]) if neighbours == "add-remove" else (ROWS, np.append(LABELS[:-1], 1))
    for run in (
        lambda t: accuracy(Says(1), *t, epsilon=1, neighbours=neighbours).value,
        lambda t: best([Says(0), Says(1)], *t, epsilon=1, neighbours=neighbours),
    ):
        report = replay(run, (ROWS, LABELS), other)
        assert report.holds, str(report)


def test_both_are_paid_first() -> None:
    budget = hb.Budget(1.0)
    accuracy(Says(1), ROWS, LABELS, epsilon=0.6, budget=budget)
    for judge in (accuracy, lambda m, *t, **k: best([m], *t, **k)):
        with pytest.raises(BudgetExceeded):
            judge(None, ROWS, LABELS, epsilon=0.6, budget=budget)


def test_a_card_tells_what_is_public() -> None:
    model = LogisticRegression(epsilon=1, delta=1e-6, bounds=(0, list(range(1, 11))), classes=[0, 1])
    model.fit(np.zeros((50, 10)), np.arange(50) % 2)
    measured = accuracy(model, np.zeros((50, 10)), np.arange(50) % 2, epsilon=0.5)
    text = card(model, title="Who buys", measured=measured)
    assert "# Who buys" in text
    assert "epsilon between" in text
    assert "add-remove" in text
    assert "and 5 more" in text
    assert str(measured) in text
    pure = LogisticRegression(epsilon=1, bounds=(0, 1), classes=[0, 1]).fit(np.zeros((5, 1)), [0, 1, 0, 1, 0])
    assert "epsilon 1," in card(pure, title="t")


def test_a_column_of_labels_is_a_list_of_labels() -> None:
    with pytest.warns(DataConversionWarning):
        found = accuracy(Says(1), ROWS, LABELS[:, None], epsilon=5)
    assert abs(found.value - 0.9) < 0.05
    with pytest.raises(ParameterError, match="1d"):
        accuracy(Says(1), ROWS, np.stack([LABELS, LABELS], axis=1), epsilon=5)
