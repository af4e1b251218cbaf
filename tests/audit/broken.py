"""Mechanisms with one bug each, and the claim that the bug makes false: an audit that misses them is no audit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import hubbub as hb

NOISE = np.random.default_rng(20261116)
"""Broken mechanisms draw their noise as broken mechanisms do."""
GRID = 2.0**-12
"""Noise is rounded to this, so that each shows its own bug and not the bit pattern of floats as well."""


@dataclass(frozen=True)
class Broken:
    name: str
    release: Callable[[Any], Any]
    x: Any
    neighbour: Any
    claimed: float | hb.Loss
    delta: float = 0.0
    samples: int = 10_000


def on_grid(number: float) -> float:
    return round(number / GRID) * GRID


def laplace(scale: float) -> float:
    return on_grid(float(NOISE.laplace(0.0, scale)))


def gauss(stddev: float) -> float:
    return on_grid(float(NOISE.normal(0.0, stddev)))


def textbook(value: float, scale: float = 1.0) -> float:
    """Inversion on doubles: its finest digits show what was added to (Mironov 2012)."""
    u = NOISE.random() - 0.5
    return value - scale * math.copysign(1.0, u) * math.log1p(-2 * abs(u))


def data_dependent_grid(rows: list[float]) -> float:
    """Rounds to a grid as fine as the largest record: the grid itself tells."""
    step = 2.0 ** math.floor(math.log2(max(max(rows, default=1.0), 1e-3)))
    return round((min(sum(rows), 1.0) + laplace(1.0)) / step) * step


def above_threshold(
    answers: list[float], *, epsilon: float, threshold: float, variant: int, most: int = 1
) -> tuple[Any, ...]:
    """The wrong variants of the sparse vector technique that Lyu, Su and Li list (Algorithms 3 to 6), and a reuse."""
    scale = {3: 2 / epsilon, 4: 4 / epsilon, 5: 2 / epsilon, 6: 2 / epsilon, 7: 2 / epsilon}[variant]
    noisy = threshold + laplace(scale)
    said: list[Any] = []
    for answer in answers:
        if variant == 3:  # releases the noisy answer itself; we look at it through a coarse grid
            value = answer + laplace(2 * most / epsilon)
        elif variant == 4:  # noise for sensitivity 1 where 2 most is needed
            value = answer + laplace(1 / (4 * epsilon))
        elif variant == 5:  # no noise on the answers at all
            value = answer
        elif variant == 6:  # does not stop after the first above
            value = answer + laplace(2 / epsilon)
        else:  # one noise for all answers
            value = answer + noisy - threshold
        above = value >= noisy
        said.append(math.ceil(value / 1.5) if above and variant == 3 else bool(above))
        if above and variant not in (5, 6):
            break
    return tuple(said)


def responded(bit: int, gamma: float) -> int:
    """Randomised response with bias gamma: truth with probability 1/2 + gamma."""
    return bit if NOISE.random() < 0.5 + gamma else 1 - bit


def grouped(people: list[int]) -> int:
    """Something is told with probability 0.01 (2**k - 1) for k people: one is (ln 2, 0.01), four are not 0.04."""
    return int(NOISE.random() < 0.01 * (2 ** sum(people) - 1))


def chosen(scores: list[float]) -> int:
    sums = np.cumsum(np.exp(scores))
    return int(np.searchsorted(sums, NOISE.random() * sums[-1]))


def redrawn(value: int) -> int:
    """Integer noise drawn again until the answer is a count: how often that happens depends on the count."""
    while (noisy := value + int(NOISE.geometric(1 - 1 / math.e) - NOISE.geometric(1 - 1 / math.e))) < 0:
        pass
    return noisy


def broken() -> list[Broken]:
    """All of them, with an input and a neighbour that show the bug."""
    zeros, ones = [0.0] * 6, [1.0] * 6
    classical = math.sqrt(2 * math.log(1.25 / 0.3)) / 10
    reused = {"noise": 0.0}

    def twice(value: float) -> tuple[float, float]:
        reused["noise"] = laplace(1.0)
        return value + reused["noise"], 2 * value + reused["noise"]

    return [
        Broken("textbook float Laplace", textbook, 0.0, 1.0, 1.0),
        Broken("textbook float Laplace, small scale", lambda v: textbook(v, 0.01), 0.0, 0.01, 1.0),
        Broken("half the noise", lambda v: v + laplace(0.5), 0.0, 1.0, 1.0),
        Broken("a quarter less noise", hb.Laplace(1.0, scale=0.75), 0.0, 1.0, 1.0, samples=40_000),
        Broken("scale rounded down", hb.Laplace(3, scale=2), 0, 3, 3 / 2.9),
        Broken("sensitivity 1 where it is 2", lambda rows: sum(rows) + laplace(1.0), [0, 2], [0, 0], 1.0),
        Broken(
            "sensitivity of a histogram under replace",
            lambda r: tuple(int(r == k) + laplace(1.0) for k in range(2)),
            0,
            1,
            1.0,
        ),
        Broken("no noise on an empty table", lambda rows: len(rows) + laplace(1.0) if rows else 0.0, [], [1], 1.0),
        Broken("integer noise cut off without delta", lambda v: v + max(-3, min(3, round(laplace(1.0)))), 0, 1, 1.0),
        Broken("clamped by redrawing", redrawn, 0, 1, 1.0, samples=50_000),
        Broken(
            "wrong sparse vector: answers released",
            lambda a: above_threshold(a, epsilon=3.0, threshold=0.5, variant=3),
            [0.0] * 6 + [1.0],
            [1.0] * 6 + [0.0],
            3.0,
            samples=50_000,
        ),
        Broken(
            "wrong sparse vector: too little noise",
            lambda a: above_threshold(a, epsilon=1.0, threshold=0.5, variant=4),
            [0.0, 1.0],
            [1.0, 0.0],
            1.0,
        ),
        Broken(
            "wrong sparse vector: no answer noise",
            lambda a: above_threshold(a, epsilon=1.0, threshold=0.0, variant=5),
            [0.0, 1.0],
            [1.0, 0.0],
            1.0,
        ),
        Broken(
            "wrong sparse vector: never stops",
            lambda a: above_threshold(a, epsilon=1.0, threshold=0.5, variant=6),
            [0.0, 1.0] * 8,
            [1.0, 0.0] * 8,
            1.0,
        ),
        Broken(
            "wrong sparse vector: one noise for all",
            lambda a: above_threshold(a, epsilon=1.0, threshold=0.5, variant=7),
            zeros,
            ones,
            1.0,
        ),
        Broken("reused noise", twice, 0.0, 1.0, 3.0),
        Broken("data-dependent grid", data_dependent_grid, [0.001], [1.0], 1.0),
        Broken("nan passes through", lambda v: v + laplace(1.0), 0.0, math.nan, 1.0),
        Broken("infinity passes through", lambda v: v + laplace(1.0), 0.0, math.inf, 1.0),
        Broken("4 gamma for randomised response", lambda b: responded(b, 0.4), 0, 1, 4 * 0.4),
        Broken("k delta for groups", grouped, [1] * 4, [0] * 4, hb.ApproxDP(4 * math.log(2), 0.04), 0.04),
        Broken(
            "classical Gaussian beyond epsilon 1",
            lambda v: v + gauss(classical),
            0.0,
            1.0,
            hb.Gaussian(1.0, epsilon=10, delta=0.3).loss,
            0.3,
        ),
        Broken("Gaussian with sigma/2", lambda v: v + gauss(0.5), 0.0, 1.0, hb.GaussianDP(1.0), 1e-5),
        Broken(
            "noisy max with all its values",
            lambda v: tuple(n + laplace(1.0) for n in v),
            [0.0] * 4,
            [1.0] * 4,
            1.0,
        ),
        Broken(
            "exponential mechanism without the factor 2",
            chosen,
            [1.0] + [0.0] * 5,
            [0.0] + [1.0] * 5,
            1.0,
            samples=20_000,
        ),
        Broken(
            "keys of one person shown",
            lambda rows: {k: rows.count(k) + laplace(1.0) for k in set(rows)},
            ["a", "a"],
            ["a", "a", "b"],
            1.0,
        ),
        Broken("type depends on the value", lambda v: int(v) if v == 0 else v + laplace(1.0), 0.0, 1.0, 1.0),
    ]
