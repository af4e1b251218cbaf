"""Kinds of tests: what to do with a tester's scores, planned on some runs and counted on fresh ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hubbub.audit.bounds import (
    OUTWARD,
    Flags,
    at_least,
    at_most,
    epsilon_from_event,
    epsilon_from_guesses,
    mu_from_guesses,
)
from hubbub.audit.testers import Tester
from hubbub.privacy.pairs import Floats

CAUTION = 1e-4
"""How likely the estimates by which a test is chosen are too bold: small counts shall not win by luck."""
TRIES = 60
"""Thresholds tried, at geometrically rarer scores."""
RAREST = 4.0
"""Fewer scores than this in the planning runs make no event."""


@dataclass(frozen=True)
class Found:
    """What a test proved: a lower bound, by what, and its event's counts on the first input and on the other."""

    bound: float
    words: str
    counts: tuple[int, int, int, int]


class Refuting(ABC):
    """A kind of test. ``plan`` fixes its numbers before any run that ``count`` counts is drawn."""

    @abstractmethod
    def plan(self, scores: Floats, first: Flags, scale: float, failure: float) -> tuple[float, Refuting]:
        """The bound to be expected of ``scale`` times as many runs, by cautious estimates, and the test to get it.

        ``first`` says which scores came from the first input.
        """

    @abstractmethod
    def count(self, tester: Tester, outputs: Sequence[Any], first: Flags, failure: float) -> Found:
        """What fresh runs prove."""


@dataclass(frozen=True)
class Event(Refuting):
    """Scores on one side of a threshold: likelier on one input than on the other; for any delta."""

    delta: float
    threshold: float = math.inf
    high: bool = True

    def plan(self, scores: Floats, first: Flags, scale: float, failure: float) -> tuple[float, Event]:
        best = (-math.inf, math.inf, True)
        for t in thresholds(scores, _both_tails(len(scores))):
            for high in (True, False):
                hits, runs, other_hits, other_runs = replace(self, threshold=t, high=high)._counts(scores, first)
                more, other_more = int(runs * scale), int(other_runs * scale)
                likely = int(at_least(hits, runs, CAUTION) * more)
                other = math.ceil(at_most(other_hits, other_runs, CAUTION) * other_more)
                found = epsilon_from_event(likely, more, other, other_more, self.delta, failure)
                best = max(best, (found, t, high))
        return best[0], Event(self.delta, *best[1:])

    def count(self, tester: Tester, outputs: Sequence[Any], first: Flags, failure: float) -> Found:
        counts = self._counts(tester.scores(outputs), first)
        words = f"{tester.words} {'at least' if self.high else 'below'} {self.threshold:.4g}"
        return Found(max(0.0, epsilon_from_event(*counts, self.delta, failure)), words, counts)

    def _counts(self, scores: Floats, first: Flags) -> tuple[int, int, int, int]:
        event, own = (scores >= self.threshold, first) if self.high else (scores < self.threshold, ~first)
        return int((event & own).sum()), int(own.sum()), int((event & ~own).sum()), int((~own).sum())


@dataclass(frozen=True)
class Guessing(Refuting):
    """Guess the first input from ``high`` on, the other up to ``low``, nothing between; for delta 0."""

    low: float = -math.inf
    high: float = math.inf

    def plan(self, scores: Floats, first: Flags, scale: float, failure: float) -> tuple[float, Guessing]:
        best = (-math.inf, math.inf, math.inf)
        for t in thresholds(np.abs(scores), 1 - np.geomspace(1, RAREST / len(scores), TRIES)):
            if t <= 0:  # both would be guessed
                continue
            for low, high in ((-t, t), (-math.inf, t), (-t, math.inf)):
                correct, guesses = Guessing(low, high)._correct(scores, first)
                cautious = at_least(correct, guesses, CAUTION) if guesses else 0.0
                found = epsilon_from_guesses(int(cautious * guesses * scale), max(1, int(guesses * scale)), failure)
                best = max(best, (found, -low, high))
        return best[0], Guessing(-best[1], best[2])

    def count(self, tester: Tester, outputs: Sequence[Any], first: Flags, failure: float) -> Found:
        scores = tester.scores(outputs)
        correct, guesses = self._correct(scores, first)
        sides = [f"at least {self.high:.4g}"] * math.isfinite(self.high)
        sides += [f"at most {self.low:.4g}"] * math.isfinite(self.low)
        words = f"guessing from {tester.words} where it is {' or '.join(sides)} ({correct} of {guesses} right)"
        if not sides:
            words = "nothing that tells the inputs apart"
        return Found(
            max(0.0, epsilon_from_guesses(correct, guesses, failure)), words, _counts(scores >= self.high, first)
        )

    def _correct(self, scores: Floats, first: Flags) -> tuple[int, int]:
        above, below = scores >= self.high, scores <= self.low
        return int((above & first).sum() + (below & ~first).sum()), int((above | below).sum())


@dataclass(frozen=True)
class Deciding(Refuting):
    """Guess every output, the first input from a threshold on; for Gaussian claims, as a bound on mu."""

    threshold: float = 0.0

    def plan(self, scores: Floats, first: Flags, scale: float, failure: float) -> tuple[float, Deciding]:
        best = (0.0, 0.0)
        for t in [0.0, *thresholds(scores, np.linspace(0, 1, TRIES))]:
            cautious = at_least(int(((scores >= t) == first).sum()), len(scores), CAUTION)
            best = max(best, (cautious, t))
        more = int(len(scores) * scale)
        return mu_from_guesses(int(best[0] * more), more, failure), Deciding(best[1])

    def count(self, tester: Tester, outputs: Sequence[Any], first: Flags, failure: float) -> Found:
        guesses = tester.scores(outputs) >= self.threshold
        correct = int((guesses == first).sum())
        words = f"mu by {tester.words} at least {self.threshold:.4g} ({correct} of {len(first)} right)"
        return Found(max(0.0, mu_from_guesses(correct, len(first), failure)), words, _counts(guesses, first))


def thresholds(scores: Floats, levels: Floats) -> list[float]:
    """Where to try to part scores: just below their quantiles at these levels."""
    return [t - OUTWARD * (1 + abs(t)) for t in np.unique(np.quantile(scores, levels)).tolist()]


def _both_tails(runs: int) -> Floats:
    tail = np.geomspace(RAREST / runs, 0.5, TRIES)
    return np.concatenate([tail, 1 - tail])


def _counts(event: Flags, first: Flags) -> tuple[int, int, int, int]:
    return int((event & first).sum()), int(first.sum()), int((event & ~first).sum()), int((~first).sum())
