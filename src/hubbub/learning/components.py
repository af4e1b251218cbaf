"""Principal components from private second moments."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.errors import ParameterError
from hubbub.learning.estimating import PrivateEstimator
from hubbub.learning.moments import WHOLE, Moments, Norm, Weights, means, quietest
from hubbub.learning.rows import Floats, public_bounds
from hubbub.numeric.rational import Number, count
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import Neighbours
from hubbub.randomness.bits import SECURE, Bits

LOUD = 64


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """The directions in which rows vary most, from one noisy release of all second moments.

    ``bounds`` are public; a feature of wider bounds weighs more, as its variance may be larger. ``n_components`` is a
    number, or None for all. ``mean_`` and the covariance come from the same release.

    Claim: (epsilon, delta)-DP at the asked pair, epsilon-DP at delta 0, in the stated relation; ``loss_`` is the price.
    Proof: one release of Moments by a Gaussian or Laplace mechanism of its sensitivity; the rest is post-processing
        (DMNS06), as in DTTZ14.
    Assumes: bounds chosen without looking at the data; under "replace" the number of rows is public.

    >>> rows = np.linspace(-1, 1, 5000)[:, None] * [3.0, 4.0]
    >>> PCA(1, epsilon=5.0, delta=1e-6, bounds=(-5, 5)).fit(rows).components_.round(1).tolist()
    [[0.6, 0.8]]
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: Number = 1.0,
        delta: Number = 0.0,
        bounds: Any = None,
        neighbours: Neighbours = "add-remove",
        budget: Budget | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.neighbours = neighbours
        self.budget = budget

    def fit(self, X: ArrayLike, y: Any = None, *, bits: Bits = SECURE) -> Self:  # noqa: ARG002, N803
        """Pays, then releases the moments and takes the covariance's eigenvectors."""
        rows = self._rows(X, first=True)
        low, high = public_bounds(self.bounds, rows.shape[1])
        kept = len(low) if self.n_components is None else count("n_components", self.n_components)
        if kept > len(low):
            raise ParameterError("n_components", kept, f"must be at most the number of features, {len(low)}")
        half = (high - low) / 2
        square = LOUD // 2 if self.neighbours == "replace" else round(0.6 * LOUD)

        def moments(_: Norm) -> Moments:
            weights = Weights(LOUD, LOUD, square, LOUD)
            return Moments(tuple(low), tuple(high), _sizes(half), weights, self.neighbours)

        plan, mechanism = quietest(moments, epsilon=self.epsilon, delta=self.delta, neighbours=self.neighbours)
        self._charge(mechanism.loss)
        totals = plan.read(mechanism.release(plan.totals(rows), bits), len(rows))[0]
        rows_seen, centre, _ = means(totals, plan.noise(mechanism))
        covariance = (totals.products - rows_seen * np.outer(centre, centre)) / max(rows_seen - 1, 1.0)
        values, vectors = np.linalg.eigh(covariance * np.outer(half, half))
        values = np.maximum(values[::-1], 0.0)
        self.n_samples_ = max(totals.count, 0.0)
        """The number of rows, as released."""
        self.n_components_ = kept
        self.mean_ = (low + high) / 2 + half * centre
        self.components_ = _signed(vectors.T[::-1][:kept])
        self.explained_variance_ = values[:kept]
        self.explained_variance_ratio_ = values[:kept] / max(float(values.sum()), 1e-300)
        return self

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def transform(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Rows along the components. Costs nothing."""
        check_is_fitted(self)
        return np.asarray((self._rows(X, first=False) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Rows of features again, as far as the components tell."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_)


def _sizes(half: Floats) -> tuple[int, ...]:
    """Sizes of features by the width of their bounds: Gaussian noise in their own units adds up to the least."""
    share = np.sqrt(half / half.max())
    return tuple(max(1, round(WHOLE * float(s))) for s in share)


def _signed(components: Floats) -> Floats:
    """Each component with its largest entry positive."""
    largest = np.abs(components).argmax(axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    return np.asarray(components * np.where(signs == 0, 1.0, signs)[:, None])
