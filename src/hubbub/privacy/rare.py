"""Compositions in which one rare step decides: a loss that hardly ever occurs, but then exceeds all others together.

No tilt suits such a law: its far tail is heavy up to the largest loss there is. So each step's losses are split at a
threshold, and the composition is taken by how many steps exceed it: none, one, two, ... Each case is composed by
itself, with the tilt that suits it and with rounding errors in proportion to its own small probability; what more
rare steps than considered could add is bounded by their probability.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from hubbub.privacy.grids import Steps, from_above, from_below
from hubbub.privacy.numerical import Law, Profile, compose, infinite, where_met
from hubbub.privacy.pairs import Floats, Pair
from hubbub.privacy.sketch import Sketch

THRESHOLD = 0.5
"""Of epsilon, the loss beyond which a step is rare."""
SHARE = 1e-8
"""Of delta, what cases left out may add up to."""
MOST_PARTS, MOST_RARE, MOST_CASES = 6, 8, 40
CELLS = 1500
"""Grid steps up to epsilon."""


class NotRare(Exception):
    """Too many steps exceed the threshold for this way of counting."""


@dataclass(frozen=True)
class Cases:
    """Bounds on delta(epsilon), the sum over cases of so many rare steps."""

    profiles: tuple[Profile, ...]
    rest: float
    upper: bool
    around: float

    def delta(self, epsilon: float) -> float:
        """The bound at one epsilon."""
        return min(1.0, math.fsum(p.delta(epsilon) for p in self.profiles) + self.rest)

    def epsilon(self, delta: float) -> float:
        """The epsilon at which the bound meets delta."""
        last = max(p.last for p in self.profiles)
        return where_met(self.delta, delta, (0.0, self.around, last), self.around / CELLS, self.upper)


def cases(parts: Sequence[tuple[Pair, int]], sketch: Sketch, epsilon: float, delta: float, upper: bool) -> Cases:
    """The composition near this epsilon and delta, by the number of steps whose loss exceeds half of epsilon.

    Claim: above, or below, the composed profile as ``upper`` says.
    Proof: the cases are disjoint and each one's contribution is bounded as in ``numerical``; with independent steps of
        rare chances r, more than J of them occur with probability at most (sum of r)**(J + 1) / (J + 1)!.
    Assumes: the pairs dominate (upper bound) or are attained by (lower bound) what ran.
    """
    if len(parts) > MOST_PARTS:
        raise NotRare
    spacing = epsilon / CELLS
    tail = max(delta * SHARE / sum(n for _, n in parts), 1e-300)
    grid = [(from_above if upper else from_below)(pair, spacing, tail) for pair, _ in parts]
    counts = [n for _, n in parts]
    split = [_split(steps, spacing, THRESHOLD * epsilon) for steps in grid]
    expected = sum(n * float(rare.chances.sum()) for (_, rare), n in zip(split, counts, strict=True))
    most = next((j for j in range(1, MOST_RARE) if _poisson_bound(expected, j + 1) <= SHARE * delta), None)
    if most is None or math.comb(len(parts) + most, most) > MOST_CASES:
        raise NotRare
    ways = [w for j in range(most + 1) for w in combinations_with_replacement(range(len(parts)), j)]
    profiles = []
    for way in ways:
        taken = Counter(way)
        if all(n >= taken[k] and len(split[k][1].points) for k, n in enumerate(counts) if taken[k]):
            tilt = _tilt(sketch, taken, THRESHOLD * epsilon, epsilon)
            profiles.append(Profile(_case(split, counts, taken, spacing, tilt, upper), epsilon))
    endless = infinite([(s.infinity, n) for s, n in zip(grid, counts, strict=True)])
    rest = endless + _poisson_bound(expected, most + 1) if upper else endless * (1 - 1e-9)
    return Cases(tuple(profiles), rest, upper, epsilon)


def _poisson_bound(expected: float, count: int) -> float:
    return expected**count / math.factorial(count) * (1 + 1e-9)


def _split(steps: Steps, spacing: float, threshold: float) -> tuple[Steps, Steps]:
    """The losses up to the threshold, and those beyond."""
    rare = steps.start + spacing * steps.points > threshold
    usual, beyond = (Steps(steps.start, steps.points[k], steps.chances[k], 0.0) for k in (~rare, rare))
    return usual, beyond


def _case(
    split: Sequence[tuple[Steps, Steps]],
    counts: Sequence[int],
    taken: Counter[int],
    spacing: float,
    tilt: float,
    upper: bool,
) -> Law:
    """The law of all losses together where so many steps of each part are rare."""
    laws, ways = [], 1
    for k, ((usual, rare), n) in enumerate(zip(split, counts, strict=True)):
        ways *= math.comb(n, taken[k])
        if n > taken[k]:
            laws.append((Law.of(usual, spacing, tilt, upper), n - taken[k]))
        if taken[k]:
            laws.append((Law.of(rare, spacing, tilt, upper), taken[k]))
    law = compose(laws)
    return replace(law, log_scale=law.log_scale + math.log(ways))


def _tilt(sketch: Sketch, taken: Counter[int], threshold: float, epsilon: float) -> float:
    """Where e**(K(t) - t epsilon) is least for the case: there rounding matters least."""
    tries = np.append(0.0, np.geomspace(0.01, 300, 16) / epsilon)
    ends = [*sketch.begins, len(sketch.losses)]

    def log_sum(k: int, rare: bool, t: float) -> float:
        losses, logs = sketch.losses[ends[k] : ends[k + 1]], sketch.log_p[ends[k] : ends[k + 1]]
        kept: Floats = (logs + t * losses)[(losses > threshold) == rare]
        return float(np.logaddexp.reduce(kept)) if len(kept) else 0.0

    def value(t: float) -> float:
        each: list[float] = [
            (n - taken[k]) * log_sum(k, False, t) + (taken[k] * log_sum(k, True, t) if taken[k] else 0.0)
            for k, n in enumerate(sketch.counts.tolist())
        ]
        return sum(each) - t * epsilon

    return float(min(tries, key=value))
