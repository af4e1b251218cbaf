"""A price that depends on the votes, released: with noise that fits how fast it may change nearby, and paid for itself.

The owner's number is private: labels of unanimous teachers cost less, so it tells how unanimous they were. What is
released here is a bound on it, a function of two numbers for each question, the largest count and its lead, whose
smooth sensitivity is found from a table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.learning.pate.accounting import Floats, ForOwner
from hubbub.learning.pate.aggregators import Aggregator, Confident, GaussianMax
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.rational import Number, fraction_between, positive
from hubbub.privacy.budget import Budget
from hubbub.privacy.families import RenyiDP
from hubbub.privacy.loss import Loss, Neighbours, check_delta, check_neighbours, nudged_up
from hubbub.privacy.renyi import check_order, epsilon_at
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.gaussian import RoundedGaussian

LEAST = Fraction(1, 2**20)
"""The least sensitivity that noise is made for: smaller ones count as this."""
GRID = LEAST / 1024
"""What is released is a multiple of this."""
SLACK = 2.0**-9
"""How much of the sensitivity rounding to the grid, and of sums, may add."""
STRETCHES = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 11.0, 15.0, 20.0, 30.0, 50.0)
LARGEST_TABLE = 4 * 10**6


def lead_bounds(teachers: int, classes: int, aggregator: GaussianMax | Confident, order: float) -> Floats:
    """A bound on the Renyi divergence of one answer, for every lead of the first class, 0 to teachers: falling.

    Claim: at least the divergence of order ``order`` between the answer at votes of this lead and at any votes that one
        teacher could make of them, both ways.
    Proof: let E be that another class wins. For it to win, a normal difference of deviation sqrt(2) sigma must make up
        for the lead, less 1 for rounding; after a move the lead is less by 2 at most. So P(E) and Q(E) are at most q =
        (classes - 1) Phi(-(lead - 3)/(sqrt(2) sigma)). The first class adds at most (1 - q)**-(a - 1) to the sum of
        p**a r**(1 - a), all others q**(1 - 1/s) e**((a - 1) D_c) with c = 1 + s (a - 1), for any s > 1 (Hoelder; D_c as
        for all votes). Never above the price that holds for all votes.
    Assumes: as for MostVotes.
    """
    from scipy.special import log_ndtr

    rise, whole = order - 1, aggregator.choice.loss
    lead = np.arange(teachers + 1)
    log_q = math.log(classes - 1) + log_ndtr(-(lead - 3) / (math.sqrt(2) * aggregator.sigma)) + 1e-9
    with np.errstate(all="ignore"):
        first = -rise * np.log1p(-np.exp(np.minimum(log_q, 0.0)))
        rest = [(1 - 1 / s) * log_q + rise * whole.renyi(1 + s * rise) for s in STRETCHES]
        found = np.logaddexp(first, np.min(rest, axis=0)) / rise * (1 + 1e-9)
    cap = whole.renyi(order)
    return np.asarray(np.where(found <= cap, found, cap))


def cost_table(teachers: int, classes: int, aggregator: Aggregator, order: float) -> Floats:
    """A bound on the divergence of one question, by its largest count (rows) and lead (columns), 0 to teachers each.

    One row only where nothing is refused. Claim, Proof, Assumes as for ``lead_bounds``; with a check, refusing is one
    more outcome, whose two chances at every largest count, and at one more or less, are those of the check.
    """
    if not isinstance(aggregator, GaussianMax) and type(aggregator) is not Confident:
        raise ParameterTypeError(
            "aggregator", type(aggregator).__name__, "has no released price", "GaussianMax and Confident have"
        )
    answers = lead_bounds(teachers, classes, aggregator, order)
    check = aggregator.check
    if check is None:
        return answers[None, :]
    if (teachers + 1) ** 2 > LARGEST_TABLE:
        raise ParameterError("teachers", teachers, "are too many for a table", "2000 are not")
    short = math.ceil(check._least) - np.arange(-1.0, teachers + 2)
    passed, refused = check._law.tail(short), check._law.tail(1 - short)
    rise, sums = order - 1, []
    with np.errstate(all="ignore"):
        grown = np.exp(rise * answers)
        for step in (-1, 0, 1):
            there = slice(1 + step, teachers + 2 + step)
            for p, q in ((slice(1, -1), there), (there, slice(1, -1))):
                yes, no = passed[p] * (passed[p] / passed[q]) ** rise, refused[p] * (refused[p] / refused[q]) ** rise
                sums.append(no[:, None] + yes[:, None] * grown)
        found = np.log(np.max(sums, axis=0) * (1 + 1e-9)) / rise
    cap = aggregator.loss(1).renyi(order)
    return np.asarray(np.where(found <= cap, found, cap))


def smooth_sensitivity(table: Floats, most: Any, leads: Any, beta: float) -> float:
    """The largest change of the total, over votes at any distance d, times e**(-beta d). Private.

    Claim: at least the change that one teacher can make to the total; between neighbours, its logarithm moves by at
        most beta.
    Proof: one teacher moves every question's largest count by 1 at most and its lead by 2. What d teachers reach, and
        one more changes, is at most the largest change of the table within d and 2d; what is within d of a neighbour is
        within d + 1 (NRS07, Definition 2.2 with Claim 3.2, for upper bounds of the local sensitivity).
    Assumes: the table bounds the cost of each question.
    """
    from scipy.ndimage import maximum_filter, minimum_filter

    window = (3 if len(table) > 1 else 1, 5)
    change = np.maximum(maximum_filter(table, window) - table, table - minimum_filter(table, window))
    rows, columns = (np.asarray(most) if len(table) > 1 else np.zeros(len(leads), np.int64)), np.asarray(leads)
    far, best, distance = len(rows) * float(change.max()), 0.0, 0
    while distance <= table.shape[1] and far * math.exp(-beta * distance) > best:
        best = max(best, math.fsum(change[rows, columns].tolist()) * math.exp(-beta * distance))
        change, distance = maximum_filter(change, window), distance + 1
    return best * (1 + 1e-12)


@dataclass(frozen=True, init=False)
class SmoothNoise(Mechanism):
    """A number plus ``quantile`` and more noise, both in units of its smooth sensitivity: likely no less than it was.

    Takes (number, smooth sensitivity); gives a multiple of GRID, which is at least the number with probability
    ``confidence``.

    Claim: Renyi divergence at most a k**2 / (2 sigma**2 (a - (a - 1) e**(2 beta))) + max over r = e**(2 beta), e**(-2
        beta) of (a ln r - ln(1 - a + a r)) / (2 (a - 1)), at every order a < 1/(1 - e**(-2 beta)), with k = 1 +
        quantile (e**beta - 1), raised for rounding.
    Proof: neighbours' outputs are normal laws, rounded, of deviations sigma S and sigma S', whose squares' ratio r is
        within e**(2 beta) either way; their centres are at most k min(S, S') apart. The divergence of two normal laws
        (GAL13) is a min(1, r) k**2 / (2 sigma**2 (1 - a + a r)) + (a ln r - ln(1 - a + a r)) / (2 (a - 1)): the first
        is largest at r = e**(-2 beta), and the second falls up to r = 1 and rises from there.
    Assumes: the sensitivity is what ``smooth_sensitivity`` promises, for the same beta.
    """

    beta: float
    sigma: float
    confidence: float
    neighbours: Neighbours
    _quantile: float = field(init=False, repr=False, compare=False)

    def __init__(
        self, *, beta: Number, sigma: Number, confidence: Number = 0.99, neighbours: Neighbours = "add-remove"
    ) -> None:
        sure = float(fraction_between("confidence", confidence, 0, 1))
        width = float(positive("sigma", sigma))
        self._fill(
            beta=float(positive("beta", beta)),
            sigma=width,
            confidence=sure,
            neighbours=check_neighbours(neighbours),
            _quantile=max(0.0, NormalDist().inv_cdf(sure)) * width * (1 + 1e-9),
        )

    def price(self, order: float) -> float:
        """The Renyi divergence of one release at this order; infinite beyond the last order that has one."""
        grown = math.exp(2 * self.beta * (1 + 1e-9))
        left = order - (order - 1) * grown
        if left <= 0:
            return math.inf
        apart = 1 + self._quantile * (math.sqrt(grown) - 1) + SLACK
        spread = [(order * math.log(r) - math.log1p(order * (r - 1))) / (2 * (order - 1)) for r in (1 / grown, grown)]
        return nudged_up((order * apart**2 / (2 * self.sigma**2 * left) + max(spread)) * (1 + 1e-9))

    @property
    def loss(self) -> Loss:
        last = 1 / -math.expm1(-2 * self.beta)
        if last <= 1.1:
            raise ParameterError("beta", self.beta, "is too large for any order", "0.3 over the order is about right")
        orders = sorted({round(1 + (last - 1) * share, 6) for share in (*np.geomspace(1e-3, 0.9, 40), 0.95, 0.98)})
        kept = [a for a in orders if a > 1.000001 and self.price(a) < math.inf]
        return RenyiDP(tuple(kept), tuple(self.price(a) for a in kept), self.neighbours)

    def _release(self, value: Any, bits: Bits) -> float:
        number, sensitivity = value
        size = max(Fraction(sensitivity), LEAST)
        centre = math.ceil((Fraction(number) + Fraction(self._quantile) * size) / GRID) + 1
        return float((centre + RoundedGaussian(size * Fraction(self.sigma) / GRID).draw(bits)) * GRID)

    def apart(self, value: Any, neighbour: Any) -> float:
        sizes = [max(float(v[1]), float(LEAST)) for v in (value, neighbour)]
        return max(abs(float(value[0] - neighbour[0])) / min(sizes), abs(math.log(sizes[0] / sizes[1])) / self.beta)


@dataclass(frozen=True)
class ReleasedEpsilon:
    """What an analyst may be shown of the price of these very labels.

    With probability ``confidence`` over this release's noise, the labels of this data set, together with this number,
    are at least as private as ``epsilon`` at ``delta`` against any one person more or less. For all other data sets the
    guarantee is that of the aggregator's loss; releasing this cost ``loss`` besides.
    """

    epsilon: float
    delta: float
    order: float
    confidence: float
    loss: Loss

    def __str__(self) -> str:
        return (
            f"epsilon {self.epsilon:.4g} at delta {self.delta:g} for these data (right with probability "
            f"{self.confidence:g}); for all data, the aggregator's loss and {self.loss.epsilon(self.delta):.4g}"
        )


def released_epsilon(
    owner: ForOwner,
    *,
    delta: Number,
    order: Number,
    beta: Number | None = None,
    sigma: Number = 8,
    confidence: Number = 0.99,
    budget: Budget | None = None,
    bits: Bits = SECURE,
) -> ReleasedEpsilon:
    """The price of the labels at these very votes, released with noise. ``order``, ``beta`` and ``sigma`` are public:
    choose them before you look at any vote.

    Claim: releasing costs ``SmoothNoise.loss``; with probability ``confidence`` the result is at least the epsilon at
        delta of the labels and this release together, at these votes, against any that one teacher could make of them.
    Proof: ``cost_table`` for each question; questions were fixed before the first answer, so costs add up; SmoothNoise;
        CKS20, Proposition 12, at one order fixed in advance. Nothing above the price for all votes is told.
    Assumes: order, beta, sigma and confidence were chosen without the votes.
    """
    at, failure = check_order(order), check_delta(delta)
    if not failure:
        raise ParameterError("delta", delta, "must be > 0", "a Gaussian is never private at delta 0")
    noise = SmoothNoise(
        beta=0.3 / at if beta is None else beta,
        sigma=sigma,
        confidence=confidence,
        neighbours=owner.aggregator.neighbours,
    )
    own = noise.price(at)
    if math.isinf(own):
        raise ParameterError("beta", noise.beta, "is too large for this order", "0.3 over the order is about right")
    counts, loss = owner.counts, noise.loss
    table = cost_table(owner.votes.teachers, counts.shape[1], owner.aggregator, at)
    if budget is not None:
        budget.spend(loss, note="released epsilon of votes")
    ordered = np.sort(counts, axis=1)
    most, leads = ordered[:, -1], ordered[:, -1] - ordered[:, -2]
    rows = most if len(table) > 1 else np.zeros_like(most)
    total = math.fsum(table[rows, leads].tolist()) * (1 + 1e-12)
    told = noise.release((total, smooth_sensitivity(table, most, leads, noise.beta)), bits)
    always = owner.always + loss
    epsilon = min(epsilon_at(at, max(told, 0.0) + own, float(failure)), always.epsilon(failure))
    return ReleasedEpsilon(max(0.0, nudged_up(epsilon)), float(failure), at, noise.confidence, loss)
