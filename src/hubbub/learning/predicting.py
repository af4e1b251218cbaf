"""Inference privacy: the model stays secret, and every prediction is paid for."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from hubbub.errors import ParameterTypeError
from hubbub.learning.estimating import PrivateEstimator, declared_classes
from hubbub.learning.given import numbers, places
from hubbub.learning.rows import public_bounds
from hubbub.mechanisms import Laplace, NoisyMax
from hubbub.numeric.rational import Number, count, positive
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import Loss, Neighbours
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.choice import uniform_below


class PrivatePredictor(PrivateEstimator):
    """Predictions of any model, each at a price; the model itself is never released.

    The rows are dealt at random to ``parts``, a copy of the model is trained on each, and a question is answered by a
    noisy vote (classes) or a noisy mean within ``target_bounds`` (numbers). Fitting is free, predicting is not: beside
    a private model, which is paid once, this is cheaper for the first few questions only (``worth``).

    Claim: a prediction for n rows is n times epsilon_per_query, together.
    Proof: rows are dealt independently of each other, so one person is in one part and changes one copy: its vote
        moves from one class to another (scores move by 1: NoisyMax), or its clamped number within the bounds (the
        mean, in units of their span, moves by 1 over ``parts``: Laplace). A copy that fails to train or predict says a
        constant.
    Assumes: training a copy sees its own part only, and does not depend on a shared state of the program.
    """

    def __init__(
        self,
        model: Any = None,
        *,
        epsilon_per_query: Number = 0.1,
        parts: int = 50,
        classes: Any = None,
        target_bounds: Any = None,
        neighbours: Neighbours = "add-remove",
        budget: Budget | None = None,
    ) -> None:
        self.model = model
        self.epsilon_per_query = epsilon_per_query
        self.parts = parts
        self.classes = classes
        self.target_bounds = target_bounds
        self.neighbours = neighbours
        self.budget = budget

    def fit(self, X: ArrayLike, y: ArrayLike, *, bits: Bits = SECURE) -> Self:  # noqa: N803 - scikit-learn's names
        """Trains the copies. Nothing is released and nothing is paid."""
        if not hasattr(self.model, "fit"):
            raise ParameterTypeError("model", type(self.model).__name__, "must have fit and predict")
        rows, targets = self._labelled(X, y)
        many = count("parts", self.parts)
        self._classifies = is_classifier(self.model)
        if self._classifies:
            self.classes_ = declared_classes(self.classes, targets)
            place = places(self.classes_, targets)
            known, targets = place >= 0, self.classes_[place]
            self._mechanism: NoisyMax | Laplace = NoisyMax(
                1, epsilon=self.epsilon_per_query, neighbours=self.neighbours
            )
        else:
            (low,), (high,) = public_bounds(self.target_bounds, 1)
            self._low, self._span = float(low), float(high - low)
            targets = numbers("y", targets)
            known = np.isfinite(targets)
            reach = (1 + 1e-9) / many
            self._mechanism = Laplace(reach, epsilon=self.epsilon_per_query, neighbours=self.neighbours, max_length=1)
        finite = np.nan_to_num(rows, nan=0.0, posinf=1e9, neginf=-1e9)
        part = uniform_below(many, len(rows), bits)
        self._copies = [self._trained(finite[at], targets[at]) for at in (known & (part == k) for k in range(many))]
        return self

    def _trained(self, rows: NDArray[np.float64], targets: NDArray[Any]) -> Any:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # what a copy says of its rows stays unsaid
                return clone(self.model).fit(rows, targets)
        except Exception:  # whatever it was, it may tell of a row
            return None

    @property
    def loss_per_query(self) -> Loss:
        """What one prediction costs."""
        check_is_fitted(self, "_copies")
        return self._mechanism.loss

    def worth(self, epsilon: Number) -> int:
        """How many questions cost no more than a private model of this epsilon would once.

        >>> PrivatePredictor(epsilon_per_query=0.1).worth(1)
        10
        """
        return int(positive("epsilon", epsilon) / positive("epsilon_per_query", self.epsilon_per_query))

    def predict(self, X: ArrayLike, *, bits: Bits = SECURE) -> NDArray[Any]:  # noqa: N803
        """A prediction for each row, each paid for before any copy is asked; all of them or none."""
        check_is_fitted(self, "_copies")
        rows = np.nan_to_num(self._rows(X, first=False), nan=0.0, posinf=1e9, neginf=-1e9)
        self._charge(self._mechanism.loss * len(rows))
        said = np.array([self._said(copy, rows) for copy in self._copies])
        if not self._classifies:
            means = [math.fsum(column) / len(column) for column in said.T]
            return self._low + self._span * np.array([self._mechanism.release(mean, bits) for mean in means])
        votes = (said[:, :, None] == np.arange(len(self.classes_))).sum(axis=0)
        found: NDArray[Any] = self.classes_[[self._mechanism.release(v.tolist(), bits) for v in votes]]
        return found

    def _said(self, copy: Any, rows: NDArray[np.float64]) -> NDArray[Any]:
        """What a copy says of each row: the place of a class, or a share of the bounds' span; nought if it fails."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                told = np.asarray(copy.predict(rows)).reshape(len(rows))
            if self._classifies:
                return np.where(np.isin(told, self.classes_), np.searchsorted(self.classes_, told), 0)
            share = (told.astype(np.float64) - self._low) / self._span
            return np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0)
        except Exception:  # whatever it was, it may tell of a row
            return np.zeros(len(rows), int if self._classifies else float)
