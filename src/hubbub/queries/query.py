"""A question as a checked value: which rows, which groups, which aggregates, and what is shown of them."""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.queries.aggregates import Aggregate
from hubbub.queries.expressions import Expression
from hubbub.queries.released import Released


@dataclass(frozen=True)
class Join:
    """A public table, joined on one key that it holds at most once."""

    table: str
    on: Expression
    key: str
    keep_unmatched: bool


@dataclass(frozen=True)
class Output:
    """A column of the answer."""

    name: str
    value: Released


@dataclass(frozen=True)
class Order:
    """One sort key of the answer."""

    value: Released
    descending: bool = False


@dataclass(frozen=True)
class Query:
    """What is asked. Every expression is over declared columns; nothing in it came from the data."""

    outputs: tuple[Output, ...]
    keys: tuple[tuple[str, Expression], ...] = ()
    where: Expression | None = None
    joins: tuple[Join, ...] = ()
    having: Released | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def counts_every_row(self) -> bool:
        """Whether no row can be left out: neither by a condition, nor by a join, nor for want of a public group."""
        return self.where is None and not self.joins and not self.keys

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Every aggregate the answer needs, each once."""
        parts = [o.value for o in self.outputs] + [o.value for o in self.order]
        parts += [self.having] if self.having is not None else []
        return tuple(dict.fromkeys(a for p in parts for a in p.aggregates))
