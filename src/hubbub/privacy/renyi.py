"""Renyi divergence: conversions, and closed forms for the pairs that have them. Orders are above 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from hubbub.errors import ParameterError
from hubbub.numeric.rational import Number, rational
from hubbub.privacy.pairs import GaussianPair, PoissonPair
from hubbub.privacy.transforms import TooCostly, transform_of

ORDERS = tuple(np.unique(np.concatenate((1 + np.geomspace(0.01, 1, 25), np.geomspace(2, 2000, 120)))).tolist())
"""Orders tried when a Renyi price is converted: any of them gives a valid bound."""
SECTIONS, GOLDEN = 16, (math.sqrt(5) - 1) / 2
"""How often the orders around the best are divided, and how."""

CANCELLATION = 2.0**-48
"""What logarithms of sums of terms of this size may lose, generously."""


def check_order(order: Number) -> float:
    """The order as a float, refused unless it is above 1."""
    if rational("order", order) <= 1 or float(order) <= 1:
        raise ParameterError("order", order, "must be > 1")
    return float(order)


def epsilon_at(order: float, divergence: float, delta: float) -> float:
    """The epsilon that a Renyi divergence at one order gives at delta.

    Claim: (epsilon, delta)-DP with epsilon = divergence + ln(1 - 1/order) - ln(delta order)/(order - 1).
    Proof: CKS20, Proposition 12.
    Assumes: the divergence bounds both directions at that order.
    """
    spent = divergence + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    return spent + abs(divergence) * 2.0**-50  # what the sum may have lost


def log_delta_at(order: float, divergence: float, epsilon: float) -> float:
    """The same conversion solved for delta, as a logarithm."""
    lost = (abs(divergence) + epsilon) * 2.0**-50
    return (order - 1) * (divergence + lost + math.log1p(-1 / order) - epsilon) - math.log(order)


def best_epsilon(divergence: Callable[[float], float], delta: float) -> float:
    """The least epsilon over the orders tried."""
    return max(0.0, _least(lambda a: epsilon_at(a, divergence(a), delta)))


def best_delta(divergence: Callable[[float], float], epsilon: float) -> float:
    """The least delta over the orders tried."""
    return math.exp(min(0.0, _least(lambda a: log_delta_at(a, divergence(a), epsilon))))


def _least(bound: Callable[[float], float]) -> float:
    """The least bound over all orders, then between the neighbours of the best by golden sections."""
    found = [bound(a) for a in ORDERS]
    k = min(range(len(ORDERS)), key=found.__getitem__)
    low, high = (math.log(ORDERS[min(max(j, 0), len(ORDERS) - 1)] - 1) for j in (k - 1, k + 1))
    best = found[k]
    for _ in range(SECTIONS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right = bound(1 + math.exp(left)), bound(1 + math.exp(right))
        low, high = (low, right) if at_left < at_right else (left, high)
        best = min(best, at_left, at_right)
    return best


def of_randomised_response(order: float, epsilon: float) -> float:
    """The largest divergence of any epsilon-private mechanism: that of randomised response.

    Below order * epsilon**2 / 2 (BS16, Proposition 3.3), which is what the notes' 2 order epsilon**2 should say.
    """
    plain = min(epsilon, order * epsilon * epsilon / 2)
    if order * epsilon < 1e-3:  # within a thousandth of the truth, and free of cancellation
        return plain
    # ln[(e**(a eps) + e**((1-a) eps)) / (1 + e**eps)] / (a - 1), scaled so that nothing overflows
    log = order * epsilon + math.log1p(math.exp((1 - 2 * order) * epsilon)) - epsilon - math.log1p(math.exp(-epsilon))
    return min(plain, (log + CANCELLATION * (1 + order * epsilon)) / (order - 1))


def of_categories(order: float, epsilon: float, categories: int) -> float:
    """Randomised response over several categories, from the moments of its losses epsilon, 0 and -epsilon."""
    rise = (order - 1) * epsilon
    others = math.exp(-epsilon)
    keep = 1 / (1 + (categories - 1) * others)
    if rise > 30:
        rest = math.exp(-rise) * ((categories - 2) + math.exp(-rise)) * others
        log = rise + math.log(keep) + math.log1p(rest) + CANCELLATION * (1 + rise)
    else:
        up, down = keep * math.expm1(rise), keep * others * math.expm1(-rise)
        log = math.log1p(up + down + CANCELLATION * (up - down))
    return min(of_randomised_response(order, epsilon), log / (order - 1))


def of_bounded_range(order: float, epsilon: float) -> float:
    """The largest divergence of any law whose losses lie within a range of length epsilon.

    By convexity in e**-loss it has two losses, t and t - epsilon, with E[e**((a - 1) loss)] equal to
    (u**(a - 1) (1 - e**(-a eps)) - u**a (e**-eps - e**(-a eps))) / (1 - e**-eps), u = e**t. That is largest at
    u = (1 - 1/a) (e**(a eps) - 1)/(e**((a - 1) eps) - 1). Never above a eps**2/8: under Q, the logarithm of the
    loss's moments vanishes at 0 and 1, and bends by at most a variance within the range, eps**2/4.
    """
    whole, part = -math.expm1(-order * epsilon), -math.expm1(-(order - 1) * epsilon)
    best = math.log1p(-1 / order) + epsilon + math.log(whole / part)
    rest = math.log(whole / -math.expm1(-epsilon)) - math.log(order)
    lost = CANCELLATION * (2 + epsilon + math.log(order)) * (1 + 1 / (order - 1))
    return min(epsilon, epsilon * epsilon * order / 8, best + rest / (order - 1) + lost)


def of_laplace(order: float, shift: float) -> float:
    """M17, Proposition 6: two Laplace laws ``shift`` scales apart."""
    first = math.log(order / (2 * order - 1)) + shift * (order - 1)
    second = math.log((order - 1) / (2 * order - 1)) - shift * order
    log = float(np.logaddexp(first, second)) + CANCELLATION * (1 + order * shift)
    return min(of_randomised_response(order, shift), log / (order - 1))


def of_poisson_gaussian(order: float, noise_multiplier: float, rate: float) -> float:
    """A Gaussian on a Poisson sample, add-remove.

    At whole orders, MTZ19, Theorem 5 and Section 3.3: ln sum_k C(a, k) (1 - q)**(a - k) q**k e**(k (k - 1) / (2 s**2))
    / (a - 1). Between them the same integral, with its error, or where that is too costly a chord of the convex
    (a - 1) D_a.
    """
    low, high = math.floor(order), math.ceil(order)
    if high > 4096:
        return order / (2 * noise_multiplier**2)
    if low == high:
        return _whole_order(low, noise_multiplier, rate) / (low - 1)
    ends = [0.0 if a < 2 else _whole_order(a, noise_multiplier, rate) for a in (low, high)]
    chord = (high - order) * ends[0] + (order - low) * ends[1]
    with suppress(TooCostly):
        pair = PoissonPair(GaussianPair(1 / noise_multiplier), rate)
        chord = min(chord, max(0.0, transform_of(pair).log_moment(order - 1)))
    return chord / (order - 1)


def _whole_order(order: int, noise_multiplier: float, rate: float) -> float:
    """(order - 1) times the divergence."""
    whole = order * (order - 1) / (2 * noise_multiplier**2)
    if rate == 1:
        return whole
    from scipy.special import gammaln

    k = np.arange(order + 1)
    logs = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    logs = logs + (order - k) * math.log1p(-rate) + k * math.log(rate) + k * (k - 1) / (2 * noise_multiplier**2)
    mixed = float(np.logaddexp.reduce(logs)) + CANCELLATION * order * (1 + math.log(order) + abs(math.log(rate)))
    return min(whole, mixed) if mixed >= 0 else whole  # a mixture tells no more than the whole; also on any doubt
