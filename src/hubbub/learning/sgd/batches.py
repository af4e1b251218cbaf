"""Batches drawn as a plan says, from secure bits, and cut into parts that fit in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, default_collate

from hubbub.errors import ParameterError, ParameterTypeError, SessionClosed
from hubbub.learning.sgd.plan import Plan
from hubbub.numeric.rational import rational
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.choice import Bernoulli, permutation

Rows = NDArray[np.int64]


def draws(plan: Plan, rows: int, bits: Bits = SECURE) -> Iterator[Rows]:
    """The records of each step, for ever: empty samples too.

    Claim: the law of the samples is the one that ``plan`` prices, and they are independent (shuffled: passes are).
    Proof: exact Bernoulli draws; a uniform subset of those drawn where a cap cuts; the start of a uniform permutation.
    Assumes: ``rows`` is the plan's, where that states one.
    """
    if plan.sampling != "poisson" and (rows > (plan.rows or 0) or (plan.sampling != "truncated" and rows != plan.rows)):
        raise ParameterError("rows", plan.rows, "is not the number of records given", "make the plan for these records")
    chance, size = Bernoulli(rational("rate", plan.rate)), round(plan.batch)
    while True:
        if plan.sampling == "shuffled":
            order = permutation(rows, bits)
            for k in range(plan.steps_a_pass):
                yield order[k * size : (k + 1) * size]
        elif plan.sampling == "fixed":
            yield permutation(rows, bits)[:size]
        else:
            found = np.flatnonzero(chance.sample(rows, bits))
            if plan.sampling == "truncated" and plan.cap is not None and len(found) > plan.cap:
                found = found[permutation(len(found), bits)[: plan.cap]]
            yield found


@dataclass
class Batch:
    """One step's records, in parts: tensors, and which rows of them count (None: all; others only fill the part).

    It is good for one step, of the plan it was drawn for (None: whoever made it answers for that).
    """

    parts: Sequence[Callable[[], tuple[tuple[Any, ...], Tensor | None]]]
    plan: Plan | None = None
    taken: bool = False

    def take(self, plan: Plan) -> None:
        """Marks the batch as used by a step of this plan; a second time, or another plan, is refused."""
        if self.taken:
            raise SessionClosed("This batch was stepped with already: each is drawn, and priced, for one step.")
        if self.plan is not None and self.plan != plan:
            raise ParameterError("batch", self.plan, "was drawn for another plan", "use run.batches of this run")
        self.taken = True


def batches(
    plan: Plan,
    data: Any,
    steps: int,
    *,
    part: int | None = None,
    full: bool = False,
    workers: int = 0,
    bits: Bits = SECURE,
) -> Iterator[Batch]:
    """So many batches of a tuple of tensors or of a dataset with a length, in parts of at most ``part`` records.

    ``full`` fills the last part with copies of a record that do not count, so that all parts have one shape.
    """
    tensors = isinstance(data, Tensor) or (isinstance(data, tuple | list) and all(isinstance(v, Tensor) for v in data))
    if tensors:
        given = (data,) if isinstance(data, Tensor) else tuple(data)
        if len({len(v) for v in given}) != 1:
            raise ParameterError("data", [len(v) for v in given], "must be tensors of one length")
        rows = len(given[0])
    elif hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        rows = len(data)
    else:
        raise ParameterTypeError("data", type(data).__name__, "must be tensors, or a dataset with a length")
    if not rows:
        raise ParameterError("data", "no record", "must hold at least one")
    drawn = draws(plan, rows, bits)
    cut = (_cut(next(drawn), part, full) for _ in range(steps))
    if tensors:
        yield from (Batch([_of_tensors(given, *piece) for piece in pieces], plan) for pieces in cut)
    elif workers:
        yield from (Batch(parts, plan) for parts in _loaded(data, cut, workers))
    else:
        yield from (Batch([_of_dataset(data, *piece) for piece in pieces], plan) for pieces in cut)


def _cut(found: Rows, part: int | None, full: bool) -> list[tuple[Rows, int]]:
    """Parts of the records, each with how many of its rows count."""
    size = part or max(1, len(found))
    pieces = [found[i : i + size] for i in range(0, len(found), size)]
    if not full or not pieces:
        return [(piece, len(piece)) for piece in pieces]
    return [(np.resize(piece, size), len(piece)) for piece in pieces]


def _taking(rows: int, counting: int) -> Tensor | None:
    return None if rows == counting else (torch.arange(rows) < counting)


def _of_tensors(
    given: tuple[Tensor, ...], rows: Rows, counting: int
) -> Callable[[], tuple[tuple[Any, ...], Tensor | None]]:
    def fetch() -> tuple[tuple[Any, ...], Tensor | None]:
        index = torch.from_numpy(rows).to(given[0].device)
        return tuple(v[index] for v in given), _taking(len(rows), counting)

    return fetch


def _of_dataset(data: Any, rows: Rows, counting: int) -> Callable[[], tuple[tuple[Any, ...], Tensor | None]]:
    def fetch() -> tuple[tuple[Any, ...], Tensor | None]:
        return _tuple(default_collate([data[i] for i in rows.tolist()])), _taking(len(rows), counting)

    return fetch


def _tuple(collated: Any) -> tuple[Any, ...]:
    return tuple(collated) if isinstance(collated, tuple | list) else (collated,)


def _loaded(data: Any, cut: Iterator[list[tuple[Rows, int]]], workers: int) -> Iterator[list[Any]]:
    """The same by torch's loader, whose processes read ahead."""
    waiting: deque[list[tuple[Rows, int]]] = deque()

    def rows() -> Iterator[list[int]]:
        for pieces in cut:
            waiting.append(pieces)
            yield from (piece.tolist() for piece, _ in pieces)
        waiting.append([])

    loader = iter(DataLoader(data, batch_sampler=_Listed(rows()), num_workers=workers))
    first: Any = next(loader, None)
    while waiting:
        pieces = waiting.popleft()
        if not pieces and not waiting and first is None:
            return
        parts = []
        for piece, counting in pieces:
            parts.append(partial(_given, _tuple(first), len(piece), counting))
            first = next(loader, None)
        yield parts


def _given(tensors: tuple[Any, ...], rows: int, counting: int) -> tuple[tuple[Any, ...], Tensor | None]:
    return tensors, _taking(rows, counting)


class _Listed:
    """An iterator under the name of a sampler."""

    def __init__(self, rows: Iterator[list[int]]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[list[int]]:
        return self.rows
