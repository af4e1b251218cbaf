"""Gaussian naive Bayes from private totals."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.errors import ParameterError
from hubbub.learning.estimating import PrivateEstimator, declared_classes
from hubbub.learning.given import places
from hubbub.learning.moments import WHOLE, Moments, Norm, Totals, quietest
from hubbub.learning.rows import Floats, public_bounds
from hubbub.learning.scaling import column_weights, variances
from hubbub.numeric.rational import Number
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import Neighbours
from hubbub.randomness.bits import SECURE, Bits

LEAST = 2.0**-30
"""The least variance, in units of the bounds."""


class GaussianNB(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """A normal law for each feature of each class, from one noisy release of counts, sums and squares.

    ``bounds`` are public and ``classes`` declared; rows of other classes count nowhere. Where noise hides a class's
    mean or variance, it is drawn towards that of all classes together.

    Claim: (epsilon, delta)-DP at the asked pair, epsilon-DP at delta 0, in the stated relation; ``loss_`` is the price.
    Proof: one release of Moments with classes by a Gaussian or Laplace mechanism of its sensitivity; the rest is
        post-processing (DMNS06).
    Assumes: bounds and classes chosen without looking at the data; under "replace" the number of rows is public.

    >>> rows = np.repeat([[0.2], [0.8]], 2000, axis=0)
    >>> model = GaussianNB(epsilon=1.0, bounds=(0, 1), classes=["a", "b"]).fit(rows, ["a"] * 2000 + ["b"] * 2000)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 0.0,
        bounds: Any = None,
        classes: Any = None,
        neighbours: Neighbours = "add-remove",
        budget: Budget | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.neighbours = neighbours
        self.budget = budget

    def fit(self, X: ArrayLike, y: ArrayLike, *, bits: Bits = SECURE) -> Self:  # noqa: N803
        """Pays, then releases the totals of every class at once."""
        rows, labels = self._labelled(X, y)
        classes = declared_classes(self.classes, labels)
        if not len(classes):
            raise ParameterError("classes", self.classes, "are none, as no label occurs", "declare them")
        low, high = public_bounds(self.bounds, rows.shape[1])

        def moments(norm: Norm) -> Moments:
            weights = column_weights(norm, self.neighbours, len(low))
            sizes = (WHOLE,) * len(low)
            return Moments(tuple(low), tuple(high), sizes, weights, self.neighbours, len(classes))

        plan, mechanism = quietest(moments, epsilon=self.epsilon, delta=self.delta, neighbours=self.neighbours)
        self._charge(mechanism.loss)
        self.classes_ = classes
        released = mechanism.release(plan.totals(rows, places(self.classes_, labels)), bits)
        return self._laws(plan.read(released, len(rows)), plan.noise(mechanism), low, high)

    def _laws(self, totals: list[Totals], noise: Totals, low: Floats, high: Floats) -> Self:
        counts = np.array([max(t.count, 1.0) for t in totals])[:, None]
        sums = np.array([t.sums for t in totals])
        plain, doubt = np.clip(sums / counts, -1, 1), noise.sums / counts
        whole = np.clip(sums.sum(axis=0) / counts.sum(), -1, 1)
        mean = whole + (plain - whole) / (1 + doubt**2)
        found, spread = (np.array(parts) for parts in zip(*(variances(t, noise) for t in totals), strict=True))
        pooled = np.clip((counts * found).sum(axis=0) / counts.sum(), LEAST, 1.0)
        variance = pooled + (found - pooled) / (1 + (spread / pooled) ** 2)
        half = (high - low) / 2
        self.class_count_ = counts[:, 0]
        """Rows of each class, as released, at least 1."""
        known = self.class_count_ + noise.count  # the noisier the counts, the more alike the classes
        self.class_prior_ = known / known.sum()
        self.theta_ = (low + high) / 2 + half * mean
        self.var_ = half**2 * np.clip(np.maximum(variance, spread / 2) + doubt**2, LEAST, 1.0)
        return self

    def predict_joint_log_proba(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Logarithms of the joint density of rows and classes."""
        check_is_fitted(self)
        rows = self._rows(X, first=False)
        found = np.empty((len(rows), len(self.classes_)))
        for k, (mean, variance) in enumerate(zip(self.theta_, self.var_, strict=True)):
            away = ((rows - mean) ** 2 / variance).sum(axis=1) + np.log(2 * np.pi * variance).sum()
            found[:, k] = np.log(self.class_prior_[k]) - away / 2
        return found

    def predict_log_proba(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Logarithms of the classes' probabilities."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))

    def predict_proba(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Probabilities of the classes."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """The likeliest class of each row. Costs nothing: the model is private."""
        likeliest = self.predict_joint_log_proba(X).argmax(axis=1)
        found: NDArray[Any] = self.classes_[likeliest]
        return found
