"""How well reconstruction does as noise grows, and what theory says about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hubbub.attacks.answering import released, secret_bits
from hubbub.attacks.demands import finite, whole
from hubbub.attacks.questions import Questions
from hubbub.attacks.reconstruction import Method, reconstruct
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    import altair

STANDARD_ERRORS = 3.0
"""An attacker who beats guessing by less than this many standard errors is guessing."""


def predicted_accuracy(stddev: float, *, people: int, count: int) -> float:
    """The share of bits least squares gets right if random subsets are counted with noise of this spread.

    The estimate of a bit errs by a normal of variance 4 stddev**2 / (count - people), and is rounded at 1/2: with k =
    count/people questions a person and stddev = c sqrt(people) it is Phi(sqrt(k - 1)/(4 c)).

    >>> round(predicted_accuracy(0.5 * 1000**0.5, people=1000, count=10_000), 3)
    0.933
    """
    from scipy.special import ndtr

    if whole("count", count, 1) <= whole("people", people, 1):
        raise ParameterError("count", count, "must be more than people", "fewer questions leave the bits open")
    return 1.0 if finite("stddev", stddev, 0) == 0 else float(ndtr(math.sqrt(count - people) / (4 * stddev)))


def guessing_accuracy(share: float, people: int) -> float:
    """The share right up to which an attacker may only have guessed: the majority's, and three standard errors."""
    majority = max(share, 1 - share)
    return majority + STANDARD_ERRORS * math.sqrt(majority * (1 - majority) / people)


def guessing_noise(*, people: int, count: int, share: float = 0.5) -> float:
    """The spread of noise from which on least squares does no better than guessing, by the same theory.

    >>> round(guessing_noise(people=1000, count=5000))  # noise of the order of the number of people
    133
    """
    from scipy.special import ndtri

    bar = guessing_accuracy(share, people)
    return math.sqrt(count - people) / (4 * float(ndtri(bar))) if bar < 1 else 0.0


@dataclass(frozen=True)
class CurvePoint:
    """One attack: the noise it met, and the share of bits it got right."""

    noise: float
    accuracy: float


@dataclass(frozen=True)
class AttackCurve:
    """The same attack against growing noise."""

    points: tuple[CurvePoint, ...]
    people: int
    count: int
    share: float
    method: Method = "least-squares"

    @property
    def falls_to_guessing(self) -> float | None:
        """The least noise tried from which on the attacker only guessed, None if they never did."""
        bar = guessing_accuracy(self.share, self.people)
        from_here = None
        for point in sorted(self.points, key=lambda point: -point.noise):
            if point.accuracy > bar:
                break
            from_here = point.noise
        return from_here

    @property
    def label(self) -> str:
        """The number of questions a person, in words."""
        return f"{self.count / self.people:.3g} questions a person"

    def theory(self, noise: float) -> float | None:
        """The accuracy to be expected at some noise; None where least squares was not used, or has no theory."""
        if self.method != "least-squares" or self.count <= self.people:
            return None
        return predicted_accuracy(noise, people=self.people, count=self.count)

    @property
    def guessing_noise(self) -> float | None:
        """The noise from which on theory gives the attacker no more than guessing, None where there is no theory."""
        if self.theory(1.0) is None:
            return None
        return guessing_noise(people=self.people, count=self.count, share=self.share)

    def plot(self) -> altair.LayerChart:
        """The picture: accuracy against noise."""
        from hubbub import plots

        return plots.reconstruction_accuracy([self])


def attack_curve(
    secret: ArrayLike,
    answer_with: Callable[[float], Callable[[Any], Any]],
    noises: Iterable[float],
    *,
    questions: Questions,
    method: Method = "least-squares",
    each: Callable[[], object] = lambda: None,
) -> AttackCurve:
    """The accuracy of reconstruction against each noise: ``answer_with(noise)`` turns exact counts into answers.

    ``noise`` is the spread (standard deviation) of one answer's error, for theory to be compared with. ``each`` is
    called after every attack.

    >>> from hubbub.attacks import RandomSubsets
    >>> from hubbub.mechanisms import DiscreteGaussian
    >>> asked = RandomSubsets(count=400, people=100)
    >>> curve = attack_curve([0, 1] * 50, lambda sd: DiscreteGaussian(1, sigma=sd).release, [0.1, 1e5], questions=asked)
    >>> curve.points[0].accuracy, curve.falls_to_guessing
    (1.0, 100000.0)
    """
    bits = secret_bits(secret)
    points = []
    for noise in noises:
        guess = reconstruct(questions, released(bits, answer_with(noise)), method)
        points.append(CurvePoint(float(noise), guess.accuracy(bits)))
        each()
    return AttackCurve(tuple(points), questions.people, len(questions), float(np.mean(bits)), method)
