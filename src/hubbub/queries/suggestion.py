"""Bounds for a column nobody knows the bounds of: a private histogram over powers of two."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError, QueryRefused
from hubbub.queries.aggregates import Aggregate
from hubbub.queries.answers import Answer
from hubbub.queries.expressions import Expression, as_double
from hubbub.queries.extras import ibis
from hubbub.queries.kinds import Whole
from hubbub.queries.query import Output, Query
from hubbub.queries.released import of_aggregate, of_key

EXPONENTS = range(-10, 41)
"""Values are told apart by powers of two from 2**-10 to 2**40 in size."""
DOUBT = 0.01
"""The chance that an empty bin is taken for a full one."""


def edges() -> list[float]:
    """The ends of the bins, increasing: negative powers, 0, positive ones."""
    sizes = [2.0**k for k in EXPONENTS]
    return [*(-s for s in reversed(sizes)), 0.0, *sizes]


def query(column: str, types: Any) -> Query:
    """How many rows lie in each bin. The column need not be declared: only bins, which are public, are asked for."""
    if column not in types:
        raise ParameterError("column", column, "is not in the source", f"its columns: {', '.join(types)}")
    kind = types[column]
    if not (kind.is_numeric() or kind.is_string()) or kind.is_boolean():
        raise QueryRefused(f"bounds of {column!r}, which is {kind}", "only numbers have bounds")

    def build(table: Any) -> Any:
        value = table[column].try_cast("float64") if kind.is_string() else table[column]
        known = as_double(value, -(2 << EXPONENTS[-1]), 2 << EXPONENTS[-1])
        cases = [(known < e, ibis().literal(i, "int64")) for i, e in enumerate(edges())]
        last = (known >= edges()[-1], ibis().literal(len(edges()), "int64"))
        return ibis().cases(*cases, last, else_=ibis().null("int64"))

    key = Expression(Whole(Fraction(1), 0, len(edges())), f"bin of {column}", build)
    return Query((Output("bin", of_key("bin")), Output("rows", of_aggregate(Aggregate("count")))), (("bin", key),))


def bounds(answer: Answer) -> tuple[float, float]:
    """The outer edges of the bins that are surely not empty."""
    error = float(np.max(answer.errors(0.9)["rows"]))
    scale = error / math.log(10)  # a Laplace half-width at 90 %
    threshold = scale * math.log(len(answer) / DOUBT)
    full = np.flatnonzero(answer["rows"].astype(float) > threshold)
    if not len(full):
        raise QueryRefused("bounds from so few rows at this price", "give a larger epsilon, or bounds you know")
    ends = [-math.inf, *edges(), math.inf]
    low, high = ends[full[0]], ends[full[-1] + 1]
    return max(low, -(2.0 ** EXPONENTS[-1])), min(high, 2.0 ** EXPONENTS[-1])
