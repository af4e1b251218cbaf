"""Audit of a single run: many canaries, each put into the data or left out by a fair coin, guessed from the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hubbub.audit.bounds import OUTWARD
from hubbub.errors import ParameterError
from hubbub.numeric.rational import Number, fraction_between
from hubbub.privacy.families import GaussianDP
from hubbub.privacy.loss import check_delta

CONFIDENCE = 0.95
SHARES = 20
"""How many numbers of guesses are tried when none is given; confidence is split among them."""


@dataclass(frozen=True)
class OneRun:
    """What one run proves: epsilon is at least ``epsilon_lower`` at ``delta``, at this confidence."""

    epsilon_lower: float
    delta: float
    confidence: float
    canaries: int
    guesses: int
    correct: int
    method: str


def one_run(
    scores: Any,
    included: Any,
    *,
    delta: Number = 0.0,
    confidence: Number = CONFIDENCE,
    guesses: int | None = None,
    method: Literal["epsilon", "gaussian"] = "epsilon",
) -> OneRun:
    """A lower bound on epsilon from one run with canaries that were each included by a fair coin.

    The highest scores are guessed as included and the lowest as left out, ``guesses`` of them in all (half and half);
    without ``guesses``, several numbers are tried and the confidence is split among them.

    Claim: for an (epsilon, delta)-private run (``method="epsilon"``), or a Gaussian-private run that has this epsilon
        at this delta (``"gaussian"``), the result exceeds epsilon with probability at most 1 - confidence.
    Proof: SNJ23, Theorem 5.2; MMC24, Theorem 3.2 with the recursion of its Algorithm 3, for the trade-off function
        of a Gaussian.
    Assumes: inclusion bits are independent fair coins, known to nobody who chose the scores' order; one canary is one
        unit of privacy, and the claim is for adding or removing one.

    >>> import numpy as np
    >>> scores = np.arange(1000.0)
    >>> round(one_run(scores, scores >= 500, guesses=1000).epsilon_lower, 2)
    5.81
    """
    score, bits = np.asarray(scores, np.float64), np.asarray(included, bool)
    if score.ndim != 1 or score.shape != bits.shape or not len(score):
        raise ParameterError("scores", score.shape, "must be one number for each canary", "give as many inclusion bits")
    if np.isnan(score).any():
        raise ParameterError("scores", "nan", "must be numbers", "score canaries that failed as 0")
    if method not in ("epsilon", "gaussian"):
        raise ParameterError("method", method, 'must be "epsilon" or "gaussian"')
    at = float(check_delta(delta))
    if method == "gaussian" and not at:
        raise ParameterError("delta", delta, "must be > 0 for a Gaussian claim")
    failure = 1 - float(fraction_between("confidence", confidence, 0, 1))
    total = len(score)
    if guesses is not None and not 1 <= guesses <= total:
        raise ParameterError("guesses", guesses, f"must lie between 1 and the {total} canaries")
    tries = [guesses] if guesses is not None else sorted({int(n) for n in np.geomspace(min(10, total), total, SHARES)})
    order = np.argsort(-score, kind="stable")
    best = OneRun(0.0, at, 1 - failure, total, tries[0], 0, method)
    for n in tries:
        correct = int(bits[order[: (n + 1) // 2]].sum() + (~bits[order[total - n // 2 :]]).sum())
        found = _largest(n, correct, total, at, failure / len(tries), method)
        if found >= best.epsilon_lower:
            best = OneRun(found, at, 1 - failure, total, n, correct, method)
    return best


def _largest(guesses: int, correct: int, canaries: int, delta: float, failure: float, method: str) -> float:
    """The largest epsilon that is refuted."""
    if method == "epsilon":
        return _last(lambda epsilon: chance_of(guesses, correct, canaries, epsilon, delta) <= failure)
    mu = _last(lambda mu: _gaussian_refuted(guesses, correct, canaries, mu, failure))
    return GaussianDP(mu).epsilon_interval(delta)[0] if mu else 0.0


def _last(refuted: Callable[[float], bool]) -> float:
    """The last number from 0 on that is refuted, where all below it are; 0 if none is."""
    low, high = 0.0, 1.0
    if not refuted(low + 1e-9):
        return 0.0
    while refuted(high) and high < 64:
        low, high = high, 2 * high
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def chance_of(guesses: int, correct: int, canaries: int, epsilon: float, delta: float) -> float:
    """A bound on the chance of so many correct guesses under (epsilon, delta)-privacy (SNJ23, Theorem 5.2)."""
    from scipy.stats import binom

    chance = 1 / (1 + math.exp(-epsilon))
    whole = float(binom.sf(correct - 1, guesses, chance))
    if not delta:
        return whole
    i = np.arange(1, correct + 1)
    between = binom.sf(correct - i - 1, guesses, chance) - whole
    return min(1.0, whole + float(np.max(2 * between / i, initial=0.0)) * canaries * delta)


def _gaussian_refuted(guesses: int, correct: int, canaries: int, mu: float, failure: float) -> bool:
    """Whether so many correct guesses are too many for a mu-Gaussian-private run (MMC24, Algorithm 3)."""
    from scipy.special import ndtr, ndtri

    shift = mu * (1 + OUTWARD) + OUTWARD
    right, wrong = failure * correct / canaries, failure * (guesses - correct) / canaries
    for i in range(correct - 1, -1, -1):
        grown = max(wrong, float(ndtr(ndtri(right) - shift)))
        if grown == wrong:
            break
        right = min(1.0, right + i / (guesses - i) * (grown - wrong))
        wrong = grown
    return right + wrong > guesses / canaries
