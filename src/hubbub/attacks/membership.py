"""Membership: who was in the data, from scores that are higher for those who were; and tracing by published means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from hubbub.attacks.demands import finite, whole
from hubbub.attacks.questions import Floats
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    import altair

Statistic = Literal["likelihood-ratio", "inner-product", "distance"]
STATISTICS = ("likelihood-ratio", "inner-product", "distance")
SURE = 1e-12
"""Published means are kept this far from 0 and 1, so that no single attribute settles the matter by infinity."""

ROUNDING = 1e-12
"""What floating point may add to a score, relative to what it is a sum of."""


@dataclass(frozen=True, eq=False)
class Membership:
    """How well scores tell members from others, both known: the report on an attack.

    >>> report = Membership(np.array([3.0, 2.0, 1.0]), np.array([2.0, 0.0, -1.0, -2.0]))
    >>> report.true_positive_rate(0.0), round(report.auc, 3), report.advantage
    (0.3333333333333333, 0.875, 0.75)
    """

    members: Floats
    others: Floats

    def __post_init__(self) -> None:
        for name in ("members", "others"):
            scores = np.asarray(getattr(self, name), np.float64)
            if scores.ndim != 1 or not scores.size or np.isnan(scores).any():
                raise ParameterError(name, scores.shape, "must be a flat list of scores, none of them nan")
            object.__setattr__(self, name, scores)

    def roc(self) -> tuple[Floats, Floats]:
        """False- and true-positive rates of accusing everyone who scores at least t, for every t, from none to all."""
        levels = np.unique(np.concatenate([self.members, self.others]))[::-1]
        rates = [
            np.searchsorted(np.sort(-scores), -levels, side="right") / len(scores)
            for scores in (self.others, self.members)
        ]
        return np.concatenate([[0.0], rates[0]]), np.concatenate([[0.0], rates[1]])

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """The share of members found by the lowest threshold that accuses at most this share of the others."""
        false, true = self.roc()
        return float(true[false <= _rate(false_positive_rate, closed=True)].max())

    @property
    def advantage(self) -> float:
        """The largest true- minus false-positive rate: 0 for guessing, 1 for certainty."""
        false, true = self.roc()
        return float((true - false).max())

    @property
    def auc(self) -> float:
        """The probability that a member scores above another, ties counting half: 1/2 for guessing."""
        false, true = self.roc()
        return float(np.sum(np.diff(false) * (true[1:] + true[:-1])) / 2)

    def plot(self) -> altair.LayerChart:
        """The picture: true against false positives, on logarithmic axes."""
        from hubbub import plots

        return plots.membership_roc({"this attack": self.roc()})


@dataclass(frozen=True, eq=False)
class Tracer:
    """A test of who is in the sample whose means were published: ``offset`` and a weight for every attribute."""

    weights: Floats
    offset: float
    population: Floats

    def scores(self, rows: ArrayLike) -> Floats:
        """A score for every row of 0s and 1s, higher for those likelier to be members."""
        given = np.asarray(rows)
        if given.ndim != 2 or given.shape[1] != len(self.weights) or not np.isin(given, (0, 1)).all():
            raise ParameterError("rows", given.shape, f"must be rows of {len(self.weights)} 0s and 1s")
        return np.asarray(given @ self.weights + self.offset, np.float64)

    def threshold(self, false_positive_rate: float, reference: ArrayLike | None = None) -> float:
        """A score that someone not in the sample reaches with at most this probability.

        With ``reference`` rows, from the population but not the sample, it is their rank that counts; without, a bound
        by the population's means.

        Claim: P(score >= threshold) <= false_positive_rate, for someone not in the sample: over them alone, if
            attributes are independent with the population's means; or over them and the reference rows together.
        Proof: Chernoff's bound with the exact moment generating function, which holds at whatever point it is taken.
            Ranks: among r reference scores and theirs, exchangeable, theirs is among the k largest with probability
            k/(r + 1).
        Assumes: the reference rows are drawn as they are, and are not in the sample.
        """
        rate = _rate(false_positive_rate)
        if reference is not None:
            scores = np.sort(self.scores(reference))[::-1]
            rank = math.floor(rate * (len(scores) + 1))
            return float(np.nextafter(scores[rank - 1], math.inf)) if rank else math.inf
        rounding = ROUNDING * (abs(self.offset) + float(np.abs(self.weights).sum()) + ROUNDING)
        return self.offset + self._chernoff(rate) + rounding

    def _chernoff(self, rate: float) -> float:
        """The least (log E[e**(l W)] - log rate)/l found over l > 0, W a stranger's weights, added up."""
        from scipy.optimize import minimize_scalar

        spread = math.sqrt(float(np.sum(self.weights**2 * self.population * (1 - self.population))))
        if spread == 0:
            return float(np.dot(self.weights, self.population))

        def reach(log_l: float) -> float:
            pull = math.exp(log_l) / spread
            lifts = pull * self.weights
            logs = np.logaddexp(np.log1p(-self.population), np.log(self.population) + lifts)
            return (float(logs.sum()) - math.log(rate)) / pull

        guess = math.log(math.sqrt(2 * math.log(1 / rate)))
        found = minimize_scalar(reach, bounds=(guess - 6, guess + 6), method="bounded")
        return min(float(found.fun), float(np.maximum(self.weights, 0).sum()))

    def normal_threshold(self, false_positive_rate: float) -> float:
        """The same by the normal approximation: good for many independent attributes, and no promise."""
        from scipy.special import ndtri

        mean = float(np.dot(self.weights, self.population))
        spread = math.sqrt(float(np.sum(self.weights**2 * self.population * (1 - self.population))))
        return self.offset + mean - spread * float(ndtri(_rate(false_positive_rate)))


def trace(
    published: ArrayLike,
    population: ArrayLike,
    *,
    statistic: Statistic = "likelihood-ratio",
    people: int | None = None,
    stddev: float = 0.0,
) -> Tracer:
    """A test of membership in the sample whose attributes (0 or 1) have these published means.

    ``population`` has the same attributes' means at large. The likelihood ratio is of a row drawn from the sample
    against one drawn from the population; if the published means carry noise of spread ``stddev``, that of the means
    given the row, for a sample of ``people`` (SOJH09). The inner product (x - p).(y - p) needs neither (DSSUV15); the
    distance is |x - p| - |x - y| (HSR08).

    >>> tracer = trace([0.9, 0.2, 0.6], [0.5, 0.5, 0.5])
    >>> tracer.scores([[1, 0, 1], [0, 1, 0]]).round(2).tolist()
    [1.24, -2.75]
    """
    told, usual = np.asarray(published, np.float64), np.asarray(population, np.float64)
    if told.ndim != 1 or told.shape != usual.shape or not told.size or not np.isfinite(told).all():
        raise ParameterError("published", told.shape, "must be finite means, one for every mean of the population")
    if not ((usual > 0) & (usual < 1)).all():
        raise ParameterError("population", usual.shape, "must have means strictly between 0 and 1")
    if statistic not in STATISTICS:
        raise ParameterError("statistic", statistic, f"must be one of {', '.join(STATISTICS)}")
    if not 0 <= stddev < math.inf:
        raise ParameterError("stddev", stddev, "must be >= 0 and finite")
    ones, zeros = _scores_of_bits(told, usual, statistic, people, stddev)
    return Tracer(ones - zeros, float(zeros.sum()), usual)


def _scores_of_bits(
    told: Floats, usual: Floats, statistic: Statistic, people: int | None, stddev: float
) -> tuple[Floats, Floats]:
    """What an attribute of 1, and one of 0, adds to the score."""
    if statistic == "inner-product":
        return (1 - usual) * (told - usual), -usual * (told - usual)
    if statistic == "distance":
        return (1 - usual) - np.abs(1 - told), usual - np.abs(told)
    if stddev == 0:
        sample = told.clip(SURE, 1 - SURE)
        return np.log(sample / usual), np.log((1 - sample) / (1 - usual))
    if people is None or people < 1:
        raise ParameterError("people", people, "must be the size of the sample", "the weight of noise depends on it")
    variance = usual * (1 - usual) / people + stddev**2
    pulls = [(bit - usual) / people for bit in (1.0, 0.0)]
    return tuple((2 * (told - usual) * pull - pull**2) / (2 * variance) for pull in pulls)  # type: ignore[return-value]


def predicted_power(
    false_positive_rate: float, *, people: int, attributes: int, stddev: float = 0.0, share: float = 0.5
) -> float:
    """The share of members found by the likelihood ratio, for many independent attributes of one mean, the share.

    Scores of members and others are normal, sqrt(attributes v/(people v + people**2 stddev**2)) of their spreads apart,
    v = share (1 - share): without noise, sqrt(attributes/people).

    >>> round(predicted_power(0.01, people=100, attributes=1000), 2)
    0.8
    """
    from scipy.special import ndtr, ndtri

    whole("people", people, 1)
    whole("attributes", attributes, 1)
    finite("stddev", stddev, 0)
    if not 0 < finite("share", share) < 1:
        raise ParameterError("share", share, "must lie strictly between 0 and 1")
    v = share * (1 - share)
    apart = math.sqrt(attributes * v / (people * v + people**2 * stddev**2))
    return float(ndtr(apart + ndtri(_rate(false_positive_rate))))


def pair_columns(rows: ArrayLike) -> Floats:
    """Every two columns multiplied: their means are the two-way marginals, to be traced with reference rows."""
    given = np.asarray(rows, np.float64)
    if given.ndim != 2 or given.shape[1] < 2:
        raise ParameterError("rows", given.shape, "must have two columns or more")
    first, second = np.triu_indices(given.shape[1], 1)
    return np.asarray(given[:, first] * given[:, second])


def _rate(rate: float, *, closed: bool = False) -> float:
    if not (0 < rate < 1 or (closed and rate in (0, 1))):
        raise ParameterError("false_positive_rate", rate, "must lie strictly between 0 and 1")
    return float(rate)
