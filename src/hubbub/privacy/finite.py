"""Losses of noise whose law can be written down: randomised response and truncated Laplace noise.

Their profiles are closed forms, so that a single release is priced exactly; repeated, they compose by their pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.errors import ParameterError
from hubbub.numeric.rational import Number, count, float_up, fraction_between, positive, rational
from hubbub.privacy import renyi as renyi_forms
from hubbub.privacy.loss import (
    Loss,
    Neighbours,
    check_delta,
    check_neighbours,
    gap_below,
    nudged_up,
)
from hubbub.privacy.pairs import Atoms, Floats, Pair

LISTED_STEPS = 16
"""Up to so many steps of sensitivity, every loss of integer noise is an atom; beyond, they are counted in intervals."""
ROUNDING = 1e-13
"""Relative error granted to the closed forms below, which lose a few units in the last place."""


def response_delta(epsilon: float, gap: float, categories: int) -> float:
    """The delta of randomised response at ``gap`` below its epsilon, rounded up: keep (1 - e**-gap)."""
    return min(1.0, nudged_up(-math.expm1(-gap) / (1 + (categories - 1) * math.exp(-epsilon))))


def response_interval(epsilon: float, delta: Fraction, categories: int) -> tuple[float, float]:
    """(lower, upper) on epsilon + ln(1 - delta/keep), which inverts ``response_delta``."""
    share = float(delta) * (1 + (categories - 1) * math.exp(-epsilon))
    if share * (1 - 2.0**-50) >= 1:
        return 0.0, 0.0
    high = epsilon + math.log1p(-share * (1 - 2.0**-50))
    low = epsilon + math.log1p(-share * (1 + 2.0**-50)) if share * (1 + 2.0**-50) < 1 else 0.0
    return max(0.0, low * (1 - 2.0**-48)), min(epsilon, max(0.0, nudged_up(high)))


@dataclass(frozen=True)
class RandomizedResponseDP(Loss):
    """One report of randomised response over several categories: kept, or moved to a uniform other one.

    Claim: losses +epsilon, 0 and -epsilon with probabilities e**epsilon, categories - 2 and 1, over their sum. For
        several people at once, so many independent reports.
    Proof: at true answers a and b, the report a has ratio e**epsilon, b has e**-epsilon, and any other is as likely
        under both: W65. Rounding epsilon up is safe: randomising a report once more gives every smaller epsilon.
    Assumes: each person gives one report; reports are independent of one another.

    >>> report = RandomizedResponseDP(0.5, categories=10)
    >>> report.epsilon(), round((report * 100).epsilon(1e-6), 2)
    (0.5, 14.43)
    """

    epsilon_bound: float
    categories: int
    neighbours: Neighbours
    tag: ClassVar[str] = "randomized response"

    def __init__(self, epsilon: Number, categories: int = 2, neighbours: Neighbours = "replace") -> None:
        object.__setattr__(self, "epsilon_bound", float_up(positive("epsilon", epsilon)))
        object.__setattr__(self, "categories", count("categories", categories, least=2))
        positive("categories", self.categories)  # within what doubles hold
        object.__setattr__(self, "neighbours", check_neighbours(neighbours))

    def __repr__(self) -> str:
        given = f"{self.epsilon_bound!r}, categories={self.categories!r}, neighbours={self.neighbours!r}"
        return f"RandomizedResponseDP({given})"

    def _pure(self) -> Fraction:
        return rational("epsilon", self.epsilon_bound)

    def _pair(self) -> Pair:
        others = math.exp(-self.epsilon_bound)
        keep = 1 / (1 + (self.categories - 1) * others)
        same = ((0.0, (self.categories - 2) * others * keep),) if self.categories > 2 else ()
        return Atoms(((-self.epsilon_bound, others * keep), *same, (self.epsilon_bound, keep)))

    def epsilon_interval(self, delta: Number) -> tuple[float, float]:
        return response_interval(self.epsilon_bound, check_delta(delta), self.categories)

    def delta(self, epsilon: Number) -> float:
        gap = gap_below(self.epsilon_bound, epsilon)
        return response_delta(self.epsilon_bound, gap, self.categories) if gap else 0.0

    def renyi(self, order: Number) -> float:
        a, e = renyi_forms.check_order(order), self.epsilon_bound
        return nudged_up(renyi_forms.of_categories(a, e, self.categories))

    def _group(self, size: int) -> Loss:
        return self * size

    def _replaced(self) -> Loss:
        return RandomizedResponseDP(self.epsilon_bound, self.categories, "replace") * 2

    def _fields(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon_bound, "categories": self.categories}


@dataclass(frozen=True)
class TruncatedLaplacePair(Pair):
    """Truncated Laplace noise around 0 against the same noise ``steps`` grid steps further; None is continuous noise.

    With x steps from 0 towards the other centre, the loss is epsilon up to 0, epsilon (1 - 2 x/steps) in between and
    -epsilon from ``steps`` on; beyond the other noise's reach it is infinite.
    """

    epsilon: float
    infinity: float = 0.0
    steps: int | None = None

    def _step(self) -> float:
        """The logarithm by which probabilities fall per grid step."""
        return self.epsilon / self.steps if self.steps else 0.0

    def growth(self) -> float:
        """What truncation multiplies every probability that is left by: 1 + 2 delta/(e**epsilon - 1)."""
        e = self.epsilon
        return 1 + 2 * self.infinity * math.exp(-e) / -math.expm1(-e)

    def centre(self) -> float:
        """The probability of no noise at all."""
        return math.tanh(self._step() / 2) * self.growth()

    def top(self) -> float:
        """P's mass at loss epsilon."""
        return (1 + self.centre()) / 2 - self.infinity

    def reaches(self) -> bool:
        """Whether the noise reaches at least as far as the sensitivity, up to rounding."""
        return self.top() >= self.centre() * (1 - 1e-9) - 1e-15

    def profile(self, gap: float) -> float:
        """The delta at ``gap`` below epsilon, infinite losses apart, as products that cancel nothing.

        With r = e**-step and c the points in between that count: top (1 - e**-gap) plus, over x = 1 .. c, the sum
        of centre (r**x - e**(epsilon - gap) r**(steps - x)) = growth/(1 + r) (1 - r**c) (r - e**-gap r**-c).
        """
        step, half = self._step(), gap / 2
        reach = step * max(0, math.ceil(half / step) - 1) if step else half
        inner = math.expm1(-reach) * math.exp(-step) * math.expm1(min(0.0, reach + step - gap))
        return -self.top() * math.expm1(-gap) + inner * self.growth() / (1 + math.exp(-step))

    def _listed(self) -> int:
        """How many losses in between are atoms."""
        return self.steps - 1 if self.steps and self.steps <= LISTED_STEPS else 0

    def masses(self, edges: Floats) -> tuple[Floats, Floats]:
        e, step = self.epsilon, self._step()
        if self._listed():
            return np.zeros(len(edges) + 1), np.zeros(len(edges) + 1)
        depth = (e - edges) / 2  # losses up to an edge lie from here on, in units of the noise's scale
        if step:
            depth = step * np.ceil(np.clip(depth, 0.0, e) / step)
        ends = np.concatenate(([e], np.clip(depth, step, e), [step]))
        fall = -np.expm1(np.diff(ends)) * self.growth() / (1 + math.exp(-step))
        return fall * np.exp(-ends[1:]), fall * np.exp(ends[:-1] - e - step)

    def span(self, tail: float) -> tuple[float, float]:  # noqa: ARG002
        return -self.epsilon, self.epsilon

    def atoms(self) -> tuple[tuple[float, float], ...]:
        e, step = self.epsilon, self._step()
        inner = [(e - 2 * step * x, self.centre() * math.exp(-step * x)) for x in range(self._listed(), 0, -1)]
        return (-e, self.top() * math.exp(-e)), *inner, (e, self.top())


def _last_holding(holds: Callable[[float], bool], most: float) -> tuple[float, float]:
    """Two neighbouring points of 0 .. most: it holds at the first (or at 0 only), and no longer at the second."""
    low, high = 0.0, most
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


@dataclass(frozen=True)
class TruncatedLaplaceDP(Loss):
    """Laplace noise that is cut off, on a grid of which the sensitivity is ``steps`` steps; continuous if None.

    ``delta`` is the probability that the noise leaves the range of its neighbour: the loss is infinite there.

    Claim: (epsilon, delta)-DP and no less, and the profile of two such laws ``steps`` apart; in several dimensions,
        under an L1 sensitivity, they dominate.
    Proof: GDGK20 for epsilon and delta. The noise is log-concave, so likelihood ratios of shifts are monotone and the
        best tests are thresholds c: T(P(X > c)) = P(X <= c - t) for a shift t, which falls with t, so that smaller
        shifts tell less. On the grid these points are all corners of T, so the trade-offs of shifts s and t compose
        to that of s + t; changing one coordinate at a time gives vectors (DRS22, Theorem 3), and groups.
    Assumes: the stated numbers are true of what ran; noise of every coordinate is independent.

    >>> loss = TruncatedLaplaceDP(0.1, 1e-8)
    >>> loss.epsilon(1e-8), round((loss * 100).epsilon(1e-5), 2)
    (0.1, 4.24)
    """

    epsilon_bound: float
    delta_bound: float
    steps: int | None
    neighbours: Neighbours
    tag: ClassVar[str] = "truncated laplace"

    def __init__(
        self, epsilon: Number, delta: Number, steps: int | None = None, neighbours: Neighbours = "add-remove"
    ) -> None:
        object.__setattr__(self, "epsilon_bound", float_up(positive("epsilon", epsilon)))
        object.__setattr__(self, "delta_bound", float_up(fraction_between("delta", delta, 0, 1)))
        object.__setattr__(self, "steps", None if steps is None else int(positive("steps", count("steps", steps))))
        object.__setattr__(self, "neighbours", check_neighbours(neighbours))
        if not self._pair().reaches():
            raise ParameterError(
                "delta", delta, "is more than noise can have that reaches as far as the sensitivity", "give less"
            )

    def __repr__(self) -> str:
        given = f"{self.epsilon_bound!r}, {self.delta_bound!r}, steps={self.steps!r}, neighbours={self.neighbours!r}"
        return f"TruncatedLaplaceDP({given})"

    def _pair(self) -> TruncatedLaplacePair:
        return TruncatedLaplacePair(self.epsilon_bound, self.delta_bound, self.steps)

    def _basic(self) -> tuple[Fraction, Fraction]:
        return rational("epsilon", self.epsilon_bound), rational("delta", self.delta_bound)

    def epsilon_interval(self, delta: Number) -> tuple[float, float]:
        exact, pair, bound = check_delta(delta), self._pair(), self.epsilon_bound
        readings = Fraction(self.delta_bound), rational("delta", self.delta_bound)
        if exact < readings[1]:
            return math.inf, math.inf
        room, most = (max(0.0, float(exact - reading)) for reading in (max(readings), min(readings)))
        if pair.profile(bound) * (1 + ROUNDING) <= room:
            return 0.0, 0.0
        held = _last_holding(lambda gap: pair.profile(gap) * (1 + ROUNDING) <= room, bound)[0]
        broken = _last_holding(lambda gap: pair.profile(gap) * (1 - ROUNDING) <= most, bound)[1]
        return max(0.0, (bound - broken) * (1 - ROUNDING)), min(bound, nudged_up(bound - held))

    def delta(self, epsilon: Number) -> float:
        gap = gap_below(self.epsilon_bound, epsilon)
        beyond = self._pair().profile(gap) * (1 + ROUNDING)
        return min(1.0, nudged_up(self.delta_bound + beyond)) if gap else self.delta_bound

    def renyi(self, order: Number) -> float:
        renyi_forms.check_order(order)
        return math.inf

    def _group(self, size: int) -> Loss:
        e, steps = self.epsilon_bound, None if self.steps is None else self.steps * size
        grown = nudged_up(self.delta_bound * math.expm1(min(size * e, 700.0)) / math.expm1(min(e, 700.0)))
        if size * e > 700 or not TruncatedLaplacePair(size * e, grown, steps).reaches():
            raise ParameterError("size", size, "is more than noise can hide that is cut off", "ask for a smaller group")
        return TruncatedLaplaceDP(rational("epsilon", e) * size, grown, steps, self.neighbours)

    def _fields(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon_bound, "delta": self.delta_bound, "steps": self.steps}
