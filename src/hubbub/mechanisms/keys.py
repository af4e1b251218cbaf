"""Which of many private keys may be shown: those that enough people share, with their noisy numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from hubbub.errors import DataTypeError, ParameterError
from hubbub.mechanisms.additive import AdditiveNoise
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import MORE_PRIVACY, TruncatedLaplace
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.rational import Number, count, decimal_down, float_up, fraction_between, positive
from hubbub.privacy.families import ApproxDP
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours
from hubbub.randomness.bits import Bits

Noise = Literal["truncated", "gaussian"]


@dataclass(frozen=True, init=False)
class KeySelection(Mechanism):
    """Releases the keys that enough people share, each with a noisy number of people; ``release`` takes {key: people}.

    ``max_groups`` is how many keys one person may be counted in. Truncated noise is the optimal way for few of them,
    Gaussian noise is better for many; None takes the one that shows keys of fewer people.

    Claim: (epsilon, delta)-DP for one person, counted in at most max_groups keys, added, removed or (twice as many
        keys) replaced.
    Proof: truncated: DVGM22. For every key that could exist, the number of its people plus noise in -A..A is compared
        with A: keys of nobody never pass, so what is shown is a function of the noisy numbers of all possible keys, of
        which one person moves max_groups by 1 each: that many TruncatedLaplace(1). Gaussian: a key of one person alone
        passes with probability at most p; with the keys of which a person is the only member left out, which costs
        max_groups * p of delta, the rest is a Gaussian release with sensitivity sqrt(max_groups).
    Assumes: the numbers count different people.

    >>> m = KeySelection(epsilon=1.0, delta=1e-5, max_groups=1)
    >>> m.threshold, sorted(m.release({"common": 1000, "rare": 1})) == ["common"]
    (11, True)
    """

    epsilon: float
    delta: float
    max_groups: int
    noise: Noise
    neighbours: Neighbours
    threshold: int
    """Keys whose noisy number is larger are shown."""
    _adding: AdditiveNoise = field(repr=False)
    _fine: int = field(repr=False)
    _loss: Loss = field(repr=False, compare=False)

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        max_groups: int = 1,
        noise: Noise | None = None,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        price = positive("epsilon", epsilon, MORE_PRIVACY)
        failure = fraction_between("delta", delta, 0, 1, "private keys always need a delta, such as 1e-6")
        groups = count("max_groups", max_groups)
        if noise not in (None, "truncated", "gaussian"):
            raise ParameterError("noise", noise, "must be 'truncated', 'gaussian' or None")
        touched = groups * (1 if check_neighbours(neighbours) == "add-remove" else 2)
        ways = [noise] if noise else ["truncated", "gaussian"]
        found = [
            _truncated(price, failure, touched, neighbours)
            if w == "truncated"
            else _gaussian(price, failure, touched, neighbours)
            for w in ways
        ]
        adding, fine, threshold, loss = min(found, key=lambda way: way[2])
        self._fill(
            epsilon=float_up(price),
            delta=float_up(failure),
            max_groups=groups,
            noise="gaussian" if isinstance(adding, Gaussian) else "truncated",
            neighbours=neighbours,
            threshold=threshold,
            _adding=adding,
            _fine=fine,
            _loss=loss,
        )

    @property
    def loss(self) -> Loss:
        return self._loss

    def error(self, confidence: Number = 0.95) -> float:
        """A half-width of the noisy numbers shown."""
        return float(self._adding.error(confidence)) / self._fine

    def _release(self, value: Any, bits: Bits) -> dict[Any, int]:
        if not isinstance(value, Mapping) or not all(isinstance(n, int | np.integer) for n in value.values()):
            raise DataTypeError("keys are given as a dict of key to whole number of people")
        keys = [key for key, n in value.items() if n > 0]
        numbers = np.array([int(value[key]) for key in keys], np.int64) * self._fine
        noisy = self._adding.release(numbers, bits)
        return {
            k: round(n / self._fine)
            for k, n in zip(keys, noisy.tolist(), strict=True)
            if n > self.threshold * self._fine
        }

    def apart(self, value: Any, neighbour: Any) -> float:
        changes = [abs(int(value.get(k, 0)) - int(neighbour.get(k, 0))) for k in {**value, **neighbour}]
        if max(changes, default=0) > 1:
            return math.inf
        return sum(changes) / (self.max_groups * (1 if self.neighbours == "add-remove" else 2))


def _truncated(
    epsilon: Fraction, delta: Fraction, groups: int, neighbours: Neighbours
) -> tuple[AdditiveNoise, int, int, Loss]:
    each = epsilon if groups == 1 else decimal_down(epsilon / groups)
    one = TruncatedLaplace(1, epsilon=each, delta=delta / groups, neighbours=neighbours)
    return one, 1, int(one.bound), one.loss * groups


FINE = 64
"""Gaussian noise is drawn in steps of 1/64 person, so that sqrt(groups) is rounded up by little."""


def _gaussian(
    epsilon: Fraction, delta: Fraction, groups: int, neighbours: Neighbours
) -> tuple[AdditiveNoise, int, int, Loss]:
    alone = delta / 2
    sensitivity = math.isqrt(groups * FINE**2 - 1) + 1
    noise = Gaussian(sensitivity, epsilon=epsilon, delta=delta - alone, neighbours=neighbours)
    # half_width(d) is the least w with P(|noise| > w) <= d, so a lone person's key passes with at most alone / groups
    reach = int(noise.error(1 - 2 * alone / groups))
    threshold = 1 + -(-reach // FINE)
    return noise, FINE, threshold, noise.loss + ApproxDP(0, float_up(alone), neighbours=neighbours)
