"""What a survey asks, what an answer costs a person, how many answers are needed: all known before anybody answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from hubbub.errors import ParameterError
from hubbub.mechanisms import RandomizedResponse
from hubbub.numeric.rational import Number, positive
from hubbub.privacy.loss import Loss, compose

YES_NO = ("No", "Yes")
MOST_QUESTIONS, MOST_OPTIONS, LONGEST_TITLE, LONGEST_TEXT, LONGEST_INTRODUCTION = 20, 50, 120, 300, 2000
STEP = Decimal("0.000001")
"""Shares of epsilon are whole multiples of this."""
LEAST_SHARE, MOST_EPSILON = Decimal("0.001"), Decimal(50)


@dataclass(frozen=True)
class Question:
    """One question of a survey, its possible answers, and its exact share of a person's epsilon."""

    text: str
    options: tuple[str, ...]
    epsilon: Decimal

    @property
    def mechanism(self) -> RandomizedResponse:
        """What happens to an answer before it leaves the respondent's hands.

        Claim: the page's script (web/static/response.js) draws reports from exactly this mechanism's law.
        Proof: it is the same algorithm on the same integers: a uniform shift by rejection, and a lazily revealed
            uniform number compared with certified enclosures of 1 / (1 + (categories - 1) e**-epsilon) in whole numbers
            of any size; given the same random words it makes the same reports as this mechanism, ties included
            (tests/browser/test_response.py).
        Assumes: the browser's crypto.getRandomValues is uniform, and it runs the script as it is here.
        """
        return RandomizedResponse(epsilon=self.epsilon, categories=len(self.options))

    def sample_size(self, error: Number, doubt: Number = 0.05) -> int:
        """How many answers put every estimated share within ``error`` of the truth, each but for ``doubt``."""
        return self.mechanism.sample_size(error, doubt)


@dataclass(frozen=True)
class Survey:
    """Questions that share one person's epsilon; every respondent's own device randomises the answers.

    Claim: whatever the server receives and keeps of one submission is epsilon-DP under replace-one of that person's
        answers, epsilon the survey's total, whoever reads it, the curator included. Per person where every person gets
        one invitation code; in an open survey per submission, so that whoever answers twice pays twice.
    Proof: W65 for each report, at its question's share; reports are independent given the answers, so shares add up
        (DMNS06), and they are rounded down so that their sum is at most the total. Every submission answers every
        question, so nothing is told by leaving one out; the submission's number is drawn independently of answers,
        and the page sends one set of reports only, however often it has to send it.
    Assumes: whether somebody takes part is public; the respondent's device runs the script as shipped (a server
        that serves another one is not covered: answer with a program of your own then).
    """

    id: str
    owner: str
    title: str
    introduction: str
    questions: tuple[Question, ...]
    epsilon: Decimal
    invited: bool
    open: bool = True

    @property
    def loss(self) -> Loss:
        """What one submission costs the person who sends it."""
        return compose([q.mechanism.loss for q in self.questions])

    def sample_size(self, error: Number, doubt: Number = 0.05) -> int:
        """How many respondents make the least accurate question accurate enough."""
        return max(q.sample_size(error, doubt) for q in self.questions)

    def expected_error(self, respondents: int, confidence: Number = 0.95) -> tuple[float, ...]:
        """The half-width of each question's intervals after so many answers."""
        return tuple(q.mechanism.error(confidence, people=respondents) for q in self.questions)


def shares(epsilon: Decimal, weights: Sequence[Decimal]) -> list[Decimal]:
    """Each question's part of epsilon in proportion to its weight, rounded down to whole steps.

    >>> [str(share) for share in shares(Decimal(1), [Decimal(1)] * 3)]
    ['0.333333', '0.333333', '0.333333']
    """
    total = Fraction(epsilon)
    if not Fraction(0) < total <= Fraction(MOST_EPSILON) or Fraction(epsilon) % Fraction(STEP):
        raise ParameterError("epsilon", str(epsilon), f"must lie in (0, {MOST_EPSILON}] with at most six decimals")
    parts = [positive("weight", weight) for weight in weights]
    found = []
    for part in parts:
        steps = total * part / sum(parts) / Fraction(STEP)
        found.append(shortest(Decimal(math.floor(steps)) * STEP))
        if found[-1] < LEAST_SHARE:
            raise ParameterError(
                "epsilon",
                str(epsilon),
                f"leaves a question less than {LEAST_SHARE}",
                "ask fewer questions, or give more",
            )
    return found


def shortest(value: Decimal) -> Decimal:
    """The same number without zeros at its end and without a power of ten.

    >>> shortest(Decimal("0.50")), shortest(Decimal("1e1"))
    (Decimal('0.5'), Decimal('10'))
    """
    return value.normalize() + Decimal(0)


def questions(
    epsilon: Decimal, asked: Sequence[tuple[str, Sequence[str]]], weights: Sequence[Decimal] | None = None
) -> tuple[Question, ...]:
    """Checked questions, (text, options) each (no options: yes or no), with their shares of epsilon.

    >>> [q] = questions(Decimal("0.5"), [("Is the dam a good idea?", ())])
    >>> q.options, q.epsilon, round(q.mechanism.keep_probability, 3)
    (('No', 'Yes'), Decimal('0.5'), 0.622)
    """
    if not 1 <= len(asked) <= MOST_QUESTIONS:
        raise ParameterError("questions", len(asked), f"must be 1 to {MOST_QUESTIONS}")
    if weights is not None and len(weights) != len(asked):
        raise ParameterError("weights", len(weights), "must be as many as questions")
    parts = shares(epsilon, weights or [Decimal(1)] * len(asked))
    found = []
    for (text, options), part in zip(asked, parts, strict=True):
        words = line("question", text, LONGEST_TEXT)
        choices = tuple(line("option", option, LONGEST_TITLE) for option in options) or YES_NO
        if not 2 <= len(choices) <= MOST_OPTIONS or len(set(choices)) != len(choices):
            raise ParameterError("options", len(choices), f"must be 2 to {MOST_OPTIONS}, all different")
        found.append(Question(words, choices, part))
    return tuple(found)


def line(name: str, text: str, longest: int) -> str:
    """A text without blanks around it, refused when empty, too long or not printable."""
    if not isinstance(text, str):
        raise ParameterError(name, type(text).__name__, "must be text")
    words = " ".join(text.split())
    if not words or len(words) > longest or not words.isprintable():
        raise ParameterError(name, words[:40], f"must be 1 to {longest} printable characters")
    return words
