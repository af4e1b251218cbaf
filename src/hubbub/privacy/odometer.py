"""An odometer: an epsilon for all that has run so far, certified at one delta, whenever and how often it is read."""

from __future__ import annotations

import math
from fractions import Fraction

from hubbub.numeric.rational import float_down, float_up, rational
from hubbub.privacy.budget import _best_order
from hubbub.privacy.loss import Loss

FINE, COARSE, GROWTH = 40, 24, Fraction(5, 4)
"""Levels up to 5/4 of the scale in steps of a 32nd, then so many more, each 5/4 of the one before: to 264 times."""


class Odometer:
    """Counts losses, and says at any moment what they come to together.

    Claim: however losses and the moment to stop are chosen from earlier answers, for neighbours D and D' and any set S
        of runs, P(run on D in S) <= E[exp(epsilon(run)) over runs on D' in S] + delta, where epsilon(run) is what the
        odometer shows at the end of the run.
    Proof: three kinds of reading split the runs. (1) The sum of epsilons while the sum of deltas is at most delta/2: a
        release with (e, d) has all but d of its law below exp(e) times its neighbour's (KOV15); put together along a
        run, what is lost is at most the sum of the d, and the rest is below exp(sum of e), so that no level has to be
        fixed in advance. (2) Levels fixed in advance, each a Renyi filter at its own order with an equal share of
        delta/2 (FZ21, Theorem 4.3; CKS20, Proposition 12): runs that end at a level are runs of its filter. These add
        up to delta. (3) A first loss beyond all of these is shown at its own price for delta, and whatever follows it
        at infinity: that loss was chosen before anything was released, so such runs have delta to themselves.
    Assumes: every counted loss is true of what then runs; scale and delta are fixed before anything is released.
    """

    def __init__(self, scale: Fraction, delta: Fraction) -> None:
        self.delta, self._count = delta, 0
        self._sum_epsilon: Fraction | None = Fraction(0)
        self._sum_delta = Fraction(0)
        self._first: Loss | None = None
        levels = [scale * k / 32 for k in range(1, FINE + 1)]
        levels += [levels[-1] * GROWTH**k for k in range(1, COARSE + 1)]
        share = float_down(delta / 2 / len(levels)) if delta else 0.0
        self._levels = [(level, *_best_order(float_down(level), share)) for level in levels] if share > 0 else []
        self._divergence = {order: 0.0 for _, order, _ in self._levels}
        self._prices: dict[tuple[Loss, Fraction], tuple[Fraction | None, Fraction, dict[float, float]]] = {}

    def add(self, loss: Loss, at: Fraction = Fraction(0)) -> None:
        """Counts a loss; ``at`` is the delta at which the sum may price one that has no price of its own."""
        if (loss, at) not in self._prices:
            self._prices[loss, at] = self._priced(loss, at)
        epsilon, delta, divergences = self._prices[loss, at]
        self._first = loss if self._count == 0 else None
        self._count += 1
        self._sum_epsilon = None if epsilon is None or self._sum_epsilon is None else self._sum_epsilon + epsilon
        self._sum_delta += delta
        for order, divergence in divergences.items():
            self._divergence[order] = (self._divergence[order] + divergence) * (1 + 2.0**-50)

    def epsilon(self) -> float:
        """What all losses so far come to at delta; infinity where no level holds them.

        >>> from hubbub.privacy import PureDP
        >>> odometer = Odometer(Fraction(1), Fraction(0))
        >>> odometer.add(PureDP(0.25)), odometer.add(PureDP(0.5)), odometer.epsilon()
        (None, None, 0.75)
        """
        sums = math.inf
        if self._sum_epsilon is not None and self._sum_delta <= self.delta / 2:
            sums = float_up(self._sum_epsilon)
        held = [float_up(level) for level, order, capacity in self._levels if self._divergence[order] <= capacity]
        shown = min([sums, *held])
        if math.isinf(shown) and self._first is not None:
            return self._first.epsilon(float_down(self.delta))
        return shown

    def _priced(self, loss: Loss, at: Fraction) -> tuple[Fraction | None, Fraction, dict[float, float]]:
        """What one loss adds to the sums (None: no epsilon at all) and to the divergence at each order."""
        basic = loss._basic_total()
        if basic is None:
            whole = loss.epsilon(float_down(at)) if at else math.inf
            basic = None if math.isinf(whole) else (max(rational("epsilon", whole), Fraction(whole)), at)
        divergences = {order: loss.renyi(order) for order in self._divergence}
        return (None, Fraction(0), divergences) if basic is None else (*basic, divergences)
