"""Laplace noise, plain and truncated."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal

from hubbub.mechanisms.additive import MAX_LENGTH, AdditiveNoise
from hubbub.mechanisms.lattice import Lattice
from hubbub.numeric.enclosure import exp_minus
from hubbub.numeric.rational import (
    SMALLEST,
    Number,
    count,
    float_up,
    floor_log2,
    fraction_between,
    is_whole,
    one_of,
    positive,
)
from hubbub.privacy.families import LaplaceDP, PureDP
from hubbub.privacy.finite import TruncatedLaplaceDP
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours
from hubbub.randomness.laplace import DiscreteLaplace, RoundedLaplace, TruncatedDiscreteLaplace
from hubbub.randomness.laws import SymmetricLaw

MORE_PRIVACY = "smaller positive values mean more privacy"


@dataclass(frozen=True, init=False)
class Laplace(AdditiveNoise):
    """Adds Laplace noise of scale sensitivity/epsilon: pure privacy for counts, sums and vectors of them.

    ``sensitivity`` is the L1 sensitivity of everything released at once: the largest sum, over all coordinates, of
    the changes one person can cause. An int makes an integer mechanism (two-sided geometric noise), a float one a
    grid mechanism (continuous Laplace noise rounded to a public grid).

    Claim: epsilon-DP for values whose L1 distance between neighbours is at most ``sensitivity``, and no less at that
        distance. The loss is PureDP for integers and LaplaceDP, which composes better, for floats.
    Proof: GRS09 (integers): probabilities are proportional to e**(-|k|/scale), so a shift of total length D changes
        them by at most e**(D/scale). Floats: flooring to the input grid makes D at most sensitivity + max_length
        steps, which the scale includes; the rounded noise is post-processing of a continuous Laplace (DMNS06).
    Assumes: the stated sensitivity, for this neighbour relation; vectors of one public length.

    >>> m = Laplace(1, epsilon=0.5)
    >>> m.scale, m.loss, m.error(0.95)
    (2.0, PureDP(0.5, neighbours='add-remove'), 6)
    >>> isinstance(m.release(42), int)
    True
    """

    norm: ClassVar[Literal[1, 2]] = 1
    sensitivity: Number
    epsilon: float
    scale: float
    neighbours: Neighbours
    max_length: int
    _law: SymmetricLaw = field(init=False, repr=False)
    _lattice: Lattice | None = field(init=False, repr=False)

    def __init__(
        self,
        sensitivity: Number,
        *,
        epsilon: Number | None = None,
        scale: Number | None = None,
        neighbours: Neighbours = "add-remove",
        max_length: int = MAX_LENGTH,
    ) -> None:
        largest = positive("sensitivity", sensitivity)
        given = one_of(epsilon=epsilon, scale=scale)
        length = count("max_length", max_length)
        width = largest / positive("epsilon", given, MORE_PRIVACY) if scale is None else positive("scale", given)
        lattice = None
        if not is_whole(sensitivity):
            lattice = Lattice.beneath(largest, width, length)
            reach = largest + length * lattice.step
            width = width if epsilon is None else width * reach / largest
            largest = reach
        self._fill(
            sensitivity=sensitivity,
            epsilon=float_up(largest / width),
            scale=float(width),
            neighbours=check_neighbours(neighbours),
            max_length=length,
            _lattice=lattice,
            _law=RoundedLaplace(width / lattice.step) if lattice else DiscreteLaplace(width),
        )

    @property
    def loss(self) -> Loss:
        kind = PureDP if self._lattice is None else LaplaceDP
        return kind(self.epsilon, neighbours=self.neighbours)


@dataclass(frozen=True, init=False)
class TruncatedLaplace(AdditiveNoise):
    """Adds Laplace noise that never exceeds a bound: (epsilon, delta)-privacy with certain error.

    ``sensitivity`` is the L1 sensitivity of everything released at once. The bound is the smallest (on the grid)
    whose probability of leaving the neighbour's range is at most delta; near sensitivity/epsilon * ln(1 +
    (e**epsilon - 1)/(2 delta)).

    Claim: (epsilon, delta)-DP for values whose L1 distance between neighbours is at most ``sensitivity``. The loss is
        that of the law that runs, TruncatedLaplaceDP, whose delta may be a little smaller than asked for.
    Proof: GDGK20, Theorem 1, in integers. Where both ranges overlap, probabilities differ by at most e**epsilon. The
        mass outside is at most sum T(t_i) over coordinate shifts t_i, T(t) = P(noise > bound - t); T is convex with
        T(0) = 0, so the sum is at most T(sensitivity), which is computed with outward rounding to be at most delta.
    Assumes: the stated sensitivity, for this neighbour relation; vectors of one public length.

    >>> m = TruncatedLaplace(1, epsilon=1.0, delta=1e-6)
    >>> m.bound, abs(m.release(100) - 100) <= m.bound
    (14, True)
    >>> m.loss.epsilon(m.delta) <= m.epsilon, m.loss.delta(m.epsilon) <= m.delta
    (True, True)
    """

    norm: ClassVar[Literal[1, 2]] = 1
    sensitivity: Number
    epsilon: float
    delta: float
    bound: float
    neighbours: Neighbours
    max_length: int
    _law: SymmetricLaw = field(init=False, repr=False)
    _lattice: Lattice | None = field(init=False, repr=False)
    _loss: TruncatedLaplaceDP = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        sensitivity: Number,
        *,
        epsilon: Number,
        delta: Number,
        neighbours: Neighbours = "add-remove",
        max_length: int = MAX_LENGTH,
    ) -> None:
        largest = positive("sensitivity", sensitivity)
        price = positive("epsilon", epsilon, MORE_PRIVACY)
        failure = fraction_between("delta", delta, 0, 1, "give the largest probability of a greater leak, such as 1e-6")
        length = count("max_length", max_length)
        spread = largest / price * Fraction(min(1.0, _bound_in_scales(price, failure)))
        lattice = None if is_whole(sensitivity) else Lattice.beneath(largest, spread, length)
        reach = math.ceil(largest / lattice.step) + length if lattice else int(largest)
        bound, outside = _truncation(reach, price, failure)
        if outside < SMALLEST or float_up(outside) > float_up(failure):
            outside = failure
        self._fill(
            sensitivity=sensitivity,
            epsilon=float_up(price),
            delta=float_up(failure),
            bound=float(bound * lattice.step) + lattice.spacing if lattice else bound,
            neighbours=check_neighbours(neighbours),
            max_length=length,
            _lattice=lattice,
            _law=TruncatedDiscreteLaplace(reach / price, bound),
            _loss=TruncatedLaplaceDP(price, outside, reach, neighbours),
        )

    @property
    def loss(self) -> Loss:
        return self._loss


def _bound_in_scales(epsilon: Fraction, delta: Fraction) -> float:
    """Roughly where the noise is cut, in units of its scale: ln(1 + (e**epsilon - 1)/(2 delta))."""
    return (
        math.log1p(math.expm1(min(float(epsilon), 700.0)) / (2 * float(delta))) if delta > Fraction(1, 10**200) else 1.0
    )


def _truncation(reach: int, epsilon: Fraction, delta: Fraction) -> tuple[int, Fraction]:
    """The smallest bound A >= reach with P(noise > A - reach) <= delta, and that probability, rounded up.

    The noise has scale reach/epsilon on -A..A. With r = e**(-epsilon/reach), the probability is (r**(A-reach+1) -
    r**(A+1)) / (1 + r - 2 r**(A+1)).
    """
    scale = reach / epsilon
    bits = 256 + max(0, -floor_log2(delta)) + max(0, floor_log2(scale))

    def outside(bound: int) -> Fraction:
        start = exp_minus((bound - reach + 1) / scale, bits)
        end = exp_minus((bound + 1) / scale, bits)
        ratio = exp_minus(1 / scale, bits)
        return Fraction(start[1] - end[0], (1 << bits) + ratio[0] - 2 * end[1])

    low, high = reach - 1, max(2 * reach, 2)
    while outside(high) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if outside(middle) <= delta else (middle, high)
    return high, outside(high)
