"""Judging models on private rows: an accuracy with its error, the best of several models, and a card to publish."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.errors import ParameterError
from hubbub.learning.given import agree, labels_of
from hubbub.mechanisms import Laplace, NoisyMax
from hubbub.numeric.rational import Number
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import Loss, Neighbours


@dataclass(frozen=True)
class Accuracy:
    """A share of right predictions, how far off the noise may have put it (95 %), and what it cost."""

    value: float
    error: float
    loss: Loss

    def __str__(self) -> str:
        return f"{self.value:.1%} ± {self.error:.1%}"


def accuracy(
    model: Any,
    X: ArrayLike,  # noqa: N803 - scikit-learn's names
    y: ArrayLike,
    *,
    epsilon: Number,
    neighbours: Neighbours = "add-remove",
    budget: Budget | None = None,
) -> Accuracy:
    """The share of these private rows that a private model labels rightly, with noise.

    Claim: epsilon-DP in the rows given here, on top of what the model cost.
    Proof: a person is in one of two counts, right or wrong: one more or less moves their L1 distance by 1, a
        replacement by 2 (DMNS06); the share is made of the noisy counts.
    Assumes: the model predicts a row without regard to the others, and never fails.

    >>> class Yes:
    ...     def predict(self, rows):
    ...         return np.ones(len(rows))
    >>> found = accuracy(Yes(), np.zeros((5000, 1)), np.ones(5000), epsilon=1)
    >>> found.value > 0.99, found.error < 0.01
    (True, True)
    """
    truth = labels_of(y)
    counting = Laplace(1 if neighbours == "add-remove" else 2, epsilon=epsilon, neighbours=neighbours)
    if budget is not None:
        budget.spend(counting.loss, note="accuracy")
    right = _right(model, X, truth)
    noisy = counting.release(np.array([right.sum(), len(right) - right.sum()], np.int64))
    good, bad = (max(0, int(n)) for n in noisy)
    off = float(counting.error(0.975))
    return Accuracy(good / max(1, good + bad), min(1.0, off / max(1.0, good + bad - off)), counting.loss)


def best(
    models: Sequence[Any],
    X: ArrayLike,  # noqa: N803
    y: ArrayLike,
    *,
    epsilon: Number,
    neighbours: Neighbours = "add-remove",
    budget: Budget | None = None,
) -> int:
    """The place of the model that labels most of these private rows rightly, or nearly; the price does not grow with
    the number of models.

    Claim: epsilon-DP in the rows given here, on top of what the models cost.
    Proof: one person adds 0 or 1 to the count of every model, so counts move by at most 1, all one way unless one is
        replaced (MS20, Theorem 1: NoisyMax).
    Assumes: as for ``accuracy``.
    """
    if not len(models):
        raise ParameterError("models", "none", "must be at least one")
    truth = labels_of(y)
    choosing = NoisyMax(1, epsilon=epsilon, monotone=neighbours == "add-remove", neighbours=neighbours)
    if budget is not None:
        budget.spend(choosing.loss, note="best of models")
    return int(choosing.release([int(_right(model, X, truth).sum()) for model in models]))


def _right(model: Any, rows: ArrayLike, truth: NDArray[Any]) -> NDArray[np.bool_]:
    return agree(np.asarray(model.predict(rows)).reshape(len(truth)), truth)


def card(model: Any, *, title: str, measured: Accuracy | None = None) -> str:
    """What to publish beside a private model: how it was made, its price as an interval, its bounds and its accuracy.

    Made of public facts only.
    """
    settings = {name: value for name, value in model.get_params(deep=False).items() if value is not None}
    bounds = settings.pop("bounds", "none")
    settings.pop("budget", None)
    price = f"epsilon {model.loss_.epsilon():.6g}"
    if math.isinf(model.loss_.epsilon()):
        low, high = model.loss_.epsilon_interval(settings["delta"])
        price = f"epsilon between {low:.6g} and {high:.6g} at delta {float(settings['delta']):g}"
    lines = [
        f"# {title}",
        "",
        f"- **Model**: hubbub.learning.{type(model).__name__}",
        f"- **Privacy**: {price}, neighbours: {model.loss_.neighbours}",
        f"- **Bounds of the features, public**: {_words(bounds)}",
        *(f"- {name}: {_words(value)}" for name, value in sorted(settings.items())),
    ]
    if measured is not None:
        lines.append(f"- **Accuracy**: {measured}, measured for {measured.loss}")
    return "\n".join(lines)


def _words(value: Any) -> str:
    """Long lists shortened."""
    if isinstance(value, tuple):
        return " to ".join(map(_words, value))
    shown = np.asarray(value).tolist() if isinstance(value, np.ndarray | list) else value
    return f"{shown[:5]} and {len(shown) - 5} more" if isinstance(shown, list) and len(shown) > 8 else str(shown)
