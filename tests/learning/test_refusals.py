"""Errors of estimators never quote a row or a label, and nothing that a label is raises one."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression as Plain

import hubbub as hb
from hubbub import learning
from hubbub.errors import DataTypeError

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


@pytest.mark.parametrize("name", MODELS)
def test_nothing_of_the_rows_is_kept(name: str) -> None:
    if name == "predictor":
        return  # its copies are secret by design: they are asked, never shown
    model = MODELS[name].set_params(budget=None)
    model.fit(ROWS, np.array([0, 1, 0]))
    for value in vars(model).values():
        assert not (isinstance(value, np.ndarray) and value.shape[:1] == (3,) and name != "kmeans")
