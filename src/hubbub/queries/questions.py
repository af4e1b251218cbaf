"""Questions built by methods: group, filter, aggregate, then explain or release."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.numeric import rational as exact
from hubbub.privacy.budget import Budget
from hubbub.queries.aggregates import Ask
from hubbub.queries.answers import Answer
from hubbub.queries.conditions import condition as as_condition
from hubbub.queries.explanation import Explanation
from hubbub.queries.query import Output, Query
from hubbub.queries.released import of_aggregate, of_key

if TYPE_CHECKING:
    from hubbub.queries.table import Table


class Grouped:
    """A table with keys to group by and rows to keep, waiting for aggregates."""

    def __init__(self, table: Table, keys: tuple[str | tuple[str, str], ...], condition: str | None) -> None:
        self._table, self._keys, self._condition = table, keys, condition

    def where(self, condition: str) -> Grouped:
        """Only rows for which a condition (in SQL) is true."""
        both = condition if self._condition is None else f"({self._condition}) AND ({condition})"
        return Grouped(self._table, self._keys, both)

    def group_by(self, *keys: str | tuple[str, str]) -> Grouped:
        """By these keys too: columns, expressions in SQL, or (name, expression)."""
        return Grouped(self._table, (*self._keys, *keys), self._condition)

    def agg(self, **asks: Ask) -> Question:
        """The aggregates to release, by name: ``agg(n=hb.count(), age=hb.mean("age"))``."""
        if not asks:
            raise ParameterError("agg", {}, "needs at least one aggregate", "such as n=hb.count()")
        reader = self._table._reader
        named = [key if isinstance(key, tuple) else (key, key) for key in self._keys]
        keys = tuple((name, reader.expression(text)) for name, text in named)
        outputs = [Output(name, of_key(name)) for name, _ in keys]
        for name, a in asks.items():
            if not isinstance(a, Ask):
                raise ParameterTypeError(name, a, "must be an aggregate", "such as hb.count() or hb.mean('age')")
            outputs.append(Output(name, of_aggregate(reader.aggregate(a))))
        where = None if self._condition is None else as_condition(reader.expression(self._condition))
        return Question(self._table, Query(tuple(outputs), keys, where))


class Question:
    """A question of a table, ready to be explained or released."""

    def __init__(self, table: Table, query: Query, text: str = "") -> None:
        self.table, self.query, self._text = table, query, text

    def explain(self, **price: Any) -> Explanation:
        """What it would cost and how large its error would be."""
        return self.table.explain(self, **price)

    def release(
        self,
        *,
        epsilon: exact.Number | None = None,
        delta: exact.Number = 0.0,
        error: float | dict[str, float] | None = None,
        confidence: exact.Number = 0.95,
        group_size: int | None = None,
        budget: Budget | None = None,
        note: str = "",
    ) -> Answer:
        """The private answer, charged to the budget: for the price ``epsilon`` (at ``delta``), or for a wanted error.

        ``error=5`` finds the least epsilon at which every answer is within 5 with this confidence; the errors of means
        and variances depend on the number of rows, so they need ``group_size``, a public least number.
        """
        words = note or self._text or ", ".join(o.value.text for o in self.query.outputs)
        goal = {} if error is None else {"error": error, "confidence": confidence, "group_size": group_size}
        return self.table._answer(self.query, epsilon, delta, budget, words, **goal)


def binned(expression: str, bins: Sequence[exact.Number] | None) -> list[str | tuple[str, str]]:
    """The key of a histogram: the expression itself, or the text of the bin between edges it lies in."""
    if bins is None:
        return [expression]
    edges = [exact.rational("bins", b) for b in bins]
    if sorted(set(edges)) != edges or not edges:
        raise ParameterError("bins", list(bins), "must be increasing edges", "such as [0, 10, 20]")
    shown = [f"{float(b):g}" for b in edges]
    texts = [f"below {shown[0]}", *(f"{a} to {b}" for a, b in pairwise(shown)), f"{shown[-1]} up"]
    cases = " ".join(f"WHEN {expression} < {float(b)!r} THEN '{t}'" for b, t in zip(edges, texts, strict=False))
    otherwise = f"WHEN {expression} >= {float(edges[-1])!r} THEN '{texts[-1]}'"
    return [("bin", f"CASE {cases} {otherwise} END")]
