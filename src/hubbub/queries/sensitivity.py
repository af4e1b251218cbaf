"""How far one person can move the exact answer to a question: derived from the declared domain, never typed in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from hubbub.domains.contribution import Contribution
from hubbub.domains.schema import Schema
from hubbub.errors import ParameterError, QueryRefused
from hubbub.queries.aggregates import Aggregate
from hubbub.queries.kinds import public_values
from hubbub.queries.measures import Measure
from hubbub.queries.query import Query


def of_questions(queries: Sequence[Query], schema: Schema, norm: int, empty: str) -> float:
    """The sensitivity of all the questions' answers as one vector, in the 1-norm or the 2-norm.

    Claim: no neighbouring pair of tables has answers farther apart.
    Proof: Measure for counts and totals; the norm of a stacked vector is at most the norm of its parts' norms. A mean
        of c rows in [low, high] moves by at most (high-low)/2 if a row comes to one or more, and by max(|low|, |high|)
        if it comes to none and the mean of none is 0; replacing moves it by high-low at most.
    Assumes: the schema is true.
    """
    if norm not in (1, 2):
        raise ParameterError("norm", norm, "must be 1 or 2")
    if empty not in ("zero", "excluded"):
        raise ParameterError("empty", empty, "must be 'zero' or 'excluded'")
    squares = Fraction(0)
    total = Fraction(0)
    for query in queries:
        values = [public_values(x.kind) for _, x in query.keys]
        size = None if any(v is None for v in values) else math.prod(len(v) for v in values if v is not None)
        contribution = schema.contribution.within(size)
        for aggregate in query.aggregates:
            one, square = _of(aggregate, query, schema, contribution, size == 1, empty)
            total, squares = total + one, squares + square
    return float(total) if norm == 1 else math.sqrt(squares)


def _of(
    aggregate: Aggregate, query: Query, schema: Schema, c: Contribution, alone: bool, empty: str
) -> tuple[Fraction, Fraction]:
    always = schema.unit is None and query.counts_every_row
    if aggregate.function in ("count", "count distinct", "count units"):
        kinds = {"count": "rows", "count distinct": "distinct", "count units": "units"}
        measure = Measure(kinds[aggregate.function], aggregate.argument)  # type: ignore[arg-type]
        step = Fraction(1)
    elif aggregate.function == "sum":
        measure = Measure.of_sum(aggregate)
        step = measure.number.step
    elif aggregate.function == "mean":
        return _of_mean(aggregate, schema, c, alone, empty)
    else:
        raise QueryRefused(
            f"the sensitivity of {aggregate.text}",
            "it is not released by adding noise; ask explain() for its mechanism",
        )
    one = step * measure.l1(c, schema.neighbours, alone, always)
    return one, step**2 * measure.squared_l2(c, schema.neighbours, alone, always)


def _of_mean(
    aggregate: Aggregate, schema: Schema, c: Contribution, alone: bool, empty: str
) -> tuple[Fraction, Fraction]:
    assert aggregate.argument is not None
    low, high = aggregate.argument.number.bounds
    if schema.neighbours == "replace" or c.rows > 1:
        most = high - low
    else:
        most = (high - low) / 2
    if empty == "zero":
        most = max(most, abs(low), abs(high))
    groups = c.most_groups * (1 if schema.neighbours == "add-remove" or alone else 2)
    return most * groups, most**2 * groups
