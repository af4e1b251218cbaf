"""Choosing the best of several candidates by private scores: exponential mechanism, noisy max, noisy top-k.

Scores are integers or the doubles they are; score differences enter exactly (as rationals where it matters), so there
is no grid and no rounding slack. ``release(scores)`` returns an index, or a list of k for top-k. Odd scores follow
the public rules of ``hubbub.mechanisms.lattice``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from typing import Any, Literal, get_args

import numpy as np

from hubbub.errors import DataTypeError, ParameterError
from hubbub.mechanisms.laplace import MORE_PRIVACY
from hubbub.mechanisms.lattice import Floats, exact_numbers, score_grid
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.rational import Number, count, float_up, fraction_between, positive, rational, yes_or_no
from hubbub.privacy.families import PureDP
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours
from hubbub.privacy.ranges import BoundedRange
from hubbub.randomness.bits import Bits
from hubbub.randomness.choice import draw_below, exp_choice, exp_events
from hubbub.randomness.laplace import DiscreteLaplace
from hubbub.randomness.thresholds import Integers

Noise = Literal["exponential", "gumbel", "laplace"]

LISTED_ORDERS = 10**5
"""The most outcomes a distribution of noisy top-k lists."""


@dataclass(frozen=True)
class Gaps:
    """How far each score lies below the best, times the rate of the exponent: as floats, and exactly on demand."""

    exponents: Floats
    exact: Callable[[int], Fraction]

    @classmethod
    def of(cls, scores: Integers | Floats, rate: Fraction) -> Gaps:
        best = scores.max()
        if scores.dtype.kind == "f":
            below: Any = best - scores  # correctly rounded, so the relative error is 2**-53
        else:
            below = (best - scores).view(np.uint64).astype(np.float64)  # exact modulo 2**64, hence exact
        return cls(below * float(rate), lambda i: (_exact(best) - _exact(scores[i])) * rate)


def _exact(score: Any) -> Fraction:
    return Fraction(score.item())


def permute_and_flip(gaps: Gaps, bits: Bits) -> int:
    """One draw: each candidate passes with probability e**-gap, the best always; uniform among those that pass."""
    passed = np.flatnonzero(exp_events(gaps.exponents, gaps.exact, bits))
    return int(passed[draw_below(len(passed), bits)])


def permute_and_flip_law(exponents: Floats) -> Floats:
    """The probabilities of ``permute_and_flip``.

    Candidate i has p_i E[1/(1 + others that pass)] = p_i * integral over t in 0..1 of prod_{j != i} (1 - p_j + p_j
    t): a polynomial, so Gauss-Legendre quadrature is exact.
    """
    chances = np.exp(-exponents)
    nodes, weights = np.polynomial.legendre.leggauss(len(chances) // 2 + 1)
    t = (nodes[:, None] + 1) / 2
    factors = 1 - chances + chances * t
    logs = np.log(factors)
    others = np.exp(logs.sum(axis=1, keepdims=True) - logs)
    return np.asarray(chances * (weights / 2 @ others))


@dataclass(frozen=True, init=False)
class _Selection(Mechanism):
    """What the choosing mechanisms share: parameters, checks, price and utility."""

    sensitivity: Number
    epsilon: float
    monotone: bool
    neighbours: Neighbours
    _price: Fraction = field(init=False, repr=False)
    _grid: tuple[Fraction, int] = field(init=False, repr=False)

    def __init__(
        self,
        sensitivity: Number,
        *,
        epsilon: Number,
        monotone: bool = False,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        self._fill(
            sensitivity=sensitivity,
            epsilon=float_up(positive("epsilon", epsilon, MORE_PRIVACY)),
            monotone=yes_or_no("monotone", monotone),
            neighbours=check_neighbours(neighbours),
            _price=positive("epsilon", epsilon),
            _grid=score_grid(sensitivity),
        )

    @property
    def loss(self) -> Loss:
        return PureDP(self.epsilon, neighbours=self.neighbours)

    def _rate(self) -> Fraction:
        """What multiplies a score difference: epsilon/(2 sensitivity), or epsilon/sensitivity if monotone."""
        return self._price / (positive("sensitivity", self.sensitivity) * (1 if self.monotone else 2))

    def _scores(self, scores: Any, least: int = 1) -> Integers | Floats:
        numbers = exact_numbers(scores, "scores")
        if len(numbers) < least:
            raise DataTypeError(f"there must be at least {least} candidate(s) to choose from")
        return numbers

    def apart(self, value: Any, neighbour: Any) -> float:
        one, other = self._scores(value), self._scores(neighbour)
        if len(one) != len(other):
            return math.inf
        moves = [_exact(a) - _exact(b) for a, b in zip(one, other, strict=True)]
        largest = max(map(abs, moves)) / positive("sensitivity", self.sensitivity)
        return math.inf if self.monotone and min(moves) < 0 < max(moves) else float(largest)

    def utility_bound(self, candidates: int, confidence: Number = 0.95) -> float:
        """How far below the best score the choice may lie, at most, with at least this probability.

        2 sensitivity (ln candidates + t)/epsilon with t = ln(1/(1 - confidence)); half of it if monotone.
        """
        surprise = -math.log(float(1 - fraction_between("confidence", confidence, 0, 1)))
        return (math.log(count("candidates", candidates)) + surprise) / float(self._rate())

    def success_probability(self, scores: Any, within: Number = 0) -> float:
        """The exact probability that the choice scores within so much of the best. Looks at scores: not a release."""
        numbers = self._scores(scores)
        _, probabilities = self.distribution(scores)
        best = _exact(numbers.max())
        good = [best - _exact(s) <= rational("within", within) for s in numbers]
        return float(probabilities[np.array(good)].sum())

    @abstractmethod
    def distribution(self, scores: Any) -> tuple[Any, Floats]:
        """Every index and the probability of choosing it."""


@dataclass(frozen=True, init=False)
class Exponential(_Selection):
    """Chooses index i with probability proportional to e**(epsilon score_i / (2 sensitivity)).

    ``sensitivity`` bounds the change of every single score between neighbours. ``monotone=True`` states that one
    person moves all scores in one direction (as votes do under add-remove) and drops the 2.

    Claim: epsilon-DP; also bounded range epsilon. Score within 2 sensitivity (ln d + t)/epsilon of the best except
        with probability e**-t.
    Proof: MT07, Theorem 6; DR19 for monotone scores. The choice is exact inversion over certified sums.
    Assumes: the stated sensitivity for this neighbour relation; a public list of candidates; monotone only if true.

    >>> m = Exponential(1, epsilon=0.5)
    >>> round(m.utility_bound(candidates=100, confidence=0.99), 1)
    36.8
    >>> m.release([3, 1000, 5])
    1
    """

    @property
    def loss(self) -> Loss:
        return BoundedRange(self.epsilon, neighbours=self.neighbours)

    def _release(self, value: Any, bits: Bits) -> int:
        gaps = Gaps.of(self._scores(value), self._rate())
        return exp_choice(gaps.exponents, gaps.exact, bits)

    def distribution(self, scores: Any) -> tuple[Integers, Floats]:
        weights = np.exp(-Gaps.of(self._scores(scores), self._rate()).exponents)
        return np.arange(len(weights)), weights / weights.sum()


@dataclass(frozen=True, init=False)
class NoisyMax(_Selection):
    """Chooses the index of the largest score after adding independent noise to each.

    ``noise="exponential"`` (scale 2 sensitivity/epsilon) is permute-and-flip, never worse than the exponential
    mechanism; ``"gumbel"`` is the exponential mechanism; ``"laplace"`` is the classical form, with a weaker bound.

    Claim: epsilon-DP. Score within 2 sensitivity (ln d + t)/epsilon of the best except with probability e**-t, for
        exponential and Gumbel noise; 4 sensitivity (ln d + t)/epsilon for Laplace noise.
    Proof: exponential: MS20, Theorems 1 and 2, with DKSSWXZ21 for the equivalence to noise. Gumbel: MT07. Laplace:
        fix all other noise; the winner needs its noise at or above an integer that neighbours shift by at most 2
        sensitivity (sensitivity if monotone), and ties go to the lowest index whatever the data.
    Assumes: as for Exponential. Laplace: float scores are floored to a grid, one step of which is added to the
        sensitivity.

    >>> NoisyMax(1, epsilon=1.0).release([3, 1000, 5])
    1
    """

    noise: Noise

    def __init__(
        self,
        sensitivity: Number,
        *,
        epsilon: Number,
        monotone: bool = False,
        noise: Noise = "exponential",
        neighbours: Neighbours = "add-remove",
    ) -> None:
        if noise not in get_args(Noise):
            raise ParameterError("noise", noise, f"must be one of {', '.join(get_args(Noise))}")
        super().__init__(sensitivity, epsilon=epsilon, monotone=monotone, neighbours=neighbours)
        self._fill(noise=noise)

    def _release(self, value: Any, bits: Bits) -> int:
        scores = self._scores(value)
        if self.noise == "laplace":
            steps, law = self._on_grid(scores)
            noisy = [s + law.draw(bits) for s in steps]
            return noisy.index(max(noisy))
        gaps = Gaps.of(scores, self._rate())
        if self.noise == "gumbel":
            return exp_choice(gaps.exponents, gaps.exact, bits)
        return permute_and_flip(gaps, bits)

    @property
    def loss(self) -> Loss:
        kind = BoundedRange if self.noise == "gumbel" else PureDP
        return kind(self.epsilon, neighbours=self.neighbours)

    def utility_bound(self, candidates: int, confidence: Number = 0.95) -> float:
        bound = super().utility_bound(candidates, confidence)
        return 2 * bound if self.noise == "laplace" else bound

    def distribution(self, scores: Any) -> tuple[Integers, Floats]:
        numbers = self._scores(scores)
        indices = np.arange(len(numbers))
        exponents = Gaps.of(numbers, self._rate()).exponents
        if self.noise == "exponential":
            return indices, permute_and_flip_law(exponents)
        if self.noise == "gumbel":
            weights = np.exp(-exponents)
            return indices, weights / weights.sum()
        return indices, self._laplace_law(numbers)

    def _on_grid(self, scores: Integers | Floats) -> tuple[list[int], DiscreteLaplace]:
        """Scores in whole steps of a public grid, and the noise in such steps."""
        step, reach = self._grid
        if step == 1 and scores.dtype.kind == "f":
            raise DataTypeError("scores must be integers for an int sensitivity; give a float sensitivity")
        steps = [math.floor(_exact(s) / step) for s in scores]
        return steps, DiscreteLaplace(reach * (1 if self.monotone else 2) / self._price)

    def _laplace_law(self, scores: Integers | Floats) -> Floats:
        """The probabilities with Laplace noise, summed over the winner's noisy score."""
        steps, law = self._on_grid(scores)
        reach = law.half_width(1e-14)
        best = max(steps)
        places = np.arange(-2 * reach, reach + 1)  # noisy scores relative to the best; lower ones hardly ever win

        def at_most(k: Integers) -> Floats:
            return np.where(k >= 0, 1 - law.tail(np.maximum(k + 1, 1)), law.tail(np.maximum(-k, 1)))

        result = []
        for i, own in enumerate(steps):
            product = law.pmf(places - max(own - best, -8 * reach))
            for j, other in enumerate(steps):
                if j != i:
                    product = product * at_most(places - max(other - best, -8 * reach) - (1 if j < i else 0))
            result.append(product.sum())
        return np.array(result)


@dataclass(frozen=True, init=False)
class TopK(_Selection):
    """Chooses k different indices of large scores, best first: k rounds of permute-and-flip at epsilon/k each.

    Claim: epsilon-DP for the ordered list.
    Proof: each round is (epsilon/k)-DP (MS20) on the candidates left, which are a function of earlier rounds; basic
        adaptive composition (DMNS06).
    Assumes: as for Exponential.

    >>> TopK(1, k=2, epsilon=5.0).release([3, 1000, 5, 2000])
    [3, 1]
    """

    k: int

    def __init__(
        self,
        sensitivity: Number,
        *,
        k: int,
        epsilon: Number,
        monotone: bool = False,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        super().__init__(sensitivity, epsilon=epsilon, monotone=monotone, neighbours=neighbours)
        self._fill(k=count("k", k))

    def _rate(self) -> Fraction:
        return super()._rate() / self.k

    def _release(self, value: Any, bits: Bits) -> list[int]:
        scores = self._scores(value, least=self.k)
        left = np.arange(len(scores))
        chosen = []
        for _ in range(self.k):
            place = permute_and_flip(Gaps.of(scores[left], self._rate()), bits)
            chosen.append(int(left[place]))
            left = np.delete(left, place)
        return chosen

    def success_probability(self, scores: Any, within: Number = 0) -> float:
        """The exact probability that every index chosen scores within so much of the k-th best. Not a release."""
        numbers = [_exact(s) for s in self._scores(scores, least=self.k)]
        least = sorted(numbers)[-self.k] - rational("within", within)
        orders, probabilities = self.distribution(scores)
        good = [all(numbers[i] >= least for i in order) for order in orders.tolist()]
        return float(probabilities[np.array(good)].sum())

    def distribution(self, scores: Any) -> tuple[Any, Floats]:
        """Every ordered choice of k indices (one per row) and its probability, for small cases."""
        numbers = self._scores(scores, least=self.k)
        if math.perm(len(numbers), self.k) > LISTED_ORDERS:
            raise ParameterError("k", self.k, "gives too many orders to list", f"at most {LISTED_ORDERS} are listed")
        orders = np.array(list(permutations(range(len(numbers)), self.k)))
        return orders, np.array([self._chance(numbers, order.tolist()) for order in orders])

    def _chance(self, scores: Integers | Floats, order: list[int]) -> float:
        left, chance = list(range(len(scores))), 1.0
        for choice in order:
            law = permute_and_flip_law(Gaps.of(scores[left], self._rate()).exponents)
            chance *= float(law[left.index(choice)])
            left.remove(choice)
        return chance
