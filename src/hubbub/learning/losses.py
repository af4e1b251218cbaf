"""Losses of linear models: functions of the margin, with the public bounds on their slopes that privacy rests on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

Floats = NDArray[np.float64]


class MarginLoss(ABC):
    """A convex function of the margin m = y (x . w), y = +1 or -1, twice differentiable but for single points."""

    slope: float = 1.0
    """The largest size of its derivative."""
    curvature: float
    """The largest second derivative."""

    @abstractmethod
    def value(self, margins: Floats) -> Floats:
        """The loss."""

    @abstractmethod
    def derivative(self, margins: Floats) -> Floats:
        """Its derivative, within [-slope, 0]."""

    @abstractmethod
    def second(self, margins: Floats) -> Floats:
        """Its second derivative, within [0, curvature]."""


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(-m))."""

    curvature: float = 0.25

    def value(self, margins: Floats) -> Floats:
        return np.logaddexp(0.0, -margins)

    def derivative(self, margins: Floats) -> Floats:
        from scipy.special import expit

        return np.asarray(-expit(-margins))

    def second(self, margins: Floats) -> Floats:
        from scipy.special import expit

        return np.asarray(expit(margins) * expit(-margins))


@dataclass(frozen=True)
class HuberHinge(MarginLoss):
    """The hinge loss max(0, 1 - m) with its corner rounded over a width on either side: a smooth support vector
    machine.

    >>> HuberHinge(0.5).value(np.array([2.0, 0.0]))
    array([0., 1.])
    """

    width: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.width <= 10:
            raise ParameterError("width", self.width, "must lie between 0 and 10", "0.5 is usual")

    @property
    def curvature(self) -> float:  # type: ignore[override]
        return 1 / (2 * self.width)

    def value(self, margins: Floats) -> Floats:
        inside = np.clip(1 + self.width - margins, 0, 2 * self.width)
        return np.asarray(inside**2 / (4 * self.width) + np.maximum(0.0, 1 - self.width - margins))

    def derivative(self, margins: Floats) -> Floats:
        return np.asarray(-np.clip((1 + self.width - margins) / (2 * self.width), 0.0, 1.0))

    def second(self, margins: Floats) -> Floats:
        return np.where(np.abs(1 - margins) <= self.width, self.curvature, 0.0)
