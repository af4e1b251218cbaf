"""The sparse vector technique: find the first question whose answer exceeds a threshold, paying once."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from hubbub.errors import DataTypeError, ParameterError, SessionClosed
from hubbub.mechanisms.additive import LISTED_POINTS
from hubbub.mechanisms.laplace import MORE_PRIVACY
from hubbub.mechanisms.lattice import SCORE_LIMIT, Floats, clean, is_integer, is_number, score_grid
from hubbub.mechanisms.mechanism import Mechanism, watched
from hubbub.numeric.rational import Number, float_up, is_whole, positive, rational, yes_or_no
from hubbub.privacy.families import PureDP
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.laplace import DiscreteLaplace
from hubbub.randomness.thresholds import Integers

THRESHOLD_SHARE = Fraction(63, 163)
"""The threshold's part of epsilon: 1 to 2**(2/3), near the split that LSL17 find best for one answer."""


@dataclass(frozen=True, init=False)
class AboveThreshold(Mechanism):
    """Says which of a stream of answers is the first above a threshold, for the price of one answer.

    ``sensitivity`` bounds the change of every single answer between neighbours; ``monotone=True`` states that one
    person moves all answers in one direction. An int sensitivity takes integer answers, a float one floats on a
    public grid. One instance of noise on the threshold serves until the first "above"; then it is spent, and the next
    search pays again.

    ``release`` takes answers in order (later ones are not looked at) and returns the index of the first above, or
    None.

    Claim: epsilon-DP for the whole stream of below/above outcomes, however long, questions chosen adaptively.
    Proof: LSL17, Theorem 2 with c = 1, in integers: shifting the threshold noise by the sensitivity and the noise of
        the answer that stops by twice that (once if monotone) maps every run on one data set to the same run on its
        neighbour.
    Assumes: the stated sensitivity for this neighbour relation; a public threshold; a public number of answers;
        monotone only if true.

    >>> AboveThreshold(1, threshold=100, epsilon=1.0).release([0, 3, 1000, 2])
    2
    """

    sensitivity: Number
    threshold: Number
    epsilon: float
    monotone: bool
    neighbours: Neighbours
    _step: Fraction = field(repr=False)
    _threshold_law: DiscreteLaplace = field(repr=False)
    _answer_law: DiscreteLaplace = field(repr=False)

    def __init__(
        self,
        sensitivity: Number,
        *,
        threshold: Number,
        epsilon: Number,
        monotone: bool = False,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        price = positive("epsilon", epsilon, MORE_PRIVACY)
        rational("threshold", threshold)
        step, reach = score_grid(sensitivity)
        for_threshold = price * THRESHOLD_SHARE
        self._fill(
            sensitivity=sensitivity,
            threshold=threshold,
            epsilon=float_up(price),
            monotone=yes_or_no("monotone", monotone),
            neighbours=check_neighbours(neighbours),
            _step=step,
            _threshold_law=DiscreteLaplace(reach / for_threshold),
            _answer_law=DiscreteLaplace(reach * (1 if monotone else 2) / (price - for_threshold)),
        )

    @property
    def loss(self) -> Loss:
        return PureDP(self.epsilon, neighbours=self.neighbours)

    def _release(self, value: Iterable[Any], bits: Bits) -> int | None:
        if not isinstance(value, Iterable):
            raise DataTypeError("release takes a list or stream of answers; session() takes them one at a time")
        session = self.session(bits)
        return next((i for i, answer in enumerate(value) if session.ask(answer)), None)

    def session(self, bits: Bits = SECURE) -> ThresholdSession:
        """An open search: ask one answer at a time, each chosen after seeing the outcomes before it. Costs ``loss``."""
        return ThresholdSession(self, bits)

    def apart(self, value: Any, neighbour: Any) -> float:
        """The largest change of an answer, of a list of them or of one in a session; lists must be equally long."""
        streams = [list(v) if isinstance(v, Iterable) else [v] for v in (value, neighbour)]
        if len(streams[0]) != len(streams[1]):  # where one ends, the other can still stop
            return math.inf
        moves = [self._steps(a) - self._steps(b) for a, b in zip(*streams, strict=True) if a is not None]
        if self.monotone and min(moves, default=0) < 0 < max(moves, default=0):
            return math.inf
        _, reach = score_grid(self.sensitivity)
        return max(map(abs, moves), default=0) / reach

    def distribution(self, answers: list[Any]) -> tuple[Integers, Floats]:
        """Every stopping index (len(answers) for none) and its probability: summed over the threshold's noise."""
        steps = [self._steps(a) - self._threshold_steps() for a in answers]
        reach = self._threshold_law.half_width(1e-13)
        if 2 * reach > LISTED_POINTS:
            raise ParameterError(
                "epsilon", self.epsilon, "spreads the noise too far to list", "ask for a larger epsilon"
            )
        noise = np.arange(-reach, reach + 1)
        still, result = self._threshold_law.pmf(noise), []
        for step in steps:
            gap = noise - step
            tail = self._answer_law.tail(np.maximum(gap, 1))
            above = np.where(gap >= 1, tail, 1 - self._answer_law.tail(np.maximum(1 - gap, 1)))
            result.append(float((still * above).sum()))
            still = still * (1 - above)
        return np.arange(len(steps) + 1), np.array([*result, still.sum()])

    def _threshold_steps(self) -> int:
        return math.ceil(rational("threshold", self.threshold) / self._step)

    def _steps(self, answer: Any) -> int:
        if is_integer(answer):
            return math.floor(int(answer) / self._step)
        if not is_number(answer) or is_whole(self.sensitivity):
            raise DataTypeError("answers must be integers for an int sensitivity, integers or floats for a float one")
        return math.floor(Fraction(float(clean(np.array([float(answer)]), SCORE_LIMIT)[0])) / self._step)


class ThresholdSession:
    """One search under one noisy threshold. It answers until the first "above", in the process that opened it, once."""

    __slots__ = ("_bits", "_closed", "_lock", "_mechanism", "_noisy_threshold", "_process")

    def __init__(self, mechanism: AboveThreshold, bits: Bits) -> None:
        self._mechanism = mechanism
        self._bits = bits
        self._process = os.getpid()
        self._noisy_threshold = mechanism._threshold_steps() + mechanism._threshold_law.draw(bits)
        watched(mechanism, None, lambda: None)
        self._closed = False
        self._lock = threading.Lock()

    @property
    def closed(self) -> bool:
        """Whether the answer has been given."""
        return self._closed

    def ask(self, answer: Any) -> bool:
        """Whether this answer is, noisily, at or above the noisy threshold. True closes the session."""
        if os.getpid() != self._process:
            raise SessionClosed("a threshold session cannot be used in another process; open a new one there")
        steps = self._mechanism._steps(answer)

        def above() -> bool:
            return steps + self._mechanism._answer_law.draw(self._bits) >= self._noisy_threshold

        with self._lock:
            if self._closed:
                raise SessionClosed("this threshold has given its answer; a new session pays its own epsilon")
            self._closed = bool(watched(self._mechanism, answer, above, charged=False))
            return self._closed

    def __repr__(self) -> str:
        return f"<{'closed' if self.closed else 'open'} session of {self._mechanism!r}>"

    def __copy__(self) -> NoReturn:
        raise SessionClosed("a threshold session cannot be copied: both copies would share one noise")

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__copy__()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self.__copy__()
