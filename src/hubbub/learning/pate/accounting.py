"""What labels cost given the very votes they were drawn from. Private: it depends on the votes, so only the owner may
see it; an analyst sees ``Aggregator.loss``, or a release by ``hubbub.learning.pate.smooth``.

Divergences are computed from the laws of what comes out, for the votes as they are and for all they could be if one
teacher had said otherwise: no bound is between them and the truth but that on rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterTypeError
from hubbub.learning.pate.aggregators import Aggregator, Interactive
from hubbub.learning.pate.counting import MostVotes
from hubbub.learning.pate.votes import Integers, Votes
from hubbub.numeric.rational import Number
from hubbub.privacy.families import RenyiDP
from hubbub.privacy.loss import Loss
from hubbub.privacy.renyi import check_order
from hubbub.randomness.laplace import DiscreteLaplace
from hubbub.randomness.laws import SymmetricLaw

Floats = NDArray[np.float64]
ORDERS = tuple(np.unique(np.round(1 + np.geomspace(0.1, 400, 60), 3)).tolist())
"""Orders at which the owner's total is kept."""
ROUNDING = 1e-12
"""Relative error granted to every probability, as in hubbub.privacy.pairs."""
LEFT_OUT = 1e-30
"""What the listed noise may miss, at either end."""
RARE = 1e-18
"""Outcomes less likely than this are bounded together, by Hoelder's inequality."""


def choice_laws(votes: Integers, law: SymmetricLaw) -> tuple[Floats, Floats]:
    """The chances of every class to win after noise of this law: for these votes, and for every one moved.

    The second has a row for each ordered pair of classes: a vote that was the first's is the second's. Ties go to the
    first class. Chances are sums over the winner's noisy count, which is an integer, so nothing is approximated but by
    rounding and at the ends of the noise (LEFT_OUT).
    """
    reach, most, classes = law.half_width(LEFT_OUT), int(votes.max()), len(votes)
    k = np.arange(most - reach - 1, most + reach + 2)
    at = k[None, :] - votes[:, None]  # what noise puts every class at k
    below = {shift: _at_most(law, at + shift) for shift in (-2, -1, 0, 1)}
    own, others = np.empty(classes), np.empty((classes, classes, classes))
    for i in range(classes):
        first = (np.arange(classes) < i)[:, None]  # these must stay below, the others may tie
        least = np.where(first, below[-1], below[0])
        up, down = np.where(first, below[0], below[1]) / least, np.where(first, below[-2], below[-1]) / least
        rest = np.exp(np.log(np.delete(least, i, axis=0)).sum(axis=0))
        chances = law.pmf(at[i]) * rest
        own[i] = chances.sum()
        others[:, :, i] = (up * chances) @ down.T
        others[i, :, i] = down @ (law.pmf(at[i] + 1) * rest)
        others[:, i, i] = up @ (law.pmf(at[i] - 1) * rest)
    return own, others[~np.eye(classes, dtype=np.bool_)]


def _at_most(law: SymmetricLaw, k: Integers) -> Floats:
    """P(noise <= k), to full relative precision far below 0."""
    return np.where(k >= 0, 1 - law.tail(np.maximum(k + 1, 1)), law.tail(np.maximum(-k, 1)))


def outcome_laws(votes: Integers, aggregator: Aggregator) -> tuple[Floats, Floats]:
    """The chances of all that can come out: each class, then a refusal; for these votes, and for every one moved."""
    choice = aggregator.choice
    law = choice._law if isinstance(choice, MostVotes) else DiscreteLaplace(2 / choice._price)
    own, others = choice_laws(votes, law)
    if aggregator.check is None:
        return own, others
    one = np.eye(len(votes), dtype=np.int64)
    moved = (votes - one[:, None] + one[None, :]).max(axis=2)[~np.eye(len(votes), dtype=np.bool_)]
    passed, refused = _check_chances(aggregator, np.append(moved, votes.max()))
    own = np.append(own * passed[-1], refused[-1])
    return own, np.hstack([others * passed[:-1, None], refused[:-1, None]])


def _check_chances(aggregator: Aggregator, most: Integers) -> tuple[Floats, Floats]:
    """That the check passes, and that it does not, each to full relative precision."""
    check = aggregator.check
    assert check is not None
    short: Integers = math.ceil(check._least) - most
    return check._law.tail(short), check._law.tail(1 - short)


def divergence(votes: Sequence[int] | Integers, aggregator: Aggregator, orders: Sequence[float]) -> Floats:
    """Renyi divergences of one answer at these votes, at every order: the largest over all votes that one teacher could
    make of them, both ways round. Private.

    Claim: for every order at least the true divergence, either way, and at most that of ``Aggregator.loss``.
    Proof: the sums of p**a q**(1 - a) over outcomes whose chances are known to ROUNDING, raised by what that may do.
        The rest together, with P(rest) = s: the sum of q (p/q)**a is at most s**(1 - (a - 1)/(c - 1)) times
        e**((a - 1) D_c) for any c > a (Hoelder), with D_c that of ``loss``. Nothing is claimed below the data-
        independent price, which also stands in wherever this fails.
    Assumes: the votes are as ``Aggregator`` assumes, on questions that were all fixed before the first answer.
    """
    counts = np.asarray(votes, np.int64)
    whole = aggregator.loss(1)
    caps = np.array([whole.renyi(check_order(a)) for a in orders])
    with np.errstate(all="ignore"):
        own, others = outcome_laws(counts, aggregator)
        found = np.array([_largest(own, others, a, whole) for a in orders])
    return np.where(found <= caps, found, caps)


def _largest(own: Floats, others: Floats, order: float, whole: Loss) -> float:
    """Over all neighbours, both ways."""
    likely = (own >= RARE) & (others >= RARE)
    rest_own = np.where(likely, 0, own).sum(axis=1) + 4 * LEFT_OUT
    rest_others = np.where(likely, 0, others).sum(axis=1) + 4 * LEFT_OUT
    ratio = np.log(np.where(likely, own / others, 1.0))
    mine, theirs = np.where(likely, own, 0), np.where(likely, others, 0)
    grown = 1 + 4 * order * ROUNDING
    sums = [
        (mine * np.exp((order - 1) * ratio)).sum(axis=1) * grown + _rest(rest_own, order, whole),
        (theirs * np.exp((1 - order) * ratio)).sum(axis=1) * grown + _rest(rest_others, order, whole),
    ]
    found = float(np.log(np.max(sums)))
    return math.inf if math.isnan(found) else max(0.0, found) / (order - 1)


def _rest(share: Floats, order: float, whole: Loss) -> Floats:
    """A bound on what outcomes of this total chance add."""
    bounds = []
    with np.errstate(divide="ignore", over="ignore"):
        for stretch in (1.5, 2.0, 4.0, 10.0):
            c = 1 + stretch * (order - 1)
            bounds.append(np.exp((1 - 1 / stretch) * np.log(share) + (order - 1) * whole.renyi(c)))  # or the cap holds
    return np.asarray(np.min(bounds, axis=0) * (1 + 1e-9))


@dataclass(frozen=True, eq=False, repr=False)
class ForOwner:
    """What only the owner of the data may see: the votes, and what the labels cost given them.

    ``print`` shows nothing of it. To show an analyst such a number, release it: ``hubbub.learning.pate.smooth``.
    """

    votes: Votes
    aggregator: Aggregator
    answers: int | None = None
    """The most answers that were given: without refusals, no more rows were asked about."""

    def __repr__(self) -> str:
        return "<ForOwner: private, not shown>"

    @property
    def counts(self) -> Integers:
        """The votes on all rows that may have been asked about. Private."""
        return self.votes.counts if self.aggregator.check else self.votes.counts[: self.answers]

    @property
    def always(self) -> Loss:
        """The price of these questions whatever the votes: public."""
        return self.aggregator.loss(len(self.counts), self.answers)

    def loss(self, orders: Sequence[float] = ORDERS) -> Loss:
        """All questions together, at these very votes. Private.

        Claim: the Renyi divergences between the labels of these votes and those of any votes that one teacher could
            make of them, both ways; not a guarantee for other votes. Never above those of ``always``.
        Proof: questions were fixed before the first answer, so the answers are independent given the votes, and their
            divergences add up. Stopping after the last answer is post-processing.
        Assumes: as for ``divergence``.
        """
        if isinstance(self.aggregator, Interactive):
            raise ParameterTypeError(
                "aggregator", "Interactive", "has no price that depends on votes", "what it asks depends on answers"
            )
        kept, always = [check_order(a) for a in orders], self.always
        distinct, times = np.unique(self.counts, axis=0, return_counts=True)
        every = np.array([divergence(row, self.aggregator, kept) for row in distinct]) * times[:, None]
        totals = [
            min(math.nextafter(math.fsum(column.tolist()), math.inf), always.renyi(order))
            for order, column in zip(kept, every.T, strict=True)
        ]
        return RenyiDP(tuple(kept), tuple(totals), self.aggregator.neighbours)

    def epsilon(self, delta: Number) -> float:
        """The epsilon of these very votes at delta. Private."""
        return min(self.loss().epsilon(delta), self.always.epsilon(delta))
