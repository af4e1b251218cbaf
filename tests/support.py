"""Sources of bits for tests, and the one statistical test they share."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
from scipy.stats import chi2

DRAWS = int(os.environ.get("HUBBUB_TEST_DRAWS", 10**6))
"""Draws per statistical test: a million in the normal run, ten million in make test-long."""
FALSE_ALARM = 1e-9
"""The probability that one statistical test fails although the code is right."""


class SeededBits:
    """Repeatable words: statistical tests in CI either always pass or always fail. Not for protecting anybody."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.Philox(seed))
        self._pool: list[int] = []

    def words(self, count: int) -> np.ndarray:
        return self._generator.integers(0, 2**64, count, np.uint64)

    def word(self) -> int:
        if not self._pool:
            self._pool = self.words(4096).tolist()
        return self._pool.pop()


class ScriptedBits:
    """Plays back given words, then repeatable ones; counts how many were read."""

    def __init__(self, words: Iterable[int], seed: int = 0) -> None:
        self._script = list(words)
        self._rest = SeededBits(seed)
        self.read = 0

    def word(self) -> int:
        self.read += 1
        return self._script.pop(0) if self._script else self._rest.word()

    def words(self, count: int) -> np.ndarray:
        return np.array([self.word() for _ in range(count)], np.uint64)


def fit_p_value(samples: np.ndarray, support: np.ndarray, probabilities: np.ndarray) -> float:
    """The chi-square p-value of integer samples against a law; small cells are merged, tails included.

    Mass the support leaves out is one more cell, so samples outside the support count against the law.
    """
    order = np.argsort(support)
    support, probabilities = support[order], probabilities[order]
    position = np.searchsorted(support, samples)
    inside = (position < len(support)) & (support[np.minimum(position, len(support) - 1)] == samples)
    observed = np.bincount(position[inside], minlength=len(support)).astype(float)
    expected = probabilities * len(samples)
    observed = np.append(observed, np.count_nonzero(~inside))
    expected = np.append(expected, max(0.0, 1 - probabilities.sum()) * len(samples))
    # merge neighbouring cells, in order, until each expects enough
    enough = max(25.0, expected.sum() / 400)  # few hundred cells keep the power to see a scale that is off
    groups = np.minimum(np.floor(np.cumsum(expected) / enough), np.floor(expected.sum() / enough) - 1)
    _, groups = np.unique(groups, return_inverse=True)
    observed, expected = np.bincount(groups, observed), np.bincount(groups, expected)
    if np.any((expected == 0) & (observed > 0)):
        return 0.0  # something impossible happened
    observed, expected = observed[expected > 0], expected[expected > 0]
    if len(expected) == 1:
        return 1.0
    statistic = np.sum((observed - expected) ** 2 / expected)
    return float(chi2.sf(statistic, len(expected) - 1))


def assert_fits(samples: np.ndarray, support: np.ndarray, probabilities: np.ndarray) -> None:
    assert fit_p_value(np.asarray(samples), np.asarray(support), np.asarray(probabilities)) > FALSE_ALARM
