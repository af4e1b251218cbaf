"""Questions as people put them, in SQL or by methods, before any table has read them: the same here and over a wire."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.numeric import rational as exact
from hubbub.queries.aggregates import Ask, written

if TYPE_CHECKING:
    from hubbub.privacy.budget import Budget
    from hubbub.queries.answers import Answer
    from hubbub.queries.asking import Asking
    from hubbub.queries.explanation import Explanation

T = TypeVar("T", bound="Asking")


@dataclass(frozen=True)
class Asked:
    """What a question says: one SQL statement, or keys, a condition and aggregates whose expressions are SQL."""

    sql: str | None = None
    keys: tuple[tuple[str, str], ...] = ()
    where: str | None = None
    asks: tuple[tuple[str, Ask], ...] = ()

    @property
    def words(self) -> str:
        """As a receipt notes it."""
        if self.sql is not None:
            return self.sql
        told = ", ".join(f"{a.function}({a.expression or '*'})" for _, a in self.asks)
        by = " by " + ", ".join(name for name, _ in self.keys) if self.keys else ""
        return told + by + (f" where {self.where}" if self.where is not None else "")

    def to_json(self) -> dict[str, Any]:
        """Plain values, as they travel; the same question always the same ones.

        >>> Asked(asks=(("n", Ask("count")),)).to_json()
        {'keys': {}, 'where': None, 'aggregates': {'n': {'function': 'count', 'of': None, 'parameters': []}}}
        """
        if self.sql is not None:
            return {"sql": self.sql}
        asks = {n: {"function": a.function, "of": a.expression, "parameters": [*a.parameters]} for n, a in self.asks}
        return {"keys": dict(self.keys), "where": self.where, "aggregates": json.loads(json.dumps(asks, default=str))}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Asked:
        """The question that was written so; its expressions are checked by the table it is put to.

        >>> Asked.from_json(Asked(asks=(("n", Ask("count")),)).to_json()).words
        'count(*)'
        """
        if "sql" in told:
            return cls(sql=told["sql"])
        asks = {n: written(a["function"], a.get("of"), a.get("parameters", ())) for n, a in told["aggregates"].items()}
        if not asks:
            raise ParameterError("aggregates", {}, "needs at least one", "such as count")
        return cls(keys=tuple(told.get("keys", {}).items()), where=told.get("where"), asks=tuple(asks.items()))


class Grouped(Generic[T]):
    """A table with keys to group by and rows to keep, waiting for aggregates."""

    def __init__(self, table: T, keys: tuple[str | tuple[str, str], ...], condition: str | None) -> None:
        self._table, self._keys, self._condition = table, keys, condition

    def where(self, condition: str) -> Grouped[T]:
        """Only rows for which a condition (in SQL) is true."""
        both = condition if self._condition is None else f"({self._condition}) AND ({condition})"
        return Grouped(self._table, self._keys, both)

    def group_by(self, *keys: str | tuple[str, str]) -> Grouped[T]:
        """By these keys too: columns, expressions in SQL, or (name, expression)."""
        return Grouped(self._table, (*self._keys, *keys), self._condition)

    def agg(self, **asks: Ask) -> Question[T]:
        """The aggregates to release, by name: ``agg(n=hb.count(), age=hb.mean("age"))``."""
        if not asks:
            raise ParameterError("agg", {}, "needs at least one aggregate", "such as n=hb.count()")
        for name, a in asks.items():
            if not isinstance(a, Ask):
                raise ParameterTypeError(name, a, "must be an aggregate", "such as hb.count() or hb.mean('age')")
        keys = tuple(key if isinstance(key, tuple) else (key, key) for key in self._keys)
        return Question(self._table, Asked(keys=keys, where=self._condition, asks=tuple(asks.items())))


class Question(Generic[T]):
    """A question of a table, ready to be explained or released."""

    def __init__(self, table: T, asked: Asked) -> None:
        self.table, self.asked = table, asked
        table._check(asked)

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
        goal = {} if error is None else {"error": error, "confidence": confidence, "group_size": group_size}
        return self.table._release(self.asked, epsilon, delta, budget, note or self.asked.words, **goal)


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
