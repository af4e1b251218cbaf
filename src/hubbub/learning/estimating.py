"""What every private estimator shares: its price, its budget, and labels that are declared, not found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.errors import MissingExtra, ParameterError, ParameterTypeError
from hubbub.learning.given import labels_of, numbers, places
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import Loss

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data
except ImportError as missing:  # pragma: no cover
    raise MissingExtra("learn") from missing

if TYPE_CHECKING:
    from sklearn.utils import Tags

_CLASSES = 'give classes=[…], or classes="public" to say that the labels which occur are public knowledge'


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator that pays before it looks. ``loss_`` is what ``fit`` cost.

    ``fit`` takes ``bits`` for tests and audits; there is no seed.
    """

    budget: Budget | None
    loss_: Loss

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # counted by a public rule: an error would tell of a row
        tags.non_deterministic = True
        return tags

    def _rows(self, rows: ArrayLike, *, first: bool) -> NDArray[np.float64]:
        """The rows as numbers, whatever they hold; their width is checked against the first ones'."""
        if hasattr(rows, "toarray"):  # scikit-learn says what to do with sparse ones
            validate_data(self, rows, reset=first)
        found = numbers("X", rows)
        if found.ndim != 2:
            requirement = "must be a table. Reshape your data: one line a person, one column a feature"
            raise ParameterError("X", f"{found.ndim} dimensions", requirement)
        if not found.shape[1]:
            raise ParameterError("X", "…", f"0 feature(s) (shape={found.shape}) while a minimum of 1 is required.")
        validate_data(self, rows, skip_check_array=True, reset=first)
        return found

    def _labelled(self, rows: ArrayLike, labels: Any) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Rows to train on, and one label each, whatever it is."""
        table = self._rows(rows, first=True)
        if labels is None:
            requirement = f"must be given: {type(self).__name__} requires y to be passed, but the target y is None"
            raise ParameterError("y", None, requirement)
        column = labels_of(labels)
        if len(column) != len(table):
            raise ParameterError("y", "…", "must have one label for each row of X")
        return table, column

    def _charge(self, loss: Loss) -> None:
        """Takes the price out of the budget, where there is one, before any row is used."""
        if self.budget is not None:
            if not isinstance(self.budget, Budget):
                raise ParameterTypeError("budget", type(self.budget).__name__, "must be a Budget")
            self.budget.spend(loss, note=type(self).__name__)
        self.loss_ = loss


def declared_classes(classes: Any, labels: NDArray[Any]) -> NDArray[Any]:
    """The classes somebody declared, or those that occur where that was said to be public."""
    if classes is None:
        raise ParameterError("classes", None, "must be declared: which labels occur may be private", _CLASSES)
    if isinstance(classes, str):
        if classes != "public":
            raise ParameterError("classes", classes, "is not a declaration", _CLASSES)
        public = np.asarray(labels.tolist()) if labels.dtype == object else labels
        if len(public):
            check_classification_targets(public)
        return np.unique(public)
    found = np.unique(np.asarray(classes))
    if len(found) < 2:
        raise ParameterError("classes", list(classes), "must be at least two", _CLASSES)
    return found


def labelings(classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """+1 and -1 for every class against the rest (two classes: once); 0 in all columns for a label not declared."""
    place = places(classes, labels)
    signs = np.where(place[:, None] == np.arange(len(classes)), 1.0, -1.0) * (place >= 0)[:, None]
    return np.asarray(signs[:, 1:] if len(classes) == 2 else signs)
