"""What can be asked of a group: counts, sums, means, variances, quantiles, the most frequent value, the best price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.numeric.rational import Number, positive, rational
from hubbub.numeric.rational import count as whole
from hubbub.queries.expressions import Expression

Function = Literal[
    "count",
    "count distinct",
    "count units",
    "sum",
    "mean",
    "variance",
    "stddev",
    "quantile",
    "mode",
    "top",
    "best price",
]

LOWEST, HIGHEST = 0.005, 0.995
"""What stands for a minimum and a maximum. The true ones are single persons' values, and no private answer can be near
them for all data; a quantile a little inside can be told, and is not moved by one outlier."""


@dataclass(frozen=True)
class Aggregate:
    """One question of every group: the function, the expression it is asked of, and its parameters."""

    function: Function
    argument: Expression | None = None
    parameters: tuple[Number, ...] = ()

    @property
    def text(self) -> str:
        """As people read it."""
        inside = "*" if self.argument is None else self.argument.text
        return f"{self.function}({', '.join([inside, *map(str, self.parameters)])})"


@dataclass(frozen=True)
class Ask:
    """An aggregate whose expression is still text, waiting for a table; made by ``hb.count()``, ``hb.mean("age")`` …"""

    function: Function
    expression: str | None = None
    parameters: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        if self.expression is not None and not isinstance(self.expression, str):
            raise ParameterTypeError("expression", self.expression, "must be a column name or an expression in SQL")


def count(expression: str | None = None) -> Ask:
    """How many rows; with an expression, how many rows in which it is not missing."""
    return Ask("count", expression)


def count_distinct(expression: str | None = None) -> Ask:
    """How many people (units); with an expression, how many different values."""
    return Ask("count units") if expression is None else Ask("count distinct", expression)


def sum(expression: str, max_total: Number | None = None) -> Ask:  # noqa: A001 - the name people expect as hb.sum
    """The total; with ``max_total``, what one person adds to a group is held within it, which bounds the noise."""
    if max_total is None:
        return Ask("sum", expression)
    positive("max_total", max_total)
    return Ask("sum", expression, (max_total,))


def mean(expression: str) -> Ask:
    """The average."""
    return Ask("mean", expression)


def variance(expression: str) -> Ask:
    """The variance (of a sample: n - 1)."""
    return Ask("variance", expression)


def stddev(expression: str) -> Ask:
    """The standard deviation."""
    return Ask("stddev", expression)


def quantile(expression: str, q: Number) -> Ask:
    """The value below which a share q lies."""
    return Ask("quantile", expression, (_share(q),))


def median(expression: str) -> Ask:
    """The middle value."""
    return quantile(expression, 0.5)


def min(expression: str) -> Ask:  # noqa: A001 - the name people expect as hb.min
    """A low quantile: the true minimum is one person's value, and cannot be told."""
    return Ask("quantile", expression, (LOWEST,))


def max(expression: str) -> Ask:  # noqa: A001 - the name people expect as hb.max
    """A high quantile: the true maximum is one person's value, and cannot be told."""
    return Ask("quantile", expression, (HIGHEST,))


def mode(expression: str) -> Ask:
    """The most frequent of a column's public categories."""
    return Ask("mode", expression)


def top(expression: str, k: int) -> Ask:
    """The k most frequent of a column's public categories, most frequent first."""
    return Ask("top", expression, (whole("k", k),))


def best_price(expression: str, prices: Sequence[Number]) -> Ask:
    """The price with the largest takings: price times the number of rows whose value (what they would pay) reaches
    it."""
    listed = tuple(prices)
    if not listed or any(rational("prices", p) <= 0 for p in listed):
        raise ParameterError("prices", list(listed), "must be a list of positive numbers")
    return Ask("best price", expression, listed)


def written(function: str, expression: str | None, parameters: Sequence[Number]) -> Ask:
    """An aggregate told by its parts, as it comes over a wire; refused unless one of the functions here could have made
    it.

    >>> written("quantile", "age", [0.5]) == median("age")
    True
    """
    match function, expression, list(parameters):
        case "count units", None, []:
            return Ask("count units")
        case "count", _, []:
            return count(expression)
        case "count distinct" | "sum" | "mean" | "variance" | "stddev" | "mode", str(), []:
            return Ask(function, expression)
        case "sum", str(), [most]:
            return sum(expression, most)
        case "quantile", str(), [q]:
            return quantile(expression, q)
        case "top", str(), [int(k)]:
            return top(expression, k)
        case "best price", str(), prices:
            return best_price(expression, prices)
    raise ParameterError(
        "function", function, "is not an aggregate of these parts", f"there are: {', '.join(get_args(Function))}"
    )


def _share(q: Number) -> Number:
    if not 0 <= rational("q", q) <= 1:
        raise ParameterError("q", q, "must lie between 0 and 1")
    return q
