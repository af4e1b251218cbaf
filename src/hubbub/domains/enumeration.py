"""Sensitivity by trying everything: every small table over a finite universe and each of its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from hubbub.numeric.rational import count
from hubbub.privacy.loss import Neighbours, check_neighbours


def neighbouring(
    universe: Sequence[Any], size: int, neighbours: Neighbours = "add-remove"
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """All pairs of neighbouring tables with at most ``size`` records from the universe; records of a table are a
    bag."""
    check_neighbours(neighbours)
    smallest = 0 if neighbours == "add-remove" else 1
    for n in range(smallest, count("size", size, least=0) + 1):
        if neighbours == "add-remove" and n == size:
            return
        for rows in combinations_with_replacement(range(len(universe)), n):
            table = tuple(universe[i] for i in rows)
            if neighbours == "add-remove":
                for record in universe:
                    yield table, (*table, record)
            else:
                for k in range(n):
                    for record in universe:
                        yield table, (*table[:k], record, *table[k + 1 :])


def brute_force_sensitivity(
    query: Callable[[tuple[Any, ...]], Any],
    universe: Sequence[Any],
    size: int,
    *,
    norm: int = 1,
    neighbours: Neighbours = "add-remove",
) -> float:
    """The largest change of the query's answer over all neighbouring tables of at most ``size`` records.

    Pairs on which the query is undefined (returns None) are left out.

    >>> brute_force_sensitivity(lambda rows: sum(rows), [0, 3, 7], size=3)
    7.0
    """
    largest = 0.0
    for one, other in neighbouring(universe, size, neighbours):
        a, b = query(one), query(other)
        if a is None or b is None:
            continue
        change = np.atleast_1d(np.asarray(a, dtype=float) - np.asarray(b, dtype=float)).ravel()
        largest = max(largest, float(np.linalg.norm(change, norm)))
    return largest
