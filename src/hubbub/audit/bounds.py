"""What counts can prove: exact confidence bounds on probabilities, and on epsilon and mu from them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]

OUTWARD = 1e-9
"""Relative margin by which computed bounds are moved to the safe side."""


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
    """The largest epsilon that so many correct guesses refute, at delta 0; below 0 where they refute none.

    Claim: for an epsilon-private release, the result exceeds epsilon with probability at most ``failure``.
    Proof: one of two neighbours is drawn by a fair coin, released, and guessed from what came out (or not guessed at
        all). Given the output, either neighbour has probability at most e**epsilon/(1 + e**epsilon), so the number of
        correct guesses is at most binomial with that chance (SNJ23, Theorem 2.1, with independent runs).
    Assumes: guesses were fixed as a function of the output before the counted outputs were drawn.
    """
    chance = at_least(correct, guesses, failure) if guesses else 0.0
    return math.log(chance) - math.log1p(-chance) if 0 < chance < 1 else -math.inf


def epsilon_from_event(
    hits: int, trials: int, other_hits: int, other_trials: int, delta: float, failure: float
) -> float:
    """The largest epsilon refuted by how often an event occurs on an input and on its neighbour; below 0 if none is.

    Claim: for an (epsilon, delta)-private release, the result exceeds epsilon with probability at most ``failure``.
    Proof: P(E) <= e**epsilon P'(E) + delta, with a lower bound on P(E) and an upper bound on P'(E), each wrong with
        probability failure / 2.
    Assumes: the event was fixed before the counted outputs were drawn.
    """
    low, high = at_least(hits, trials, failure / 2), at_most(other_hits, other_trials, failure / 2)
    return math.log((low - delta) / high) if low > delta else -math.inf


def mu_from_guesses(correct: int, guesses: int, failure: float) -> float:
    """The largest mu that so many correct guesses refute, where every output is guessed; below 0 if none is.

    Claim: for a mu-Gaussian-private release, the result exceeds mu with probability at most ``failure``.
    Proof: with a fair coin between two neighbours no test is right more often than Phi(mu / 2) (DRS22, Definition 2.6
        at the point of equal errors).
    Assumes: guesses were fixed as a function of the output before the counted outputs were drawn.
    """
    from scipy.special import ndtri

    found = 2 * float(ndtri(at_least(correct, guesses, failure)))
    return found - OUTWARD * abs(found) if correct else -math.inf
