"""Linear classifiers: logistic regression and a smooth support vector machine, trained privately."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hubbub.errors import ParameterError
from hubbub.learning.estimating import PrivateEstimator, declared_classes, labelings
from hubbub.learning.losses import HuberHinge, Logistic, MarginLoss
from hubbub.learning.objective import ObjectivePerturbation
from hubbub.learning.rows import Encoding
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.rational import Number
from hubbub.privacy.budget import Budget
from hubbub.privacy.families import NoLoss
from hubbub.privacy.loss import Neighbours

Method = Literal["auto", "objective"]


class _LinearClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Planes between classes, one against the rest."""

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 0.0,
        bounds: Any = None,
        classes: Any = None,
        method: Method = "auto",
        regularisation: Number | None = None,
        neighbours: Neighbours = "add-remove",
        budget: Budget | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.method = method
        self.regularisation = regularisation
        self.neighbours = neighbours
        self.budget = budget

    def _loss_function(self) -> MarginLoss:
        raise NotImplementedError

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803 - scikit-learn's names
        """Trains on rows and labels, once, at the stated price."""
        rows, labels = validate_data(self, X, y, ensure_all_finite=False, dtype=np.float64)
        check_classification_targets(labels)
        encoding = Encoding.of(self.bounds, rows.shape[1])
        self.classes_ = declared_classes(self.classes, labels)
        if len(self.classes_) < 2:
            return self._constant(encoding)
        count = 1 if len(self.classes_) == 2 else len(self.classes_)
        mechanism = self._mechanism(encoding.width, count)
        self._charge(mechanism.loss)
        weights = mechanism.release((encoding(rows), labelings(self.classes_, labels)))
        return self._fitted(encoding, weights)

    def _mechanism(self, width: int, count: int) -> Mechanism:
        if self.method not in ("auto", "objective"):
            raise ParameterError("method", self.method, "is not known", 'there are "auto" and "objective"')
        return ObjectivePerturbation(
            self._loss_function(),
            epsilon=self.epsilon,
            delta=self.delta,
            width=width,
            labelings=count,
            weight=self.regularisation,
            neighbours=self.neighbours,
        )

    def _constant(self, encoding: Encoding) -> Self:
        """One public class: nothing is learnt and nothing is paid."""
        self.loss_ = NoLoss(self.neighbours)
        return self._fitted(encoding, np.zeros((1, encoding.width)))

    def _fitted(self, encoding: Encoding, weights: NDArray[np.float64]) -> Self:
        self._encoding = encoding
        self.coef_, self.intercept_ = weights[:, :-1], weights[:, -1]
        """Of encoded rows: features in units of their bounds."""
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """How far a row lies on the side of each class (of the second, where there are two)."""
        check_is_fitted(self)
        rows = validate_data(self, X, ensure_all_finite=False, dtype=np.float64, reset=False)
        found: NDArray[np.float64] = self._encoding(rows) @ np.hstack([self.coef_, self.intercept_[:, None]]).T
        return found[:, 0] if found.shape[1] == 1 else found

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """The likeliest class of each row. Costs nothing: the model is private."""
        scores = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        at = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        found: NDArray[Any] = self.classes_[at]
        return found


class LogisticRegression(_LinearClassifier):
    """Logistic regression by objective perturbation.

    ``bounds`` are public: (low, high) for all features, or a list of each. Features are measured in units of them, and
    rows are scaled to length 1. ``classes`` are declared, or said to be public.
    """

    def _loss_function(self) -> MarginLoss:
        return Logistic()

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Probabilities of the classes, for rows of length 1 as they were trained on."""
        from scipy.special import expit

        scores = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.ones((len(scores), 1))
        if scores.ndim == 1:
            second = expit(scores)
            return np.stack([1 - second, second], axis=1)
        each = expit(scores)
        return np.asarray(each / np.maximum(each.sum(axis=1, keepdims=True), 1e-300))


class LinearSVC(_LinearClassifier):
    """A support vector machine whose hinge is rounded over ``width``, by objective perturbation."""

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 0.0,
        bounds: Any = None,
        classes: Any = None,
        method: Method = "auto",
        regularisation: Number | None = None,
        width: float = 0.5,
        neighbours: Neighbours = "add-remove",
        budget: Budget | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            bounds=bounds,
            classes=classes,
            method=method,
            regularisation=regularisation,
            neighbours=neighbours,
            budget=budget,
        )
        self.width = width

    def _loss_function(self) -> MarginLoss:
        return HuberHinge(self.width)
