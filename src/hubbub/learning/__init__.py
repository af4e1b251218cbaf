"""Learning under a privacy budget: estimators that look like scikit-learn's and pay before they look at a row."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.learning.kmeans import KMeans
    from hubbub.learning.linear import LinearSVC, LogisticRegression
    from hubbub.learning.losses import HuberHinge, Logistic

_HOME = {
    "HuberHinge": "losses",
    "KMeans": "kmeans",
    "LinearSVC": "linear",
    "Logistic": "losses",
    "LogisticRegression": "linear",
}

__all__ = ["HuberHinge", "KMeans", "LinearSVC", "Logistic", "LogisticRegression"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hubbub.learning' has no attribute {name!r}")
    return getattr(import_module(f"hubbub.learning.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
