"""What other methods than the accountant would charge, for tables and pictures that show them side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from hubbub.numeric.rational import MODEST, SMALLEST, Number, float_up, rational, smaller_reading
from hubbub.privacy import renyi, theorems
from hubbub.privacy.families import ApproxDP, GaussianDP
from hubbub.privacy.loss import Loss, check_delta, nudged_up
from hubbub.privacy.pairs import mixed
from hubbub.privacy.sampling import SampledGaussian, Subsampled

METHODS = ("basic composition", "advanced composition", "Renyi")
"""The methods, usually the loosest first."""

Parts = Sequence[tuple[Loss, int]]


def releases(loss: Loss) -> int:
    """How many releases a loss is made of.

    >>> from hubbub.privacy import PureDP
    >>> releases(PureDP(0.1) * 30 + PureDP(0.2))
    31
    """
    return sum(n for _, n in loss._parts())


def other_methods(loss: Loss, delta: Number) -> dict[str, float]:
    """Epsilon at delta by each method that applies and has a finite answer, in the order of ``METHODS``.

    Pure and (epsilon, delta) prices are taken as stated. What they leave of delta is shared evenly by the other
    releases; advanced composition, of several equal ones, keeps half of that for itself. Renyi is left out where
    hubbub knows no Renyi price of the sampling: one that ignores it would be a straw man.

    Claim: the loss is (epsilon, delta)-private for every epsilon returned.
    Proof: DR14, Theorem 3.16 (basic); DRV10 with the drift of DR16 (advanced); CKS20, Proposition 12 (Renyi); a
        sampled release by BBG18, Theorems 8 and 9: (ln(1 + q (e**epsilon - 1)), q delta).
    Assumes: the loss's own claim.

    >>> from hubbub.privacy import PureDP
    >>> {name: round(epsilon, 3) for name, epsilon in other_methods(PureDP(0.1) * 100, 1e-6).items()}
    {'basic composition': 10.0, 'advanced composition': 5.756, 'Renyi': 5.073}
    """
    exact, parts = check_delta(delta), loss._parts()
    if not parts:
        return {}
    found = {"basic composition": _basic(parts, exact)}
    if exact and len(parts) == 1 and releases(loss) > 1:
        found["advanced composition"] = _advanced(*parts[0], exact)
    if exact and all(_renyi_knows_the_sampling(part) for part, _ in parts):
        found["Renyi"] = _up(renyi.best_epsilon(loss.renyi, float(smaller_reading("delta", delta))))
    return {name: epsilon for name, epsilon in found.items() if math.isfinite(epsilon)}


def _basic(parts: Parts, delta: Fraction) -> float:
    stated = [(price, n) for part, n in parts if (price := _stated(part))]
    left = delta - sum((n * d for (_, d), n in stated), Fraction(0))
    others = [(part, n) for part, n in parts if not _stated(part)]
    if left < 0 or (others and not left):
        return math.inf
    total = float_up(sum((n * e for (e, _), n in stated), Fraction(0)))
    if not others:
        return total
    share = left / sum(n for _, n in others)
    return _up(math.fsum([total, *(n * _price_of_one(part, share) for part, n in others)]))


def _advanced(part: Loss, times: int, delta: Fraction) -> float:
    stated = _stated(part)
    if stated:
        epsilon, share = float_up(stated[0]), stated[1]
    else:
        share = delta / (2 * times)
        epsilon = _price_of_one(part, share)
    slack = delta - times * share
    if slack < SMALLEST or math.isinf(epsilon):
        return math.inf
    if epsilon < float(MODEST[0]):  # too small a number for the theorem, whose gain would be nothing
        return _up(times * epsilon)
    return nudged_up(theorems.advanced_composition(epsilon, share, times, slack)[0])


def _stated(part: Loss) -> tuple[Fraction, Fraction] | None:
    """The (epsilon, delta) a release has by its own word, if it is that kind."""
    if isinstance(part, ApproxDP):
        return rational("epsilon", part.epsilon_bound), rational("delta", part.delta_bound)
    pure = part._pure()
    return None if pure is None else (pure, Fraction(0))


def _price_of_one(part: Loss, delta: Fraction) -> float:
    """Epsilon at delta of one release: through its base where it is sampled, else its own."""
    if delta < SMALLEST:
        return math.inf
    if isinstance(part, Subsampled):
        base, rate = part.base, part.rate
    elif isinstance(part, SampledGaussian) and part.neighbours == "add-remove" and part.people == 1:
        base, rate = GaussianDP(nudged_up(1 / part.noise_multiplier)), part.rate
    else:
        return part.epsilon(delta)
    share = delta / max(Fraction(rate), rational("rate", rate))
    return _up(mixed(base.epsilon(share), rate)) if share < 1 else 0.0


def _up(epsilon: float) -> float:
    return nudged_up(epsilon) if epsilon else 0.0


def _renyi_knows_the_sampling(part: Loss) -> bool:
    if isinstance(part, SampledGaussian):
        return part.neighbours == "add-remove" and part.people == 1
    return not isinstance(part, Subsampled) or part.scheme == "poisson" or part._pure() is not None
