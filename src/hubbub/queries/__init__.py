"""Questions on tables: SQL and method calls, checked, planned, computed exactly in an engine, and released with
noise."""

from hubbub.queries.aggregates import (
    best_price,
    count,
    count_distinct,
    max,
    mean,
    median,
    min,
    mode,
    quantile,
    stddev,
    sum,
    top,
    variance,
)
from hubbub.queries.answers import Answer, Receipt
from hubbub.queries.explanation import Explanation
from hubbub.queries.table import Table, protect

__all__ = [
    "Answer",
    "Explanation",
    "Receipt",
    "Table",
    "best_price",
    "count",
    "count_distinct",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "protect",
    "quantile",
    "stddev",
    "sum",
    "top",
    "variance",
]
