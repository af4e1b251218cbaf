"""k-means under a privacy budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.errors import ParameterError
from hubbub.learning.clustering import Merging, PlainLloyd
from hubbub.learning.estimating import PrivateEstimator
from hubbub.learning.rows import Floats
from hubbub.learning.summing import Allowance, Grid, lengths, nearest
from hubbub.numeric.rational import Number, count
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import Neighbours, check_delta
from hubbub.randomness.bits import SECURE, Bits

if TYPE_CHECKING:
    from sklearn.utils import Tags

Method = Literal["auto", "lloyd"]

ROUNDS = 5
"""Of the plain method, unless another number is asked for."""


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """k-means: centres that many rows are near to, found from noisy sums only.

    ``bounds`` are public: (low, high) for all features, or a list of each; values outside count as the nearest end,
    nan as the allowed value nearest zero. Distances are Euclidean in the units of the data: scale features, by public
    numbers, as for any k-means. With ``delta`` the noise is Gaussian, without it Laplace, which needs many more rows.

    ``method="auto"``: a noisy tree gives weighted points, those are merged into clusters, and a few noisy steps on
    short offsets refine them. ``method="lloyd"``: k-means steps with Laplace noise from a random start (as taught;
    ``rounds`` of them); pure, whatever delta is.

    There is no ``labels_`` and no ``inertia_``: what they say of the rows that were fitted is not private. ``predict``
    and ``score`` answer for rows that the caller may see; what they give for private rows is private too.

    Claim: fit is (epsilon, delta)-DP for one row more or less, or one replaced, as ``neighbours`` says; ``loss_``.
    Proof: rows are seen by mechanisms only, whose shares add up to at most one (Allowance); where rows go depends on
        the row and earlier releases (DMNS06 adaptive composition, DRS22 for Gaussians).
    Assumes: bounds and parameters chosen without looking at the data; add-remove: the number of rows is kept private.

    >>> rows = [[0.0, 0.0], [1.0, 1.0]] * 3000
    >>> model = KMeans(2, epsilon=8, delta=1e-6, bounds=(-4, 4)).fit(rows)
    >>> sorted(model.cluster_centers_.round(1)[:, 0].tolist())
    [0.0, 1.0]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Number = 1.0,
        delta: Number = 0.0,
        bounds: Any = None,
        method: Method = "auto",
        rounds: int | None = None,
        neighbours: Neighbours = "add-remove",
        budget: Budget | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.method = method
        self.rounds = rounds
        self.neighbours = neighbours
        self.budget = budget

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "clusterer"
        return tags

    def fit(self, X: ArrayLike, y: object = None, *, bits: Bits = SECURE) -> Self:  # noqa: ARG002, N803
        """Finds centres, once, at the stated price. ``y`` is not used."""
        clusters = count("n_clusters", self.n_clusters)
        method = self._method()
        rows = self._rows(X, first=True)
        grid = Grid.of(self.bounds, rows.shape[1])
        self._charge(method.loss)
        self._grid = grid
        self._centres = method.centres(grid(rows), grid, clusters, bits)
        self.cluster_centers_ = grid.back(self._centres)
        return self

    def _method(self) -> PlainLloyd | Merging:
        if self.method == "auto":
            if self.rounds is not None:
                raise ParameterError("rounds", self.rounds, 'goes with method="lloyd"')
            return Merging(Allowance(self.epsilon, self.delta, self.neighbours))
        if self.method == "lloyd":
            check_delta(self.delta)
            return PlainLloyd(self.epsilon, ROUNDS if self.rounds is None else self.rounds, self.neighbours)
        raise ParameterError("method", self.method, "is not known", 'there are "auto" and "lloyd"')

    def _seen(self, rows: ArrayLike) -> Floats:
        check_is_fitted(self)
        return self._grid(self._rows(rows, first=False))

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:  # noqa: N803
        """The centre nearest to each row, brought within the bounds."""
        return nearest(self._seen(X), self._centres)

    def transform(self, X: ArrayLike) -> Floats:  # noqa: N803
        """The distance of each row, brought within the bounds, to every centre."""
        points = self._seen(X)
        everywhere = np.zeros(len(points), np.intp)
        columns = [lengths(points, everywhere, centre[None, :], 2) for centre in self._centres]
        return np.stack(columns, axis=1) * self._grid.unit

    def score(self, X: ArrayLike, y: object = None) -> float:  # noqa: ARG002, N803
        """Minus the sum of squared distances of rows, brought within the bounds, to their centres."""
        points = self._seen(X)
        apart = lengths(points, nearest(points, self._centres), self._centres, 2) * self._grid.unit
        return -float(apart @ apart)

    @property
    def _n_features_out(self) -> int:
        return len(self._centres)
