"""Randomised response: people randomise their own answers, nobody need be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from hubbub.errors import DataTypeError, ParameterError
from hubbub.mechanisms.laplace import MORE_PRIVACY
from hubbub.mechanisms.lattice import Floats, exact_numbers, integer_array, is_integer, plain_array
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.enclosure import Enclosure, exp_minus, quotient
from hubbub.numeric.rational import Number, count, float_up, fraction_between, is_whole, one_of, positive
from hubbub.privacy.finite import RandomizedResponseDP
from hubbub.privacy.loss import Loss, Neighbours
from hubbub.randomness.bits import Bits
from hubbub.randomness.choice import draw_below, uniform_below
from hubbub.randomness.thresholds import Chance, Integers

MOST_CATEGORIES = 1 << 31


@dataclass(frozen=True, eq=False)
class Estimate:
    """An unbiased estimate of a share (or of each category's share), with a confidence interval that always holds.

    The truth is the share among the people who answered; the interval may reach outside 0..1, as the estimate may.
    """

    value: float | Floats
    low: float | Floats
    high: float | Floats
    variance: float
    confidence: float


@dataclass(frozen=True, init=False)
class RandomizedResponse(Mechanism):
    """Keeps an answer with probability 1/2 + gamma, else flips it; with more categories, else moves to another one.

    ``release`` takes one answer (an int or a bool), a flat list or an array, and returns a report for each. Give
    epsilon, or gamma for two categories. Answers are 0..categories-1 (or False and True); others count as the
    nearest.

    Claim: epsilon-DP under replace-one for each person's report, epsilon = ln((1/2 + gamma)/(1/2 - gamma)), tight. The
        loss is that of the report's own law, RandomizedResponseDP.
    Proof: W65; the largest ratio of report probabilities is keep/(move to one given other category) = e**epsilon.
        (The notes' 4 gamma is below this for every gamma: at 1/4 the truth is ln 3 = 1.0986, not 1.)
    Assumes: each person reports once; the set of people who report is public.

    >>> m = RandomizedResponse(gamma=0.25)
    >>> round(m.epsilon, 4), m.sample_size(0.05, 0.05)
    (1.0986, 2952)
    """

    epsilon: float
    categories: int
    neighbours: Neighbours
    _odds: Fraction | None = field(init=False, repr=False)
    _price: Fraction | None = field(init=False, repr=False)

    def __init__(self, *, epsilon: Number | None = None, gamma: Number | None = None, categories: int = 2) -> None:
        one_of(epsilon=epsilon, gamma=gamma)
        size = count("categories", categories, least=2)
        if size > MOST_CATEGORIES:
            raise ParameterError("categories", categories, f"must be at most {MOST_CATEGORIES}")
        odds = price = None
        if epsilon is not None:
            price = positive("epsilon", epsilon, MORE_PRIVACY)
            cost = float_up(price)
        else:
            if size != 2:
                raise ParameterError("gamma", gamma, "is for two categories", "give epsilon for more")
            bias = positive("gamma", gamma)
            if bias > Fraction(1, 2) - Fraction(1, 10**100):
                raise ParameterError(
                    "gamma", gamma, "must lie strictly between 0 and 1/2", "1/2 would report the truth"
                )
            odds = (Fraction(1, 2) + bias) / (Fraction(1, 2) - bias)
            cost = math.log1p(float(odds - 1)) * (1 + 2.0**-50)  # rounded up
        self._fill(epsilon=cost, categories=size, neighbours="replace", _odds=odds, _price=price)

    @property
    def loss(self) -> Loss:
        price = Fraction(self.epsilon) if self._price is None else self._price
        return RandomizedResponseDP(price, self.categories, neighbours="replace")

    @property
    def keep_probability(self) -> float:
        """The probability that a report is the true answer."""
        return 1 / (1 + (self.categories - 1) * self._flip_odds)

    @property
    def move_probability(self) -> float:
        """The probability that a report is one given other category."""
        return self._flip_odds / (1 + (self.categories - 1) * self._flip_odds)

    @property
    def _flip_odds(self) -> float:
        """e**-epsilon."""
        return math.exp(-self.epsilon) if self._odds is None else float(1 / self._odds)

    @property
    def _lead(self) -> float:
        """keep_probability - move_probability, without cancellation."""
        short = -math.expm1(-self.epsilon) if self._odds is None else float(1 - 1 / self._odds)
        return short / (1 + (self.categories - 1) * self._flip_odds)

    @property
    def gamma(self) -> float:
        """Half the lead of the truth over one given other answer; for two categories, the notes' gamma."""
        return self._lead / 2

    def _release(self, value: Any, bits: Bits) -> Any:
        keep = _keep_chance(self._odds, self._price, self.categories)
        top = self.categories - 1
        if is_integer(value):
            answer = min(max(int(value), 0), top)
            moved = (answer + 1 + draw_below(top, bits)) % self.categories
            report = answer if keep.happens(bits) else moved
            return report if is_whole(value) else bool(report)
        listed = isinstance(value, list | tuple)
        array = np.array(value, object) if listed and all(is_integer(v) for v in value) else plain_array(value)
        answers = np.clip(integer_array(array), 0, top)
        stays = keep.happen(bits.words(answers.size), bits).reshape(answers.shape)
        shifts = uniform_below(top, answers.size, bits).reshape(answers.shape)
        reports = np.where(stays, answers, (answers + 1 + shifts) % self.categories)
        return reports.tolist() if listed else reports

    def apart(self, value: Any, neighbour: Any) -> float:
        """Each report is its own: any two answers of one person are neighbours, also in a vector of one length."""
        one, other = np.asarray(value), np.asarray(neighbour)
        if one.shape != other.shape:
            return math.inf
        return float(np.sum(one != other))

    def distribution(self, value: int) -> tuple[Integers, Floats]:
        """Every report and its probability, for this true answer."""
        probabilities = np.full(self.categories, self.move_probability)
        probabilities[min(max(int(value), 0), self.categories - 1)] = self.keep_probability
        return np.arange(self.categories), probabilities

    def estimate(self, reports: Any, confidence: Number = 0.95) -> Estimate:
        """The share of ones (two categories) or of every category, estimated without bias from the reports.

        The interval holds for every population: Hoeffding's, or Bernstein's where narrower (both known in advance).

        >>> RandomizedResponse(gamma=0.25).estimate([1, 0, 1, 1]).value
        1.0
        """
        array = exact_numbers(reports, "reports")
        if array.dtype.kind == "f" or not len(array) or array.min() < 0 or array.max() >= self.categories:
            raise DataTypeError(f"reports must be a non-empty flat list of integers in 0..{self.categories - 1}")
        doubt = float(1 - fraction_between("confidence", confidence, 0, 1))
        lead = self._lead
        shares = np.bincount(array, minlength=self.categories) / len(array)
        values = (shares - self.move_probability) / lead
        half = self._half_width(len(array), doubt)
        if self.categories == 2:
            one = float(values[1])
            return Estimate(one, one - half, one + half, self.variance(len(array)), 1 - doubt)
        return Estimate(values, values - half, values + half, self.variance(len(array)), 1 - doubt)

    def variance(self, people: int) -> float:
        """The variance of an estimated share (for more than two categories: the largest it can be)."""
        keep, move = self.keep_probability, self.move_probability
        worst = max(keep * (1 - keep), move * (1 - move))
        return worst / (self._lead**2 * count("people", people))

    def error(self, confidence: Number = 0.95, *, people: int) -> float:
        """The half-width of the confidence interval of an estimate from so many people."""
        return self._half_width(count("people", people), float(1 - fraction_between("confidence", confidence, 0, 1)))

    def _half_width(self, people: int, doubt: float) -> float:
        lead = self._lead
        surprise = math.log(2 / doubt)
        hoeffding = math.sqrt(surprise / (2 * people)) / lead
        # Bernstein for centred reports bounded by 1: n t**2 / (2 (variance + t/3)) = surprise, t in report units
        spread = self.variance(people) * people * lead**2
        third = surprise / (3 * people)
        bernstein = (third + math.sqrt(third**2 + 2 * spread * surprise / people)) / lead
        return min(hoeffding, bernstein)

    def sample_size(self, alpha: Number, beta: Number, method: Literal["chebyshev", "hoeffding"] = "hoeffding") -> int:
        """How many people make an estimated share within alpha of the truth except with probability beta.

        Chebyshev: 1/(16 gamma**2 beta alpha**2). Hoeffding: ln(2/beta)/(8 gamma**2 alpha**2), smaller when beta <
        0.23.

        >>> RandomizedResponse(gamma=0.25).sample_size(0.05, 0.05, "chebyshev")
        8000
        """
        accuracy = positive("alpha", alpha)
        doubt = fraction_between("beta", beta, 0, 1)
        if method not in ("chebyshev", "hoeffding"):
            raise ParameterError("method", method, 'must be "chebyshev" or "hoeffding"')
        gamma = Fraction(self.gamma) if self._odds is None else (self._odds - 1) / (2 * (self._odds + 1))
        if method == "chebyshev":
            return math.ceil(1 / (16 * gamma**2 * doubt * accuracy**2))
        return math.ceil(math.log(2 / float(doubt)) / float(8 * gamma**2 * accuracy**2))


@lru_cache(maxsize=256)
def _keep_chance(odds: Fraction | None, epsilon: Fraction | None, categories: int) -> Chance:
    if odds is not None:
        return Chance.of(odds / (odds + categories - 1))

    def enclose(bits: int) -> Enclosure:  # 1 / (1 + (categories - 1) e**-epsilon)
        one, (low, high) = 1 << bits, exp_minus(epsilon or Fraction(0), bits)
        return quotient((one, one), (one + (categories - 1) * low, one + (categories - 1) * high), bits)

    return Chance(enclose)
