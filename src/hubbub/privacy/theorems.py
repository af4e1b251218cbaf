"""Theorems by name, each a small function: for teaching, and to compare with what the accountant computes.

Where the source notes state a theorem wrongly, the corrected form is here and the docstring says what was wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from hubbub.errors import ParameterError
from hubbub.numeric.rational import Number, count, fraction_between, positive
from hubbub.privacy.loss import check_delta, check_epsilon
from hubbub.privacy.pairs import mixed


def basic_composition(parts: Iterable[tuple[Number, Number]]) -> tuple[float, float]:
    """(sum of epsilons, sum of deltas): what adaptively chosen (epsilon, delta)-private releases cost together (C1).

    >>> basic_composition([(0.1, 0)] * 10)
    (1.0, 0.0)
    """
    pairs = [(check_epsilon(e), check_delta(d)) for e, d in parts]
    return float(sum(e for e, _ in pairs)), float(sum(d for _, d in pairs))


def advanced_composition(epsilon: Number, delta: Number, times: int, slack: Number) -> tuple[float, float]:
    """epsilon sqrt(2 k ln(1/slack)) + k epsilon (e**epsilon - 1)/(e**epsilon + 1), for k releases of epsilon (C2).

    At delta k delta + slack (DRV10, with the sharper drift of DR16).

    >>> round(advanced_composition(0.1, 0, 100, 1e-6)[0], 3)
    5.756
    """
    e, d, k = float(positive("epsilon", epsilon)), float(check_delta(delta)), count("times", times)
    room = float(fraction_between("slack", slack, 0, 1))
    return e * math.sqrt(-2 * k * math.log(room)) + k * e * math.tanh(e / 2), min(1.0, k * d + room)


def optimal_composition(epsilon: Number, times: int, delta: Number) -> float:
    """The least epsilon at delta of ``times`` epsilon-private releases in the worst case (KOV15, Theorem 3.3).

    >>> round(optimal_composition(0.1, 100, 1e-6), 4)
    4.7746
    """
    e, k, room = float(positive("epsilon", epsilon)), count("times", times), float(check_delta(delta))
    logs = [
        math.lgamma(k + 1) - math.lgamma(j + 1) - math.lgamma(k - j + 1) - j * e - k * math.log1p(math.exp(-e))
        for j in range(k + 1)
    ]  # ln P(exactly j of the k answers are flipped); the loss is then (k - 2 j) epsilon

    def delta_at(target: float) -> float:
        total = 0.0
        for j, log in enumerate(logs):
            loss = (k - 2 * j) * e
            if loss > target:
                total += math.exp(log) * -math.expm1(target - loss)
        return total

    low, high = 0.0, k * e
    if delta_at(low) <= room:
        return 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > room else (low, middle)
    return high


def group_privacy(epsilon: Number, delta: Number, size: int) -> tuple[float, float]:
    """(k epsilon, delta (e**(k epsilon) - 1)/(e**epsilon - 1)) for k people at once (C5).

    The notes have k delta, which is false: see the test that violates it.

    >>> group_privacy(1, 0, 3)
    (3.0, 0.0)
    """
    e, d, k = float(check_epsilon(epsilon)), float(check_delta(delta)), count("size", size)
    growth = math.expm1(k * e) / math.expm1(e) if e else float(k)
    return k * e, min(1.0, d * growth)


def subsampling(epsilon: Number, delta: Number, rate: Number) -> tuple[float, float]:
    """(ln(1 + q (e**epsilon - 1)), q delta) for a secret sample in which a record takes part with probability q (C6).

    Without replacement under replace-one, or Poisson under add-remove.

    >>> round(subsampling(1, 1e-6, 0.01)[0], 5)
    0.01704
    """
    e, d = float(check_epsilon(epsilon)), float(check_delta(delta))
    q = float(fraction_between("rate", rate, 0, 1))
    return mixed(e, q), q * d


def renyi_to_approximate(order: Number, divergence: Number, delta: Number) -> float:
    """divergence + ln(1/delta)/(order - 1): the notes' simple conversion, looser than ``loss.epsilon`` (C3)."""
    a = float(positive("order", order))
    if a <= 1:
        raise ParameterError("order", order, "must be > 1")
    return float(check_epsilon(divergence)) - math.log(float(fraction_between("delta", delta, 0, 1))) / (a - 1)


def pure_to_renyi(epsilon: Number, order: Number) -> float:
    """order epsilon**2 / 2, at most epsilon, bounds the Renyi divergence of an epsilon-private release (C3).

    The notes' 2 order epsilon**2 is valid but four times too large (BS16, Proposition 3.3).
    """
    e, a = float(positive("epsilon", epsilon)), float(positive("order", order))
    return min(e, a * e * e / 2)


def total_variation_bound(epsilon: Number) -> float:
    """tanh(epsilon/2): the largest total variation between neighbours under pure privacy (D4).

    The notes' 1 - e**-epsilon is valid but larger; randomised response attains this one.
    """
    return math.tanh(float(check_epsilon(epsilon)) / 2)


def posterior_bound(epsilon: Number, prior: Number) -> float:
    """The most that belief in one of two neighbouring worlds can become, from a prior belief (D5).

    >>> round(posterior_bound(math.log(3), 0.5), 12)
    0.75
    """
    e, p = float(check_epsilon(epsilon)), float(fraction_between("prior", prior, 0, 1))
    return p / (p + (1 - p) * math.exp(-e))


def belief_shift_bound(epsilon: Number, values_under_add_remove: bool = False) -> float:
    """tanh(epsilon/4): the largest total variation between prior and posterior belief (D5).

    For a prior over presence under add-remove, or over values under replace. A prior over values under add-remove
    takes two steps: tanh(epsilon/2). (The notes' way through e**(2 epsilon) <= 1 + 2 epsilon is false.)
    """
    steps = 2 if values_under_add_remove else 1
    return math.tanh(steps * float(check_epsilon(epsilon)) / 4)


def private_from_beliefs(shift: Number, every_prior: bool = False) -> float:
    """The epsilon implied if beliefs never shift by more than ``shift`` in total variation (D11).

    From the uniform prior on two neighbours alone: ln((1 + 2 shift)/(1 - 2 shift)); if for every prior: 4
    artanh(shift). The notes' constant is false.
    """
    if every_prior:
        return 4 * math.atanh(float(fraction_between("shift", shift, 0, 1)))
    eta = float(fraction_between("shift", shift, 0, 1))
    if eta >= 0.5:
        return math.inf
    return math.log((1 + 2 * eta) / (1 - 2 * eta))


def simulation_from_private(epsilon: Number) -> float:
    """An epsilon-private mechanism is epsilon-simulatable: leave the person out, and simulate (D8)."""
    return float(check_epsilon(epsilon))


def private_from_simulation(epsilon: Number) -> float:
    """epsilon-simulatable implies 2 epsilon-private under replace-one: both neighbours are near one simulator (D8)."""
    return 2 * float(check_epsilon(epsilon))
