"""Exhaustive search: the largest error of every possible database, all 2**n of them at once.

The largest overshoot of a database D is max over questions S of |S and D| - answer(S). The count is a sum over people,
so the maximum can be taken one person at a time, as a fast Walsh-Hadamard transform does with sums: n 2**n steps in
all, however many questions there are.
"""

from __future__ import annotations

import numpy as np

from hubbub.attacks.questions import MOST_LISTED, Floats, Integers, Questions
from hubbub.errors import ParameterError


def largest_errors(asked: Questions, answers: Floats) -> Floats:
    """For every database, numbered by the sum of 2**i over the people i with a 1, its largest distance from an answer.

    >>> from hubbub.attacks.questions import AllSubsets
    >>> largest_errors(AllSubsets(2), np.array([0.0, 1.0, 0.0, 1.0])).tolist()
    [1.0, 0.0, 1.0, 1.0]
    """
    if asked.people > MOST_LISTED:
        raise ParameterError(
            "people", asked.people, f"must be at most {MOST_LISTED} for exhaustive search", "use lp or least-squares"
        )
    numbers = asked.numbers()
    over = _largest(numbers, -answers, asked.people, step=1.0)
    under = _largest(numbers, answers, asked.people, step=-1.0)
    return np.maximum(over, under, out=over)


def _largest(numbers: Integers, starts: Floats, people: int, step: float) -> Floats:
    """For every database, max over questions of start + step * (how many of its people the question counts)."""
    best = np.full(2**people, -np.inf)
    np.maximum.at(best, numbers, starts)
    for person in range(people):
        pairs = best.reshape(-1, 2, 2**person)
        without, counting = pairs[:, 0].copy(), pairs[:, 1]
        np.maximum(without, counting, out=pairs[:, 0])
        counting += step
        np.maximum(without, counting, out=counting)
    return best


def bits_of(number: int, people: int) -> Integers:
    """The database of a number."""
    return (number >> np.arange(people)) & 1


def farthest(number: int, others: Integers, people: int) -> int:
    """The most places in which one of the other databases differs from this one."""
    different = others ^ number
    places = np.zeros(len(others), np.int64)
    for person in range(people):
        places += (different >> person) & 1
    return int(places.max(initial=0))
