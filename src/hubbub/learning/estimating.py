"""What every private estimator shares: its price, its budget, and labels that are declared, not found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.errors import MissingExtra, ParameterError, ParameterTypeError
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import Loss

try:
    from sklearn.base import BaseEstimator
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
        found: NDArray[np.float64] = validate_data(self, rows, ensure_all_finite=False, dtype=np.float64, reset=first)
        return found

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
        return np.unique(labels)
    found = np.unique(np.asarray(classes))
    if len(found) < 2:
        raise ParameterError("classes", list(classes), "must be at least two", _CLASSES)
    return found


def labelings(classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """+1 and -1 for every class against the rest (two classes: once); 0 in all columns for a label not declared."""
    one_hot = np.asarray(labels)[:, None] == classes[None, :]
    known = one_hot.any(axis=1)
    signs = np.where(one_hot, 1.0, -1.0) * known[:, None]
    return np.asarray(signs[:, 1:] if len(classes) == 2 else signs)
