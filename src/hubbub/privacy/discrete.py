"""The discrete Gaussian in one dimension: its own profile, a little above the continuous one's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from hubbub.errors import ParameterError
from hubbub.numeric.rational import Number, count, float_down, positive, smaller_reading
from hubbub.privacy.families import ZCDP
from hubbub.privacy.loss import Loss, Neighbours, check_delta, check_epsilon, check_neighbours, nudged_up
from hubbub.privacy.pairs import RELATIVE_ERROR, Floats, Pair

LISTED_SIGMA = 2000.0
"""Up to this standard deviation all probabilities are listed; beyond, sums over integers are corrected integrals."""
LISTED_ATOMS = 256
"""So many losses are atoms; more are counted in intervals."""
FAR, FARTHEST = 38.5, 40.0
"""Probabilities so many deviations out are below the smallest double, and all that is beyond adds up to nothing."""
LARGEST_RATIO = 10**50
"""A sensitivity of more deviations than this is refused."""
NARROW = 0.05
"""Cells of less than this, in deviations and relative to where they are, are integrated rather than subtracted."""


@lru_cache(maxsize=32)
def _listed(sigma: float) -> tuple[Floats, Floats]:
    """The integers that have a probability above the smallest double, and these."""
    k = np.arange(-math.ceil(FAR * sigma), math.ceil(FAR * sigma) + 1, dtype=np.float64)
    weights = np.exp(-(k**2) / (2 * sigma**2))
    return k, weights / weights.sum()


def integer_masses(cuts: Floats, sigma: float) -> Floats:
    """The discrete Gaussian's mass on the integers below the first cut, from each cut to the next, from the last on."""
    if sigma > LISTED_SIGMA:
        return _corrected(np.clip((cuts - 0.5) / sigma, -FARTHEST, FARTHEST), sigma)
    k, chances = _listed(sigma)
    starts = np.append(0, np.clip(cuts - k[0], 0, len(k)).astype(np.int64))
    sums = np.add.reduceat(np.append(chances, 0.0), starts)
    return np.where(np.append(np.diff(starts), len(k) - starts[-1]) > 0, sums, 0.0)  # an empty run sums to its start


def _corrected(z: Floats, sigma: float) -> Floats:
    """The same for cuts half an integer below z sigma, by the midpoint rule's first corrections.

    The sum of f over integers is the integral of f - f''/24 + 7 f''''/5760; the next term is below 1e-14 of it. The
    normaliser, sigma sqrt(2 pi), is off by e**(-2 pi**2 sigma**2).
    """
    from scipy.special import ndtr

    c, d = 1 / (24 * sigma**2), 7 / 5760 / sigma**2 / sigma**2

    def density(x: Floats) -> Floats:
        return np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)

    def beyond(x: Floats) -> Floats:
        return np.asarray(ndtr(-x) + (d * (x**3 - 3 * x) - c * x) * density(x))

    middle, half = (z[1:] + z[:-1]) / 2, (z[1:] - z[:-1]) / 2
    nodes, weights = np.polynomial.legendre.leggauss(4)
    x = middle + np.multiply.outer(nodes, half)
    terms = density(x) * (1 - c * (x**2 - 1) + d * (x**4 - 6 * x**2 + 3))
    left, right = beyond(-z), beyond(z)
    apart = np.where(middle > 0, right[:-1] - right[1:], left[1:] - left[:-1])
    inner = np.where(half * (1 + np.abs(middle)) < NARROW, weights @ terms * half, apart)
    return np.concatenate((left[:1], inner, right[-1:]))


@dataclass(frozen=True)
class DiscreteGaussianPair(Pair):
    """Discrete Gaussians around ``shift`` and around 0: the loss at x is shift (2 x - shift) / (2 sigma**2)."""

    shift: int
    sigma: float

    def listed(self) -> tuple[Floats, Floats]:
        """Every loss and P's mass there, in ascending order."""
        k, chances = _listed(self.sigma)
        return (2 * k + self.shift) * (self.shift / (2 * self.sigma**2)), chances

    def _has_atoms(self) -> bool:
        return 2 * FAR * self.sigma <= LISTED_ATOMS

    def masses(self, edges: Floats) -> tuple[Floats, Floats]:
        if self._has_atoms():
            return np.zeros(len(edges) + 1), np.zeros(len(edges) + 1)
        cuts = np.floor(edges * (self.sigma**2 / self.shift) + self.shift / 2) + 1
        return integer_masses(cuts - self.shift, self.sigma), integer_masses(cuts, self.sigma)

    def span(self, tail: float) -> tuple[float, float]:
        # CKS20, Proposition 25: an integer's tail is at most a normal's one step nearer
        reach = self.sigma * math.sqrt(-2 * math.log(max(tail, 1e-300))) + 1
        end = self.shift * (2 * reach + self.shift) / (2 * self.sigma**2)
        return -end, end

    def atoms(self) -> tuple[tuple[float, float], ...]:
        if not self._has_atoms():
            return ()
        return tuple((loss, p) for loss, p in zip(*(a.tolist() for a in self.listed()), strict=True) if p > 0)


@dataclass(frozen=True)
class DiscreteGaussianDP(Loss):
    """Discrete Gaussian noise on one integer that neighbours move by at most ``sensitivity``.

    Claim: the profile of two discrete Gaussians ``sensitivity`` apart, also for smaller shifts, and multiplied for
        groups. For one number only: vectors have ZCDP(sensitivity**2 / (2 sigma**2)).
    Proof: the law is log-concave, so likelihood ratios of shifts are monotone and the best tests are thresholds:
        delta = max over c of P(X <= c) - e**epsilon P(X <= c - t), which grows with the shift t. Renyi: CKS20,
        Theorem 4.
    Assumes: the stated numbers are true of what ran; no more than one number is released at this price.

    >>> loss = DiscreteGaussianDP(1, sigma=2.0)
    >>> round(loss.epsilon(1e-5), 4), round((loss * 100).epsilon(1e-5), 2)
    (2.0113, 33.11)
    """

    sensitivity: int
    sigma: float
    neighbours: Neighbours = "add-remove"
    tag: ClassVar[str] = "discrete gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", count("sensitivity", self.sensitivity))
        object.__setattr__(self, "sigma", float_down(positive("sigma", self.sigma)))
        if self.sensitivity > LARGEST_RATIO * Fraction(self.sigma):
            raise ParameterError("sigma", self.sigma, "is too small to hide anything of this sensitivity")
        check_neighbours(self.neighbours)

    def _pair(self) -> DiscreteGaussianPair | None:
        if self.sensitivity > 2 * FAR * self.sigma:  # the two laws hardly overlap
            return None
        return DiscreteGaussianPair(self.sensitivity, self.sigma)

    def _profile(self, epsilon: float) -> float:
        """The delta at epsilon within RELATIVE_ERROR, summed over all losses beyond."""
        losses, chances = DiscreteGaussianPair(self.sensitivity, self.sigma).listed()
        k = int(np.searchsorted(losses, epsilon, "right"))
        return float(np.sum(chances[k:] * -np.expm1(epsilon - losses[k:])))

    def epsilon_interval(self, delta: Number) -> tuple[float, float]:
        exact = float(smaller_reading("delta", delta)) if check_delta(delta) else 0.0
        if not exact or self._pair() is None or self.sigma > LISTED_SIGMA:
            low, high = super().epsilon_interval(delta)
            return low, min(high, self._concentrated().epsilon(delta))
        low, high = (self._inverse(exact, error) for error in (-RELATIVE_ERROR, RELATIVE_ERROR))
        return low * (1 - RELATIVE_ERROR), nudged_up(high) if high else 0.0

    def _inverse(self, delta: float, error: float) -> float:
        """Where the profile, off by this error, meets delta; between losses it is linear in e**epsilon."""
        losses, _ = DiscreteGaussianPair(self.sensitivity, self.sigma).listed()
        first, last = int(np.searchsorted(losses, 0.0, "right")), len(losses) - 1
        while first < last:  # the first loss at which the profile is at most delta
            middle = (first + last) // 2
            held = self._profile(float(losses[middle])) * (1 + error) <= delta
            first, last = (first, middle) if held else (middle + 1, last)
        left, right = max(0.0, float(losses[first - 1])), float(losses[first])
        above, below = (self._profile(end) * (1 + error) for end in (left, right))
        if above <= delta:
            return 0.0
        share = (above - delta) / (above - below)
        return right + math.log(share + (1 - share) * math.exp(left - right))

    def delta(self, epsilon: Number) -> float:
        check_epsilon(epsilon)
        if self._pair() is None or self.sigma > LISTED_SIGMA:
            return min(super().delta(epsilon), self._concentrated().delta(epsilon))
        return min(1.0, self._profile(float(smaller_reading("epsilon", epsilon))) * (1 + RELATIVE_ERROR) + 5e-324)

    def _concentrated(self) -> ZCDP:
        return ZCDP(max(1e-120, nudged_up((self.sensitivity / self.sigma) ** 2 / 2)), self.neighbours)

    def renyi(self, order: Number) -> float:
        return self._concentrated().renyi(order)

    def _group(self, size: int) -> Loss:
        return DiscreteGaussianDP(self.sensitivity * size, self.sigma, self.neighbours)

    def _fields(self) -> dict[str, Any]:
        return {"sensitivity": self.sensitivity, "sigma": self.sigma}
