"""What counts can prove: exact confidence bounds on probabilities, and on epsilon and mu from them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.privacy.pairs import Floats

Flags = NDArray[np.bool_]

OUTWARD = 1e-9
"""Relative margin by which computed bounds are moved to the safe side."""
CAUTION = 0.05
"""How likely the estimates by which an event is chosen are too bold."""


def at_least(hits: int, trials: int, failure: float) -> float:
    """Clopper-Pearson: a lower bound on the chance of a hit that is wrong with probability at most ``failure``."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, trials - hits + 1, failure)) * (1 - OUTWARD) if hits else 0.0


def at_most(hits: int, trials: int, failure: float) -> float:
    """Clopper-Pearson: an upper bound on the chance of a hit that is wrong with probability at most ``failure``."""
    from scipy.special import betainccinv

    if hits >= trials:
        return 1.0
    direct = float(betainccinv(hits + 1, trials - hits, failure)) * (1 + OUTWARD)
    return min(direct, 1 - at_least(trials - hits, trials, failure))


def epsilon_from_guesses(correct: int, guesses: int, failure: float) -> float:
    """The largest epsilon that so many correct guesses refute, at delta 0.

    Claim: for an epsilon-private release, the result exceeds epsilon with probability at most ``failure``.
    Proof: one of two neighbours is drawn by a fair coin, released, and guessed from what came out (or not guessed at
        all). Given the output, either neighbour has probability at most e**epsilon/(1 + e**epsilon), so the number of
        correct guesses is at most binomial with that chance (SNJ23, Theorem 2.1, with independent runs).
    Assumes: guesses were fixed as a function of the output before the counted outputs were drawn.
    """
    chance = at_least(correct, guesses, failure) if guesses else 0.0
    return max(0.0, math.log(chance) - math.log1p(-chance)) if 0 < chance < 1 else 0.0


def epsilon_from_event(
    hits: int, trials: int, other_hits: int, other_trials: int, delta: float, failure: float
) -> float:
    """The largest epsilon refuted by how often an event occurs on an input and on its neighbour.

    Claim: for an (epsilon, delta)-private release, the result exceeds epsilon with probability at most ``failure``.
    Proof: P(E) <= e**epsilon P'(E) + delta, with a lower bound on P(E) and an upper bound on P'(E), each wrong with
        probability failure / 2.
    Assumes: the event was fixed before the counted outputs were drawn.
    """
    low, high = at_least(hits, trials, failure / 2), at_most(other_hits, other_trials, failure / 2)
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def mu_from_guesses(correct: int, guesses: int, failure: float) -> float:
    """The largest mu that so many correct guesses refute, where every output is guessed.

    Claim: for a mu-Gaussian-private release, the result exceeds mu with probability at most ``failure``.
    Proof: with a fair coin between two neighbours no test is right more often than Phi(mu / 2) (DRS22, Definition 2.6
        at the point of equal errors).
    Assumes: guesses were fixed as a function of the output before the counted outputs were drawn.
    """
    from scipy.special import ndtri

    return max(0.0, 2 * float(ndtri(at_least(correct, guesses, failure))) * (1 - OUTWARD))


def best_guessing(scores: Floats, first: Flags, scale: float, failure: float) -> tuple[float, float, float]:
    """(epsilon, low, high): guess the first neighbour from ``high`` on, the other up to ``low``, to refute the most.

    ``first`` says which outputs came from the first neighbour. What is to be expected of ``scale`` times as many runs
    is judged by cautious estimates, so that small counts do not win by luck.
    """
    tries = np.unique(np.quantile(np.abs(scores), np.linspace(0, 0.999, 60))) * (1 - OUTWARD)
    best = (0.0, math.inf, -math.inf)
    for t in tries[tries > OUTWARD]:  # at 0 both would be guessed
        for low, high in ((-t, t), (-math.inf, t), (-t, math.inf)):
            above, below = scores >= high, scores <= low
            guesses, correct = int((above | below).sum()), int((above & first).sum() + (below & ~first).sum())
            cautious = at_least(correct, guesses, CAUTION) if guesses else 0.0
            found = epsilon_from_guesses(int(cautious * guesses * scale), max(1, int(guesses * scale)), failure)
            best = max(best, (found, -low, high))
    return best[0], -best[1], best[2]


def best_event(scores: Floats, first: Flags, delta: float, scale: float, failure: float) -> tuple[float, float, bool]:
    """(epsilon, threshold, side): the event "score at least / at most threshold" that should refute the most."""
    best = (0.0, math.inf, True)
    for t in np.unique(np.quantile(scores, np.linspace(0.001, 0.999, 120))):
        slack = OUTWARD * (1 + abs(float(t)))
        for side in (True, False):
            threshold = float(t) - slack if side else float(t) + slack
            event = scores >= threshold if side else scores <= threshold
            own, other = (first, ~first) if side else (~first, first)
            runs, other_runs = int(own.sum()), int(other.sum())
            low = at_least(int((event & own).sum()), runs, CAUTION)
            high = at_most(int((event & other).sum()), other_runs, CAUTION)
            more = int(runs * scale), int(other_runs * scale)
            found = epsilon_from_event(int(low * more[0]), more[0], math.ceil(high * more[1]), more[1], delta, failure)
            best = max(best, (found, threshold, side))
    return best
