"""The public law of a plan's noise on evenly spread points: for intervals and forecasts. Nothing here is random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import Gaussian
from hubbub.queries.plan import Noisy

POINTS = 1021
"""How many values each noise takes in a simulation."""
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)


def spread(noisy: Sequence[Noisy]) -> list[NDArray[Any]]:
    """For each measure, noise like its own, in its units, of shape (parts, points).

    The points are multiples of square roots of primes modulo 1 (a Kronecker sequence), put through the inverse law.
    """
    found, place = [], 0
    steps = np.arange(1, POINTS + 1)
    for n in noisy:
        rows = []
        for _ in range(n.measure.parts):
            root = np.sqrt(PRIMES[place % len(PRIMES)]) * (1 + place // len(PRIMES))
            rows.append(_law(n, (steps * root) % 1.0))
            place += 1
        found.append(np.stack(rows))
    return found


def _law(noisy: Noisy, share: NDArray[Any]) -> NDArray[Any]:
    """The noise below which these shares of it lie."""
    if noisy.mechanism is None:
        return np.zeros(len(share))
    inside = np.clip(share, 1e-9, 1 - 1e-9)
    if isinstance(noisy.mechanism, Gaussian):
        from scipy.special import ndtri

        quantiles: NDArray[Any] = noisy.stddev * ndtri(inside)
        return quantiles
    tail = np.log(2 * np.minimum(inside, 1 - inside))
    signed: NDArray[Any] = np.where(inside < 0.5, tail, -tail)
    return signed * float(noisy.stddev / np.sqrt(2))
