"""Objective perturbation: the minimiser of a risk with a random linear term, made safe for inexact minimisers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.learning.losses import PointLoss, checked
from hubbub.learning.minimising import heavy_enough, inexact, minimiser
from hubbub.learning.rows import Floats, differing
from hubbub.mechanisms import Gaussian, Laplace
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.rational import Number, count, positive, rational
from hubbub.privacy.families import ApproxDP, PureDP
from hubbub.privacy.gaussian import delta_upper, largest_mu
from hubbub.privacy.loss import Loss, Neighbours, check_delta, check_neighbours
from hubbub.randomness.bits import Bits

HIDING = 0.1
"""The part of the Gaussian parameter that goes to the noise which hides the inexactness."""
HIDING_PURE = Fraction(1, 50)
"""The part of a pure epsilon for it."""
FINE = 44
"""The random term is drawn in steps of about its spread over 2**44: exact in doubles up to 256 times the spread, which
no draw exceeds but with probability below e**-256."""
MOST_RANGES = 200
"""Of slopes whose corners are counted, each a power of two."""


@dataclass(frozen=True, init=False)
class ObjectivePerturbation(Mechanism):
    """Minimises sum loss(x.w, y) + (weight/2) |w|**2 + b.w for a random b, for one or several labelings at once.

    Released from encoded rows and labels, one column a labeling. With delta the rows have Euclidean length at most 1
    and b is Gaussian; without, they have L1 length at most 1 and b is Laplacian.

    Claim: (epsilon, delta)-DP at the asked pair.
    Proof: KST12 and RKW23 for the exact minimiser, INSTW19 for inexact ones. One labeling, one person more: the
        minimiser is a bijection of b, so the ratio of densities is that of the laws of b at b and b + g, where g = a x
        and a is a slope, times 1 + a'' x.H**-1.x with 0 <= a'' <= curvature, at most 1 + curvature/weight = e**c, or
        its inverse. Laplace: the first is within slope/scale. Gaussian: its logarithm is, for given b, convex in a, so
        at most the larger of those at the ends of a's range, where it is the loss of a Gaussian of mu = slope/sigma,
        or none where an end is 0; the sum over the ends bounds the hockey stick at epsilon - c. What is released
        differs from the minimiser by at most ``inexact``/weight, and an eighth of that for the rounding of b, hidden
        by noise of its own: mu**2, or epsilon, adds up.
        K labelings have b of their own: all corners of K ranges, K c, sqrt(K) mu. Replacing one person moves b by two
        such terms: corners of 2 K ranges, twice mu, and the determinants' ratio stays within e**(K c).
    Assumes: the loss keeps the bounds it declares; Newton's method ends (where it does not, there is no answer but
        FitFailure).
    """

    point_loss: PointLoss
    epsilon: float
    delta: float
    labelings: int
    width: int
    weight: float
    """Of the regulariser; at least what the claim needs."""
    neighbours: Neighbours
    spread: float
    """Standard deviation (Gaussian) or scale (Laplace) of each coordinate of the random term."""
    _hiding: Gaussian | Laplace

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
        if many * people > MOST_RANGES:
            raise ParameterError("classes", many, f"must be at most {MOST_RANGES // people} for objective perturbation")
        chosen, left = _weighed(checked(point_loss), price, many, weight)
        apart = Fraction(2.25 * inexact(point_loss) / chosen) * (1 + Fraction(1, 10**9))
        hiding: Gaussian | Laplace
        if failure:
            ends = 2 ** (many * people)
            mu = _mu(left, failure, ends - 1 if point_loss.one_sided else ends, HIDING)
            each = mu / math.sqrt(many) * (1 - 1e-12)
            hiding = Gaussian(
                float(apart), sigma=float(apart) / (each * HIDING), neighbours=neighbours, max_length=columns
            )
            spread = people * point_loss.slope / math.sqrt(each**2 - hiding.mu**2) * (1 + 1e-12)
        else:
            hidden = HIDING_PURE * left / many
            root = math.isqrt(columns - 1) + 1
            hiding = Laplace(float(apart * root), epsilon=hidden, neighbours=neighbours, max_length=columns)
            spread = people * point_loss.slope / float(left / many - hidden) * (1 + 1e-12)
        if spread * math.sqrt(columns) * 2.0 ** (1 - FINE) > inexact(point_loss) / 8:
            raise ParameterError("epsilon", float(price), f"is too small for {columns} coordinates")
        self._fill(
            point_loss=point_loss,
            epsilon=float(price),
            delta=float(failure),
            labelings=many,
            width=columns,
            weight=chosen,
            neighbours=neighbours,
            spread=spread,
            _hiding=hiding,
        )

    @property
    def loss(self) -> Loss:
        if self.delta:
            return ApproxDP(self.epsilon, self.delta, self.neighbours)
        return PureDP(self.epsilon, self.neighbours)

    def apart(self, value: Any, neighbour: Any) -> float:
        return tables_apart(value, neighbour, self.neighbours, norm=2 if self.delta else 1)

    def _release(self, value: Any, bits: Bits) -> Floats:
        rows, labels = value
        found = []
        for k in range(self.labelings):
            w = minimiser(self.point_loss, rows, labels[:, k], self.weight, self._term(bits))
            found.append(self._hiding.release(w, bits))
        return np.array(found)

    def _term(self, bits: Bits) -> Floats:
        """A draw of b: a rounding of the real one, off by less than an eighth of ``inexact``."""
        step = 2.0 ** (math.floor(math.log2(self.spread)) - FINE)
        wide = Fraction(self.spread) / Fraction(step)
        law = Gaussian(1, sigma=wide) if self.delta else Laplace(1, scale=wide)
        return np.asarray(law.release(np.zeros(self.width, np.int64), bits), dtype=np.float64) * step


def _weighed(point_loss: PointLoss, price: Fraction, many: int, weight: Number | None) -> tuple[float, Fraction]:
    """The regulariser's weight, and what its determinants leave of epsilon."""
    share = Fraction(1, 10) + Fraction(1, 5) * min(Fraction(1), price)
    needed = point_loss.curvature / math.expm1(min(50.0, float(share * price) / many))
    chosen = heavy_enough(point_loss, weight, needed)
    left = price - rational("epsilon", many * math.log1p(point_loss.curvature / chosen) * (1 + 1e-12))
    if left <= 0:
        least = point_loss.curvature / math.expm1(float(price) / many)
        raise ParameterError("regularisation", chosen, f"must be > {least:.6g} at epsilon {float(price):g}")
    return chosen, left


def _mu(epsilon: Fraction, delta: Fraction, ends: int, hiding: float) -> float:
    """The largest mu of which so many, and the hiding noise alone where all slopes are 0, add up to delta."""
    mu = largest_mu(epsilon, delta * (1 - Fraction(1, 10**6)) / ends)
    if delta_upper(Fraction(hiding * mu), epsilon) > delta / 10**6:
        return largest_mu(epsilon, delta / (ends + 1))
    return mu


def tables_apart(value: Any, neighbour: Any, neighbours: Neighbours, norm: int) -> float:
    """1 for tables of encoded rows and labels that are neighbours, 0 for equal ones, infinity for others."""
    more, less = differing(*(np.hstack([rows, labels]) for rows, labels in (value, neighbour)))
    allowed = ((0, 0), (1, 1)) if neighbours == "replace" else ((0, 0), (1, 0), (0, 1))
    too_long = any((np.linalg.norm(rows, norm, axis=1) > 1 + 1e-12).any() for rows, _ in (value, neighbour))
    return math.inf if too_long or (more, less) not in allowed else float(max(more, less))
