"""Output perturbation: the minimiser of a regularised risk, with noise for how far one person can move it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.learning.losses import PointLoss, checked
from hubbub.learning.minimising import heavy_enough, inexact, minimiser
from hubbub.learning.objective import tables_apart
from hubbub.learning.rows import Floats
from hubbub.mechanisms import Gaussian, Laplace
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.rational import Number, count, positive, rational
from hubbub.privacy.loss import Loss, Neighbours, check_delta, check_neighbours
from hubbub.randomness.bits import Bits

USUAL = {True: 1.0, False: 0.2}
"""How long noise may be beside usual weights, by which the regulariser is chosen: those of margins are longer."""


@dataclass(frozen=True, init=False)
class OutputPerturbation(Mechanism):
    """Minimises sum loss(x.w, y) + (weight/2) |w|**2 and adds noise, Gaussian with delta and Laplacian without.

    Claim: what the noise says, for all labelings together.
    Proof: CMS11, Lemma 7: the risk is weight-strongly convex and one person adds a gradient no longer than the slope,
        so minimisers are at most slope/weight apart, twice that where one is replaced; inexact ones by
        ``inexact``/weight more on either side. Euclidean distances of K labelings add up in squares; L1 is at most
        sqrt(width) as much for each.
    Assumes: rows of Euclidean length at most 1; the loss keeps the bounds it declares; Newton's method ends (FitFailure
        where it does not).
    """

    point_loss: PointLoss
    labelings: int
    width: int
    weight: float
    neighbours: Neighbours
    noise: Gaussian | Laplace

    def __init__(
        self,
        point_loss: PointLoss,
        *,
        epsilon: Number,
        delta: Number = 0.0,
        width: int,
        labelings: int = 1,
        weight: Number | None = None,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        price, failure = positive("epsilon", epsilon), rational("delta", check_delta(delta))
        people = 1 if check_neighbours(neighbours) == "add-remove" else 2
        many, columns = count("labelings", labelings), count("width", width)
        moved = (people * checked(point_loss).slope + 2 * inexact(point_loss)) * (1 + 1e-9)
        size, total = (1 if failure else math.sqrt(columns)), math.sqrt(many) if failure else float(many)
        unit = _noise(1.0, price, failure, neighbours, many * columns)
        spread = math.sqrt(unit.variance)
        usual = moved * size * total * spread * math.sqrt(columns) / USUAL[point_loss.one_sided]
        chosen = heavy_enough(point_loss, weight, usual)
        reach = moved / chosen * size * total * (1 + 1e-9)
        self._fill(
            point_loss=point_loss,
            labelings=many,
            width=columns,
            weight=chosen,
            neighbours=neighbours,
            noise=_noise(reach, price, failure, neighbours, many * columns),
        )

    @property
    def loss(self) -> Loss:
        return self.noise.loss

    def apart(self, value: Any, neighbour: Any) -> float:
        return tables_apart(value, neighbour, self.neighbours, norm=2)

    def _release(self, value: Any, bits: Bits) -> Floats:
        rows, labels = value
        nothing = np.zeros(self.width)
        found = [minimiser(self.point_loss, rows, labels[:, k], self.weight, nothing) for k in range(self.labelings)]
        noisy: Floats = self.noise.release(np.concatenate(found), bits)
        return noisy.reshape(self.labelings, self.width)


def _noise(reach: float, price: Any, failure: Any, neighbours: Neighbours, length: int) -> Gaussian | Laplace:
    if failure:
        return Gaussian(reach, epsilon=price, delta=failure, neighbours=neighbours, max_length=length)
    return Laplace(reach, epsilon=price, neighbours=neighbours, max_length=length)
