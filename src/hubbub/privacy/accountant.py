"""The default accountant: certified intervals for what many releases cost together.

The grid is chosen for the question asked and refined until lower and upper bound agree to the wanted precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from hubbub.privacy.numerical import (
    LARGEST_LOSS,
    Profile,
    TooLong,
    cumulants,
    from_above,
    from_below,
    tilt_for_delta,
    tilt_for_epsilon,
)
from hubbub.privacy.pairs import Atoms, LaplacePair, Pair, PoissonPair, Reversed, WithoutReplacementPair

PRECISION = 8e-4
"""Relative width of an interval at which refinement stops."""
REFINEMENTS = 6
SMALLEST_SHARE = 2.0**-18
"""Of a step's range, the smallest spacing."""
TAIL_SHARE = 1e-6
"""Of delta, what the losses cut off at the far end of every step may add up to."""

CAN_HOLD_ATOMS = (Atoms, LaplacePair, PoissonPair, WithoutReplacementPair)

Parts = tuple[tuple[Pair, int], ...]


@lru_cache(maxsize=512)
def epsilon_interval(parts: Parts, delta: float) -> tuple[float, float]:
    """(lower, upper) on the epsilon at which the composition of all parts is (epsilon, delta)-private.

    Claim: the truth for the composition of the given pairs lies between the two.
    Proof: DGKKM22 for domination and composition of the discretised pairs, in both directions; errors bounded as
        said in ``numerical``.
    Assumes: the pairs dominate (upper bound) or are attained by (lower bound) what ran.
    """
    if _too_telling(parts):
        return 0.0, math.inf
    infinite = -math.expm1(sum(n * math.log1p(-min(p.infinity, 1 - 1e-16)) for p, n in parts))
    if infinite >= delta:
        return (math.inf, math.inf) if infinite * (1 - 1e-9) > delta else (0.0, math.inf)
    spacing = _first_spacing(parts, delta)
    best = (0.0, math.inf)
    for _ in range(REFINEMENTS):
        try:
            low, high = _bounds(parts, spacing, delta)
        except TooLong:
            if math.isfinite(best[1]):
                break
            spacing *= 8
            continue
        before, best = best, (max(best[0], low), min(best[1], high))
        width = best[1] - best[0]
        if width <= PRECISION * best[1]:
            break
        if math.isfinite(before[1]) and width > 0.7 * (before[1] - before[0]):
            break  # refining no longer helps
        spacing *= min(0.6, max(0.2, 0.85 * math.sqrt(PRECISION * best[1] / width)))
    return best


@lru_cache(maxsize=512)
def delta_interval(parts: Parts, epsilon: float) -> tuple[float, float]:
    """(lower, upper) on the delta at which the composition of all parts is (epsilon, delta)-private."""
    best = (0.0, 1.0)
    if _too_telling(parts):
        return best
    spacing = _first_spacing(parts, 1e-6)
    for _ in range(REFINEMENTS):
        try:
            bounds = [_delta_bounds(direction, spacing, epsilon) for direction in _directions(parts)]
        except TooLong:
            spacing *= 8
            continue
        best = max(best[0], *(b[0] for b in bounds)), min(best[1], max(b[1] for b in bounds))
        if best[1] - best[0] <= 10 * PRECISION * best[1] or best[1] < 1e-300:
            break
        spacing *= 0.5
    return best


def _too_telling(parts: Parts) -> bool:
    """Whether a step has, or may have, single losses beyond what doubles hold: a closed form or Renyi price must do."""
    return any(isinstance(p, CAN_HOLD_ATOMS) and max(map(abs, p.span(1e-12))) > LARGEST_LOSS for p, _ in parts)


def _directions(parts: Parts) -> list[Parts]:
    """The composition as it is and, unless all parts are symmetric, with P and Q exchanged."""
    if all(p.symmetric for p, _ in parts):
        return [parts]
    return [parts, tuple((p if p.symmetric else Reversed(p), n) for p, n in parts)]


def _bounds(parts: Parts, spacing: float, delta: float) -> tuple[float, float]:
    """One pass: the larger of the directions' bounds."""
    total = sum(n for _, n in parts)
    tail = max(delta * TAIL_SHARE / total, 1e-300)
    uppers = []
    for direction in _directions(parts):
        steps = [from_above(p, spacing, tail, n) for p, n in direction]
        tilt = tilt_for_delta(steps, spacing, delta)
        profile = Profile(steps, spacing, tilt, upper=True)
        uppers.append((profile.epsilon(delta), tilt, direction))
    high, tilt, direction = max(uppers, key=lambda u: u[0])
    lower = Profile([from_below(p, spacing, tail, n) for p, n in direction], spacing, tilt, upper=False)
    return lower.epsilon(delta), high


def _delta_bounds(parts: Parts, spacing: float, epsilon: float) -> tuple[float, float]:
    total = sum(n for _, n in parts)
    tail = 1e-30 / total
    steps = [from_above(p, spacing, tail, n) for p, n in parts]
    tilt = tilt_for_epsilon(steps, spacing, epsilon)
    upper = Profile(steps, spacing, tilt, upper=True).delta(epsilon)
    below = [from_below(p, spacing, tail, n) for p, n in parts]
    return Profile(below, spacing, tilt, upper=False).delta(epsilon), upper


def _first_spacing(parts: Sequence[tuple[Pair, int]], delta: float) -> float:
    """A grid step that should give the wanted precision: the error grows with its square and the number of steps."""
    deviations, mean, variance, widest = [], 0.0, 0.0, 0.0
    for pair, n in parts:
        low, high = pair.span(1e-12)
        step = max(high - low, 1e-12) / 400
        discretised = from_above(pair, step, 1e-12, 1)
        _, first, second = cumulants([discretised], step, 0.0)
        deviations.append(max(math.sqrt(second), step / 4))
        mean, variance, widest = mean + n * first, variance + n * second, max(widest, high - low)
    total = sum(n for _, n in parts)
    spread = math.sqrt(max(variance, 1e-300))
    guess = max(mean, 0.0) + spread * math.sqrt(2 * math.log(1 / delta))
    tilt = math.sqrt(2 * math.log(1 / delta)) / spread
    spacing = math.sqrt(PRECISION * guess / (total * (0.5 + tilt / 8)))
    spacing = max(min(spacing, 0.5 * min(deviations), guess / 50), widest * SMALLEST_SHARE)
    return _through_atoms(parts, spacing)


def _through_atoms(parts: Sequence[tuple[Pair, int]], spacing: float) -> float:
    """A little smaller, so that the two outermost atoms of the most frequent part that has any are both on its grid."""
    with_atoms = [(n, p) for p, n in parts if len({loss for loss, _ in p.atoms()}) > 1]
    if not with_atoms:
        return spacing
    _, pair = max(with_atoms, key=lambda part: part[0])
    losses = [loss for loss, _ in pair.atoms()]
    apart = max(losses) - min(losses)
    return apart / math.ceil(apart / spacing) if apart > spacing else spacing
