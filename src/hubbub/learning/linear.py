"""Linear models by private empirical risk: any convex loss, by the method that suits; logistic and support vectors."""

from __future__ import annotations

from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.learning.descending import NoisyDescent
from hubbub.learning.estimating import PrivateEstimator, declared_classes, labelings
from hubbub.learning.exponential import ExponentialMinimiser
from hubbub.learning.given import numbers
from hubbub.learning.losses import Huber, HuberHinge, Logistic, MarginLoss, PointLoss
from hubbub.learning.minimising import MOST_ROWS
from hubbub.learning.objective import ObjectivePerturbation
from hubbub.learning.output import OutputPerturbation
from hubbub.learning.rows import Encoding, clamped, public_bounds
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.rational import Number
from hubbub.privacy.budget import Budget
from hubbub.privacy.families import NoLoss
from hubbub.privacy.loss import Neighbours
from hubbub.randomness.bits import SECURE, Bits

Method = Literal["auto", "objective", "output", "gradient", "exponential"]


class _Linear(PrivateEstimator):
    """Weights of encoded rows, found by a private minimiser of a risk."""

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 0.0,
        bounds: Any = None,
        method: Method = "auto",
        regularisation: Number | None = None,
        radius: Number = 10.0,
        steps: int = 100,
        neighbours: Neighbours = "add-remove",
        budget: Budget | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.method = method
        self.regularisation = regularisation
        self.radius = radius
        self.steps = steps
        self.neighbours = neighbours
        self.budget = budget

    def _encoded(self, features: int, longest: float | None = None) -> Encoding:
        pure = not self.delta and self.method in ("auto", "objective")
        return Encoding.of(self.bounds, features, longest=longest, norm=1 if pure else 2)

    def _mechanism(self, point_loss: PointLoss, width: int, many: int) -> Mechanism:
        shared: dict[str, Any] = {"width": width, "labelings": many, "neighbours": self.neighbours}
        price: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "weight": self.regularisation}
        match self.method:
            case "auto" | "objective":
                return ObjectivePerturbation(point_loss, **price, **shared)
            case "output":
                return OutputPerturbation(point_loss, **price, **shared)
            case "gradient":
                return NoisyDescent(point_loss, **price, **shared, radius=self.radius, steps=self.steps)
            case "exponential":
                return ExponentialMinimiser(point_loss, epsilon=self.epsilon, radius=self.radius, **shared)
        raise ParameterError("method", self.method, "is not known", f"there are {', '.join(get_args(Method))}")

    def _paid(self, point_loss: PointLoss, encoding: Encoding, many: int, rows: int) -> Mechanism:
        """The mechanism, once it has been paid for."""
        mechanism = self._mechanism(point_loss, encoding.width, many)
        if rows > MOST_ROWS:
            raise ParameterError("X", "…", f"must have at most {MOST_ROWS} rows", "train on fewer")
        self._charge(mechanism.loss)
        return mechanism

    def _fitted(self, encoding: Encoding, weights: NDArray[np.float64]) -> Self:
        self._encoding = encoding
        self.coef_, self.intercept_ = weights[:, :-1], weights[:, -1]
        return self

    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803 - scikit-learn's names
        check_is_fitted(self)
        found: NDArray[np.float64] = (
            self._encoding(self._rows(X, first=False)) @ np.hstack([self.coef_, self.intercept_[:, None]]).T
        )
        return found[:, 0] if found.shape[1] == 1 else found


class _LinearClassifier(ClassifierMixin, _Linear):  # type: ignore[misc]
    """Planes between classes, one against the rest. ``coef_`` and ``intercept_`` are those of encoded rows."""

    _point_loss: MarginLoss

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 0.0,
        bounds: Any = None,
        classes: Any = None,
        method: Method = "auto",
        regularisation: Number | None = None,
        radius: Number = 10.0,
        steps: int = 100,
        neighbours: Neighbours = "add-remove",
        budget: Budget | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            bounds=bounds,
            method=method,
            regularisation=regularisation,
            radius=radius,
            steps=steps,
            neighbours=neighbours,
            budget=budget,
        )
        self.classes = classes

    def fit(self, X: ArrayLike, y: ArrayLike, *, bits: Bits = SECURE) -> Self:  # noqa: N803
        """Trains on rows and labels, once, at the stated price."""
        rows, labels = self._labelled(X, y)
        encoding = self._encoded(rows.shape[1])
        classes = declared_classes(self.classes, labels)
        if len(classes) < 2:  # one public class: nothing is learnt and nothing is paid
            self.loss_, self.classes_ = NoLoss(self.neighbours), classes
            return self._fitted(encoding, np.zeros((1, encoding.width)))
        many = 1 if len(classes) == 2 else len(classes)
        mechanism = self._paid(self._point_loss, encoding, many, len(rows))
        self.classes_ = classes
        return self._fitted(encoding, mechanism.release((encoding(rows), labelings(classes, labels)), bits))

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """How far a row lies on the side of each class (of the second, where there are two)."""
        return self._scores(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """The likeliest class of each row. Costs nothing: the model is private."""
        scores = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        at = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        found: NDArray[Any] = self.classes_[at]
        return found


class LogisticRegression(_LinearClassifier):
    """Private logistic regression.

    ``bounds`` are public: (low, high) for all features, or a list of each. Features are measured in units of them, and
    rows are scaled to length 1 (which side of a plane they lie on is unchanged). ``classes`` are declared, or said to
    be public. ``method`` is objective perturbation unless another is asked for.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 4000)[:, None]
    >>> model = LogisticRegression(epsilon=2, delta=1e-6, bounds=(-1, 1), classes=[False, True])
    >>> bool(model.fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.9), model.loss_.epsilon(1e-6)
    (True, 2.0)
    """

    _point_loss = Logistic()

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
    """A private support vector machine whose hinge is rounded over 0.5 on either side (a Huber SVM)."""

    _point_loss = HuberHinge()


class PrivateERM(RegressorMixin, _Linear):  # type: ignore[misc]
    """The weights of least risk for a loss of your own, or one of Logistic, HuberHinge and Huber.

    ``y`` is clamped to the declared ``target_bounds`` and measured in units of them, from -1 to 1; a MarginLoss sees
    its sign, and a 0 does not count. Rows are shortened to ``longest``, in units of the features' bounds.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 4000)[:, None]
    >>> model = PrivateERM(Huber(0.5), epsilon=2, delta=1e-6, bounds=(-1, 1), target_bounds=(-2, 2))
    >>> bool(model.fit(X, 2 * X[:, 0]).score(X, 2 * X[:, 0]) > 0.9)
    True
    """

    def __init__(
        self,
        loss: PointLoss | None = None,
        *,
        epsilon: Number = 1.0,
        delta: Number = 0.0,
        bounds: Any = None,
        target_bounds: Any = None,
        method: Method = "auto",
        regularisation: Number | None = None,
        radius: Number = 10.0,
        steps: int = 100,
        longest: float = 1.5,
        neighbours: Neighbours = "add-remove",
        budget: Budget | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            bounds=bounds,
            method=method,
            regularisation=regularisation,
            radius=radius,
            steps=steps,
            neighbours=neighbours,
            budget=budget,
        )
        self.loss = loss
        self.target_bounds = target_bounds
        self.longest = longest

    def fit(self, X: ArrayLike, y: ArrayLike, *, bits: Bits = SECURE) -> Self:  # noqa: N803
        """Trains on rows and targets, once, at the stated price."""
        rows, found = self._labelled(X, y)
        numeric = numbers("y", found)
        loss = Huber() if self.loss is None else self.loss
        if not isinstance(loss, PointLoss):
            raise ParameterTypeError("loss", type(loss).__name__, "must be a PointLoss", "such as Huber()")
        low, high = public_bounds(self.target_bounds, 1)
        encoding = self._encoded(rows.shape[1], self.longest)
        mechanism = self._paid(loss, encoding, 1, len(rows))
        self._middle, self._half = (low[0] + high[0]) / 2, (high[0] - low[0]) / 2
        targets = clamped(numeric[:, None], low, high)
        labels = np.clip((targets - self._middle) / self._half, -1, 1)
        labels = np.sign(labels) if isinstance(loss, MarginLoss) else labels
        return self._fitted(encoding, mechanism.release((encoding(rows), labels), bits))

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """The score of each row, in units of the target. Costs nothing: the model is private."""
        scores = self._scores(X)
        found: NDArray[np.float64] = self._middle + self._half * scores
        return found
