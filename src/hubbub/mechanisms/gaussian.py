"""Gaussian noise: rounded continuous (the usual choice) and discrete."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal

from hubbub.errors import DataTypeError, ParameterError
from hubbub.mechanisms.additive import MAX_LENGTH, AdditiveNoise
from hubbub.mechanisms.laplace import MORE_PRIVACY
from hubbub.mechanisms.lattice import Lattice
from hubbub.numeric.rational import Number, count, float_down, float_up, fraction_between, is_whole, one_of, positive
from hubbub.privacy.calibration import calibrate
from hubbub.privacy.discrete import DiscreteGaussianDP
from hubbub.privacy.families import ZCDP, GaussianDP
from hubbub.privacy.gaussian import largest_mu
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours
from hubbub.randomness.gaussian import DiscreteGaussian as DiscreteGaussianLaw
from hubbub.randomness.gaussian import RoundedGaussian
from hubbub.randomness.laws import SymmetricLaw

NEEDS_DELTA = "a Gaussian is never private at delta 0; give delta= such as 1e-6, or use Laplace"


@dataclass(frozen=True, init=False)
class Gaussian(AdditiveNoise):
    """Adds Gaussian noise, a continuous normal rounded to integers or to a public grid: for vectors and many questions.

    ``sensitivity`` is the L2 sensitivity of everything released at once: the largest Euclidean length, over all
    coordinates, of the change one person can cause. Give epsilon and delta (the least sigma is found), or sigma.

    Claim: GaussianDP(sensitivity/sigma), hence (epsilon, delta)-DP at the asked pair, in every dimension.
    Proof: BW18, Theorem 8 for the continuous law; rounding value + noise is post-processing, and rounding commutes
        with adding an integer value. Floats: flooring to the input grid makes the L2 distance at most sensitivity +
        sqrt(max_length) steps, which sigma includes. The calibration is confirmed by enclosures.
    Assumes: the stated sensitivity, for this neighbour relation; vectors of one public length.

    >>> m = Gaussian(1, epsilon=1.0, delta=1e-5)
    >>> round(m.sigma, 5), m.loss.delta(1.0) <= 1e-5
    (3.73063, True)
    """

    norm: ClassVar[Literal[1, 2]] = 2
    sensitivity: Number
    sigma: float
    neighbours: Neighbours
    max_length: int
    _law: SymmetricLaw = field(init=False, repr=False)
    _lattice: Lattice | None = field(init=False, repr=False)
    _mu: float = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        sensitivity: Number,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        sigma: Number | None = None,
        neighbours: Neighbours = "add-remove",
        max_length: int = MAX_LENGTH,
    ) -> None:
        largest = positive("sensitivity", sensitivity)
        length = count("max_length", max_length)
        one_of(epsilon=epsilon, sigma=sigma)
        mu = None
        if sigma is None:
            mu = _mu(epsilon, delta)
            width = largest / mu
        elif delta is not None:
            raise ParameterError("delta", delta, "goes with epsilon, not with sigma", "ask loss.delta(epsilon) instead")
        else:
            width = positive("sigma", sigma)
        lattice = None
        if not is_whole(sensitivity):
            root = math.isqrt(length - 1) + 1
            lattice = Lattice.beneath(largest, width, root)
            largest += root * lattice.step
        if mu is not None:
            width = Fraction(float_up(largest / mu))
        self._fill(
            sensitivity=sensitivity,
            sigma=float(width),
            neighbours=check_neighbours(neighbours),
            max_length=length,
            _lattice=lattice,
            _law=RoundedGaussian(width / lattice.step if lattice else width),
            _mu=float_up(largest / width),
        )

    @classmethod
    def classical(
        cls, sensitivity: Number, *, epsilon: Number, delta: Number, neighbours: Neighbours = "add-remove"
    ) -> Gaussian:
        """The notes' formula sigma = sensitivity * sqrt(2 ln(1.25/delta)) / epsilon, for teaching and comparison.

        Refused for epsilon >= 1, where it is not proved; it is false from about 8.4 on at delta 1e-5.

        >>> round(Gaussian.classical(1, epsilon=0.5, delta=1e-5).sigma, 3)
        9.69
        """
        price = positive("epsilon", epsilon, MORE_PRIVACY)
        failure = fraction_between("delta", delta, 0, 1, NEEDS_DELTA)
        if price >= 1:
            raise ParameterError(
                "epsilon",
                epsilon,
                "must be < 1 for the classical formula",
                "use Gaussian(...), which is calibrated exactly",
            )
        factor = math.sqrt(2 * math.log(1.25 / float(failure))) * (1 + 2.0**-48)
        sigma = float_up(positive("sensitivity", sensitivity) * Fraction(factor) / price)
        return cls(sensitivity, sigma=sigma, neighbours=neighbours)

    @property
    def mu(self) -> float:
        """The parameter of its loss: sensitivity over sigma, rounded up, the grid's slack included."""
        return self._mu

    @property
    def loss(self) -> Loss:
        return GaussianDP(self._mu, neighbours=self.neighbours)


def _mu(epsilon: Number | None, delta: Number | None) -> Fraction:
    """The largest mu private at (epsilon, delta), after checking both."""
    price = positive("epsilon", epsilon, MORE_PRIVACY)
    if delta is None or delta == 0:
        raise ParameterError("delta", delta, "must be > 0", NEEDS_DELTA)
    return Fraction(largest_mu(price, fraction_between("delta", delta, 0, 1)))


@dataclass(frozen=True, init=False)
class DiscreteGaussian(AdditiveNoise):
    """Adds discrete Gaussian noise, probability proportional to e**(-k*k/(2 sigma**2)), to integers.

    ``sensitivity`` is the L2 sensitivity of everything released at once, an int or not; values are integers. With
    ``max_length=1``, only single numbers are released, at the law's own and lower price.

    Claim: zCDP with rho = sensitivity**2 / (2 sigma**2), in every dimension; DiscreteGaussianDP for single numbers.
    Proof: CKS20, Theorem 4 (coordinates of independent noise add up to the squared L2 length). Single integers move
        by whole steps, at most the sensitivity rounded down.
    Assumes: the stated sensitivity, for this neighbour relation; vectors of one public length.

    >>> DiscreteGaussian(1, sigma=2).loss
    ZCDP(rho=0.125, neighbours='add-remove')
    >>> DiscreteGaussian(1, sigma=2, max_length=1).loss
    DiscreteGaussianDP(sensitivity=1, sigma=2.0, neighbours='add-remove')
    """

    norm: ClassVar[Literal[1, 2]] = 2
    sensitivity: Number
    sigma: float
    neighbours: Neighbours
    max_length: int
    _law: SymmetricLaw = field(init=False, repr=False)
    _width: Fraction = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        sensitivity: Number,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        sigma: Number | None = None,
        neighbours: Neighbours = "add-remove",
        max_length: int = MAX_LENGTH,
    ) -> None:
        largest = positive("sensitivity", sensitivity)
        length = count("max_length", max_length)
        one_of(epsilon=epsilon, sigma=sigma)
        if sigma is not None and delta is not None:
            raise ParameterError("delta", delta, "goes with epsilon, not with sigma", "ask loss.delta(epsilon) instead")
        if sigma is not None:
            width = positive("sigma", sigma)
        elif length == 1:
            width = _single_sigma(_whole(largest), epsilon, delta)
        else:
            width = largest * _concentrated_sigma(epsilon, delta)
        self._fill(
            sensitivity=sensitivity,
            sigma=float(width),
            neighbours=check_neighbours(neighbours),
            max_length=length,
            _lattice=None,
            _law=DiscreteGaussianLaw(width**2),
            _width=width,
        )

    @property
    def loss(self) -> Loss:
        largest = positive("sensitivity", self.sensitivity)
        if self.max_length == 1:
            return DiscreteGaussianDP(_whole(largest), float_down(self._width), self.neighbours)
        return ZCDP(float_up(largest**2 / (2 * self._width**2)), neighbours=self.neighbours)

    def _check_length(self, length: int) -> None:
        if self.max_length == 1 and length > 1:
            raise DataTypeError(f"{length} values are more than max_length=1, for which the loss is priced")


def _whole(sensitivity: Fraction) -> int:
    """How far one integer can move."""
    return max(1, math.floor(sensitivity))


def _single_sigma(sensitivity: int, epsilon: Number | None, delta: Number | None) -> Fraction:
    """A sigma whose price for single numbers is at most epsilon at delta, one part in a million from the least."""
    most = float_up(sensitivity * _concentrated_sigma(epsilon, delta))
    found = calibrate(
        lambda sigma: DiscreteGaussianDP(sensitivity, sigma),
        epsilon=epsilon or 0,
        delta=delta or 0,
        low=most / 2,
        high=most,
    )
    return positive("sigma", found)


def _concentrated_sigma(epsilon: Number | None, delta: Number | None) -> Fraction:
    """A sigma for sensitivity 1 whose zCDP price is at most epsilon at delta, within one part in 1e9 of the least."""
    price = positive("epsilon", epsilon, MORE_PRIVACY)
    if delta is None or delta == 0:
        raise ParameterError("delta", delta, "must be > 0", NEEDS_DELTA)
    failure = fraction_between("delta", delta, 0, 1)
    low, high = 2.0**-20, 2.0**20
    while ZCDP(1 / (2 * high**2)).epsilon(failure) > price:
        high *= 1024
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if ZCDP(1 / (2 * middle**2)).epsilon(failure) <= price else (middle, high)
    return Fraction(high * (1 + 1e-9))
