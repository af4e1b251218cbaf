"""The plain kinds of losses: pure, approximate, Renyi, concentrated, Gaussian, Laplace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

from hubbub.errors import ParameterError
from hubbub.numeric.rational import Number, count, float_up, fraction_between, positive, rational, smaller_reading
from hubbub.privacy import renyi as renyi_forms
from hubbub.privacy.finite import response_delta, response_interval
from hubbub.privacy.gaussian import delta_upper, epsilon_interval
from hubbub.privacy.loss import (
    Loss,
    Neighbours,
    check_delta,
    check_epsilon,
    check_neighbours,
    gap_below,
    nudged_up,
)
from hubbub.privacy.pairs import (
    Atoms,
    GaussianPair,
    LaplacePair,
    Pair,
)


def _two_atoms(epsilon: float, failure: float = 0.0) -> Atoms:
    """Randomised response of this epsilon, after giving everything away with probability ``failure``."""
    keep = (1 - failure) / (1 + math.exp(-epsilon))
    return Atoms(((-epsilon, keep * math.exp(-epsilon)), (epsilon, keep)), infinity=failure)


@dataclass(frozen=True)
class NoLoss(Loss):
    """Nothing has run: epsilon 0."""

    neighbours: Neighbours = "add-remove"
    tag: ClassVar[str] = "none"

    def __post_init__(self) -> None:
        check_neighbours(self.neighbours)

    def _parts(self) -> tuple[tuple[Loss, int], ...]:
        return ()

    def epsilon_interval(self, delta: Number) -> tuple[float, float]:
        check_delta(delta)
        return 0.0, 0.0

    def delta(self, epsilon: Number) -> float:
        check_epsilon(epsilon)
        return 0.0

    def renyi(self, order: Number) -> float:
        renyi_forms.check_order(order)
        return 0.0

    def __mul__(self, times: int) -> Loss:
        count("count", times)
        return self

    def _fields(self) -> dict[str, Any]:
        return {}


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
    tag: ClassVar[str] = "pure"

    def __init__(self, epsilon: Number, neighbours: Neighbours = "add-remove") -> None:
        object.__setattr__(self, "epsilon_bound", float_up(positive("epsilon", epsilon)))
        object.__setattr__(self, "neighbours", check_neighbours(neighbours))

    def __repr__(self) -> str:
        return f"PureDP({self.epsilon_bound!r}, neighbours={self.neighbours!r})"

    def _pure(self) -> Fraction:
        return rational("epsilon", self.epsilon_bound)

    def _pair(self) -> Pair:
        return _two_atoms(self.epsilon_bound)

    def epsilon_interval(self, delta: Number) -> tuple[float, float]:
        return response_interval(self.epsilon_bound, check_delta(delta), categories=2)

    def delta(self, epsilon: Number) -> float:
        gap = gap_below(self.epsilon_bound, epsilon)
        return response_delta(self.epsilon_bound, gap, categories=2) if gap else 0.0

    def renyi(self, order: Number) -> float:
        return nudged_up(renyi_forms.of_randomised_response(renyi_forms.check_order(order), self.epsilon_bound))

    def _group(self, size: int) -> Loss:
        return PureDP(self._pure() * size, self.neighbours)

    def _fields(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon_bound}


@dataclass(frozen=True)
class ApproxDP(Loss):
    """(epsilon, delta)-differential privacy, and nothing more is known.

    Claim: epsilon is the stated one from the stated delta on, infinity below it; below the stated epsilon, delta is
        that of the worst mechanism.
    Proof: KOV15, Theorem 3.4; for groups DR14, Theorem 2.2 as corrected: delta (e**(k epsilon) - 1)/(e**epsilon - 1).
    Assumes: the stated pair is true of what ran.

    >>> ApproxDP(1.0, 1e-6).epsilon(1e-6), ApproxDP(1.0, 1e-6).epsilon(1e-7)
    (1.0, inf)
    """

    epsilon_bound: float
    delta_bound: float
    neighbours: Neighbours
    tag: ClassVar[str] = "approximate"

    def __init__(self, epsilon: Number, delta: Number, neighbours: Neighbours = "add-remove") -> None:
        object.__setattr__(self, "epsilon_bound", float_up(check_epsilon(epsilon)))
        object.__setattr__(self, "delta_bound", float_up(fraction_between("delta", delta, 0, 1)))
        object.__setattr__(self, "neighbours", check_neighbours(neighbours))

    def __repr__(self) -> str:
        return f"ApproxDP({self.epsilon_bound!r}, {self.delta_bound!r}, neighbours={self.neighbours!r})"

    def _pair(self) -> Pair:
        return _two_atoms(self.epsilon_bound, self.delta_bound)

    def _basic(self) -> tuple[Fraction, Fraction]:
        return rational("epsilon", self.epsilon_bound), rational("delta", self.delta_bound)

    def epsilon_interval(self, delta: Number) -> tuple[float, float]:
        if check_delta(delta) < rational("delta", self.delta_bound):
            return math.inf, math.inf
        share = (float(check_delta(delta)) - self.delta_bound) / (1 - self.delta_bound)
        if not self.epsilon_bound or share > 0.999:
            return 0.0, self.epsilon_bound
        return PureDP(self.epsilon_bound).epsilon_interval(max(0.0, share))[0] * (1 - 1e-9), self.epsilon_bound

    def delta(self, epsilon: Number) -> float:
        if check_epsilon(epsilon) >= rational("epsilon", self.epsilon_bound):
            return self.delta_bound
        beyond = PureDP(self.epsilon_bound).delta(epsilon)
        return min(1.0, nudged_up(self.delta_bound + (1 - self.delta_bound) * beyond))

    def renyi(self, order: Number) -> float:
        renyi_forms.check_order(order)
        return math.inf

    def _group(self, size: int) -> Loss:
        e = self.epsilon_bound
        growth = math.expm1(min(size * e, 700.0)) / math.expm1(min(e, 700.0)) if e else float(size)
        if size * e > 700 or self.delta_bound * growth >= 1:
            raise ParameterError(
                "size", size, "makes delta reach 1: nothing is left to promise", "ask for a smaller group"
            )
        return ApproxDP(rational("epsilon", e) * size, nudged_up(self.delta_bound * growth), self.neighbours)

    def _fields(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon_bound, "delta": self.delta_bound}


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
    tag: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", float_up(positive("mu", self.mu)))
        check_neighbours(self.neighbours)

    def _pair(self) -> Pair:
        return GaussianPair(self.mu)

    def epsilon_interval(self, delta: Number) -> tuple[float, float]:
        check_delta(delta)
        exact = smaller_reading("delta", delta)
        if not exact:
            return math.inf, math.inf
        return epsilon_interval(self._exact(), exact)

    def delta(self, epsilon: Number) -> float:
        check_epsilon(epsilon)
        return delta_upper(self._exact(), smaller_reading("epsilon", epsilon))

    def renyi(self, order: Number) -> float:
        return nudged_up(renyi_forms.check_order(order) * self.mu**2 / 2)

    def tradeoff(self, false_positive_rate: Number) -> float:
        alpha = float(rational("false_positive_rate", false_positive_rate))
        if not 0 <= alpha <= 1:
            return super().tradeoff(false_positive_rate)
        if alpha in (0.0, 1.0):
            return 1 - alpha
        from scipy.special import ndtr, ndtri

        return max(0.0, float(ndtr(-ndtri(alpha) - self.mu)) - 1e-12)

    def _exact(self) -> Fraction:
        """mu, whether the float is read in binary or as its shortest decimal: the larger."""
        return max(Fraction(self.mu), rational("mu", self.mu))

    def _group(self, size: int) -> Loss:
        return GaussianDP(float_up(rational("mu", self.mu) * size), self.neighbours)

    def _fields(self) -> dict[str, Any]:
        return {"mu": self.mu}


@dataclass(frozen=True)
class LaplaceDP(Loss):
    """Continuous Laplace noise, centres ``shift`` = sensitivity/scale apart: composes better than pure privacy.

    Claim: the loss of two Laplace laws ``shift`` scales apart; in several dimensions under an L1 sensitivity it
        dominates.
    Proof: DMNS06 for epsilon = shift. Vectors: change one coordinate at a time; trade-off functions of consecutive
        steps compose (DRS22, Theorem 3), and for log-concave noise those of shifts s and t compose to that of s +
        t.
    Assumes: the stated shift is true of what ran.

    >>> round((LaplaceDP(0.1) * 500).epsilon(1e-5), 2)
    11.19
    """

    shift: float
    neighbours: Neighbours = "add-remove"
    tag: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", float_up(positive("shift", self.shift)))
        check_neighbours(self.neighbours)

    def _pure(self) -> Fraction:
        return rational("shift", self.shift)

    def _pair(self) -> Pair:
        return LaplacePair(self.shift)

    def renyi(self, order: Number) -> float:
        return nudged_up(renyi_forms.of_laplace(renyi_forms.check_order(order), self.shift))

    def _group(self, size: int) -> Loss:
        return LaplaceDP(float_up(rational("shift", self.shift) * size), self.neighbours)

    def _fields(self) -> dict[str, Any]:
        return {"shift": self.shift}


@dataclass(frozen=True)
class ZCDP(Loss):
    """rho-zero-concentrated differential privacy: Renyi divergence at most rho * order, for every order > 1.

    Claim: epsilon(delta) = min over orders a of rho a + ln(1 - 1/a) - ln(delta a)/(a - 1), rounded up.
    Proof: CKS20, Proposition 12; any order gives a valid bound, so the search can only be loose. Groups: BS16,
        Prop. 1.9.
    Assumes: the stated rho is true of what ran.

    >>> round(ZCDP(0.5).epsilon(1e-5), 4)
    4.7284
    """

    rho: float
    neighbours: Neighbours = "add-remove"
    tag: ClassVar[str] = "zcdp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", float_up(positive("rho", self.rho)))
        check_neighbours(self.neighbours)

    def epsilon_interval(self, delta: Number) -> tuple[float, float]:
        exact = float(check_delta(delta))
        if exact == 0:
            return 0.0, math.inf
        near = math.sqrt(1 - math.log(exact) / self.rho)
        bounds = (renyi_forms.epsilon_at(a, self.rho * a, exact) for a in _around(near))
        return 0.0, max(0.0, nudged_up(min(bounds)))

    def delta(self, epsilon: Number) -> float:
        exact = float(check_epsilon(epsilon))
        near = max(1.0 + 1e-9, (exact / self.rho + 1) / 2)
        log = min(renyi_forms.log_delta_at(a, self.rho * a, exact) for a in _around(near))
        return min(1.0, nudged_up(math.exp(min(0.0, log))))

    def renyi(self, order: Number) -> float:
        return nudged_up(self.rho * renyi_forms.check_order(order))

    def _group(self, size: int) -> Loss:
        return ZCDP(float_up(rational("rho", self.rho) * size**2), self.neighbours)

    def _fields(self) -> dict[str, Any]:
        return {"rho": self.rho}


def _around(near: float) -> list[float]:
    """Orders spread finely around a good guess."""
    return [1 + (near - 1 + 1e-12) * 10 ** (k / 1000) for k in range(-3000, 3001, 5)]


@dataclass(frozen=True)
class RenyiDP(Loss):
    """Renyi divergences at some orders, and nothing more is known.

    Claim: at a listed order the stated divergence; between two, the chord of (order - 1) times it, which is convex.
    Proof: VH14, Corollary 2 (convexity) and monotonicity in the order; conversion by CKS20, Proposition 12.
    Assumes: the stated divergences are true of what ran, in both directions.

    >>> round(RenyiDP([2, 32], [1.1, 1.1]).epsilon(1e-5), 4)
    1.3278
    """

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]
    neighbours: Neighbours = "add-remove"
    tag: ClassVar[str] = "renyi"

    def __post_init__(self) -> None:
        orders = tuple(renyi_forms.check_order(a) for a in self.orders)
        epsilons = tuple(float_up(check_epsilon(e)) for e in self.epsilons)
        if not orders or len(orders) != len(epsilons) or any(a >= b for a, b in pairwise(orders)):
            raise ParameterError("orders", self.orders, "must ascend and match epsilons one to one")
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "epsilons", epsilons)
        check_neighbours(self.neighbours)

    def renyi(self, order: Number) -> float:
        a = renyi_forms.check_order(order)
        for k, upper in enumerate(self.orders):
            if a <= upper:
                own = self.epsilons[k]  # divergence grows with the order
                if k and a > self.orders[k - 1]:
                    low = self.orders[k - 1]
                    chord = (upper - a) * (low - 1) * self.epsilons[k - 1] + (a - low) * (upper - 1) * own
                    own = min(own, chord / ((upper - low) * (a - 1)))
                return nudged_up(own)
        return math.inf

    def epsilon_interval(self, delta: Number) -> tuple[float, float]:
        exact = float(check_delta(delta))
        if not exact:
            return 0.0, math.inf
        tried = {*self.orders, *(a for a in renyi_forms.ORDERS if a < self.orders[-1])}
        return 0.0, max(0.0, nudged_up(min(renyi_forms.epsilon_at(a, self.renyi(a), exact) for a in tried)))

    def _group(self, size: int) -> Loss:
        doublings = math.ceil(math.log2(size))
        orders = [(a / 2**doublings, e * 3**doublings) for a, e in zip(self.orders, self.epsilons, strict=True)]
        kept = [(a, e) for a, e in orders if a >= 2]  # M17, Proposition 2
        if not kept:
            raise ParameterError("size", size, "needs larger Renyi orders than are known", "ask for a smaller group")
        return RenyiDP(tuple(a for a, _ in kept), tuple(nudged_up(e) for _, e in kept), self.neighbours)

    def _fields(self) -> dict[str, Any]:
        return {"orders": list(self.orders), "epsilons": list(self.epsilons)}
