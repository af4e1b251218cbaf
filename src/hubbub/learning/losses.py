"""Losses of linear models: functions of a score and a label, with the public bounds on their slopes that privacy
rests on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

Floats = NDArray[np.float64]


class PointLoss(ABC):
    """A convex function of a row's score x . w, for each label; twice differentiable but for single points."""

    slope: float
    """The largest size of its derivative."""
    curvature: float
    """The largest second derivative."""
    one_sided: bool = False
    """Whether its derivative has one sign for each label: then less noise is needed."""
    rounding: float
    """The largest |score * second derivative| near |derivative| > 0: how much a relative error of the score matters."""

    @abstractmethod
    def value(self, scores: Floats, labels: Floats) -> Floats:
        """The loss."""

    @abstractmethod
    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Its derivative by the score, within [-slope, slope]; right to 8 units in the last place of the slope."""

    @abstractmethod
    def second(self, scores: Floats, labels: Floats) -> Floats:
        """Its second derivative, within [0, curvature]."""


def checked(loss: PointLoss) -> PointLoss:
    """The loss, whose declared bounds are numbers; that they are true is for its author to see to."""
    for name in ("slope", "curvature", "rounding"):
        bound = getattr(loss, name, math.nan)
        if not (math.isfinite(bound) and (bound > 0 if name == "slope" else bound >= 0)):
            raise ParameterError("loss", name, "must be declared, a finite number that is not negative")
    return loss


class MarginLoss(PointLoss):
    """A falling function of the margin m = y (x . w), for labels +1 and -1; a row labelled 0 does not count."""

    slope: float = 1.0
    one_sided: bool = True


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(-m))."""

    curvature = 0.25
    rounding = 0.25

    def value(self, scores: Floats, labels: Floats) -> Floats:
        return np.logaddexp(0.0, -scores * labels)

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        from scipy.special import expit

        return np.asarray(-labels * expit(-scores * labels))

    def second(self, scores: Floats, labels: Floats) -> Floats:
        from scipy.special import expit

        return np.asarray(np.abs(labels) * expit(scores) * expit(-scores))


@dataclass(frozen=True)
class HuberHinge(MarginLoss):
    """The hinge loss max(0, 1 - m) with its corner rounded over a width on either side: a smooth support vector
    machine.

    >>> HuberHinge(0.5).value(np.array([2.0, 0.0]), np.ones(2))
    array([0., 1.])
    """

    width: float = 0.5

    def __post_init__(self) -> None:
        if not 0.01 <= self.width <= 10:
            raise ParameterError("width", self.width, "must lie between 0.01 and 10", "0.5 is usual")

    @property
    def curvature(self) -> float:  # type: ignore[override]
        return 1 / (2 * self.width)

    @property
    def rounding(self) -> float:  # type: ignore[override]
        return (1 + self.width) * self.curvature

    def value(self, scores: Floats, labels: Floats) -> Floats:
        margins = scores * labels
        inside = np.clip(1 + self.width - margins, 0, 2 * self.width)
        return np.asarray(inside**2 / (4 * self.width) + np.maximum(0.0, 1 - self.width - margins))

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        return np.asarray(-labels * np.clip((1 + self.width - scores * labels) / (2 * self.width), 0.0, 1.0))

    def second(self, scores: Floats, labels: Floats) -> Floats:
        return np.where(np.abs(1 - scores * labels) <= self.width, np.abs(labels) * self.curvature, 0.0)


@dataclass(frozen=True)
class Huber(PointLoss):
    """Half the squared residual up to ``width``, then straight: robust regression of labels within [-1, 1].

    >>> Huber(0.5).value(np.array([0.25, 2.0]), np.zeros(2))
    array([0.03125, 0.875  ])
    """

    width: float = 0.5
    curvature = 1.0

    def __post_init__(self) -> None:
        if not 0.001 <= self.width <= 10:
            raise ParameterError("width", self.width, "must lie between 0.001 and 10", "0.5 is usual")

    @property
    def slope(self) -> float:  # type: ignore[override]
        return self.width

    @property
    def rounding(self) -> float:  # type: ignore[override]
        return 1 + self.width

    def value(self, scores: Floats, labels: Floats) -> Floats:
        away = np.abs(scores - labels)
        return np.where(away <= self.width, away**2 / 2, self.width * (away - self.width / 2))

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        return np.clip(scores - labels, -self.width, self.width)

    def second(self, scores: Floats, labels: Floats) -> Floats:
        return (np.abs(scores - labels) <= self.width).astype(np.float64)
