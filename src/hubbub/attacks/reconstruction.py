"""Reconstruction: people's bits from answers to counting questions about them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hubbub.attacks import exhaustive, programs
from hubbub.attacks.answering import secret_bits
from hubbub.attacks.demands import finite, numbers
from hubbub.attacks.questions import Floats, Integers, Questions, RandomSubsets, questions
from hubbub.errors import ParameterError

Method = Literal["exhaustive", "lp", "least-squares"]
METHODS = ("exhaustive", "lp", "least-squares")
OBJECTIVES = ("l1", "max-error")
QUESTIONS_A_PERSON = 20
"""Random questions a person from which on the second theorem speaks."""
ROUNDING = 1e-9
"""What floating point may add to an error, relative to the answers."""
LARGEST_ANSWER = 1e100
"""Beyond this an answer is no count at all, and its square no double."""
PRECISION, MOST_STEPS = 1e-7, 400
"""When least squares stops: far below what rounding to bits could notice."""


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What an attacker makes of the answers.

    ``bits`` is the guess, ``scores`` what was rounded to it (for exhaustive search the bits themselves), ``residual``
    the largest distance between an answer and the guess's own count, ``answered`` how many questions were answered.
    ``bound`` says how many bits can be wrong, with probability ``confidence`` over the questions, if ``max_error`` was
    given and a theorem applies. ``radius``, of exhaustive search with ``max_error``, is how many are wrong at most for
    these answers, whatever the questions: no database that fits is farther from the guess.
    """

    bits: Integers
    scores: Floats
    residual: float
    answered: int
    method: Method
    bound: float | None = None
    confidence: float | None = None
    radius: int | None = None

    def wrong(self, secret: ArrayLike) -> int:
        """How many bits differ from the secret."""
        bits = secret_bits(secret)
        if bits.shape != self.bits.shape:
            raise ParameterError("people", len(self.bits), "were reconstructed", "the secret must have a bit for each")
        return int(np.count_nonzero(self.bits != bits))

    def accuracy(self, secret: ArrayLike) -> float:
        """The share of bits that are right."""
        return 1 - self.wrong(secret) / len(self.bits)


def reconstruct(
    queries: Questions | ArrayLike | Any,
    answers: ArrayLike | Callable[[Questions], ArrayLike],
    method: Method = "least-squares",
    *,
    max_error: float | None = None,
    objective: programs.Objective = "l1",
    stddev: float | None = None,
    share: float = 0.5,
) -> Reconstruction:
    """The bits that fit the answers best, by one of three attacks; ``answers`` may be a callable that gives them.

    ``exhaustive`` tries every database (up to 24 people) for the least largest error. ``lp`` finds fractions with the
    least total error (``objective="l1"``, which shrugs off gross errors in a fifth of the answers) or the least largest
    error ("max-error"), and rounds them. ``least-squares`` does so for tens of thousands of people; with ``stddev``,
    the public spread of the noise, and ``share``, of people believed to have a 1, it weighs the answers against that
    belief. Answers that are nan were withheld, and are left out.

    Claim: if every answer errs by at most max_error = E, at most ``bound`` bits are wrong: 4E if every subset is asked
        about (2E + 2 residual where the guess fits worse than E); with probability ``confidence`` = 1 - 2**-n, 256 E**2
        if 20 n or more RandomSubsets are asked about and the residual is at most 3E. Else ``bound`` is None.
    Proof: DN03. All subsets: those wrongly 0 are a subset whose true and guessed counts differ by their number, and by
        at most E + residual; so are those wrongly 1. Random ones: where d > 256 E**2 bits differ, the two counts differ
        by a shifted binomial(d, 1/2). Of the integers up to 4E, at most 8E + 1, each has probability at most sqrt(2/(pi
        d)) < 0.05/E; below 4E = 1 there is only 0, of probability at most 1/2. So one question lets it pass with
        probability at most 0.6, and 20 n do for any of 2**n databases with at most 2**n 0.6**(20 n) < 2**-n.
    Assumes: the bound on errors, which may otherwise be chosen to mislead; a secret chosen without regard to the seed.

    >>> from hubbub.attacks import RandomSubsets, exact
    >>> asked, secret = RandomSubsets(count=40, people=10, seed=3), [1, 0, 0, 1, 1, 0, 1, 0, 0, 0]
    >>> reconstruct(asked, exact(secret)).bits.tolist()
    [1, 0, 0, 1, 1, 0, 1, 0, 0, 0]
    """
    _check(method, max_error, objective, stddev, share)
    asked = questions(queries)
    told = _told(asked, answers(asked) if callable(answers) else answers)
    open_ones = ~np.isnan(told)
    heard = asked if open_ones.all() else asked.only(open_ones)
    told = told[open_ones]
    if not len(told):
        raise ParameterError("answers", "all withheld", "must hold some numbers")
    radius = None
    if method == "exhaustive":
        errors = exhaustive.largest_errors(heard, told)
        best = int(errors.argmin())
        scores = exhaustive.bits_of(best, asked.people).astype(np.float64)
        if max_error is not None:
            fitting = np.flatnonzero(errors <= max_error + _slack(told))
            radius = exhaustive.farthest(best, fitting, asked.people) if len(fitting) else None
    elif method == "lp":
        scores = programs.fractional(heard, told, objective)
    else:
        scores = _least_squares(heard, told, stddev, share)
    bits = (scores > 0.5).astype(np.int64)
    residual = float(np.abs(heard.dot(bits.astype(np.float64)) - told).max())
    refuted = max_error is not None and method == "exhaustive" and radius is None
    bound, confidence = (None, None) if max_error is None or refuted else _theorem(heard, max_error, residual, told)
    return Reconstruction(bits, scores, residual, len(told), method, bound, confidence, radius)


def _theorem(heard: Questions, error: float, residual: float, told: Floats) -> tuple[float | None, float | None]:
    """How many bits can be wrong, and with what confidence, by the theorem that applies to these questions."""
    if heard.holds_every_subset:
        fits = residual <= error + _slack(told)
        return (4 * error if fits else 2 * (error + residual)), 1.0
    many = isinstance(heard, RandomSubsets) and len(heard) >= QUESTIONS_A_PERSON * heard.people
    if many and residual <= 3 * error + _slack(told):
        return 256 * error**2, 1 - 2.0**-heard.people
    return None, None


def _least_squares(heard: Questions, told: Floats, stddev: float | None, share: float) -> Floats:
    """The values nearest in square to the answers, starting from the share believed; held to it if there is noise."""
    from scipy.sparse.linalg import LinearOperator, lsqr

    shape = (len(heard), heard.people)
    operator = LinearOperator(shape, matvec=_flat(heard.dot), rmatvec=_flat(heard.dot_transposed), dtype=np.float64)
    start = np.full(heard.people, share)
    damp = 0.0 if stddev is None else stddev / math.sqrt(share * (1 - share))
    found = lsqr(operator, told - heard.dot(start), damp=damp, atol=PRECISION, btol=PRECISION, iter_lim=MOST_STEPS)
    return start + np.asarray(found[0], np.float64)


def _flat(product: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    return lambda vector: product(vector.reshape(-1))


def _told(asked: Questions, answers: ArrayLike) -> Floats:
    """The answers as floats, refused unless there is one for every question."""
    told = numbers("answers", answers, "must be numbers, one a question")
    if told.shape != (len(asked),):
        raise ParameterError("answers", told.shape, f"must have the shape ({len(asked)},)", "one answer a question")
    if (np.abs(told) > LARGEST_ANSWER).any():
        raise ParameterError("answers", "inf", "must be finite, or nan where withheld")
    return told


def _slack(told: Floats) -> float:
    return ROUNDING * (1 + float(np.abs(told).max()))


def _check(method: str, max_error: float | None, objective: str, stddev: float | None, share: float) -> None:
    if method not in METHODS:
        raise ParameterError("method", method, f"must be one of {', '.join(METHODS)}")
    if objective not in OBJECTIVES:
        raise ParameterError("objective", objective, f"must be one of {', '.join(OBJECTIVES)}")
    for name, value in (("max_error", max_error), ("stddev", stddev)):
        if value is not None:
            finite(name, value, 0)
    if not 0 < finite("share", share) < 1:
        raise ParameterError("share", share, "must lie strictly between 0 and 1")
    if method != "least-squares" and (stddev is not None or share != 0.5):
        raise ParameterError("method", method, "makes no use of stddev and share", "use least-squares")
