"""Plans of federated training: who takes part, what is clipped, whose noise hides it, for how long, and the price."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self, get_args

from hubbub.errors import ParameterError
from hubbub.learning.federated.closeness import root_of_rho
from hubbub.numeric.rational import Number, count, float_up, positive, rational
from hubbub.privacy.calibration import LEAST_NOISE, MOST_NOISE, calibrate
from hubbub.privacy.families import ZCDP, GaussianDP, NoLoss
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours, nudged_up
from hubbub.privacy.sampling import SampledGaussian

Sampling = Literal["poisson", "fixed"]
Clipping = Literal["flat", "adaptive"]

MOST_ROUNDS = 10**6
COUNT_NOISE = 0.05
"""Adaptive clipping: the standard deviation of the noise on a count, as a share of the cohort."""
SPREAD = 6.0
"""Distributed noise: sums wrap around beyond so many standard deviations."""
LEAST_SHARE = Fraction(1, 2)
"""The least variance of the noise in one share."""


class Priced(ABC):
    """What plans have in common: JSON, the price of the whole, and a noise that is found rather than given."""

    rounds: int
    tag: ClassVar[str]

    @abstractmethod
    def spent(self, rounds: int) -> Loss:
        """What so many rounds cost, every round's result being seen."""

    @property
    def loss(self) -> Loss:
        """What all rounds cost."""
        return self.spent(self.rounds)

    @classmethod
    def calibrated(cls, *, epsilon: Number, delta: Number, **rest: Any) -> Self:
        """The plan with the least noise that keeps (epsilon, delta).

        Claim: the plan's loss has epsilon(delta) at most the given.
        Proof: that of ``calibrate``.
        Assumes: what the plan assumes.
        """
        if "noise" in rest:
            raise ParameterError("noise", rest["noise"], "is found for the given epsilon", "leave it out")
        low, high = cls._noises(rest)
        made: Callable[..., Self] = cls

        def loss(noise: float) -> Loss:
            return made(noise=noise, **rest).loss

        return made(noise=calibrate(loss, epsilon=epsilon, delta=delta, low=low, high=high), **rest)

    @classmethod
    def _noises(cls, rest: dict[str, Any]) -> tuple[float, float]:  # noqa: ARG003
        """Where to look for a noise."""
        return LEAST_NOISE, MOST_NOISE

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {"plan": self.tag, **asdict(self)}  # type: ignore[call-overload]

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The plan that plain data stand for."""
        if data.get("plan") != cls.tag:
            raise ParameterError("plan", data.get("plan"), f"is not {cls.tag}")
        return cls(**{field.name: data[field.name] for field in fields(cls)})  # type: ignore[arg-type]

    def _check(self, numbers: tuple[str, ...], words: tuple[tuple[str, Any], ...] = ()) -> None:
        if count("rounds", self.rounds) > MOST_ROUNDS:
            raise ParameterError("rounds", self.rounds, f"must be at most {MOST_ROUNDS}")
        for name in numbers:
            object.__setattr__(self, name, float(positive(name, getattr(self, name))))
        for name, kind in words:
            if getattr(self, name) not in get_args(kind):
                raise ParameterError(name, getattr(self, name), f"must be one of {', '.join(get_args(kind))}")


@dataclass(frozen=True)
class CentralPlan(Priced):
    """Central noise: the server, which is trusted, clips every client's update and adds noise to the sum, once.

    The unit is one registered client with all its data. ``rate`` is the chance of a client to take part in a round,
    ``noise`` the standard deviation of the noise on a sum in units of ``clip``, ``cohort`` the constant by which noisy
    sums are divided. ``clients`` is the number of clients where that is public: needed by fixed cohorts.

    Claim: ``loss`` bounds what all rounds together tell of one client, under ``neighbours``.
    Proof: a round releases a sum of vectors no longer than ``clip``, one for each client of a secret cohort (zero for
        one that does not answer), by a Gaussian of standard deviation noise * clip, and post-processes it.
        poisson: SampledGaussian; at rate 1, GaussianDP of 1/noise, under replace 2/noise; fixed: Subsampled without
        replacement, two opposite vectors 2 clip apart.
        adaptive: a round releases (sum/clip, count - size/2) with noises z and b; a client moves it by at most
        (1, 1/2), and 1/noise**2 = 1/z**2 + 1/(2 b)**2 makes that a Gaussian round of multiplier ``noise`` (ATMR21).
    Assumes: cohorts are drawn afresh and kept secret; a client's update depends on its own data and on released models
        alone, and so does whether it answers; one person is behind one client.

    >>> plan = CentralPlan.calibrated(epsilon=3, delta=1e-5, rounds=50, rate=0.1, cohort=100)
    >>> plan.loss.epsilon(1e-5) <= 3
    True
    """

    rounds: int
    rate: float
    noise: float
    cohort: float
    clip: float = 1.0
    sampling: Sampling = "poisson"
    neighbours: Neighbours = "add-remove"
    clipping: Clipping = "flat"
    clients: int | None = None
    tag: ClassVar[str] = "central"

    def __post_init__(self) -> None:
        self._check(("noise", "cohort", "clip"), (("sampling", Sampling), ("clipping", Clipping)))
        share = rational("rate", self.rate)
        if not 0 < share <= 1:
            raise ParameterError("rate", self.rate, "must lie in (0, 1]", "it is the expected cohort over the clients")
        object.__setattr__(self, "rate", float_up(share))
        check_neighbours(self.neighbours)
        if self.clients is not None:
            count("clients", self.clients)
        if self.sampling == "fixed":
            self._check_fixed()
        if self.clipping == "adaptive":
            _ = self.sum_noise

    def _check_fixed(self) -> None:
        if self.neighbours != "replace":
            raise ParameterError(
                "neighbours", self.neighbours, "does not go with fixed cohorts, whose size is public", 'use "replace"'
            )
        if self.clients is None:
            raise ParameterError("clients", None, "must be given for fixed cohorts: their number is public")
        size = count("cohort", round(self.cohort))
        if size != self.cohort or size > self.clients or abs(size / self.clients - self.rate) > 1e-12:
            raise ParameterError("cohort", self.cohort, "must be a whole number, rate * clients, for fixed cohorts")

    def spent(self, rounds: int) -> Loss:
        if not rounds:
            return NoLoss(self.neighbours)
        if self.sampling == "fixed":
            assert self.clients is not None
            share = rational("cohort", self.cohort) / self.clients
            return GaussianDP(nudged_up(2 / self.noise), "replace").subsample(share, "without-replacement") * rounds
        if self.rate == 1:
            reach = 1 if self.neighbours == "add-remove" else 2
            return GaussianDP(nudged_up(reach / self.noise), self.neighbours) * rounds
        return SampledGaussian(self.noise, self.rate, neighbours=self.neighbours) * rounds

    @property
    def sum_noise(self) -> float:
        """The multiplier of the noise on sums; larger than ``noise`` where clipping adapts, which takes its share."""
        if self.clipping != "adaptive":
            return self.noise
        left = 1 / Fraction(self.noise) ** 2 - 1 / (4 * Fraction(self.count_noise) ** 2)
        if left <= 0:
            raise ParameterError("noise", self.noise, f"must be below {2 * self.count_noise:g} for adaptive clipping")
        return nudged_up(float(1 / left) ** 0.5)

    @property
    def count_noise(self) -> float:
        """Adaptive clipping: the standard deviation of the noise on how many clients were not clipped."""
        return max(COUNT_NOISE * self.cohort, 2.0)

    @classmethod
    def _noises(cls, rest: dict[str, Any]) -> tuple[float, float]:
        if rest.get("clipping") == "adaptive":
            return LEAST_NOISE, 1.9 * max(COUNT_NOISE * float(rest.get("cohort", 0)), 2.0)
        return LEAST_NOISE, MOST_NOISE


@dataclass(frozen=True)
class LocalPlan(Priced):
    """Local noise: every client clips and adds noise to its own update before it leaves; nobody else is trusted.

    ``noise`` is the standard deviation of the noise in units of ``clip``, ``rounds`` the most in which one client takes
    part. What a client's owner pays is ``spent`` of the rounds that client took part in.

    Claim: ``spent(k)`` bounds what k reports of one client tell of its data, under replace: any data in place of any.
    Proof: a report is a function of a vector no longer than ``clip`` plus a Gaussian of standard deviation
        noise * clip; two such vectors are at most 2 clip apart: GaussianDP(2/noise), composed. Clients do not see each
        other's data, so what all reports tell of one client is what its own tell.
    Assumes: reports leave the client only through ``LocalNoise``; that it answers, and when, says nothing of its data.

    >>> plan = LocalPlan.calibrated(epsilon=8, delta=1e-5, rounds=10)
    >>> plan.spent(1).epsilon(1e-5) < plan.loss.epsilon(1e-5) <= 8
    True
    """

    rounds: int
    noise: float
    clip: float = 1.0
    tag: ClassVar[str] = "local"

    def __post_init__(self) -> None:
        self._check(("noise", "clip"))

    def spent(self, rounds: int) -> Loss:
        return GaussianDP(nudged_up(2 / self.noise), "replace") * rounds if rounds else NoLoss("replace")


@dataclass(frozen=True)
class DistributedPlan(Priced):
    """Distributed noise: clients add shares of it, and only sums of their shares, modulo 2**bits, are to be seen.

    ``noise`` is the standard deviation, in units of ``clip``, of the noise in a sum of ``honest`` shares. A round with
    fewer answers than ``honest + dishonest`` releases nothing. ``length`` is the number of coordinates that are sent,
    ``clients`` the most that take part: it decides how fine the grid is, not the price.

    Claim: ``loss`` bounds what all sums together tell of one client, under ``neighbours``; add-remove stands for its
        data against none (the zero vector: that it takes part is public).
    Proof: a client's whole vector is no longer than ``radius`` (checked after rounding), and every honest share has
        discrete Gaussian noise of variance ``share``. Sums of the shares are within a factor of one discrete Gaussian
        (``closeness``): ZCDP(root_of_rho**2/2) a round. Other shares, the modulus and what follows are post-processing.
    Assumes: in every sum that is released, ``honest`` clients drew their noise as said and do not tell of it; nobody
        sees less than sums (``Masked`` or an aggregator that is trusted for this); whether clients answer says nothing
        of their data.

    >>> plan = DistributedPlan.calibrated(epsilon=4, delta=1e-5, rounds=10, honest=50, clients=60, length=1000)
    >>> plan.loss.epsilon(1e-5) <= 4, plan.bits
    (True, 16)
    """

    rounds: int
    noise: float
    honest: int
    clients: int
    length: int
    clip: float = 1.0
    bits: int = 16
    dishonest: int = 0
    neighbours: Neighbours = "add-remove"
    tag: ClassVar[str] = "distributed"

    def __post_init__(self) -> None:
        self._check(("noise", "clip"))
        check_neighbours(self.neighbours)
        for name in ("honest", "length"):
            count(name, getattr(self, name))
        count("dishonest", self.dishonest, least=0)
        if count("clients", self.clients) < self.needed:
            raise ParameterError("clients", self.clients, "must be at least honest + dishonest")
        if not 4 <= count("bits", self.bits) <= 32:
            raise ParameterError("bits", self.bits, "must lie between 4 and 32")
        if self.radius_squared >= 2**61:
            raise ParameterError("bits", self.bits, "is more than so little noise can use", "allow fewer")
        if self.steps < 1 or self.share < LEAST_SHARE:
            raise ParameterError("bits", self.bits, "is too few for so many clients and so much noise", "allow more")

    @property
    def needed(self) -> int:
        """How many must answer."""
        return self.honest + self.dishonest

    @property
    def width(self) -> int:
        """The coordinates after rotation: the next power of two."""
        return 1 << (self.length - 1).bit_length()

    @property
    def steps(self) -> int:
        """How many grid steps the clip norm has: as many as let a sum's bulk fit into the modulus."""
        grown = self.noise**2 * self.clients / self.honest + self.clients**2 / self.width
        return int(2 ** (self.bits - 1) / (SPREAD * math.sqrt(grown)))

    @property
    def radius_squared(self) -> int:
        """The largest squared length of a client's whole vector, rounding included (of which about half pass)."""
        root = math.sqrt(self.width)
        return math.floor(min((self.steps + root) ** 2, self.steps**2 + self.width / 4 + self.steps + root / 2))

    @property
    def share(self) -> Fraction:
        """The variance parameter of the noise in one share, in steps; a multiple of 1/16."""
        wanted = Fraction(self.noise) ** 2 * self.radius_squared / self.honest
        return Fraction(math.ceil(16 * wanted), 16)

    @classmethod
    def _noises(cls, rest: dict[str, Any]) -> tuple[float, float]:
        """The least and the most that the grid has room for."""
        fitting = []
        for k in range(-80, 161):
            try:
                fitting.append(cls(noise=10 ** (k / 20), **rest).noise)
            except ParameterError as refusal:
                if refusal.name != "bits" or not 4 <= int(rest.get("bits", 16)) <= 32:
                    raise
        if not fitting:
            raise ParameterError("bits", rest.get("bits", 16), "is too few for so many clients", "allow more")
        return fitting[0], fitting[-1]

    def spent(self, rounds: int) -> Loss:
        if not rounds:
            return NoLoss(self.neighbours)
        reach = 1 if self.neighbours == "add-remove" else 2
        shift = nudged_up(reach * math.sqrt(float(self.radius_squared / (self.honest * self.share)) * (1 + 2.0**-48)))
        root = root_of_rho(shift, self.share, self.honest, self.width)
        return ZCDP(nudged_up(root**2 / 2), self.neighbours) * rounds
