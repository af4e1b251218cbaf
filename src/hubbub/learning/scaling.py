"""Features brought to mean 0 and variance 1 by private means and variances."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.learning.estimating import PrivateEstimator
from hubbub.learning.moments import TOP, WHOLE, Moments, Norm, Totals, Weights, means, quietest
from hubbub.learning.rows import Floats, public_bounds
from hubbub.numeric.rational import Number
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import Neighbours
from hubbub.randomness.bits import SECURE, Bits

LOUD = 64


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Subtracts private means and divides by private standard deviations, of values clamped to public ``bounds``.

    A standard deviation that the noise hides counts as what the noise could hide, so that nothing blows up.

    Claim: (epsilon, delta)-DP at the asked pair, epsilon-DP at delta 0, in the stated relation; ``loss_`` is the price.
    Proof: one release of Moments by a Gaussian or Laplace mechanism of its sensitivity; the rest is post-processing
        (DMNS06).
    Assumes: bounds chosen without looking at the data; under "replace" the number of rows is public.

    >>> scaler = StandardScaler(epsilon=1.0, bounds=(0, 100)).fit(np.full((10_000, 1), 40.0))
    >>> bool(abs(scaler.mean_[0] - 40) < 1)
    True
    """

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 0.0,
        bounds: Any = None,
        neighbours: Neighbours = "add-remove",
        budget: Budget | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.neighbours = neighbours
        self.budget = budget

    def fit(self, X: ArrayLike, y: Any = None, *, bits: Bits = SECURE) -> Self:  # noqa: ARG002, N803
        """Pays, then releases counts, sums and squares of all features at once."""
        rows = self._rows(X, first=True)
        low, high = public_bounds(self.bounds, rows.shape[1])

        def moments(norm: Norm) -> Moments:
            weights = column_weights(norm, self.neighbours, len(low))
            return Moments(tuple(low), tuple(high), (WHOLE,) * len(low), weights, self.neighbours)

        plan, mechanism = quietest(moments, epsilon=self.epsilon, delta=self.delta, neighbours=self.neighbours)
        self._charge(mechanism.loss)
        totals = plan.read(mechanism.release(plan.totals(rows), bits), len(rows))[0]
        noise = plan.noise(mechanism)
        _, centre, _ = means(totals, noise)
        variance, doubt = variances(totals, noise)
        half = (high - low) / 2
        self.n_samples_seen_ = max(totals.count, 0.0)
        """The number of rows, as released."""
        self.mean_ = (low + high) / 2 + half * centre
        self.var_ = half**2 * np.clip(variance, 0.0, 1.0)
        self.scale_ = half * np.sqrt(np.clip(np.maximum(variance, doubt), 1 / TOP**2, 1.0))
        return self

    def transform(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Rows in standard units. Costs nothing."""
        check_is_fitted(self)
        return np.asarray((self._rows(X, first=False) - self.mean_) / self.scale_)

    def inverse_transform(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Rows in their own units again."""
        check_is_fitted(self)
        return np.asarray(self._rows(X, first=False) * self.scale_ + self.mean_)


def variances(totals: Totals, noise: Totals) -> tuple[Floats, Floats]:
    """Noisy variances of features in units of the bounds, perhaps negative, and their standard deviations."""
    count = max(totals.count, 1.0)
    plain = np.clip(totals.sums / count, -1.0, 1.0)
    found = np.diag(totals.products) / count - plain**2
    spread = np.hypot(np.diag(noise.products), 2 * plain * noise.sums) / count
    return np.asarray(found), np.asarray(spread)


def column_weights(norm: Norm, neighbours: Neighbours, features: int) -> Weights:
    """Counts louder, as all features share them; squares so that under "replace" they cost nothing more."""
    count = round(LOUD * features ** (1 / 4 if norm == 2 else 1 / 3))
    if neighbours == "add-remove":
        return Weights(count, LOUD, LOUD)
    return Weights(count, LOUD, int(LOUD / 2**0.5) if norm == 2 else LOUD // 2)
