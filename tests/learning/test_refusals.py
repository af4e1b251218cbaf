"""Errors of estimators never quote a row or a label, and nothing that a label is raises one."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression as Plain
from sklearn.tree import DecisionTreeClassifier

import hubbub as hb
from hubbub import learning
from hubbub.audit import replay
from hubbub.errors import DataTypeError
from hubbub.learning import predicting

MODELS: dict[str, Any] = {
    "logistic": learning.LogisticRegression(bounds=(0, 1), classes=[0, 1]),
    "svc": learning.LinearSVC(bounds=(0, 1), classes=[0, 1]),
    "erm": learning.PrivateERM(bounds=(0, 1), target_bounds=(0, 1)),
    "regression": learning.LinearRegression(bounds=(0, 1), target_bounds=(0, 1)),
    "bayes": learning.GaussianNB(bounds=(0, 1), classes=[0, 1]),
    "kmeans": learning.KMeans(2, bounds=(0, 1)),
    "scaler": learning.StandardScaler(bounds=(0, 1)),
    "components": learning.PCA(1, bounds=(0, 1)),
    "predictor": learning.PrivatePredictor(Plain(), target_bounds=(0, 1), parts=3),
}
SECRET = "Ada-Lovelace"
ROWS = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "rows",
    [
        [["0.1", SECRET]] * 3,
        np.array([[0.1, SECRET]] * 3, dtype=object),
        pd.DataFrame({"a": [0.1] * 3, "b": [SECRET] * 3}),
        [[0.1, {SECRET: 1}]] * 3,
    ],
)
def test_text_among_numbers_is_refused_but_not_quoted(name: str, rows: Any) -> None:
    budget = hb.Budget(10.0)
    model = MODELS[name].set_params(budget=budget)
    with pytest.raises((DataTypeError, ValueError, TypeError)) as refused:
        model.fit(rows, [0, 1, 0])
    said: BaseException | None = refused.value
    while said is not None:
        assert SECRET not in str(said)
        said = said.__cause__ or (None if said.__suppress_context__ else said.__context__)
    assert budget.remaining == 10


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("label", [math.nan, 0.5, math.inf, -7])
def test_no_label_raises_anything(name: str, label: float) -> None:
    model = MODELS[name].set_params(budget=None)
    model.fit(ROWS, np.array([0.0, 1.0, label]))
    if name in ("logistic", "svc", "bayes"):
        model.fit(ROWS, np.array([0, 1, SECRET if label < 0 else None], dtype=object))
    elif name in ("erm", "regression", "predictor"):
        with pytest.raises(DataTypeError) as refused:
            model.fit(ROWS, np.array([0, 1, SECRET], dtype=object))
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize("odd", ["?", b"x", None, [1], 0.5, 2**60, pd.NA, 3j, math.nan])
@pytest.mark.parametrize("name", ["logistic", "svc", "bayes", "predictor", "accuracy", "best"])
def test_one_odd_label_does_not_change_how_others_are_read(
    name: str, odd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predicting, "uniform_below", lambda many, n, _: np.arange(n) % many)
    rows = np.array([[0.1, 0.2], [0.8, 0.9]] * 20)
    labels: list[Any] = [0, 1] * 20

    def run(table: Any) -> Any:
        if name in ("accuracy", "best"):
            judge = learning.accuracy if name == "accuracy" else lambda m, *t, **k: learning.best([m, m], *t, **k)
            return judge(Ones(), *table, epsilon=1)
        if name == "predictor":
            model: Any = learning.PrivatePredictor(DecisionTreeClassifier(), classes=[0, 1], parts=3)
            return model.fit(*table).predict([[0.1, 0.2]])
        return vars(MODELS[name].set_params(budget=None).fit(*table)).get("coef_")

    report = replay(run, (rows, labels), (np.vstack([rows, [[0.5, 0.5]]]), [*labels, odd]))
    assert report.holds, str(report)


class Ones:
    def predict(self, rows: Any) -> Any:
        return np.ones(len(rows), int)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("odd", [None, pd.NA, pd.NaT, "", 10**400, -(10**400)], ids=range(6))
def test_a_missing_or_huge_value_is_no_error(name: str, odd: Any) -> None:
    model = MODELS[name].set_params(budget=None)
    model.fit(np.array([[0.1, 0.2], [0.3, odd], [0.5, 0.6]], dtype=object), np.array([0, 1, 0]))
    model.fit([[0.1, 0.2], [0.3, odd], [0.5, 0.6]], [0, 1, 0])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "rows",
    [np.array([0.123456, 0.5, 0.5]), np.array([[0.123456 + 1j]] * 3), [[0.123456], [1, 2], [3]], np.array(0.123456)],
)
def test_shapes_are_refused_without_a_value(name: str, rows: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as refused:
        MODELS[name].set_params(budget=None).fit(rows, [0, 1, 0])
    assert "123456" not in str(refused.value)


def test_a_refused_second_fit_leaves_the_first() -> None:
    model = learning.GaussianNB(bounds=(0, 1), classes=[0, 1], epsilon=1, budget=hb.Budget(1.0)).fit(ROWS, [0, 1, 0])
    with pytest.raises(hb.BudgetExceeded):
        model.set_params(classes=[8, 9]).fit(ROWS, [8, 9, 8])
    assert set(model.predict(ROWS)) <= {0, 1}


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"predictor"}))  # whose copies are asked, never shown
def test_nothing_of_the_rows_is_kept(name: str) -> None:
    model = MODELS[name].set_params(budget=None)
    model.fit(np.random.default_rng(0).random((7, 2)), np.array([0, 1, 0, 1, 1, 0, 0]))
    assert not [value for value in vars(model).values() if 7 in np.shape(value)]
