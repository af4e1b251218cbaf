"""Torch modules with scikit-learn's manners: teachers and students that are networks."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from hubbub.errors import MissingExtra
from hubbub.numeric.rational import count, positive

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as missing:  # pragma: no cover
    raise MissingExtra("torch") from missing


class Network(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that trains a copy of a torch module, from its own weights on, with Adam and cross-entropy.

    The module gives one score a class. Not private by itself: it is what PATE's teachers and students are.
    """

    def __init__(self, module: Any, *, epochs: int = 20, batch: int = 64, rate: float = 1e-3) -> None:
        self.module = module
        self.epochs = epochs
        self.batch = batch
        self.rate = rate

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - scikit-learn's names
        """Trains on rows of the shape that the module takes, and labels 0, 1, …"""
        rounds, size, rate = count("epochs", self.epochs), count("batch", self.batch), positive("rate", self.rate)
        self.classes_ = np.unique(y)
        rows, labels = torch.as_tensor(np.asarray(X, np.float32)), torch.as_tensor(np.asarray(y, np.int64))
        self.trained_: nn.Module = deepcopy(self.module).train()
        steps = torch.optim.Adam(self.trained_.parameters(), lr=float(rate))
        for _ in range(rounds):
            for part in torch.randperm(len(rows)).split(size):
                if len(part) == 1 < len(rows):
                    continue  # layers that normalise a batch need two rows
                steps.zero_grad()
                functional.cross_entropy(self.trained_(rows[part]), labels[part]).backward()
                steps.step()
        self.trained_.eval()
        return self

    @torch.no_grad()
    def _scores(self, X: Any) -> Any:  # noqa: N803
        rows = torch.as_tensor(np.asarray(X, np.float32))
        return torch.cat([self.trained_(part) for part in rows.split(1000)])

    def predict(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """The class with the highest score."""
        return np.asarray(self._scores(X).argmax(1).numpy(), np.int64)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The chance of every class that the module knows, seen in training or not."""
        return np.asarray(self._scores(X).double().softmax(1).numpy())
