"""Singling a person out by counting questions alone, around thresholds and rounding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.answering import Answering
from hubbub.attacks.coins import coins
from hubbub.attacks.differencing import difference
from hubbub.attacks.questions import Floats, questions
from hubbub.errors import ParameterError

Mask = NDArray[np.bool_]
ALONE, BROUGHT = "the person alone", "the person and people brought along"
EVERYBODY, STRANGERS = "everybody, and everybody else", "strangers added one by one"


@dataclass(frozen=True)
class SingledOut:
    """One person's bit, None if it did not come out; whom the attacker asked for, and how many questions it took."""

    value: int | None
    trick: str | None
    asked: int


def single_out(
    answer: Answering,
    person: int,
    people: int,
    *,
    below: int | None = None,
    max_error: float = 0.0,
    known: Mapping[int, int] | None = None,
    strangers: int = 50,
    seed: int = 0,
) -> SingledOut:
    """One person's bit, from whoever answers counting questions, even if counts ``below`` a threshold are withheld.

    Asks for the person alone; together with people whose bits the attacker knows, having brought them along; for
    everybody, and everybody else. Then adds strangers to a group one by one until an answer jumps: with the jump, a
    count that was rounded or withheld (each within ``max_error`` of the answer) is known exactly, and the person added
    to that group makes it jump or does not.

    >>> from hubbub.attacks import rounded, suppressed
    >>> secret = [1, 0, 0, 1, 1, 0, 1, 1, 0, 1]
    >>> single_out(suppressed(secret, below=5), person=3, people=10, below=5)
    SingledOut(value=1, trick='everybody, and everybody else', asked=3)
    >>> single_out(rounded(secret, base=3), person=3, people=10, max_error=1)
    SingledOut(value=1, trick='strangers added one by one', asked=13)
    """
    if not 0 <= person < people:
        raise ParameterError("person", person, f"must be a number from 0 to {people - 1}")
    asked = 0

    def ask(*groups: Mask) -> Floats:
        nonlocal asked
        asked += len(groups)
        return answer(questions(np.array(groups)))

    for trick, group, count in _direct(person, people, known or {}):
        told = ask(_plus(group, person)) if count is not None else ask(_plus(group, person), group)
        without, doubt = (float(told[1]), max_error) if count is None else (count, 0.0)
        bit = _bit(told[0], without, below, (max_error, doubt))
        if bit is not None:
            return SingledOut(bit, trick, asked)
    order = coins(seed).permutation(np.delete(np.arange(people), person))[:strangers]
    groups = [np.isin(np.arange(people), order[: size + 1]) for size in range(len(order))]
    for group, count in _pinned(groups, ask(*groups), below, max_error) if groups else ():
        bit = _bit(ask(_plus(group, person))[0], count, below, (max_error, 0.0))
        if bit is not None:
            return SingledOut(bit, STRANGERS, asked)
    return SingledOut(None, None, asked)


def _bit(with_person: float, without: float, below: int | None, errors: tuple[float, float]) -> int | None:
    """The one bit that fits both answers, None if both do."""
    learnt = difference(with_person, without, values=None, below=below, max_error=errors)
    fitting = [bit for bit in (0, 1) if learnt.low <= bit <= learnt.high]
    if not fitting:
        raise ParameterError("max_error", max(errors), "is less than the answers err by: they fit no bit")
    return fitting[0] if len(fitting) == 1 else None


def _direct(person: int, people: int, known: Mapping[int, int]) -> Iterator[tuple[str, Mask, float | None]]:
    """Groups without the person, in words, as masks, and their counts where the attacker knows them."""
    nobody = np.zeros(people, bool)
    yield ALONE, nobody, 0.0
    friends = {friend: bit for friend, bit in known.items() if friend != person}
    if friends:
        yield BROUGHT, np.isin(np.arange(people), list(friends)), float(sum(friends.values()))
    yield EVERYBODY, ~_plus(nobody, person), None


def _pinned(groups: list[Mask], told: Floats, below: int | None, max_error: float) -> Iterator[tuple[Mask, float]]:
    """Those of growing groups whose counts can only be one number, given that each holds one person more."""
    withheld = np.isnan(told)
    low = np.where(withheld, 0.0, told - max_error)
    high = np.where(withheld, len(groups) if below is None else below - 1, told + max_error)
    for i in range(1, len(groups)):
        low[i], high[i] = max(low[i], low[i - 1]), min(high[i], high[i - 1] + 1)
    for i in reversed(range(len(groups) - 1)):
        low[i], high[i] = max(low[i], low[i + 1] - 1), min(high[i], high[i + 1])
    for group, least, most in zip(groups, np.ceil(low - 1e-9), np.floor(high + 1e-9), strict=True):
        if least == most:
            yield group, float(least)


def _plus(group: Mask, person: int) -> Mask:
    larger = group.copy()
    larger[person] = True
    return larger
