"""How votes become labels: the noise, who refuses when, and what so many questions and answers cost.

An aggregator is public. What it costs is known before any vote is cast, and does not depend on the votes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.learning.pate.counting import EnoughVotes, MostVotes
from hubbub.mechanisms import NoisyMax
from hubbub.numeric.rational import Number, count, fraction_between, positive
from hubbub.privacy.loss import Loss, Neighbours, compose
from hubbub.randomness.bits import SECURE, Bits

Integers = NDArray[np.int64]
REFUSED, NOT_ASKED = -1, -2
"""Stand where no label was given: because too few teachers agreed, or because no answers were left."""


class Aggregator(ABC):
    """What turns the votes on public questions into labels. Frozen and public.

    Claim: the labels of ``asked`` questions, of which at most ``answers`` get one, cost ``loss(asked, answers)``, also
        if each question and what is expected of it were chosen after seeing the labels before.
    Proof: Gaussian looks: the transcript is a function of a Brownian motion whose drift, 0 or 1, is what a neighbour
        changes, read piece by piece: a look of mu is a piece of length at most mu**2, chosen from the pieces before it
        (strong Markov property), and the whole is no longer than the sum of mu**2 of the looks paid for, whatever was
        refused. Its end is a sufficient statistic, so the price is that of one Gaussian (DRS22, Theorem 1). Laplace:
        nothing is refused; adaptive composition (DMNS06).
    Assumes: one person changes at most one teacher, whose vote on every question is one class.
    """

    neighbours: Neighbours
    choice: MostVotes | NoisyMax
    """Which class has most votes."""
    check: EnoughVotes | None = None
    """Whether the most are enough to answer at all."""

    def loss(self, asked: int, answers: int | None = None) -> Loss:
        """What so many questions cost, of which at most so many are answered (all, if nothing is said)."""
        questions = count("asked", asked)
        labels = questions if answers is None else min(questions, count("answers", answers))
        if self.check is None:
            return self.choice.loss * labels
        return compose([self.check.loss * questions, self.choice.loss * labels])

    def labels(
        self, votes: Any, *, answers: int | None = None, expected: Integers | None = None, bits: Bits = SECURE
    ) -> Integers:
        """A label for each row of votes, -1 where it is refused, -2 after the last of ``answers``.

        ``expected`` is public: whole numbers of votes, subtracted before the check.
        """
        rows = np.asarray(votes, np.int64)
        found = np.full(len(rows), NOT_ASKED, np.int64)
        left = len(rows) if answers is None else count("answers", answers)
        for k, row in enumerate(rows):
            if not left:
                break
            found[k] = REFUSED
            if self.check is None or self.check.release(row if expected is None else _less(row, expected[k]), bits):
                found[k] = self.choice.release(row, bits)
                left -= 1
        return found

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The aggregator as plain data: what is written beside saved votes."""


@dataclass(frozen=True, init=False)
class LaplaceMax(Aggregator):
    """The class with most votes after Laplace noise of this scale on every count.

    Claim: 2/scale-DP for each label, not 1/scale.
    Proof: NoisyMax: one count falls and another rises, by 1 each, so the winner's lead moves by 2.
    Assumes: as for Aggregator.

    >>> LaplaceMax(scale=20).loss(asked=100).epsilon()
    10.0
    """

    scale: float
    neighbours: Neighbours
    choice: NoisyMax = field(repr=False)

    def __init__(self, scale: Number, *, neighbours: Neighbours = "add-remove") -> None:
        width = positive("scale", scale)
        choice = NoisyMax(1, epsilon=2 / width, noise="laplace", neighbours=neighbours)
        _fill(self, scale=float(width), neighbours=neighbours, choice=choice)

    def to_dict(self) -> dict[str, Any]:
        return {"aggregator": "laplace", "scale": self.scale, "neighbours": self.neighbours}


@dataclass(frozen=True, init=False)
class GaussianMax(Aggregator):
    """The class with most votes after Gaussian noise of this standard deviation on every count (GNMax).

    Claim: GaussianDP(sqrt(2)/sigma) for each label.
    Proof: that of MostVotes.
    Assumes: as for Aggregator.

    >>> round(GaussianMax(sigma=100).loss(asked=1000).epsilon(1e-5), 2)
    1.76
    """

    sigma: float
    neighbours: Neighbours
    choice: MostVotes = field(repr=False)

    def __init__(self, sigma: Number, *, neighbours: Neighbours = "add-remove") -> None:
        choice = MostVotes(sigma, neighbours=neighbours)
        _fill(self, sigma=choice.sigma, neighbours=neighbours, choice=choice)

    def to_dict(self) -> dict[str, Any]:
        return {"aggregator": "gaussian", "sigma": self.sigma, "neighbours": self.neighbours}


@dataclass(frozen=True, init=False)
class Confident(Aggregator):
    """Answers only where the largest count, after noise ``check_sigma``, reaches ``threshold``; then as GaussianMax.

    Whether a question was refused is seen, and every check is paid for, whatever it says.

    Claim: GaussianDP(1/check_sigma) for each question asked and GaussianDP(sqrt(2)/sigma) for each answered.
    Proof: those of EnoughVotes and MostVotes, with noise of their own.
    Assumes: as for Aggregator.

    >>> round(Confident(200, check_sigma=150, sigma=40).loss(asked=640, answers=286).epsilon(1e-5), 3)
    2.543
    """

    threshold: float
    check_sigma: float
    sigma: float
    neighbours: Neighbours
    choice: MostVotes = field(repr=False)
    check: EnoughVotes = field(repr=False)

    def __init__(
        self, threshold: Number, *, check_sigma: Number, sigma: Number, neighbours: Neighbours = "add-remove"
    ) -> None:
        check = EnoughVotes(threshold, sigma=check_sigma, neighbours=neighbours)
        choice = MostVotes(sigma, neighbours=neighbours)
        _fill(self, threshold=check.threshold, check_sigma=check.sigma, sigma=choice.sigma, neighbours=neighbours)
        _fill(self, choice=choice, check=check)

    def to_dict(self) -> dict[str, Any]:
        return {
            "aggregator": "confident",
            "threshold": self.threshold,
            "check_sigma": self.check_sigma,
            "sigma": self.sigma,
            "neighbours": self.neighbours,
        }


@dataclass(frozen=True, init=False)
class Interactive(Confident):
    """As Confident, in ``rounds``: from the second on, only where the teachers disagree with the student so far.

    What the student expects, its chance of each class times the number of teachers, is subtracted before the check;
    where the teachers do not object and the student's own chance is at least ``sure``, its own label is kept, at no
    further price.

    Claim: as for Confident.
    Proof: the student is made of earlier labels, so what it expects is public; subtracting it moves no count further.
        Keeping its own label is post-processing.
    Assumes: as for Aggregator.
    """

    rounds: int = 2
    sure: float = 0.9

    def __init__(
        self,
        threshold: Number,
        *,
        check_sigma: Number,
        sigma: Number,
        rounds: int = 2,
        sure: Number = 0.9,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        super().__init__(threshold, check_sigma=check_sigma, sigma=sigma, neighbours=neighbours)
        _fill(self, rounds=count("rounds", rounds, least=2), sure=float(fraction_between("sure", sure, 0, 1)))

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"aggregator": "interactive", "rounds": self.rounds, "sure": self.sure}


def _fill(frozen: object, **fields: object) -> None:
    """Sets the fields of a frozen value, once, from its constructor."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)


def check_aggregator(aggregator: object) -> Aggregator:
    """The aggregator itself; anything else is refused."""
    if aggregator is None:
        raise ParameterError("aggregator", None, "must be given", "GaussianMax(sigma=60), say, for 250 teachers")
    if not isinstance(aggregator, Aggregator):
        raise ParameterTypeError(
            "aggregator", type(aggregator).__name__, "must be LaplaceMax, GaussianMax, Confident or Interactive"
        )
    return aggregator


def _less(row: Integers, expected: Integers) -> list[int]:
    """Votes less those expected, in integers that never wrap."""
    return [votes - told for votes, told in zip(row.tolist(), expected.tolist(), strict=True)]
