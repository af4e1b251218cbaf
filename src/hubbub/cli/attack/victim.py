"""A small classifier to be attacked: logistic regression with a ridge, which overfits if the ridge is low."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Logistic:
    """Two classes, 0 and 1; ``fit`` and ``predict_proba`` as in scikit-learn."""

    def __init__(self, ridge: float) -> None:
        self.ridge = ridge
        self.classes_ = np.array([0, 1])

    def fit(self, records: NDArray[Any], labels: NDArray[Any]) -> Logistic:
        """Minimises the mean logistic loss plus half the ridge times the squared length of the weights."""
        from scipy.optimize import minimize

        signs = 2.0 * labels - 1

        def loss(weights: Floats) -> tuple[float, Floats]:
            margins = signs * (records @ weights)
            pulls = -signs / (1 + np.exp(margins.clip(-500, 500))) / len(signs)
            value = np.logaddexp(0, -margins).mean() + self.ridge * weights @ weights / 2
            return float(value), records.T @ pulls + self.ridge * weights

        self.weights_ = minimize(loss, np.zeros(records.shape[1]), jac=True, method="L-BFGS-B").x
        return self

    def predict_proba(self, records: NDArray[Any]) -> Floats:
        """The probabilities of 0 and of 1 for every record."""
        ones = 1 / (1 + np.exp(-(records @ self.weights_).clip(-500, 500)))
        return np.stack([1 - ones, ones], axis=1)
