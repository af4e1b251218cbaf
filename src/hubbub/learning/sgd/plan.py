"""The plan of a private training: how batches are drawn, what is clipped, how much noise, how often, and its price."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal, get_args

from hubbub.errors import ParameterError
from hubbub.numeric.rational import Number, count, float_up, positive, rational
from hubbub.privacy.calibration import LEAST_NOISE, MOST_NOISE, calibrate
from hubbub.privacy.families import ApproxDP, GaussianDP, NoLoss
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours, nudged_up
from hubbub.privacy.sampling import SampledGaussian

Sampling = Literal["poisson", "truncated", "fixed", "shuffled"]
Clipping = Literal["flat", "automatic", "adaptive"]

FARTHEST = 50.0
"""Up to this epsilon the price of cut batches is added up; above it, the price at it is taken."""
RARE = 1e-40
"""How rarely a cut batch may occur in a whole run before the plan is refused."""
QUANTILE_NOISE = 0.05
"""Adaptive clipping: the standard deviation of the noise on a count, as a share of the batch."""
MOST_STEPS = 10**7


@dataclass(frozen=True)
class Plan:
    """How a model is trained privately, and what that costs. Everything in it is public.

    ``rate`` is the chance of a record to take part in a step, ``noise`` the standard deviation of the noise in units of
    ``clip``, ``batch`` the constant by which noisy sums are divided. ``rows`` is the number of records where that is
    public: needed by all samplings but "poisson".

    Claim: ``loss`` bounds what all steps together tell of one record, under ``neighbours``.
    Proof: a step releases a sum of vectors no longer than ``clip``, one for each record of a secret sample, by a
        Gaussian of standard deviation noise * clip, and post-processes it (division by a constant, any optimiser).
        poisson: SampledGaussian; fixed: Subsampled without replacement, two opposite vectors 2 clip apart;
        shuffled: a record is in one batch of each pass, and replacing it moves that sum by at most 2 clip, so a pass
        costs GaussianDP(2/noise), and nothing is gained by the shuffle.
        truncated: a run differs from a Poisson one with probability t at most, the chance that some sample is larger
        than ``cap``; so delta grows by t (1 + e**epsilon), which is at most t (1 + e**FARTHEST) up to that epsilon, and
        beyond it by no more than the whole delta there.
        adaptive: a step releases (sum/clip, count - size/2) with noises z and b; a record moves it by at most (1, 1/2),
        and 1/noise**2 = 1/z**2 + 1/(2 b)**2 makes that a Gaussian step of multiplier ``noise`` (ATMR21).
    Assumes: samples are drawn afresh and kept secret; each record's vector depends on that record and released values
        alone; ``rows`` is public and true, or at least not exceeded under "truncated".

    >>> plan = Plan.calibrated(epsilon=3, delta=1e-5, rows=60_000, batch=512, steps=1000)
    >>> plan.loss.epsilon(1e-5) <= 3
    True
    """

    steps: int
    rate: float
    noise: float
    batch: float
    clip: float = 1.0
    sampling: Sampling = "poisson"
    neighbours: Neighbours = "add-remove"
    clipping: Clipping = "flat"
    rows: int | None = None
    cap: int | None = None

    def __post_init__(self) -> None:
        if count("steps", self.steps) > MOST_STEPS:
            raise ParameterError("steps", self.steps, f"must be at most {MOST_STEPS}")
        for name in ("noise", "batch", "clip"):
            object.__setattr__(self, name, float(positive(name, getattr(self, name))))
        share = rational("rate", self.rate)
        if not 0 < share <= 1:
            raise ParameterError("rate", self.rate, "must lie in (0, 1]", "it is the expected batch over the rows")
        object.__setattr__(self, "rate", float_up(share))
        check_neighbours(self.neighbours)
        for name, kind in (("sampling", Sampling), ("clipping", Clipping)):
            if getattr(self, name) not in get_args(kind):
                raise ParameterError(name, getattr(self, name), f"must be one of {', '.join(get_args(kind))}")
        if self.sampling != "poisson" and self.rows is None:
            raise ParameterError("rows", None, f"must be given for {self.sampling} batches: their number is public")
        if self.rows is not None:
            count("rows", self.rows)
        if self.sampling in ("fixed", "shuffled"):
            self._check_fixed()
        elif self.sampling == "truncated":
            self._check_truncated()
        if self.clipping == "adaptive":
            _ = self.gradient_noise

    def _check_fixed(self) -> None:
        assert self.rows is not None
        if self.neighbours != "replace":
            raise ParameterError(
                "neighbours",
                self.neighbours,
                f'does not go with {self.sampling} batches, whose size is public: "replace"',
            )
        size = count("batch", round(self.batch))
        if size != self.batch or size > self.rows or abs(size / self.rows - self.rate) > 1e-12:
            raise ParameterError(
                "batch",
                self.batch,
                f"must be a whole number, rate * rows, for {self.sampling} batches",
                "leave out rate",
            )

    def _check_truncated(self) -> None:
        if self.cap is None or count("cap", self.cap) <= self.rate * (self.rows or 0):
            raise ParameterError(
                "cap", self.cap, "must be larger than the expected batch", "leave it out to have it chosen"
            )
        if self.steps * overflow(self.rows or 0, self.rate, self.cap) > RARE:
            raise ParameterError("cap", self.cap, "would cut batches too often", "leave it out to have it chosen")

    # price

    @property
    def loss(self) -> Loss:
        """What the whole run costs."""
        return self.spent(self.steps)

    def spent(self, steps: int) -> Loss:
        """What the first so many steps cost, released one by one."""
        if not steps:
            return NoLoss(self.neighbours)
        if self.sampling == "shuffled":
            assert self.rows is not None
            passes = -(-steps // self.steps_a_pass)
            return GaussianDP(nudged_up(2 / self.noise), "replace") * passes
        if self.sampling == "fixed":
            assert self.rows is not None
            size = rational("batch", self.batch) / self.rows
            return GaussianDP(nudged_up(2 / self.noise), "replace").subsample(size, "without-replacement") * steps
        sampled = SampledGaussian(self.noise, self.rate, neighbours=self.neighbours) * steps
        if self.sampling == "poisson":
            return sampled
        assert self.rows is not None
        assert self.cap is not None
        cut = steps * overflow(self.rows, self.rate, self.cap) * (1 + math.exp(FARTHEST))
        return sampled + ApproxDP(0.0, nudged_up(cut + sampled.delta(FARTHEST)), self.neighbours)

    @property
    def steps_a_pass(self) -> int:
        """Shuffled batches: how many make one pass; what does not fill one more is left out."""
        assert self.rows is not None
        return max(1, self.rows // round(self.batch))

    @property
    def gradient_noise(self) -> float:
        """The multiplier of the noise on sums; larger than ``noise`` where clipping adapts, which takes its share."""
        if self.clipping != "adaptive":
            return self.noise
        left = 1 / Fraction(self.noise) ** 2 - 1 / (4 * Fraction(self.count_noise) ** 2)
        if left <= 0:
            raise ParameterError("noise", self.noise, f"must be below {2 * self.count_noise:g} for adaptive clipping")
        return nudged_up(float(1 / left) ** 0.5)

    @property
    def count_noise(self) -> float:
        """Adaptive clipping: the standard deviation of the noise on how many records were not clipped."""
        return max(QUANTILE_NOISE * self.batch, 2.0)

    # making

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Number,
        delta: Number,
        rows: int | None = None,
        batch: float | None = None,
        rate: float | None = None,
        steps: int | None = None,
        epochs: float | None = None,
        noise: float | None = None,
        **rest: Any,
    ) -> Plan:
        """The plan with the one of noise, steps and rate that was left out, found so that (epsilon, delta) is kept.

        ``batch`` over ``rows`` is the rate, and ``epochs`` over the rate the steps. Without noise, the least is found;
        without steps, the most; without rate and batch, the largest.

        Claim: the plan's loss has epsilon(delta) at most the given.
        Proof: that of ``calibrate``.
        Assumes: what the plan assumes.
        """
        if rate is None and batch is not None and rows is not None:
            rate = batch / rows
        if batch is None and rate is not None and rows is not None:
            batch = rate * rows
        if steps is None and epochs is not None and rate is not None:
            steps = math.ceil(float(positive("epochs", epochs)) / rate)
        missing = [name for name, value in (("noise", noise), ("steps", steps), ("rate", rate)) if value is None]
        if len(missing) != 1 or (batch is None and missing != ["rate"]) or (missing == ["rate"] and rows is None):
            raise ParameterError(
                "plan", missing, "must leave out one of noise, steps and rate", "give batch and rows for the rate"
            )

        def plan(value: float) -> Plan:
            given: dict[str, Any] = {"noise": noise, "steps": steps, "rate": rate, "batch": batch} | {missing[0]: value}
            if missing == ["rate"]:
                given["batch"] = value * rows  # type: ignore[operator]
            given["steps"] = int(given["steps"])
            chosen = dict(rest)
            if rest.get("sampling") == "truncated" and "cap" not in rest:
                chosen["cap"] = smallest_cap(count("rows", rows), given["rate"], given["steps"])
            return cls(rows=rows, **given, **chosen)

        low, high = {"noise": (LEAST_NOISE, MOST_NOISE), "steps": (1, MOST_STEPS), "rate": (1e-6, 1.0)}[missing[0]]
        if missing == ["noise"] and rest.get("clipping") == "adaptive":
            high = 1.9 * max(QUANTILE_NOISE * float(batch or 0), 2.0)
        found = calibrate(lambda value: plan(value).loss, epsilon=epsilon, delta=delta, low=low, high=high)
        return plan(found)

    # JSON

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Plan:
        """The plan that plain data stand for."""
        return cls(**{field.name: data[field.name] for field in fields(cls)})

    def with_steps(self, steps: int) -> Plan:
        """The same plan with another number of steps."""
        return replace(self, steps=steps)


def overflow(rows: int, rate: float, cap: int) -> float:
    """A bound on the chance that a Poisson sample of so many records is larger than the cap (Chernoff)."""
    share = cap / rows
    if share >= 1:
        return 0.0
    if share <= rate:
        return 1.0
    exponent = share * math.log(share / rate) + (1 - share) * math.log((1 - share) / (1 - rate))
    return nudged_up(math.exp(-rows * exponent * (1 - 1e-9)))


def smallest_cap(rows: int, rate: float, steps: int) -> int:
    """The smallest cap that some batch of the run exceeds rarely enough."""
    low, high = math.ceil(rate * rows), rows
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if steps * overflow(rows, rate, middle) <= RARE else (middle, high)
    return high
