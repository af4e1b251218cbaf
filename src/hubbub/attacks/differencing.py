"""Differencing: two questions that differ in one person, and how little thresholds do about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.attacks.demands import finite, numbers, whole
from hubbub.attacks.questions import Floats
from hubbub.errors import ParameterError

Law = tuple[NDArray[Any], NDArray[Any]]
"""Evenly spaced values of a noise and their probabilities, as a mechanism's ``distribution(0)`` gives them."""
EXACTLY: Law = (np.zeros(1), np.ones(1))
NEAR = 1e-6
"""How far from the grid of a noise's values, in steps, an answer may be."""
LISTED = 1e-14
"""A law whose probabilities add up to 1 but for this much is listed whole."""
DIGITS, ROUNDING = 9, 1e-13
"""Digits after the point that are kept of a difference of floats, and its error relative to what it is made of."""


@dataclass(frozen=True)
class Difference:
    """What two answers say about the one person between them.

    The value lies between ``low`` and ``high``; ``posterior`` has the probability of each possible value, given the
    prior.
    """

    low: float
    high: float
    posterior: Mapping[float, float]

    @property
    def value(self) -> float | None:
        """The person's value if only one is possible, else None."""
        return self.low if self.low == self.high else None

    @property
    def guess(self) -> float | None:
        """The likeliest value, None if no values were listed."""
        return max(self.posterior, key=lambda value: self.posterior[value], default=None)


def difference(
    a: ArrayLike,
    b: ArrayLike,
    *,
    values: Sequence[float] | None = (0, 1),
    sizes: tuple[int, int] | None = None,
    max_error: float | tuple[float, float] = 0.0,
    below: int | None = None,
    noise: Law | tuple[Law | None, Law | None] | None = None,
    prior: Sequence[float] | None = None,
) -> Difference:
    """What is learnt about one person from ``a``, an answer that counts them, and ``b``, one that differs only in that.

    Lists are repeated answers, pair by pair. ``sizes`` makes means of so many people sums. Answers may err by
    ``max_error``; nan is a count that was withheld for being ``below`` a threshold. ``noise`` is the public law of what
    was added to both answers, or the two laws, None for an answer known exactly: then the posterior is Bayes' rule, for
    whoever held every count of the others equally likely. ``values`` lists what the person may have (None for any
    number), ``prior`` their probabilities (equal if not given). Without noise, answers whose difference fits no listed
    value are read in the other order.

    >>> difference(98, 97).value
    1
    >>> difference(4.2, 4.0, sizes=(10, 9), values=None).value  # the tenth person's own number
    6.0
    >>> difference(5, float("nan"), below=5).value  # shown against withheld
    1
    >>> from hubbub.mechanisms import Laplace
    >>> m = Laplace(1, epsilon=0.5)
    >>> learnt = difference(98, 97, noise=m.distribution(0))
    >>> learnt.value, round(learnt.posterior[1], 2)
    (None, 0.53)
    """
    pair = _sums(a, b, sizes)
    _check_values(values)
    if below is not None:
        whole("below", below, 1)
    scale = sizes or (1, 1)
    if noise is None:
        errors = max_error if isinstance(max_error, tuple) else (max_error, max_error)
        low, high = _between(pair, (scale[0] * errors[0], scale[1] * errors[1]), below)
        if values is None:
            return Difference(low, high, {})
        listed, slack = np.asarray(values, np.float64), ROUNDING * float(np.nanmax(np.abs(pair), initial=1.0))
        fits = (low - slack <= listed) & (listed <= high + slack)
        if not fits.any():  # then it is b that counts the person
            fits = (low - slack <= -listed) & (-listed <= high + slack)
        weights = fits.astype(np.float64)
    elif values is None or sizes is not None or below is not None or max_error != 0.0:
        raise ParameterError("noise", "a law", "goes with counts and listed values only")
    else:
        weights = _likelihoods(pair[0] - pair[1], np.asarray(values, np.float64), noise)
    return _learnt(tuple(values), weights * _prior(prior, len(values)))


def _check_values(values: Sequence[float] | None) -> None:
    if values is None:
        return
    listed = numbers("values", values, "must be numbers")
    if listed.ndim != 1 or not listed.size or not np.isfinite(listed).all() or len(np.unique(listed)) < len(listed):
        raise ParameterError("values", values, "must be finite numbers, each listed once", "None is any number")


def _sums(a: ArrayLike, b: ArrayLike, sizes: tuple[int, int] | None) -> tuple[Floats, Floats]:
    """The answers in pairs; means of so many people as sums."""
    first, second = (np.atleast_1d(numbers("answers", answer, "must be numbers")) for answer in (a, b))
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise ParameterError("answers", (first.shape, second.shape), "must come in pairs")
    if np.isinf(first).any() or np.isinf(second).any():
        raise ParameterError("answers", "inf", "must be finite, or nan where withheld")
    for size in sizes or ():
        whole("sizes", size, 1)
    return (first, second) if sizes is None else (first * sizes[0], second * sizes[1])


def _between(pair: tuple[Floats, Floats], errors: tuple[float, float], below: int | None) -> tuple[float, float]:
    """Between what the person's value lies, by every pair."""
    ends = []
    for answers, error in zip(pair, errors, strict=True):
        finite("max_error", error, 0)
        withheld = np.isnan(answers)
        if withheld.any() and below is None:
            raise ParameterError("answers", "nan", "mean counts withheld", "say below which threshold they are")
        top = 0 if below is None else below - 1
        ends.append((np.where(withheld, 0, answers - error), np.where(withheld, top, answers + error)))
    low = round(float((ends[0][0] - ends[1][1]).max()), DIGITS)
    high = round(float((ends[0][1] - ends[1][0]).min()), DIGITS)
    if low > high:
        raise ParameterError("answers", "those given", "fit no value", "do they differ in one person only?")
    return low, high


def _likelihoods(seen: Floats, values: Floats, noise: Law | tuple[Law | None, Law | None]) -> Floats:
    """How likely the differences seen are for each value, relative to the likeliest.

    Whatever probability the laws leave unlisted is granted to every value alike: then nothing is certain.
    """
    if np.isnan(seen).any():
        raise ParameterError("answers", "nan", "must be numbers where noise was added")
    laws: Any = (noise, noise) if isinstance(noise[0], np.ndarray) else noise
    first, second = (EXACTLY if law is None else law for law in laws)
    unlisted = sum(1 - float(np.sum(chances)) for _, chances in (first, second))
    floor = unlisted if unlisted > LISTED else 0.0
    chances = np.array([[_chance(gap - value, first, second) + floor for gap in seen] for value in values])
    logs = np.log(chances, where=chances > 0, out=np.full(chances.shape, -math.inf)).sum(axis=1)
    top = float(logs.max())
    return np.exp(logs - top) if top > -math.inf else np.zeros(len(values))


def _chance(gap: float, first: Law, second: Law) -> float:
    """The probability that the first answer's noise exceeds the second's by the gap."""
    spacing = [float(support[1] - support[0]) for support, _ in (first, second) if len(support) > 1]
    if len({round(step, 15) for step in spacing}) > 1:
        raise ParameterError("noise", spacing, "must be two laws on one grid")
    step = spacing[0] if spacing else 1.0
    places = (gap - float(first[0][0]) + float(second[0][0])) / step
    shift = round(places)
    start, end = max(0, shift), min(len(first[1]), shift + len(second[1]))
    if abs(places - shift) > NEAR or start >= end:
        return 0.0
    return float(np.dot(first[1][start:end], second[1][start - shift : end - shift]))


def _prior(prior: Sequence[float] | None, count: int) -> Floats:
    chances = np.ones(count) if prior is None else np.asarray(prior, np.float64)
    if chances.shape != (count,) or not (chances >= 0).all() or not 0 < chances.sum() < math.inf:
        raise ParameterError("prior", prior, f"must be {count} probabilities, one a value")
    return chances


def _learnt(values: tuple[float, ...], weights: Floats) -> Difference:
    if not weights.any():
        raise ParameterError("answers", "those given", f"fit none of the values {values}", "was the noise another?")
    posterior = dict(zip(values, (weights / weights.sum()).tolist(), strict=True))
    possible = [value for value, chance in posterior.items() if chance > 0]
    return Difference(min(possible), max(possible), posterior)
