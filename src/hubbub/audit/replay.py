"""Grey-box audit: run a pipeline on a neighbour with every release forced to what it was, and see what differs.

Whatever the noise, a pipeline is as private as its mechanisms say if, given the same answers so far, it asks the same
mechanisms in the same order about values that are neighbours, and returns nothing but what they released.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from hubbub.errors import HubbubError, ParameterTypeError
from hubbub.mechanisms.mechanism import Mechanism, strays, watcher
from hubbub.privacy.families import NoLoss
from hubbub.privacy.loss import Loss, compose

TOLERANCE = 1e-9
"""What a sum of floats may be off by, relatively, without being called a difference."""


@dataclass(frozen=True)
class Call:
    """One release: by which mechanism, of what, where in the code. Private: it holds the value itself."""

    mechanism: Mechanism
    value: Any = field(repr=False)
    output: Any
    where: str
    charged: bool


@dataclass(frozen=True)
class Finding:
    """One way in which the run on the neighbour differs. Names places and kinds of mechanisms, never values."""

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} ({self.where})"


@dataclass(frozen=True)
class Replay:
    """What a replay found. ``holds`` is False if a difference was seen that the mechanisms' parameters do not allow."""

    findings: tuple[Finding, ...]
    releases: int
    loss: Loss
    """All that was charged, composed."""
    apart: float
    """The largest distance between the two inputs of a release, as a share of what its sensitivity allows."""

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        if self.holds:
            return f"{self.releases} releases, inputs at most {self.apart:.4g} of what is allowed apart"
        return "; ".join(map(str, self.findings))


class Stopped(HubbubError):
    """The run on the neighbour left the path of the first: there is nothing left to compare it with."""


@contextmanager
def recording() -> Iterator[list[Call]]:
    """Records every release of a hubbub mechanism in the block, in order."""
    calls: list[Call] = []

    def watch(mechanism: Mechanism, value: Any, run: Callable[[], Any], charged: bool) -> Any:
        kept, output = _kept(value), run()
        calls.append(Call(mechanism, kept, output, _where(), charged))
        return output

    token = watcher.set(watch)
    try:
        yield calls
    finally:
        watcher.reset(token)


@contextmanager
def replaying(calls: list[Call]) -> Iterator[list[tuple[Finding | None, float]]]:
    """Gives every release in the block the recorded output, and notes what differs and how far inputs are apart.

    Leaves the block where the path differs: a release too many, or another mechanism than recorded.
    """
    seen: list[tuple[Finding | None, float]] = []

    def watch(mechanism: Mechanism, value: Any, run: Callable[[], Any], charged: bool) -> Any:  # noqa: ARG001
        where, kept = _where(), _kept(value)
        if len(seen) >= len(calls):
            seen.append((Finding("one release more than on the first input", where), 0.0))
            raise Stopped("the path differs")
        first = calls[len(seen)]
        if mechanism != first.mechanism or where != first.where:
            seen.append(
                (
                    Finding(f"another {_kind(mechanism)} where the first input had a {_kind(first.mechanism)}", where),
                    0.0,
                )
            )
            raise Stopped("the path differs")
        apart = mechanism.apart(first.value, kept)
        found = None
        if not apart <= 1 + TOLERANCE:
            found = Finding(f"inputs of a {_kind(mechanism)} are farther apart than its sensitivity", where)
        seen.append((found, apart))
        return first.output

    token = watcher.set(watch)
    try:
        yield seen
    except Stopped:
        pass
    finally:
        watcher.reset(token)


def replay(pipeline: Callable[[Any], Any], x: Any, neighbour: Any, *, claimed: Loss | None = None) -> Replay:
    """Runs a pipeline on an input, and again on a neighbour with every release frozen to what it was.

    Claim: a pipeline for which no pair of neighbours ever gives a finding is as private as the composition of its
        charged losses.
    Proof: given equal answers so far the same mechanism is asked about neighbouring values, which is adaptive
        composition (DR14, Theorem 3.16 and ZDW22, Theorem 10); what is returned is a function of the answers alone.
    Assumes: all randomness is drawn inside hubbub mechanisms; one replay checks one pair of neighbours and one path.
        An error is an outcome like any other: on one input only it is a finding, on both alike it is raised.

    >>> import hubbub as hb
    >>> mean = lambda xs: hb.Laplace(1, epsilon=1.0).release(sum(xs)) / 3
    >>> replay(mean, [0, 1, 1], [1, 1, 1]).holds, replay(mean, [0, 1, 1], [7, 1, 1]).holds
    (True, False)
    """
    unseen: list[None] = []
    notice = partial(unseen.append, None)
    strays.append(notice)
    try:
        with recording() as calls:
            result = _outcome(pipeline, x)
        again: Any = _NOTHING
        with replaying(calls) as seen:
            again = _outcome(pipeline, neighbour)
    finally:
        strays.remove(notice)
    findings = [finding for finding, _ in seen if finding is not None]
    if unseen:
        findings.append(Finding("a release in another thread, where a replay does not follow", "threads"))
    if again is not _NOTHING and not findings:
        findings += _differences(result, again, calls[len(seen) :])
    total = _total(calls)
    if claimed is not None and not _covers(claimed, total):
        findings.append(Finding(f"the releases cost more than the claimed {claimed!r}", "the sum of losses"))
    return Replay(tuple(findings), len(calls), total, max((apart for _, apart in seen), default=0.0))


_NOTHING = object()


@dataclass(frozen=True)
class Raised:
    """A pipeline's outcome where it ended in an error."""

    error: Exception

    @property
    def told(self) -> tuple[Any, ...]:
        """What whoever sees the error sees."""
        return type(self.error), str(self.error)


def _outcome(pipeline: Callable[[Any], Any], value: Any) -> Any:
    """What the pipeline returns, or the error it ends in: whoever waits for an answer sees either."""
    try:
        return pipeline(value)
    except Stopped:
        raise
    except Exception as error:  # whatever a stranger's pipeline raises
        return Raised(error)


def _differences(result: Any, again: Any, left: list[Call]) -> list[Finding]:
    """How two outcomes differ that should be the same function of the same releases."""
    errors = [isinstance(outcome, Raised) for outcome in (result, again)]
    if any(errors):
        if not all(errors):
            return [Finding("an error on one input and not on the other", "the result")]
        if result.told != again.told:
            return [Finding("another error than on the first input", "the result")]
        raise result.error
    found = [Finding("a release less than on the first input", left[0].where)] if left else []
    if not _equal(result, again):
        found.append(Finding("what is returned depends on more than what was released", "the result"))
    return found


def _total(calls: list[Call]) -> Loss:
    charged = [call.mechanism.loss for call in calls if call.charged]
    return compose(charged) if charged else NoLoss()


def _covers(claimed: Loss, spent: Loss) -> bool:
    """Whether the claim is at least what was spent, at a few deltas."""
    if claimed.neighbours != spent.neighbours and not isinstance(spent, NoLoss):
        return False
    return claimed == spent or all(
        spent.epsilon_interval(d)[0] <= claimed.epsilon(d) * (1 + TOLERANCE) for d in (0.0, 1e-9, 1e-6, 1e-3)
    )


def _kind(mechanism: Mechanism) -> str:
    """The mechanism's name; its parameters may have been computed from private data."""
    return type(mechanism).__name__


def _where() -> str:
    """The file and line, outside hubbub's mechanisms and this module, that asked for a release."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("hubbub.mechanisms", "hubbub.audit")
    ):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno}"


def _kept(value: Any) -> Any:
    """The value as it is now, should the pipeline change it later."""
    if isinstance(value, Iterator):
        raise ParameterTypeError("value", "a stream", "must be a list under a replay", "or ask a session one by one")
    return deepcopy(value)


def _equal(one: Any, other: Any) -> bool:
    """Whether nobody could tell two results apart: types, order and the sign of zero count; nan equals nan."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return _equal(list(one.items()), list(other.items()))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, np.ndarray):
        same = one.dtype == other.dtype and one.shape == other.shape
        return same and _equal(one.ravel().tolist(), other.ravel().tolist())
    if isinstance(one, float | np.floating):
        return repr(one) == repr(other)
    try:
        if bool(one == other):
            return True
    except (TypeError, ValueError):  # things that are compared part by part, such as data frames
        pass
    return hasattr(one, "__dict__") and _equal(vars(one), vars(other))
