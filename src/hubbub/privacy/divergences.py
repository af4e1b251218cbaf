"""Divergences between two finite distributions, and the exact profile of a mechanism small enough to list (D4)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from hubbub.errors import ParameterError
from hubbub.numeric.rational import Number, rational
from hubbub.privacy.pairs import Floats

Chances = Sequence[float] | Floats


def _pair(p: Chances, q: Chances) -> tuple[Floats, Floats]:
    first, second = np.asarray(p, np.float64), np.asarray(q, np.float64)
    for name, law in (("p", first), ("q", second)):
        if law.ndim != 1 or not len(law) or np.any(law < 0) or not math.isclose(law.sum(), 1, abs_tol=1e-9):
            raise ParameterError(name, law.tolist(), "must be probabilities that add up to 1")
    if len(first) != len(second):
        raise ParameterError("q", second.tolist(), f"must have as many outcomes as p, {len(first)}")
    return first, second


def max_divergence(p: Chances, q: Chances) -> float:
    """The largest ln(p/q): the epsilon of pure privacy, one way; the limit of Renyi divergence as the order grows.

    >>> round(max_divergence([0.75, 0.25], [0.25, 0.75]), 4)
    1.0986
    """
    first, second = _pair(p, q)
    seen = first > 0
    if np.any(second[seen] == 0):
        return math.inf
    return float(np.max(np.log(first[seen] / second[seen])))


def kl_divergence(p: Chances, q: Chances) -> float:
    """The mean of ln(p/q) under p; the limit of Renyi divergence as the order falls to 1."""
    first, second = _pair(p, q)
    seen = first > 0
    if np.any(second[seen] == 0):
        return math.inf
    return max(0.0, float(np.sum(first[seen] * np.log(first[seen] / second[seen]))))


def renyi_divergence(p: Chances, q: Chances, order: Number) -> float:
    """ln(sum of p**order q**(1 - order)) / (order - 1), for orders > 0 other than 1."""
    first, second = _pair(p, q)
    a = float(rational("order", order))
    if a <= 0 or a == 1:
        raise ParameterError("order", order, "must be > 0 and not 1", "kl_divergence is the limit at 1")
    seen = first > 0
    if a > 1 and np.any(second[seen] == 0):
        return math.inf
    both = seen & (second > 0)
    logs = a * np.log(first[both]) + (1 - a) * np.log(second[both])
    return float(np.logaddexp.reduce(logs)) / (a - 1) if both.any() else math.inf


def total_variation(p: Chances, q: Chances) -> float:
    """Half the sum of |p - q|: at most tanh(epsilon/2) under pure privacy."""
    first, second = _pair(p, q)
    return float(np.abs(first - second).sum()) / 2


def hockey_stick(p: Chances, q: Chances, epsilon: Number) -> float:
    """The sum of max(0, p - e**epsilon q): the delta that goes with epsilon, one way."""
    first, second = _pair(p, q)
    return float(np.maximum(first - math.exp(float(rational("epsilon", epsilon))) * second, 0).sum())


def finite_delta(
    mechanism: Mapping[Hashable, Chances], neighbours: Iterable[tuple[Hashable, Hashable]], epsilon: Number
) -> float:
    """The exact delta at epsilon of a mechanism given by its table (data set -> probabilities of outcomes).

    The largest over all listed neighbouring pairs, both ways.

    >>> flip = {0: [0.75, 0.25], 1: [0.25, 0.75]}
    >>> round(finite_delta(flip, [(0, 1)], 0), 4)
    0.5
    """
    pairs = list(neighbours)
    if not pairs:
        raise ParameterError("neighbours", pairs, "must hold at least one pair")
    return max(
        hockey_stick(mechanism[a], mechanism[b], epsilon)
        for one, other in pairs
        for a, b in ((one, other), (other, one))
    )
