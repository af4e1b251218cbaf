"""True prices by other means than hubbub's: closed forms in high precision, and ``by_inversion``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath
import numpy as np
from privacy.inversion import Truth, by_inversion, root
from privacy.transforms import Floats, Gaussian, Laplace, Pair, Parts, Response, Sampled, Unresolved, WithoutReplacement

DIGITS = 40

__all__ = [
    "Gaussian",
    "Laplace",
    "Pair",
    "Parts",
    "Response",
    "Sampled",
    "Truth",
    "Unresolved",
    "WithoutReplacement",
    "by_inversion",
]


def _where_it_falls(profile: Callable[[mpmath.mpf], mpmath.mpf], delta: float) -> Truth:
    """The epsilon >= 0 at which a falling profile meets delta."""
    with mpmath.workdps(DIGITS):
        goal = mpmath.mpf(delta)
        low, high = mpmath.mpf(0), mpmath.mpf(1)
        if profile(low) <= goal:
            return Truth(0.0)
        while profile(high) > goal:
            low, high = high, 2 * high
        while low == 0 and high > mpmath.mpf(10) ** -30 and profile(high / 16) <= goal:
            high /= 16
        while high - low > high * mpmath.mpf(10) ** -16:
            middle = (low + high) / 2
            low, high = (middle, high) if profile(middle) > goal else (low, middle)
        return Truth(float(high), 0.0)


def by_one_step(pair: Sampled, delta: float) -> Truth:
    """One sampled Gaussian step of one person: the likelihood-ratio test's threshold is a formula."""
    assert pair.people == 1
    return _where_it_falls(lambda e: one_step_profile(pair, e), delta)


def one_step_profile(pair: Sampled, epsilon: mpmath.mpf) -> mpmath.mpf:
    """delta(epsilon) of one step, the larger of both directions."""
    with mpmath.workdps(DIGITS):
        s, q, grown = mpmath.mpf(pair.sigma), mpmath.mpf(pair.rate), mpmath.exp(epsilon)
        if pair.replace:
            c, lack = q * mpmath.exp(-1 / (2 * s * s)), (1 - q) * (grown - 1)
            x = s * s * mpmath.log((lack + mpmath.sqrt(lack**2 + 4 * c * c * grown)) / (2 * c))
            away = -(1 - q) * (grown - 1) * mpmath.ncdf(-x / s)
            return away + q * (mpmath.ncdf((1 - x) / s) - grown * mpmath.ncdf((-1 - x) / s))
        best = mpmath.mpf(0)
        for e, sign in ((grown, 1), (1 / grown, -1)):
            if e > 1 - q:
                x = s * s * mpmath.log((e - 1 + q) / q) + mpmath.mpf(1) / 2
                if sign > 0:
                    found = q * mpmath.ncdf((1 - x) / s) - (e - 1 + q) * mpmath.ncdf(-x / s)
                else:  # Q(x < x*) - grown P(x < x*)
                    found = (1 - grown * (1 - q)) * mpmath.ncdf(x / s) - grown * q * mpmath.ncdf((x - 1) / s)
                best = max(best, found)
        return best


def by_gaussian(mu_squared: mpmath.mpf, delta: float) -> Truth:
    """Gaussians compose to one Gaussian, their mu adding up in squares."""

    def profile(e: mpmath.mpf) -> mpmath.mpf:
        return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)

    with mpmath.workdps(DIGITS):
        mu = mpmath.sqrt(mu_squared)
        return _where_it_falls(profile, delta)


def by_laplace(shift: float, times: int, delta: float) -> Truth:
    """Few Laplace steps: M(s)**times is a sum of e**(s c)/(s + 1/2)**m, each inverted by its residues."""
    with mpmath.workdps(DIGITS + 2 * times):
        a = mpmath.mpf(shift)
        half = mpmath.mpf(1) / 2
        terms: dict[tuple[int, int], mpmath.mpf] = {(0, 0): mpmath.mpf(1)}
        fall = mpmath.exp(-a)
        for _ in range(times):
            grown: dict[tuple[int, int], mpmath.mpf] = {}
            for (c, m), value in terms.items():
                for key, factor in (
                    ((c + 1, m), half),
                    ((c - 1, m), half * fall),
                    ((c + 1, m + 1), half / 2),
                    ((c - 1, m + 1), -half / 2 * fall),
                ):
                    grown[key] = grown.get(key, mpmath.mpf(0)) + value * factor
            terms = grown

        def profile(epsilon: mpmath.mpf) -> mpmath.mpf:
            total = mpmath.mpf(0)
            for (c, m), value in terms.items():
                d = c * a - epsilon
                if d > 0:
                    middle = mpmath.fsum(
                        4**k * d ** (m - 1 - 2 * k) / mpmath.factorial(m - 1 - 2 * k) for k in range((m + 1) // 2)
                    )
                    total += value * (2**m - (-2) ** m * mpmath.exp(-d) - 4 * mpmath.exp(-d / 2) * middle)
            return total

        return _where_it_falls(profile, delta)


def by_atoms(losses: Floats, logs: Floats, delta: float) -> Truth:
    """Finitely many losses with P's log-chances: between two losses e**epsilon = (P's tail - delta) / Q's tail."""
    order = np.argsort(-losses, kind="stable")
    losses, logs = losses[order], logs[order]
    tail_p, tail_q = np.logaddexp.accumulate(logs), np.logaddexp.accumulate(logs - losses)
    profile = np.exp(tail_p[:-1]) - np.exp(np.minimum(tail_q[:-1] + losses[1:], 700.0))  # delta at each next loss
    k = int(np.argmax(profile > delta)) if np.any(profile > delta) else len(losses) - 1
    gap = math.exp(tail_p[k]) - delta
    if gap <= 0:
        return Truth(0.0)
    return Truth(max(0.0, math.log(gap) - float(tail_q[k])), 1e-13 * math.exp(tail_p[k]) / gap)


def binomial_atoms(pair: Response, times: int, forward: bool = True) -> tuple[Floats, Floats]:
    """Losses and log-chances of repeated (sampled) randomised response, within what can matter."""
    with mpmath.workdps(DIGITS):
        (up, p), (down, _) = pair.atoms(forward)
        deviation = math.sqrt(times * p * (1 - p))
        low, high = (round(times * p + side * (14 * deviation + 120)) for side in (-1, 1))
        low, high = max(low, 0), min(high, times)
        chance = mpmath.mpf(p)
        logs = [
            mpmath.log(mpmath.binomial(times, low)) + low * mpmath.log(chance) + (times - low) * mpmath.log(1 - chance)
        ]
        odds = float(mpmath.log(chance / (1 - chance)))
    j = np.arange(low, high)
    growth = np.concatenate(([float(logs[0])], np.log((times - j) / (j + 1)) + odds))
    counts = np.arange(low, high + 1)
    return counts * up + (times - counts) * down, np.cumsum(growth)


def by_responses(parts: Sequence[tuple[Response, int]], delta: float, failure: float = 0.0) -> Truth:
    """Repeated randomised responses of one or two kinds, each after failing altogether with chance ``failure``."""
    kept = sum(n for _, n in parts) * math.log1p(-failure)
    left = (delta + math.expm1(kept)) / math.exp(kept)
    if left <= 0:
        return Truth(math.inf)
    answers = []
    for forward in (True, False):
        losses, logs = np.zeros(1), np.zeros(1)
        for pair, n in parts:
            more, chances = binomial_atoms(pair, n, forward)
            losses, logs = np.add.outer(losses, more).ravel(), np.add.outer(logs, chances).ravel()
        answers.append(by_atoms(losses, logs, left))
    return max(answers, key=lambda truth: truth.epsilon)


def by_enumeration(p: Sequence[Fraction], q: Sequence[Fraction], times: int, delta: float) -> Truth:
    """Any finite mechanism repeated: all multisets of outcomes, exactly."""
    terms = {(): (Fraction(1), Fraction(1))}
    for _ in range(times):
        grown: dict[tuple[int, ...], tuple[Fraction, Fraction]] = {}
        for key, (a, b) in terms.items():
            for k in range(len(p)):
                new = tuple(sorted((*key, k)))
                old = grown.get(new, (Fraction(0), Fraction(0)))
                grown[new] = (old[0] + a * p[k], old[1] + b * q[k])
        terms = grown
    with mpmath.workdps(DIGITS):
        laws = [tuple(mpmath.mpf(v.numerator) / v.denominator for v in law) for law in terms.values()]
        return _where_it_falls(
            lambda e: max(
                mpmath.fsum(max(mpmath.mpf(0), a - mpmath.exp(e) * b) for a, b in laws),
                mpmath.fsum(max(mpmath.mpf(0), b - mpmath.exp(e) * a) for a, b in laws),
            ),
            delta,
        )


def by_quadrature(pair: Sampled, delta: float) -> Truth:
    """Two sampled Gaussian steps: the profile of one, averaged over the loss of the other."""
    return max((_two_steps(pair, forward, delta) for forward in (True, False)), key=lambda truth: truth.epsilon)


def _two_steps(pair: Sampled, forward: bool, delta: float) -> Truth:
    from scipy.special import ndtr

    s, q = pair.sigma, pair.rate
    step = min(s / 16, s * s / 8) / 64  # smooth, but not analytic where the other step's losses end
    x = np.arange(-14 * s, 1 + 14 * s, step)
    density, losses = (v.real for v in pair.parts(x.astype(complex)))
    weights = np.exp(density + (losses if forward else 0)) * step

    def later(e: Floats) -> Floats:
        """The other step's profile, at any epsilon."""
        grown = np.exp(e if forward else -e)
        with np.errstate(divide="ignore", invalid="ignore"):
            at = s * s * np.log((grown - 1 + q) / q) + 0.5
        at = np.where(grown > 1 - q, at, -np.inf)
        if forward:
            return np.asarray(q * ndtr((1 - at) / s) - (grown - 1 + q) * ndtr(-at / s))
        below = ndtr(at / s) - (np.exp(e)) * ((1 - q) * ndtr(at / s) + q * ndtr((at - 1) / s))
        return np.asarray(np.where(grown > 1 - q, below, 0.0))

    def above(epsilon: float, every: int = 1) -> float:
        seen = losses[::every] if forward else -losses[::every]
        return float(every * weights[::every] @ later(epsilon - seen)) - delta

    if above(0.0) <= 0:
        return Truth(0.0, 1e-12)
    high = 1.0
    while above(high) > 0:
        high *= 2
    fine, coarse = (root(lambda e, n=n: above(e, n), 0.0, high + 1) for n in (1, 2))
    return Truth(fine, 1e-12 + 64 * abs(fine - coarse))  # halving steps gains little where sigma is small
