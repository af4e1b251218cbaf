"""Losses of mechanisms that see only a secret random sample of the records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.numeric.rational import Number, count, float_down, float_up, positive, rational
from hubbub.privacy import renyi as renyi_forms
from hubbub.privacy.families import GaussianDP
from hubbub.privacy.loss import Composed, Loss, Neighbours, Scheme, check_neighbours, nudged_up
from hubbub.privacy.pairs import GaussianMixturePair, GaussianPair, Pair, PoissonPair, WithoutReplacementPair, mixed

MOST_PEOPLE = 500


@dataclass(frozen=True)
class Subsampled(Loss):
    """A loss of which each record takes part only by chance.

    ``poisson``: every record independently with probability ``rate``, under add-remove. ``without-replacement``: a
    sample of fixed size, a share ``rate`` of all, under replace-one. A shuffled pass over the data is neither, and
    has no such price.

    Claim: the price of the mixture (1 - rate) Q + rate P against Q and its reverse; without replacement, its
        symmetric form.
    Proof: ZDW22, Theorem 11 (Poisson) and Theorem 8 with BBG18 (without replacement), for symmetric dominating pairs.
    Assumes: the sample is secret and drawn afresh; the base is priced for one record that takes part for certain.

    >>> from hubbub.privacy import GaussianDP
    >>> round((GaussianDP(1.0).subsample(0.01) * 1000).epsilon(1e-5), 2)
    1.83
    """

    base: Loss
    rate: float
    scheme: Scheme
    neighbours: Neighbours
    tag: ClassVar[str] = "subsampled"

    def __init__(self, base: Loss, rate: Number, scheme: Scheme = "poisson") -> None:
        share = rational("rate", rate)
        if not 0 < share <= 1:
            raise ParameterError("rate", rate, "must lie in (0, 1]")
        if scheme not in ("poisson", "without-replacement"):
            raise ParameterError(
                "scheme", scheme, 'must be "poisson" or "without-replacement"', "shuffled batches are not amplified"
            )
        wanted = "add-remove" if scheme == "poisson" else "replace"
        if base.neighbours != wanted:
            raise ParameterError(
                "neighbours", base.neighbours, f"does not go with {scheme} sampling", f"state the base under {wanted}"
            )
        pair = None if isinstance(base, Composed) else base._pair()
        if pair is None or not pair.symmetric or pair.infinity:
            raise ParameterTypeError("loss", base, "cannot be subsampled", "give one pure, Laplace or Gaussian loss")
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "rate", float_up(share))
        object.__setattr__(self, "scheme", scheme)
        object.__setattr__(self, "neighbours", base.neighbours)

    def _pair(self) -> Pair:
        pair = self.base._pair()
        assert pair is not None
        return PoissonPair(pair, self.rate) if self.scheme == "poisson" else WithoutReplacementPair(pair, self.rate)

    def _attained(self) -> bool:
        return self.base._attained()

    def _pure(self) -> Fraction | None:
        pure = self.base._pure()
        if pure is None:
            return None
        return min(pure, Fraction(nudged_up(mixed(float_up(pure), self.rate))))

    def renyi(self, order: Number) -> float:
        a = renyi_forms.check_order(order)
        if isinstance(self.base, GaussianDP) and self.scheme == "poisson":
            return nudged_up(renyi_forms.of_poisson_gaussian(a, 1 / self.base.mu, self.rate))
        pure = self._pure()
        whole = self.base.renyi(order)  # mixing cannot increase a divergence (joint convexity)
        return whole if pure is None else min(whole, nudged_up(renyi_forms.of_randomised_response(a, float(pure))))

    def _group(self, size: int) -> Loss:
        if not (isinstance(self.base, GaussianDP) and self.scheme == "poisson"):
            return super()._group(size)
        return SampledGaussian(float_down(1 / rational("mu", self.base.mu)), self.rate, people=size)

    def _replaced(self) -> Loss:
        if not (isinstance(self.base, GaussianDP) and self.scheme == "poisson"):
            return super()._replaced()
        # a smaller noise multiplier is the safe side
        return SampledGaussian(Fraction(1) / Fraction(nudged_up(self.base.mu)), self.rate, neighbours="replace")

    def _fields(self) -> dict[str, Any]:
        return {"base": self.base.to_dict(), "rate": self.rate, "scheme": self.scheme}


@dataclass(frozen=True)
class SampledGaussian(Loss):
    """A sum of vectors of norm at most 1 over a Poisson sample, plus Gaussian noise of this standard deviation.

    Under replace-one, one vector takes the place of another; with ``people`` > 1, so many all join or all leave.

    Claim: add-remove: the mixture of N(j, s**2), j binomial(people, rate), against N(0, s**2), and its reverse.
        Replace: the mixtures (1 - rate) N(0) + rate N(1) and (1 - rate) N(0) + rate N(-1).
    Proof: ZDW22, Theorem 11 and DGKKM22, Section 5 (mixtures of Gaussians); a person's vector has norm at most 1,
        the worst directions are opposite.
    Assumes: the sample is secret and drawn afresh; every vector is clipped to norm 1 (in units of the noise
        multiplier).

    >>> round((SampledGaussian(1.0, 0.01, neighbours="replace") * 1000).epsilon(1e-5), 2)
    2.84
    """

    noise_multiplier: float
    rate: float
    people: int
    neighbours: Neighbours
    tag: ClassVar[str] = "sampled gaussian"

    def __init__(
        self, noise_multiplier: Number, rate: Number, people: int = 1, neighbours: Neighbours = "add-remove"
    ) -> None:
        share = rational("rate", rate)
        if not 0 < share <= 1:
            raise ParameterError("rate", rate, "must lie in (0, 1]")
        if check_neighbours(neighbours) == "replace" and people != 1:
            raise ParameterError("people", people, "must be 1 under replace-one")
        object.__setattr__(self, "noise_multiplier", float(positive("noise_multiplier", noise_multiplier)))
        object.__setattr__(self, "rate", float_up(share))
        if count("people", people) > MOST_PEOPLE:
            raise ParameterError("people", people, f"must be at most {MOST_PEOPLE}")
        object.__setattr__(self, "people", int(people))
        object.__setattr__(self, "neighbours", neighbours)

    def _pair(self) -> Pair:
        q, s = self.rate, self.noise_multiplier
        if self.neighbours == "replace":
            return GaussianMixturePair(((1 - q, 0.0), (q, 1.0)), ((1 - q, 0.0), (q, -1.0)), s, symmetric=True)
        if self.people == 1:
            return PoissonPair(GaussianPair(1 / s), q)
        weights = [
            (math.comb(self.people, j) * q**j * (1 - q) ** (self.people - j), float(j)) for j in range(self.people + 1)
        ]
        return GaussianMixturePair(tuple(weights), ((1.0, 0.0),), s)

    def renyi(self, order: Number) -> float:
        a = renyi_forms.check_order(order)
        if self.neighbours == "add-remove" and self.people == 1:
            return nudged_up(renyi_forms.of_poisson_gaussian(a, self.noise_multiplier, self.rate))
        steps = 2 if self.neighbours == "replace" else self.people
        return nudged_up(a * (steps / self.noise_multiplier) ** 2 / 2)

    def _group(self, size: int) -> Loss:
        return SampledGaussian(self.noise_multiplier, self.rate, self.people * size, self.neighbours)

    def _replaced(self) -> Loss:
        return SampledGaussian(self.noise_multiplier, self.rate, self.people, "replace")

    def _fields(self) -> dict[str, Any]:
        return {"noise_multiplier": self.noise_multiplier, "rate": self.rate, "people": self.people}
