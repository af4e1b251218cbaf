"""Predictions at a price: one person moves one vote, failures say a constant, and nothing is free."""

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import hubbub as hb
from hubbub.audit import replay
from hubbub.errors import BudgetExceeded, ParameterError, ParameterTypeError
from hubbub.learning import PrivatePredictor, predicting

HALVES = [[0.5, 0.0], [-0.5, 0.0], [0.1, -0.9]]


def data(n: int = 2000) -> tuple[Any, Any]:
    rows = np.random.default_rng(0).uniform(-1, 1, (n, 2))
    return rows, (rows[:, 0] > 0).astype(int)


def test_votes_are_mostly_right_and_each_is_paid_for() -> None:
    budget = hb.Budget(20.0)
    model = PrivatePredictor(LogisticRegression(), epsilon_per_query=1, classes=[0, 1], budget=budget).fit(*data())
    assert budget.remaining == 20
    asked = np.array([[0.5, 0], [-0.5, 0]] * 5)
    assert np.mean(model.predict(asked) == (asked[:, 0] > 0)) >= 0.9
    assert budget.remaining == 10
    assert model.loss_.epsilon() == 10
    with pytest.raises(BudgetExceeded):
        model.predict(np.zeros((11, 2)))
    assert budget.remaining == 10
    assert model.worth(4) == 4


def test_numbers_are_means_within_bounds() -> None:
    rows, _ = data()
    model = PrivatePredictor(LinearRegression(), epsilon_per_query=2, target_bounds=(-3, 3)).fit(rows, 2 * rows[:, 0])
    assert abs(model.predict([[0.5, 0.0]])[0] - 1) < 1
    far = PrivatePredictor(LinearRegression(), target_bounds=(0, 1), parts=10).fit(rows, 1e9 * rows[:, 0])
    assert -30 < far.predict([[0.5, 0.0]])[0] < 30


class Fragile(ClassifierMixin, BaseEstimator):
    """Fails to train without a second class, and to predict beyond 1."""

    def fit(self, rows: Any, labels: Any) -> "Fragile":
        if len(set(labels)) < 2 or len(rows) < 3:
            raise ValueError(f"private: {rows}")
        self.fitted_ = True
        return self

    def predict(self, rows: Any) -> Any:
        if np.abs(rows).max() > 1:
            raise ValueError(f"private: {rows}")
        return np.array(["elsewhere"] * len(rows))


@pytest.mark.parametrize(
    "table", [data(), (np.zeros((0, 2)), np.zeros(0, int)), (np.full((5, 2), math.nan), [0, 1, 1, 9, 0])]
)
def test_failures_say_nothing(table: Any) -> None:
    model = PrivatePredictor(Fragile(), classes=[0, 1], parts=7).fit(*table)
    assert set(model.predict([[0.0, 0.0], [5.0, math.inf]])) <= {0, 1}
    numbers = PrivatePredictor(LinearRegression(), target_bounds=(0, 1), parts=7).fit(*table)
    assert np.isfinite(numbers.predict([[0.0, 0.0]])).all()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("pairs", [20, pytest.param(200, marks=pytest.mark.long)])
def test_one_person_moves_one_vote(neighbours: Any, numbers: bool, pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicting, "uniform_below", lambda many, n, _: np.arange(n) * 7 % many)  # others stay put
    generator = np.random.default_rng(2)
    for _ in range(pairs):
        rows, labels = generator.uniform(-1, 1, (40, 2)), generator.integers(0, 2, 40)
        other = (rows[:-1], labels[:-1])
        if neighbours == "replace":
            other = (np.vstack([rows[:-1], [[1e300, math.nan]]]), np.append(labels[:-1], 1 - labels[-1]))

        def run(table: Any) -> Any:
            if numbers:
                model = PrivatePredictor(LinearRegression(), parts=5, target_bounds=(0, 1), neighbours=neighbours)
            else:
                model = PrivatePredictor(
                    DecisionTreeClassifier(random_state=0), parts=5, classes=[0, 1], neighbours=neighbours
                )
            return model.fit(*table).predict(HALVES)

        report = replay(run, (rows, labels), other)
        assert report.holds, str(report)


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(ParameterTypeError, match="model"):
        PrivatePredictor(3).fit(*data(10))
    with pytest.raises(ParameterError, match="classes"):
        PrivatePredictor(LogisticRegression()).fit(*data(10))
    with pytest.raises(ParameterError, match="bounds"):
        PrivatePredictor(LinearRegression()).fit(*data(10))


def test_bounds_far_from_nought_are_as_private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicting, "uniform_below", lambda many, n, _: np.arange(n) % many)
    rows, _ = data(400)

    def run(targets: Any) -> Any:
        model = PrivatePredictor(LinearRegression(), target_bounds=(1e15, 1e15 + 1), parts=4)
        return model.fit(rows, targets).predict([[0.1, 0.2]])

    low = np.full(400, 1e15)
    report = replay(run, low, np.append(low[:-1], 1e15 + 1))
    assert report.holds, str(report)
