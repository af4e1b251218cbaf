"""Every mechanism that hubbub ships, with neighbouring inputs on which it should give away about what it claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hubbub.mechanisms import (
    AboveThreshold,
    DiscreteGaussian,
    Exponential,
    Gaussian,
    KeySelection,
    Laplace,
    Mechanism,
    NoisyMax,
    Quantile,
    RandomizedResponse,
    TopK,
    TruncatedLaplace,
)

PRICES = (0.5, 1, 3, 6)
DELTA = 1e-5


@dataclass(frozen=True)
class Cell:
    """A mechanism with an input and a neighbour of it, and the epsilon it was made for."""

    name: str
    price: float
    mechanism: Mechanism
    x: Any
    neighbour: Any
    sharp: bool
    """Whether the claim is attained on this pair, so that an audit should see nearly all of it."""
    effort: int = 1
    """How many times as many releases it takes to see that: a Gaussian of small mu hides longest."""


def cells() -> Iterator[Cell]:
    """All mechanisms at several prices."""
    for e in PRICES:
        yield Cell("Laplace, integer", e, Laplace(1, epsilon=e), 0, 1, sharp=True)
        yield Cell("Laplace, float", e, Laplace(1.0, epsilon=e), 0.0, 1.0, sharp=True)
        yield Cell("TruncatedLaplace", e, TruncatedLaplace(1, epsilon=e, delta=DELTA), 0, 1, sharp=True)
        hidden = 4 if e <= 1 else 1
        yield Cell("Gaussian, integer", e, Gaussian(1, epsilon=e, delta=DELTA), 0, 1, sharp=e >= 1, effort=hidden)
        yield Cell("Gaussian, float", e, Gaussian(1.0, epsilon=e, delta=DELTA), 0.0, 1.0, sharp=e >= 1, effort=hidden)
        yield Cell("DiscreteGaussian", e, DiscreteGaussian(1, epsilon=e, delta=DELTA), 0, 1, sharp=False)
        yield Cell("RandomizedResponse", e, RandomizedResponse(epsilon=e), 0, 1, sharp=True)
        yield Cell("RandomizedResponse, 5", e, RandomizedResponse(epsilon=e, categories=5), 0, 4, sharp=True)
        yield Cell("Exponential", e, Exponential(1, epsilon=e), [1, 0, 0, 0], [0, 1, 1, 1], sharp=False)
        yield Cell("NoisyMax", e, NoisyMax(1, epsilon=e), [1, 0, 0, 0], [0, 1, 1, 1], sharp=False)
        yield Cell("NoisyMax, Gumbel", e, NoisyMax(1, epsilon=e, noise="gumbel"), [1, 0, 0], [0, 1, 1], sharp=False)
        yield Cell("NoisyMax, Laplace", e, NoisyMax(1, epsilon=e, noise="laplace"), [1, 0, 0], [0, 1, 1], sharp=False)
        yield Cell("TopK", e, TopK(1, k=2, epsilon=e), [1, 1, 0, 0], [0, 0, 1, 1], sharp=False)
        yield Cell("AboveThreshold", e, AboveThreshold(1, threshold=1, epsilon=e), [0, 0, 1], [1, 1, 0], sharp=False)
        keys = KeySelection(epsilon=e, delta=DELTA, max_groups=1)
        many = keys.threshold
        yield Cell("KeySelection", e, keys, {"a": many, "b": 1}, {"a": many - 1, "b": 1}, sharp=False)
        keys = KeySelection(epsilon=e, delta=DELTA, max_groups=2, noise="gaussian")
        many = keys.threshold
        yield Cell("KeySelection, Gaussian", e, keys, {"a": many, "b": 1}, {"a": many - 1}, sharp=False)
        yield Cell("Quantile", e, Quantile(0.5, bounds=(0, 8), epsilon=e), [1, 1, 7, 7], [1, 7, 7], sharp=False)
