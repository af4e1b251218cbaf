"""Learning under a privacy budget: estimators that look like scikit-learn's and pay before they look at a row."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.learning.bayes import GaussianNB
    from hubbub.learning.components import PCA
    from hubbub.learning.descents import descend, descend_privately, descend_stochastically
    from hubbub.learning.judging import Accuracy, accuracy, best, card
    from hubbub.learning.kmeans import KMeans
    from hubbub.learning.linear import LinearSVC, LogisticRegression, PrivateERM
    from hubbub.learning.losses import Huber, HuberHinge, Logistic, MarginLoss, PointLoss
    from hubbub.learning.predicting import PrivatePredictor
    from hubbub.learning.regression import LinearRegression
    from hubbub.learning.scaling import StandardScaler

_ROOMS = {
    "bayes": ("GaussianNB",),
    "components": ("PCA",),
    "descents": (
        "descend",
        "descend_privately",
        "descend_stochastically",
    ),
    "judging": (
        "Accuracy",
        "accuracy",
        "best",
        "card",
    ),
    "kmeans": ("KMeans",),
    "linear": (
        "LinearSVC",
        "LogisticRegression",
        "PrivateERM",
    ),
    "losses": (
        "Huber",
        "HuberHinge",
        "Logistic",
        "MarginLoss",
        "PointLoss",
    ),
    "predicting": ("PrivatePredictor",),
    "regression": ("LinearRegression",),
    "scaling": ("StandardScaler",),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "PCA",
    "Accuracy",
    "GaussianNB",
    "Huber",
    "HuberHinge",
    "KMeans",
    "LinearRegression",
    "LinearSVC",
    "Logistic",
    "LogisticRegression",
    "MarginLoss",
    "PointLoss",
    "PrivateERM",
    "PrivatePredictor",
    "StandardScaler",
    "accuracy",
    "best",
    "card",
    "descend",
    "descend_privately",
    "descend_stochastically",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hubbub.learning' has no attribute {name!r}")
    return getattr(import_module(f"hubbub.learning.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
