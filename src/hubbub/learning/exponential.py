"""Empirical risk by the exponential mechanism: weights drawn from a lattice in a ball, better ones likelier."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.learning.losses import PointLoss, checked
from hubbub.learning.objective import tables_apart
from hubbub.learning.rows import Floats
from hubbub.mechanisms import Exponential
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.rational import Number, count, positive
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours
from hubbub.randomness.bits import Bits

WIDEST = 3
"""Coordinates, the intercept among them: a ball of more has too many points to weigh one by one."""
POINTS = 10_000
"""Of the lattice, about."""
SLACK = 1e-4
"""Of the bound on one loss: more than rounding can move the sum of MOST_ROWS of them."""
BLOCK = 1 << 12


@dataclass(frozen=True, init=False)
class ExponentialMinimiser(Mechanism):
    """Draws w with probability proportional to exp(-epsilon sum loss(x.w, y)/(2 D)) among lattice points of a ball.

    Claim: epsilon-DP, exactly: the lattice is public and every probability is exact.
    Proof: MT07, Theorem 6, with losses taken relative to w = 0: a loss of that slope on a row of length at most 1
        changes by at most slope * radius, so D = slope radius for one person more or less and twice that where one is
        replaced (the source notes have the former for both). K labelings are drawn one after the other, at a Kth each.
    Assumes: at most MOST_ROWS rows; rounding within SLACK of the losses' bound, which D has on top.
    """

    point_loss: PointLoss
    epsilon: float
    labelings: int
    width: int
    radius: float
    neighbours: Neighbours
    _choice: Exponential = field(repr=False)

    def __init__(
        self,
        point_loss: PointLoss,
        *,
        epsilon: Number,
        width: int,
        labelings: int = 1,
        radius: Number = 10.0,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        columns, many = count("width", width), count("labelings", labelings)
        if columns > WIDEST:
            raise ParameterError(
                "method",
                "exponential",
                f"draws from at most {WIDEST} coordinates, and here are {columns}",
                'use "objective"',
            )
        far = float(positive("radius", radius))
        people = 1 if check_neighbours(neighbours) == "add-remove" else 2
        price = positive("epsilon", epsilon)
        if not 1e-3 <= far <= 2.0**20:
            raise ParameterError("radius", radius, "must lie between 0.001 and 2**20")
        reach = people * checked(point_loss).slope * far * (1 + SLACK)
        self._fill(
            point_loss=point_loss,
            epsilon=float(price),
            labelings=many,
            width=columns,
            radius=far,
            neighbours=neighbours,
            _choice=Exponential(reach, epsilon=price / many, neighbours=neighbours),
        )

    @property
    def loss(self) -> Loss:
        return self._choice.loss * self.labelings

    def apart(self, value: Any, neighbour: Any) -> float:
        return tables_apart(value, neighbour, self.neighbours, norm=2)

    def points(self) -> Floats:
        """The lattice points of the ball."""
        volume = math.pi ** (self.width / 2) / math.gamma(self.width / 2 + 1)
        across = max(1, int((POINTS / volume) ** (1 / self.width)))
        line = np.arange(-across, across + 1) / across
        grid = np.stack(np.meshgrid(*[line] * self.width), axis=-1).reshape(-1, self.width)
        return np.asarray(self.radius * grid[np.linalg.norm(grid, axis=1) <= 1])

    def scores(self, rows: Floats, labels: Floats) -> Floats:
        """Minus the sum of losses at each point, relative to that at 0."""
        points = self.points()
        total = np.zeros(len(points))
        for start in range(0, len(rows), BLOCK):
            block, y = rows[start : start + BLOCK], labels[start : start + BLOCK, None]
            total += (self.point_loss.value(np.zeros_like(y), y) - self.point_loss.value(block @ points.T, y)).sum(
                axis=0
            )
        return total

    def _release(self, value: Any, bits: Bits) -> Floats:
        rows, labels = value
        points = self.points()
        return np.array(
            [points[self._choice.release(self.scores(rows, labels[:, k]), bits)] for k in range(self.labelings)]
        )
