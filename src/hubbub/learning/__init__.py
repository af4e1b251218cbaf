"""Learning under a privacy budget: estimators that look like scikit-learn's and pay before they look at a row."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.learning.descents import descend, descend_privately, descend_stochastically
    from hubbub.learning.judging import Accuracy, accuracy, best, card
    from hubbub.learning.linear import LinearSVC, LogisticRegression, PrivateERM
    from hubbub.learning.losses import Huber, HuberHinge, Logistic, MarginLoss, PointLoss
    from hubbub.learning.predicting import PrivatePredictor

_HOME = {
    "Accuracy": "judging",
    "Huber": "losses",
    "HuberHinge": "losses",
    "LinearSVC": "linear",
    "Logistic": "losses",
    "LogisticRegression": "linear",
    "MarginLoss": "losses",
    "PointLoss": "losses",
    "PrivateERM": "linear",
    "PrivatePredictor": "predicting",
    "accuracy": "judging",
    "best": "judging",
    "card": "judging",
    "descend": "descents",
    "descend_privately": "descents",
    "descend_stochastically": "descents",
}

__all__ = [
    "Accuracy",
    "Huber",
    "HuberHinge",
    "LinearSVC",
    "Logistic",
    "LogisticRegression",
    "MarginLoss",
    "PointLoss",
    "PrivateERM",
    "PrivatePredictor",
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
