"""Noisy gradient descent: every step takes one noisy sum of gradients, and all steps together the asked price."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.learning.losses import PointLoss, checked
from hubbub.learning.minimising import MOST_ROWS, UNIT, gradient
from hubbub.learning.objective import tables_apart
from hubbub.learning.rows import CHUNK, Floats
from hubbub.mechanisms import Gaussian
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.rational import Number, count, fraction_between, positive
from hubbub.privacy.families import GaussianDP
from hubbub.privacy.gaussian import largest_mu
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours
from hubbub.randomness.bits import Bits

WIDEST = 2**15
"""Coordinates for which rounding was reckoned."""
COUNTED = 0.05
"""The part of mu**2 that goes to the number of rows, by which steps are sized."""


@dataclass(frozen=True, init=False)
class NoisyDescent(Mechanism):
    """Projected gradient descent on sum loss(x.w, y) + (weight/2) |w|**2 over a ball, with Gaussian noise.

    Nesterov's momentum; released is the average of the last half of the points.

    Claim: mu-Gaussian DP, with the mu of the asked epsilon and delta.
    Proof: a step sees the data through one sum of gradients: one person moves it by at most the slope (twice where
        one is replaced), and rounding by less than the slack that is added to that; all labelings' sums are one vector.
        Gaussians compose, adaptively too, in squares (DRS22, Corollary 3.3); the rest is post-processing.
    Assumes: rows of length at most 1, at most MOST_ROWS of them; the loss keeps the bounds it declares.
    """

    point_loss: PointLoss
    labelings: int
    width: int
    weight: float
    radius: float
    steps: int
    neighbours: Neighbours
    mu: float
    _counting: Gaussian = field(repr=False)
    _stepping: Gaussian = field(repr=False)

    def __init__(
        self,
        point_loss: PointLoss,
        *,
        epsilon: Number,
        delta: Number,
        width: int,
        labelings: int = 1,
        weight: Number | None = None,
        radius: Number = 100.0,
        steps: int = 100,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        price = positive("epsilon", epsilon)
        failure = fraction_between("delta", delta, 0, 1, "noisy descent needs a delta, such as 1e-6")
        people = 1 if check_neighbours(neighbours) == "add-remove" else 2
        many, columns, times = count("labelings", labelings), count("width", width), count("steps", steps)
        far = float(positive("radius", radius))
        if columns > WIDEST:
            raise ParameterError("width", columns, f"must be at most {WIDEST} for noisy descent")
        if far > 2.0**20:
            raise ParameterError("radius", radius, "must be at most 2**20")
        mu = largest_mu(price, failure) * (1 - 1e-9)
        counting = Gaussian(1, sigma=1 / (mu * math.sqrt(COUNTED)), neighbours=neighbours)
        off = 4 * (checked(point_loss).rounding + point_loss.curvature * far + (CHUNK + 10) * point_loss.slope) * UNIT
        moved = math.sqrt(many) * (people * point_loss.slope + 2 * MOST_ROWS * off)
        left = math.sqrt((mu**2 - counting.mu**2) / times) * (1 - 1e-9)
        stepping = Gaussian(moved, sigma=moved / left * (1 + 1e-6), neighbours=neighbours, max_length=many * columns)
        if times * stepping.mu**2 + counting.mu**2 > mu**2:  # pragma: no cover - the margins above are larger
            raise ParameterError("steps", steps, "is too many for this width")
        self._fill(
            point_loss=point_loss,
            labelings=many,
            width=columns,
            weight=0.0 if weight is None else float(positive("weight", weight)),
            radius=far,
            steps=times,
            neighbours=neighbours,
            mu=mu,
            _counting=counting,
            _stepping=stepping,
        )

    @property
    def loss(self) -> Loss:
        return GaussianDP(self.mu, neighbours=self.neighbours)

    def apart(self, value: Any, neighbour: Any) -> float:
        return tables_apart(value, neighbour, self.neighbours, norm=2)

    def _release(self, value: Any, bits: Bits) -> Floats:
        rows, labels = value
        shape = (self.labelings, self.width)
        many = max(1.0, float(self._counting.release(len(rows), bits)))
        noise = self._stepping.sigma * math.sqrt(self.steps) * math.sqrt(self.width)
        size = 1 / (self.point_loss.curvature * many + self.weight + noise / self.radius)
        w, before, total, counted = np.zeros(shape), np.zeros(shape), np.zeros(shape), 0
        for t in range(self.steps):
            at = self._within(w + t / (t + 3) * (w - before))
            sums = [gradient(self.point_loss, rows, labels[:, k], at[k])[0] for k in range(self.labelings)]
            slope = np.asarray(self._stepping.release(np.concatenate(sums), bits)).reshape(shape)
            before, w = w, self._within(at - size * (slope + self.weight * at))
            if 2 * t >= self.steps - 1:
                total, counted = total + w, counted + 1
        return total / counted

    def _within(self, w: Floats) -> Floats:
        """The nearest points of the ball, one a labeling."""
        lengths = np.linalg.norm(w, axis=1, keepdims=True)
        return np.asarray(w * np.minimum(1.0, self.radius / np.maximum(lengths, 1e-300)))
