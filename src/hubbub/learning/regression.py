"""Linear regression from private totals."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.errors import ParameterError
from hubbub.learning.estimating import PrivateEstimator
from hubbub.learning.given import numbers
from hubbub.learning.moments import WHOLE, Moments, Norm, Totals, Weights, means, quietest
from hubbub.learning.rows import Floats, public_bounds
from hubbub.numeric.rational import Number
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import Neighbours
from hubbub.randomness.bits import SECURE, Bits

LOUD = 64
FLOOR = 0.5
"""Eigenvalues are raised until the least is this many times what noise alone would make of zeros."""
DAMPING = 0.75
"""How much noise counts when it is weighed against coefficients of size 1 in units of the bounds."""


class LinearRegression(MultiOutputMixin, RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Least squares from one noisy release of all second moments, the noise weighed against the signal.

    ``bounds`` and ``target_bounds`` are public: (low, high), two numbers or two lists of one a column. The ridge comes
    from the released moments and the known noise, so it costs nothing: it vanishes as epsilon grows. ``coef_error_`` is
    the standard deviation of each coefficient due to the noise for privacy alone, estimated from what was released.

    Claim: (epsilon, delta)-DP at the asked pair, epsilon-DP at delta 0, in the stated relation; ``loss_`` is the price.
    Proof: one release of Moments by a Gaussian or Laplace mechanism of its sensitivity; the rest is post-processing
        (DMNS06). The idea of adapting the ridge to released eigenvalues is W18's, without its release of its own.
    Assumes: bounds chosen without looking at the data; under "replace" the number of rows is public.

    >>> rows = np.linspace(0, 10, 5000)[:, None]
    >>> model = LinearRegression(epsilon=5.0, delta=1e-6, bounds=(0, 10), target_bounds=(0, 40))
    >>> bool(abs(model.fit(rows, 3 * rows[:, 0] + 5).predict([[4.0]])[0] - 17) < 1)
    True
    """

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 0.0,
        bounds: Any = None,
        target_bounds: Any = None,
        neighbours: Neighbours = "add-remove",
        budget: Budget | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.neighbours = neighbours
        self.budget = budget

    def fit(self, X: ArrayLike, y: ArrayLike, *, bits: Bits = SECURE) -> Self:  # noqa: N803 - scikit-learn's names
        """Pays, then releases the moments of rows and targets and solves for the coefficients."""
        rows = self._rows(X, first=True)
        targets, alone = self._targets(y, len(rows))
        low, high = public_bounds(self.bounds, rows.shape[1])
        lowest, highest = public_bounds(self.target_bounds, targets.shape[1], name="target_bounds")
        ends = (*low, *lowest), (*high, *highest)

        def moments(norm: Norm) -> Moments:
            weights = _weights(norm, self.neighbours, len(low), len(lowest))
            return Moments(*ends, (WHOLE,) * len(low), weights, self.neighbours)

        plan, mechanism = quietest(moments, epsilon=self.epsilon, delta=self.delta, neighbours=self.neighbours)
        self._charge(mechanism.loss)
        released = mechanism.release(plan.totals(np.hstack([rows, targets])), bits)
        return self._solved(plan.read(released, len(rows))[0], plan.noise(mechanism), np.array(ends), alone)

    def _targets(self, y: Any, rows: int) -> tuple[Floats, bool]:
        """The targets as columns, and whether there was just one, not a table."""
        if y is None:
            raise ParameterError(
                "y", None, "must be given: LinearRegression requires y to be passed, but the target y is None"
            )
        found = numbers("y", y)
        if found.ndim not in (1, 2) or len(found) != rows or not np.prod(found.shape[1:]):
            raise ParameterError("y", "…", "must have a number, or several, for each row of X")
        return (found[:, None], True) if found.ndim == 1 else (found, False)

    def _solved(self, totals: Totals, noise: Totals, ends: Floats, alone: bool) -> Self:
        slopes, levels, errors = solved(totals, noise)
        low, high = ends
        middle, half = (low + high) / 2, (high - low) / 2
        d = len(slopes)
        unit = half[None, d:] / half[:d, None]
        coefficients, errors = (slopes * unit).T, (errors * unit).T
        levels = middle[d:] + half[d:] * levels - coefficients @ middle[:d]
        self.count_ = max(totals.count, 0.0)
        """The number of rows, as released."""
        self.coef_: Floats = coefficients[0] if alone else coefficients
        self.coef_error_: Floats = errors[0] if alone else errors
        self.intercept_: float | Floats = float(levels[0]) if alone else levels
        return self

    def predict(self, X: ArrayLike) -> Floats:  # noqa: N803
        """What the plane says of each row. Costs nothing: the model is private."""
        check_is_fitted(self)
        rows = self._rows(X, first=False)
        return np.asarray(rows @ self.coef_.T + self.intercept_)


def solved(totals: Totals, noise: Totals) -> tuple[Floats, Floats, Floats]:
    """Slopes (one row a feature), levels and the slopes' errors, in units of the bounds, from noisy totals."""
    count, centre, level = means(totals, noise)
    matrix = totals.products - count * np.outer(centre, centre)
    right = totals.target_products - count * np.outer(centre, level)
    values, vectors = np.linalg.eigh(matrix)
    d = len(values)
    loud = float(noise.sums[0])  # products of two features have the noise of their sums
    values = values + max(0.0, FLOOR * math.sqrt(d) * loud - float(values[0]))
    off = float(np.mean(centre**2))
    of_right = float(noise.target_products[0, 0]) ** 2 * (1 + off + level**2)
    of_left = loud**2 * (1 + 2 * off)
    strength = values[:, None] / (values[:, None] ** 2 + DAMPING**2 * (of_right + d * of_left) + 1e-300)
    slopes = vectors @ (strength * (vectors.T @ right))
    spread = np.sqrt(of_right + of_left * (slopes**2).sum(axis=0))
    return slopes, level - centre @ slopes, np.sqrt(vectors**2 @ strength**2) * spread


def _weights(norm: Norm, neighbours: Neighbours, features: int, targets: int) -> Weights:
    """Louder products with targets, of which there are fewer: best for coefficients of size about 0.7 in all."""
    left = max(8, round(LOUD * (targets / features) ** (1 / 4 if norm == 2 else 1 / 3)))
    square = left // 2 if neighbours == "replace" else round(0.6 * left)
    return Weights(left, left, square, left, LOUD, LOUD)
