"""Objective perturbation: the minimiser of a loss with a random linear term, made safe for inexact minimisers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import FitFailure, ParameterError
from hubbub.learning.losses import MarginLoss
from hubbub.learning.rows import Floats, differing, summed
from hubbub.mechanisms import Gaussian
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.rational import Number, fraction_between, positive, rational
from hubbub.privacy.families import ApproxDP
from hubbub.privacy.gaussian import largest_mu
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours
from hubbub.randomness.bits import Bits

INEXACT = 2e-6
"""How long the gradient at a released minimiser may be, rounding included; reached on every table up to MOST_ROWS."""
MOST_ROWS = 10**7
LAST_SHARE = 0.1
"""The part of the Gaussian parameter that goes to the noise which hides the inexactness."""
FINE = 50
"""The random term is drawn in steps of about its spread over 2**50."""
ROUNDS = 100
LEAST_WEIGHT = 1e-3
"""Of the regulariser unless another is asked for: below it minimisers on few rows run away."""


@dataclass(frozen=True, init=False)
class ObjectivePerturbation(Mechanism):
    """Minimises sum loss(y x.w) + (weight/2) |w|**2 + b.w for a random b, for one or several labelings at once.

    Released from encoded rows of length at most 1 and labels +1, -1 (0: the row does not count), one column a labeling.

    Claim: (epsilon, delta)-DP at the asked pair.
    Proof: RKW23 and KST12 for the exact minimiser, INSTW19 for inexact ones. One labeling, one person more: the
        minimiser is a bijection of b, so the ratio of densities is that of Gaussians at b and b + g, where g = a x with
        |a| <= slope, times 1 + a'' x.H**-1.x with 0 <= a'' <= curvature, at most 1 + curvature/weight = e**c. For
        given b the Gaussian part is convex in a, so largest at an end, where it is the loss of a Gaussian of mu <=
        slope/sigma; the sum over both ends bounds the hockey stick: delta(epsilon) <= 2 delta_mu(epsilon - c). The
        released weights differ from that minimiser by at most INEXACT/weight, hidden by Gaussian noise of their own:
        mu**2 adds up. K labelings have b of their own: 2**K, K c, sqrt(K) mu. Replacing one person moves g by two
        such terms: 4**K and twice mu, the determinants' ratio stays within e**c.
    Assumes: float sums of 1024 terms are accurate to 1024 units in the last place; at most 10**7 rows.
    """

    loss_function: MarginLoss
    epsilon: float
    delta: float
    labelings: int
    width: int
    weight: float
    """Of the regulariser; at least what the claim needs."""
    neighbours: Neighbours
    _sigma: float
    _hiding: Gaussian

    def __init__(
        self,
        loss_function: MarginLoss,
        *,
        epsilon: Number,
        delta: Number,
        width: int,
        labelings: int = 1,
        weight: Number | None = None,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        price = positive("epsilon", epsilon)
        failure = fraction_between("delta", delta, 0, 1)
        check_neighbours(neighbours)
        share = Fraction(1, 10) + Fraction(1, 5) * min(Fraction(1), price)
        most = loss_function.curvature / math.expm1(min(50.0, float(share * price) / labelings))
        chosen = max(most, LEAST_WEIGHT) if weight is None else float(positive("weight", weight))
        slack = labelings * math.log1p(loss_function.curvature / chosen) * (1 + 1e-12)
        left = price - rational("epsilon", slack)
        if left <= 0:
            least = loss_function.curvature / math.expm1(float(price) / labelings)
            raise ParameterError("weight", weight, f"must be > {least:.6g} at epsilon {float(price):g}")
        times = 1 if neighbours == "add-remove" else 2
        mu = largest_mu(left, failure / 2 ** (labelings * times)) / math.sqrt(labelings) * (1 - 1e-12)
        sigma = times * loss_function.slope / (mu * math.sqrt(1 - LAST_SHARE**2)) * (1 + 1e-12)
        hiding = Gaussian(
            2 * INEXACT / chosen,
            sigma=2 * INEXACT / chosen / (mu * LAST_SHARE),
            neighbours=neighbours,
            max_length=width,
        )
        self._fill(
            loss_function=loss_function,
            epsilon=float(price),
            delta=float(failure),
            labelings=labelings,
            width=width,
            weight=chosen,
            neighbours=neighbours,
            _sigma=sigma,
            _hiding=hiding,
        )

    @property
    def loss(self) -> Loss:
        return ApproxDP(self.epsilon, self.delta, self.neighbours)

    @property
    def sigma(self) -> float:
        """The spread of the random linear term, in each coordinate."""
        return self._sigma

    def apart(self, value: Any, neighbour: Any) -> float:
        tables = [np.hstack([rows, labels]) for rows, labels in (value, neighbour)]
        more, less = differing(*tables)
        allowed = (more, less) in ((0, 0), (1, 0), (0, 1)) or (self.neighbours == "replace" and (more, less) == (1, 1))
        too_long = any((np.linalg.norm(rows, axis=1) > 1 + 1e-12).any() for rows, _ in (value, neighbour))
        if self.neighbours == "replace" and more != less:
            allowed = False
        return float(max(more, less)) if allowed and not too_long else math.inf

    def _release(self, value: Any, bits: Bits) -> NDArray[np.float64]:
        rows, labels = value
        step = 2.0 ** (math.floor(math.log2(self._sigma)) - FINE)
        term = Gaussian(1, sigma=Fraction(self._sigma) / Fraction(step), neighbours=self.neighbours)
        found = []
        for k in range(self.labelings):
            b = np.asarray(term.release(np.zeros(self.width, np.int64), bits), dtype=np.float64) * step
            w = self._minimiser(rows, labels[:, k].astype(np.float64), b)
            found.append(self._hiding.release(w, bits))
        return np.array(found)

    def _minimiser(self, rows: Floats, labels: Floats, b: Floats) -> Floats:
        """By Newton's method with a line search; the gradient is checked in the end, rounding included."""
        signed = rows * labels[:, None]
        counted = (labels != 0).astype(np.float64)
        w = np.zeros(self.width)
        value = self._value(signed, counted, b, w)
        for _ in range(ROUNDS):
            margins = signed @ w
            gradient = summed(signed, self.loss_function.derivative(margins) * counted) + self.weight * w + b
            if float(np.linalg.norm(gradient)) <= INEXACT / 4:
                return w
            curvature = (signed * (self.loss_function.second(margins) * counted)[:, None]).T @ signed
            step = np.linalg.solve(curvature + self.weight * np.eye(self.width), gradient)
            size = 1.0
            while True:
                tried = w - size * step
                new = self._value(signed, counted, b, tried)
                if new <= value - 1e-4 * size * float(gradient @ step) or size < 1e-9:
                    break
                size /= 2
            w, value = tried, new
        raise FitFailure

    def _value(self, signed: Floats, counted: Floats, b: Floats, w: Floats) -> float:
        losses = self.loss_function.value(signed @ w) * counted
        return float(losses.sum() + self.weight / 2 * (w @ w) + b @ w)
