"""Losses: what ran, as a frozen value, and what it costs under every definition of privacy.

Every answer is an upper bound on the true cost; infinity is an answer, nan never is. A loss always carries its
neighbour relation: "add-remove" (one person's data added or removed) or "replace" (one person's data changed).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from hubbub.errors import ParameterError
from hubbub.numeric.rational import Number, float_up, fraction_between, positive, rational
from hubbub.privacy.gaussian import delta_upper, epsilon_upper

Neighbours = Literal["add-remove", "replace"]


def check_neighbours(neighbours: Neighbours) -> Neighbours:
    """The relation itself; anything but the two is refused."""
    if neighbours not in get_args(Neighbours):
        raise ParameterError("neighbours", neighbours, 'must be "add-remove" or "replace"')
    return neighbours


def _delta(value: Number) -> Fraction:
    exact = rational("delta", value)
    if not 0 <= exact < 1:
        raise ParameterError("delta", value, "must lie in [0, 1)", "0.0 asks for pure privacy")
    return exact


def _epsilon(value: Number) -> Fraction:
    exact = rational("epsilon", value)
    if exact < 0:
        raise ParameterError("epsilon", value, "must be >= 0")
    return exact


def _gap(bound: float, epsilon: Number) -> float:
    """bound - epsilon, rounded up."""
    return float_up(max(Fraction(bound), rational("epsilon", bound)) - _epsilon(epsilon))


def _nudged_up(value: float) -> float:
    """A float a few units in the last place above, to cover the rounding of a short formula."""
    return value + abs(value) * 2.0**-48 + 5e-324


class Loss(ABC):
    """What a release costs, under a stated neighbour relation."""

    neighbours: Neighbours

    @abstractmethod
    def epsilon(self, delta: Number = 0.0) -> float:
        """An upper bound on the epsilon at this delta; infinity where there is none."""

    @abstractmethod
    def delta(self, epsilon: Number) -> float:
        """An upper bound on the delta at this epsilon."""


@dataclass(frozen=True)
class PureDP(Loss):
    """epsilon-differential privacy.

    Claim: epsilon(0) is the stated epsilon; at delta > 0, the value for the worst mechanism of that epsilon.
    Proof: KOV15, Theorem 3.2: randomised response dominates every epsilon-private mechanism.
    Assumes: the stated epsilon is true of what ran.

    >>> PureDP(1.0).epsilon(), round(PureDP(1.0).epsilon(1e-2), 4)
    (1.0, 0.9862)
    """

    epsilon_bound: float
    neighbours: Neighbours

    def __init__(self, epsilon: Number, neighbours: Neighbours = "add-remove") -> None:
        object.__setattr__(self, "epsilon_bound", float_up(positive("epsilon", epsilon)))
        object.__setattr__(self, "neighbours", check_neighbours(neighbours))

    def __repr__(self) -> str:
        return f"PureDP({self.epsilon_bound!r}, neighbours={self.neighbours!r})"

    def epsilon(self, delta: Number = 0.0) -> float:
        share = float(_delta(delta)) * (1 + math.exp(-self.epsilon_bound)) * (1 - 2.0**-50)  # rounded down
        if share >= 1:
            return 0.0
        return min(self.epsilon_bound, max(0.0, _nudged_up(self.epsilon_bound + math.log1p(-share))))

    def delta(self, epsilon: Number) -> float:
        gap = _gap(self.epsilon_bound, epsilon)
        if gap <= 0:
            return 0.0
        return min(1.0, _nudged_up(-math.expm1(-gap) / (1 + math.exp(-self.epsilon_bound))))


@dataclass(frozen=True)
class ApproxDP(Loss):
    """(epsilon, delta)-differential privacy, and nothing more is known.

    Claim: epsilon is the stated one from the stated delta on, infinity below it; below the stated epsilon, delta is
        that of the worst mechanism.
    Proof: KOV15, Theorem 3.4.
    Assumes: the stated pair is true of what ran.

    >>> ApproxDP(1.0, 1e-6).epsilon(1e-6), ApproxDP(1.0, 1e-6).epsilon(1e-7)
    (1.0, inf)
    """

    epsilon_bound: float
    delta_bound: float
    neighbours: Neighbours

    def __init__(self, epsilon: Number, delta: Number, neighbours: Neighbours = "add-remove") -> None:
        object.__setattr__(self, "epsilon_bound", float_up(_epsilon(epsilon)))
        object.__setattr__(self, "delta_bound", float_up(fraction_between("delta", delta, 0, 1)))
        object.__setattr__(self, "neighbours", check_neighbours(neighbours))

    def __repr__(self) -> str:
        return f"ApproxDP({self.epsilon_bound!r}, {self.delta_bound!r}, neighbours={self.neighbours!r})"

    def epsilon(self, delta: Number = 0.0) -> float:
        return self.epsilon_bound if _delta(delta) >= rational("delta", self.delta_bound) else math.inf

    def delta(self, epsilon: Number) -> float:
        gap = _gap(self.epsilon_bound, epsilon)
        if gap <= 0:
            return self.delta_bound
        beyond = -math.expm1(-gap) / (1 + math.exp(-self.epsilon_bound))
        return min(1.0, _nudged_up(self.delta_bound + (1 - self.delta_bound) * beyond))


@dataclass(frozen=True)
class GaussianDP(Loss):
    """mu-Gaussian differential privacy: at most as telling as N(0, 1) against N(mu, 1).

    Claim: delta and epsilon are those of that pair of normal laws, rounded up.
    Proof: BW18, Theorem 8, by enclosures (hubbub.privacy.gaussian); a Gaussian of L2 sensitivity D and standard
        deviation s has mu = D/s in any dimension (DRS22, Theorem 1), and rounding it is post-processing.
    Assumes: the stated mu is true of what ran.

    >>> GaussianDP(1.0).epsilon(), round(GaussianDP(1.0).epsilon(1e-5), 4)
    (inf, 4.3772)
    """

    mu: float
    neighbours: Neighbours = "add-remove"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", float_up(positive("mu", self.mu)))
        check_neighbours(self.neighbours)

    def epsilon(self, delta: Number = 0.0) -> float:
        exact = min(_delta(delta), Fraction(delta))  # either reading of a float
        return epsilon_upper(self._exact(), exact) if exact else math.inf

    def delta(self, epsilon: Number) -> float:
        exact = _epsilon(epsilon)
        return delta_upper(self._exact(), min(exact, Fraction(epsilon)))  # either reading of a float

    def _exact(self) -> Fraction:
        """mu, whether the float is read in binary or as its shortest decimal: the larger."""
        return max(Fraction(self.mu), rational("mu", self.mu))


@dataclass(frozen=True)
class ZCDP(Loss):
    """rho-zero-concentrated differential privacy: Renyi divergence at most rho * order, for every order > 1.

    Claim: epsilon(delta) = min over orders a of rho a + ln(1 - 1/a) - ln(delta a)/(a - 1), rounded up.
    Proof: CKS20, Proposition 12; any order gives a valid bound, so the search can only be loose.
    Assumes: the stated rho is true of what ran.

    >>> round(ZCDP(0.5).epsilon(1e-5), 4)
    4.7284
    """

    rho: float
    neighbours: Neighbours = "add-remove"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", float_up(positive("rho", self.rho)))
        check_neighbours(self.neighbours)

    def epsilon(self, delta: Number = 0.0) -> float:
        exact = float(_delta(delta))
        if exact == 0:
            return math.inf
        best = self._orders(math.sqrt(1 - math.log(exact) / self.rho))
        bounds = self.rho * best + np.log1p(-1 / best) - (math.log(exact) + np.log(best)) / (best - 1)
        return max(0.0, _nudged_up(float(np.nanmin(bounds))))

    def delta(self, epsilon: Number) -> float:
        exact = float(_epsilon(epsilon))
        orders = self._orders(max(1.0 + 1e-9, (exact / self.rho + 1) / 2))
        logs = (orders - 1) * (self.rho * orders + np.log1p(-1 / orders) - exact) - np.log(orders)
        return min(1.0, _nudged_up(math.exp(min(0.0, float(logs.min())))))

    @staticmethod
    def _orders(near: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Orders spread finely around a good guess."""
        return 1 + (near - 1 + 1e-12) * np.geomspace(1e-3, 1e3, 20001)
