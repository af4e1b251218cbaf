"""Dominating pairs: two distributions P and Q such that nothing a mechanism releases tells neighbours apart better.

A pair is given by the law of its privacy loss ln(P/Q): single losses of positive probability (``atoms``), the mass
that P and Q put on intervals between them (``masses``: (-inf, e0], (e0, e1], ..., (en, inf), with small relative
error also far out in the tails), and the mass of P where Q has none (``infinity``). That is all the accountant
needs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROUNDING = 2.0**-52
TABLE, NEWTON_STEPS = 2048, 4
"""Points at which a mixture's loss is tabulated, and steps taken from there to the place of any other loss."""
RELATIVE_ERROR = 1e-12
"""What masses may be off by, relatively: rounding of arguments far out in a normal tail, and of differences."""


class Pair(ABC):
    """Two distributions, through the law of their loss. ``infinity`` is the mass of P at loss infinity."""

    infinity: float = 0.0
    symmetric: bool = True
    """Whether (Q, P) has the same law of losses, so that one direction is enough."""

    @abstractmethod
    def masses(self, edges: Floats) -> tuple[Floats, Floats]:
        """The masses of P and of Q, atoms apart, between the edges (ascending): len(edges) + 1 of each."""

    @abstractmethod
    def span(self, tail: float) -> tuple[float, float]:
        """Losses outside which both P and Q put at most ``tail``."""

    def atoms(self) -> tuple[tuple[float, float], ...]:
        """Losses of positive probability, with P's mass there."""
        return ()

    def floor(self) -> float:
        """The smallest loss there is, atoms apart; -inf where there is none."""
        return -math.inf

    def ceiling(self) -> float:
        """The largest loss there is, atoms apart; inf where there is none."""
        return math.inf


@dataclass(frozen=True)
class Reversed(Pair):
    """The same two distributions, exchanged: losses change their sign."""

    pair: Pair

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.pair.symmetric

    def masses(self, edges: Floats) -> tuple[Floats, Floats]:
        p, q = self.pair.masses(-edges[::-1])
        return q[::-1], p[::-1]

    def span(self, tail: float) -> tuple[float, float]:
        low, high = self.pair.span(tail)
        return -high, -low

    def atoms(self) -> tuple[tuple[float, float], ...]:
        return tuple((-loss, p * math.exp(-loss)) for loss, p in self.pair.atoms())

    def floor(self) -> float:
        return -self.pair.ceiling()

    def ceiling(self) -> float:
        return -self.pair.floor()


@dataclass(frozen=True)
class Atoms(Pair):
    """Finitely many losses with P's masses there, and P's mass at infinity."""

    points: tuple[tuple[float, float], ...]
    infinity: float = 0.0
    symmetric: bool = True

    def masses(self, edges: Floats) -> tuple[Floats, Floats]:
        return np.zeros(len(edges) + 1), np.zeros(len(edges) + 1)

    def span(self, tail: float) -> tuple[float, float]:  # noqa: ARG002
        losses = [loss for loss, _ in self.points]
        return min(losses), max(losses)

    def atoms(self) -> tuple[tuple[float, float], ...]:
        return self.points


@dataclass(frozen=True)
class GaussianPair(Pair):
    """N(mu, 1) against N(0, 1): the loss is normal with mean mu**2/2 under P and -mu**2/2 under Q, deviation mu."""

    mu: float

    def masses(self, edges: Floats) -> tuple[Floats, Floats]:
        mu = self.mu
        return normal_masses(edges / mu - mu / 2), normal_masses(edges / mu + mu / 2)

    def span(self, tail: float) -> tuple[float, float]:
        reach = self.mu * normal_reach(tail)
        return -(self.mu**2) / 2 - reach, self.mu**2 / 2 + reach


@dataclass(frozen=True)
class LaplacePair(Pair):
    """Two Laplace laws of one scale whose centres are ``shift`` scales apart.

    The loss is +shift with P-mass 1/2, -shift with P-mass e**-shift/2, and has density e**-((shift-l)/2)/4 in
    between.
    """

    shift: float

    def masses(self, edges: Floats) -> tuple[Floats, Floats]:
        inside = np.clip(edges, -self.shift, self.shift)
        ends = np.concatenate(([-self.shift], inside, [self.shift]))
        gap = -np.expm1(-np.diff(ends) / 2) / 2
        return gap * np.exp((ends[1:] - self.shift) / 2), gap * np.exp(-(ends[:-1] + self.shift) / 2)

    def span(self, tail: float) -> tuple[float, float]:  # noqa: ARG002
        return -self.shift, self.shift

    def atoms(self) -> tuple[tuple[float, float], ...]:
        return (-self.shift, math.exp(-self.shift) / 2), (self.shift, 0.5)


@dataclass(frozen=True)
class PoissonPair(Pair):
    """(1 - rate) Q + rate P against Q: a record takes part with probability ``rate``; P against Q if it does.

    The new loss is ln(1 - rate + rate e**loss): increasing, so intervals map to intervals.
    """

    base: Pair
    rate: float
    symmetric: bool = False

    @property
    def infinity(self) -> float:  # type: ignore[override]
        return self.rate * self.base.infinity

    def masses(self, edges: Floats) -> tuple[Floats, Floats]:
        p, q = self.base.masses(unmixed(edges, self.rate))
        return (1 - self.rate) * q + self.rate * p, q

    def span(self, tail: float) -> tuple[float, float]:
        low, high = self.base.span(tail)
        return mixed(low, self.rate), mixed(high, self.rate)

    def atoms(self) -> tuple[tuple[float, float], ...]:
        rate = self.rate
        return tuple((mixed(at, rate), p * ((1 - rate) * math.exp(-at) + rate)) for at, p in self.base.atoms())

    def floor(self) -> float:
        return mixed(self.base.floor(), self.rate)


@dataclass(frozen=True)
class WithoutReplacementPair(Pair):
    """A fixed-size sample without replacement, under replace-one, of a symmetric base.

    Its profile at e**eps >= 1 is that of (1 - rate) Q + rate P against Q; below 1 it is the mirror of that, so that
    the losses are symmetric; what mass is left sits at loss 0.
    """

    base: Pair
    rate: float

    @property
    def infinity(self) -> float:  # type: ignore[override]
        return self.rate * self.base.infinity

    def _half(self) -> PoissonPair:
        return PoissonPair(self.base, self.rate)

    def masses(self, edges: Floats) -> tuple[Floats, Floats]:
        positive = np.append(0.0, edges[edges > 0])
        up_p, up_q = (m[1:] for m in self._half().masses(positive))
        negative = np.append(0.0, -edges[edges < 0][::-1])
        down_q, down_p = (m[1:][::-1] for m in self._half().masses(negative))
        # the interval around 0 is made of a piece from either side
        join = 1 if not np.any(edges == 0) else 0
        p = np.concatenate((down_p[: len(down_p) - join], [down_p[-1] + up_p[0]] * join, up_p[join:]))
        q = np.concatenate((down_q[: len(down_q) - join], [down_q[-1] + up_q[0]] * join, up_q[join:]))
        return p, q

    def span(self, tail: float) -> tuple[float, float]:
        high = mixed(self.base.span(tail)[1], self.rate)
        return -high, high

    def atoms(self) -> tuple[tuple[float, float], ...]:
        above = [(at, p) for at, p in self._half().atoms() if at > 0]
        below = [(-at, p * math.exp(-at)) for at, p in above]
        up_p, up_q = (float(m[1]) for m in self._half().masses(np.zeros(1)))
        elsewhere = up_p + up_q + sum(p for _, p in (*above, *below)) + self.infinity
        return (*below[::-1], (0.0, max(0.0, 1 - elsewhere)), *above)


@dataclass(frozen=True)
class GaussianMixturePair(Pair):
    """A mixture of N(shift_j, stddev**2) with given weights against another; the loss increases with x."""

    upper: tuple[tuple[float, float], ...]
    lower: tuple[tuple[float, float], ...]
    stddev: float
    symmetric: bool = False

    def loss_at(self, x: Floats) -> tuple[Floats, Floats]:
        """ln(P/Q) at x, and its derivative."""
        values, slopes = [], []
        for mixture in (self.upper, self.lower):
            weights, shifts = (np.array(column)[:, None] for column in zip(*mixture, strict=True))
            with np.errstate(divide="ignore"):
                terms = np.log(weights) + (2 * shifts * x - shifts**2) / (2 * self.stddev**2)
            top = terms.max(axis=0)
            terms = np.exp(terms - top)
            total = terms.sum(axis=0)
            values.append(top + np.log(total))
            slopes.append((terms * shifts).sum(axis=0) / total)
        return values[0] - values[1], (slopes[0] - slopes[1]) / self.stddev**2

    def place(self, losses: Floats) -> Floats:
        """x with that loss; infinite where the loss is never reached.

        Newton's steps from a table, kept in the bracket that the table gives; what has not settled is bisected.
        """
        reach = 60 * self.stddev + max(abs(s) for _, s in (*self.upper, *self.lower))
        table = np.linspace(-reach, reach, TABLE)
        known, _ = self.loss_at(table)
        k = np.clip(np.searchsorted(known, losses), 1, TABLE - 1)
        low, high = table[k - 1], table[k]
        x = np.clip(np.interp(losses, known, table), low, high)
        for _ in range(NEWTON_STEPS):
            value, slope = self.loss_at(x)
            low, high = np.where(value < losses, x, low), np.where(value < losses, high, x)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                guess = x - (value - losses) / slope
            x = np.where((guess >= low) & (guess <= high), guess, (low + high) / 2)
        moving = np.flatnonzero(np.abs(self.loss_at(x)[0] - losses) > 4 * ROUNDING * (1 + np.abs(losses)))
        bottom, top = low[moving], high[moving]
        while np.any(top - bottom > ROUNDING * (self.stddev + np.abs(bottom))):
            middle = (bottom + top) / 2
            small = self.loss_at(middle)[0] < losses[moving]
            bottom, top = np.where(small, middle, bottom), np.where(small, top, middle)
        x[moving] = top
        return np.where(losses <= known[0], -np.inf, np.where(losses >= known[-1], np.inf, x))

    def masses(self, edges: Floats) -> tuple[Floats, Floats]:
        x = self.place(edges)
        both = [
            np.sum([w * normal_masses((x - s) / self.stddev) for w, s in mixture if w > 0], axis=0)
            for mixture in (self.upper, self.lower)
        ]
        return both[0], both[1]

    def span(self, tail: float) -> tuple[float, float]:
        shifts = [s for _, s in (*self.upper, *self.lower)]
        reach = self.stddev * normal_reach(tail)
        low, high = self.loss_at(np.array([min(shifts) - reach, max(shifts) + reach]))[0]
        return float(low), float(high)


def mixed(loss: float, rate: float) -> float:
    """ln(1 - rate + rate e**loss)."""
    if rate == 1:
        return loss
    if loss == -math.inf:
        return math.log1p(-rate)
    if loss > 30:
        return loss + math.log(rate) + math.log1p((1 - rate) / rate * math.exp(-loss))
    change = rate * math.expm1(loss)
    # near -1, what is left is its own sum
    return math.log1p(change) if change > -0.5 else math.log((1 - rate) + rate * math.exp(loss))


def unmixed(losses: Floats, rate: float) -> Floats:
    """The loss l with ln(1 - rate + rate e**l) = losses; -inf at and below ln(1 - rate)."""
    if rate == 1:
        return losses
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inner = np.log1p(np.expm1(np.minimum(losses, 500)) / rate)
        low = losses < -0.5  # as in ``mixed``
        inner[low] = np.log((np.exp(losses[low]) - (1 - rate)) / rate)
    inner[np.isnan(inner)] = -np.inf
    large = losses > 30
    if large.any():
        inner[large] = losses[large] - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-losses[large]))
    return inner


def normal_masses(edges: Floats) -> Floats:
    """The standard normal mass of (-inf, e0], ..., (en, inf), each from the nearer tail."""
    from scipy.special import ndtr

    tails = ndtr(-np.abs(edges))
    inner = np.abs(np.diff(tails))
    k = int(np.searchsorted(edges, 0.0))
    if 0 < k < len(edges):
        inner[k - 1] = 1 - tails[k - 1] - tails[k]
    first = tails[0] if edges[0] <= 0 else 1 - tails[0]
    last = tails[-1] if edges[-1] >= 0 else 1 - tails[-1]
    return np.concatenate(([first], inner, [last]))


def normal_reach(tail: float) -> float:
    """So many deviations out, a normal tail is at most ``tail``."""
    return math.sqrt(2 * math.log(1 / tail)) if tail > 0 else 38.0
