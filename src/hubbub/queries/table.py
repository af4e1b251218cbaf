"""A protected table: questions in SQL or by methods, answered with noise and charged to a budget."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hubbub.domains.columns import Category, Number
from hubbub.domains.schema import Schema
from hubbub.errors import (
    EngineFailure,
    HubbubError,
    ParameterError,
    ParameterTypeError,
    QueryRefused,
    ReleaseFailure,
)
from hubbub.numeric import rational as exact
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import Neighbours
from hubbub.queries import suggestion
from hubbub.queries.answers import Answer, Receipt
from hubbub.queries.asking import Asking
from hubbub.queries.engine import Engine, Exact, Prepared, check_unit
from hubbub.queries.explanation import Explanation, price_for_error
from hubbub.queries.expressions import from_column
from hubbub.queries.plan import Plan, make_plan
from hubbub.queries.query import Query
from hubbub.queries.questions import Asked, Question
from hubbub.queries.release import rehearse, release
from hubbub.queries.sensitivity import of_questions
from hubbub.queries.sources import as_ibis, as_public, described
from hubbub.queries.statements import StatementReader


def protect(
    source: Any,
    *,
    name: str = "t",
    unit: str | None = None,
    columns: Mapping[str, Any],
    budget: Budget | None = None,
    max_groups: int | None = None,
    max_rows: int | None = None,
    max_total_rows: int | None = None,
    neighbours: Neighbours = "add-remove",
    public: Mapping[str, Any] | None = None,
) -> Table:
    """A table that answers privately: a path, a data frame, an arrow table or any Ibis table.

    ``unit`` names the column that says whose row it is (None: every row is a person). ``columns`` declares what may be
    used: bounds (low, high), a list of public categories, "key" for private keys. ``max_groups``, ``max_rows`` (in each
    group) and ``max_total_rows`` bound what counts of one person: one row, unless they say more; with a total, the
    other two need not be given. ``public`` names tables that hold nothing private and may be joined. Questions are
    charged to ``budget``; without one, each must be given its own.
    """
    schema = Schema.declare(
        name,
        unit,
        columns,
        max_groups=max_groups,
        max_rows=max_rows,
        max_total_rows=max_total_rows,
        neighbours=neighbours,
    )
    if budget is not None:
        if not isinstance(budget, Budget):
            raise ParameterTypeError("budget", budget, "must be a Budget", "make one with hb.Budget(epsilon=1.0)")
        if budget.neighbours != schema.neighbours:
            raise ParameterError("budget", budget.neighbours, f"counts another relation than {schema.neighbours!r}")
    tables = {n: as_public(t, f"public[{n!r}]") for n, t in (public or {}).items()}
    return Table(schema, as_ibis(source, "source", schema.columns), budget, tables)


@dataclass(frozen=True, eq=False)
class Ready:
    """A question of a table that can be paid for: everything that could refuse it has been asked."""

    plan: Plan
    prepared: Prepared


class Table(Asking):
    """Made by ``protect``. Public: its schema and budget. Private: the rows, which only the engine sees."""

    def __init__(self, schema: Schema, table: Any, budget: Budget | None, public: Mapping[str, Any]) -> None:
        known = table.schema()
        for column in [*schema.columns, *([schema.unit] if schema.unit else [])]:
            if column not in known:
                raise ParameterError("columns", column, "is not in the source", f"its columns: {', '.join(known)}")
        check_unit(table, schema.unit)
        self.schema, self.budget = schema, budget
        self._types = known
        self._engine = Engine(table, public)
        declared = {n: from_column(n, s, known[n]) for n, s in schema.columns.items()}
        known_public = {n: described(n, t) for n, t in public.items()}
        self._reader = StatementReader(schema.name, schema.unit, declared, known_public)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{n}: {_short(c)}" for n, c in self.schema.columns.items())
        whose = f"unit {self.schema.unit}" if self.schema.unit else "every row a person"
        return f"<protected table {self.schema.name} ({whose}; {kinds})>"

    def explain(
        self,
        question: str | Question[Any],
        *,
        epsilon: exact.Number | None = None,
        delta: exact.Number = 0.0,
        **goal: Any,
    ) -> Explanation:
        """What a question would cost and how large its error would be. Spends nothing and reads no row."""
        return Explanation(self._plan(self._query(question), epsilon, delta, **goal))

    def sensitivity(self, question: Any, *, norm: int = 1, empty: str = "zero") -> float:
        """How far one person can move the exact answer to a question (or to a list of them together), derived.

        ``empty`` says what the average of no rows is: "zero", or "excluded" if there are always some.
        """
        questions = question if isinstance(question, list | tuple) else [question]
        return of_questions([self._query(q) for q in questions], self.schema, norm, empty)

    def suggest_bounds(
        self, column: str, *, epsilon: exact.Number, budget: Budget | None = None
    ) -> tuple[float, float]:
        """Bounds that hold nearly all of a column's values, found privately for this price; powers of two."""
        query = suggestion.query(column, self._types)
        return suggestion.bounds(self._answer(query, epsilon, 0.0, budget, f"bounds of {column}"))

    def _query(self, question: str | Question[Any]) -> Query:
        if isinstance(question, str):
            return self._reader.statement(question)
        own = isinstance(question, Question) and question.table is self
        if own:
            return self._reader.question(question.asked)
        raise ParameterTypeError("question", type(question).__name__, "must be SQL or a question of this table")

    def _check(self, asked: Asked) -> None:
        self._reader.question(asked)

    def _release(
        self,
        asked: Asked,
        epsilon: exact.Number | None,
        delta: exact.Number,
        budget: Budget | None,
        note: str,
        **goal: Any,
    ) -> Answer:
        return self._answer(self._reader.question(asked), epsilon, delta, budget, note, **goal)

    def _plan(self, query: Query, epsilon: exact.Number | None, delta: exact.Number, **goal: Any) -> Plan:
        if goal.get("error") is not None:
            if epsilon is not None:
                raise ParameterError("epsilon", epsilon, "cannot be given with error", "give the price or the error")
            return price_for_error(self.schema, query, delta, **goal)
        if epsilon is None:
            raise ParameterError("epsilon", None, "must be given", "say what the answer may cost, or give error=")
        return make_plan(self.schema, query, epsilon, delta)

    def _answer(
        self, query: Query, epsilon: Any, delta: exact.Number, budget: Budget | None, note: str, **goal: Any
    ) -> Answer:
        """Plans, charges, computes and releases, in this order: debit first."""
        plan = self._plan(query, epsilon, delta, **goal)
        ready = Ready(plan, self._prepared(plan))
        purse = budget if budget is not None else self.budget
        if purse is None:
            raise ParameterError("budget", None, "must be given", "hb.protect(..., budget=hb.Budget(epsilon=1.0))")
        purse.spend(ready.plan.loss, note=note, delta=ready.plan.delta)
        return self._paid(ready, note)

    def _paid(self, ready: Ready, note: str) -> Answer:
        """The answer to a question whose price has been charged, by the caller."""
        plan = ready.plan
        receipt = Receipt(plan.loss, plan.epsilon, plan.delta, self.schema.unit or "row", self.schema.neighbours, note)
        exact: Exact | None = None
        with suppress(Exception):  # what an engine says of rows stays unsaid, also in the context of the error below
            exact = self._engine.compute(plan, ready.prepared)
        if exact is None:
            raise EngineFailure
        answer: Answer | None = None
        with suppress(Exception):
            answer = release(plan, exact, receipt)
        if answer is None:
            raise ReleaseFailure
        return answer

    def _prepared(self, plan: Plan) -> Prepared:
        """What will be asked of the engine, and a rehearsal of what is shown of it: refusals cost nothing."""
        try:
            rehearse(plan)
            return self._engine.prepare(plan)
        except HubbubError:
            raise
        except Exception as problem:  # no row has been read yet
            raise QueryRefused("this combination of types or sizes", "compare and combine like with like") from problem


def _short(column: Any) -> str:
    match column:
        case Number(low, high):
            return f"{low} to {high}"
        case Category(values):
            return f"{len(values)} categories"
        case _:
            return type(column).__name__.lower()
