"""A SELECT statement read into a question: keys and aggregates, then what is shown, kept and ordered after the
noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hubbub.errors import QueryRefused
from hubbub.queries import conditions as c
from hubbub.queries import expressions as e
from hubbub.queries.aggregates import HIGHEST, LOWEST, Aggregate, Ask, Function
from hubbub.queries.expressions import Expression
from hubbub.queries.kinds import Listed, Secret, Time, Truth, Whole
from hubbub.queries.query import Join, Order, Output, Query
from hubbub.queries.questions import Asked
from hubbub.queries.released import Released, combine, of_aggregate, of_constant, of_key
from hubbub.queries.sources import PublicTable
from hubbub.queries.sql import FALLBACK, ExpressionReader, decimals, number, parse, parse_expression


class StatementReader:
    """Reads questions of one protected table, its unit column, and the public tables beside it."""

    def __init__(
        self, name: str, unit: str | None, columns: Mapping[str, Expression], public: Mapping[str, PublicTable]
    ) -> None:
        self._name, self._unit, self._columns, self._public = name, unit, columns, public

    def expression(self, text: str) -> Expression:
        """A row-by-row expression of the table alone."""
        return ExpressionReader(self._columns, {self._name: self._columns}).read(parse_expression(text))

    def aggregate(self, ask: Ask) -> Aggregate:
        """What an ``Ask`` means for this table."""
        if ask.function == "count distinct" and ask.expression == self._unit:
            return Aggregate("count units")
        if ask.function == "sum" and ask.parameters and self._unit is None:
            raise QueryRefused("max_total where every row is a person", "declare tighter bounds for the column")
        argument = None if ask.expression is None else self.expression(ask.expression)
        return checked(Aggregate(ask.function, argument, ask.parameters))

    def question(self, asked: Asked) -> Query:
        """The question somebody put, in SQL or by methods."""
        if asked.sql is not None:
            return self.statement(asked.sql)
        keys = tuple((name, self.expression(text)) for name, text in asked.keys)
        outputs = [Output(name, of_key(name)) for name, _ in keys]
        outputs += [Output(name, of_aggregate(self.aggregate(a))) for name, a in asked.asks]
        if len({o.name for o in outputs}) < len(outputs):
            raise QueryRefused("two columns of the same name", "name them differently")
        where = None if asked.where is None else c.condition(self.expression(asked.where))
        return Query(tuple(outputs), keys, where)

    def statement(self, text: str) -> Query:
        """The question a SELECT statement asks."""
        node = parse(text)
        if type(node).__name__ != "Select":
            raise QueryRefused(f"the statement {node.key.upper()}", FALLBACK)
        tables, joins = self._tables(node)
        seen: dict[str, Expression] = {}
        for columns in tables.values():
            for n, x in columns.items():
                seen.setdefault(n, x)
        return _Select(node, ExpressionReader(seen, tables), self._unit, joins).read()

    def _tables(self, node: Any) -> tuple[dict[str, Mapping[str, Expression]], tuple[Join, ...]]:
        source = node.args.get("from_")
        if source is None or type(source.this).__name__ != "Table":
            raise QueryRefused("a question without FROM", f"write FROM {self._name}")
        table = source.this
        if table.name.lower() != self._name.lower():
            raise QueryRefused(f"the table {table.name!r}", f"the protected table here is {self._name}")
        tables: dict[str, Mapping[str, Expression]] = {(table.alias or table.name): self._columns}
        joins = []
        for join in node.args.get("joins") or []:
            name, columns, found = self._join(join, tables)
            tables[name] = columns
            joins.append(found)
        return tables, tuple(joins)

    def _join(
        self, join: Any, tables: Mapping[str, Mapping[str, Expression]]
    ) -> tuple[str, Mapping[str, Expression], Join]:
        kind, side = (join.args.get("kind") or "").upper(), (join.args.get("side") or "").upper()
        table = join.this
        if type(table).__name__ != "Table" or kind not in ("", "INNER", "OUTER") or side not in ("", "LEFT"):
            raise QueryRefused(f"{side} {kind} JOIN".strip(), "use JOIN or LEFT JOIN with a public table on one key")
        public = next((n for n in self._public if n.lower() == table.name.lower()), None)
        if public is None:
            names = ", ".join(self._public) or "none"
            raise QueryRefused(f"joining {table.name!r}", f"only public tables can be joined; declared here: {names}")
        alias = table.alias or table.name
        columns = self._public[public].columns
        if join.args.get("using") and len(join.args["using"]) == 1:
            key = join.args["using"][0].name
            left = ExpressionReader(self._columns, {}).read(parse_expression(key))
        elif type(join.args.get("on")).__name__ == "EQ":
            sides = [join.args["on"].this, join.args["on"].expression]
            if any(type(s).__name__ != "Column" for s in sides):
                raise QueryRefused("JOIN on an expression", "join on column = column")
            sides.sort(key=lambda s: s.table.lower() == alias.lower())
            left = ExpressionReader(self._columns, tables).read(sides[0])
            key = sides[1].name
        else:
            raise QueryRefused("JOIN without one key", "write JOIN public_table USING (key)")
        real = next((n for n in columns if n.lower() == key.lower()), None)
        if real is None:
            raise QueryRefused(f"the column {key!r} of {public}", f"its columns: {', '.join(columns)}")
        if real not in self._public[public].unique:
            raise QueryRefused(
                f"joining {public} on {real}, which it holds more than once",
                "keep one row for each key in the public table",
            )
        _joinable(left, columns[real])
        marked = {n: replace(x, kind=_maybe_missing(x.kind)) if side else x for n, x in columns.items()}
        return alias, marked, Join(public, left, real, keep_unmatched=bool(side))


def _joinable(left: Expression, right: Expression) -> None:
    """Refuses keys that are not told apart in the same way on both sides, before a row could show it."""
    one, other = (_identity(x.kind) for x in (left, right))
    days = isinstance(left.kind, Secret) and other == "day"  # keys may be days; the engine's types tell
    if one is None or (one != other and not days):
        raise QueryRefused(
            f"joining {left.text} with {right.text}",
            "join texts with texts, days with days, and whole numbers with whole numbers of step 1",
        )


def _identity(kind: Any) -> str | None:
    match kind:
        case Whole(step):
            return "number" if step == 1 else None
        case Truth():
            return "truth"
        case Listed(values):
            return {bool: "truth", str: "text"}.get(type(values[0]), "number")
        case Time():
            return "day" if kind.daily else None
        case Secret(text):
            return "text" if text else "number"
        case _:
            return None


def _maybe_missing(kind: Any) -> Any:
    return replace(kind, nullable=True)


class _Select:
    """One statement on its way to a question."""

    def __init__(self, node: Any, rows: ExpressionReader, unit: str | None, joins: tuple[Join, ...]) -> None:
        self._node, self._rows, self._unit, self._joins = node, rows, unit, joins
        self._keys: dict[str, Expression] = {}
        self._named: dict[str, Any] = {}

    def read(self) -> Query:
        node = self._node
        for item in node.expressions:
            if type(item).__name__ == "Alias":
                self._named[item.alias.lower()] = item.this
        group = node.args.get("group")
        for item in group.expressions if group else ():
            self._add_key(item)
        outputs = []
        for position, item in enumerate(node.expressions):
            alias = item.alias if type(item).__name__ == "Alias" else ""
            inside = item.this if alias else item
            name = alias or (inside.name if type(inside).__name__ == "Column" else inside.sql().lower())
            outputs.append(Output(name or f"column{position}", self._released(inside)))
        names = [o.name for o in outputs]
        if len(set(names)) < len(names):
            raise QueryRefused("two columns of the same name", "name them with AS")
        where, having = node.args.get("where"), node.args.get("having")
        query = Query(
            outputs=tuple(outputs),
            keys=tuple(self._keys.items()),
            where=None if where is None else c.condition(self._rows.read(where.this)),
            joins=self._joins,
            having=None if having is None else self._released(having.this),
            order=tuple(self._order()),
            limit=self._count("limit"),
            offset=self._count("offset") or 0,
        )
        if not query.aggregates and not any(isinstance(x.kind, Secret) for x in self._keys.values()):
            raise QueryRefused("a question without an aggregate", "ask for count(*), avg(column) or the like")
        return query

    def _add_key(self, item: Any) -> None:
        name = ""
        if type(item).__name__ == "Literal" and not item.is_string:
            place = int(number(item))
            if not 1 <= place <= len(self._node.expressions):
                raise QueryRefused(f"GROUP BY {place}", "there is no such column in the SELECT list")
            item = self._node.expressions[place - 1]
            name, item = (item.alias, item.this) if type(item).__name__ == "Alias" else ("", item)
        elif type(item).__name__ == "Column" and not item.table and item.name.lower() in self._named:
            name, item = item.name, self._named[item.name.lower()]
        read = self._rows.read(item)
        named = next((n for n, x in self._named.items() if x == item), "")
        short = name or named or (item.name if type(item).__name__ == "Column" else read.text)
        known = self._keys.get(short)
        self._keys[short if known is None or known.text == read.text else read.text] = read

    def _order(self) -> list[Order]:
        order = self._node.args.get("order")
        found = []
        for item in order.expressions if order else ():
            inside = item.this
            if type(inside).__name__ == "Literal" and not inside.is_string:
                place = int(number(inside))
                if not 1 <= place <= len(self._node.expressions):
                    raise QueryRefused(f"ORDER BY {place}", "there is no such column in the SELECT list")
                inside = self._node.expressions[place - 1]
                inside = inside.this if type(inside).__name__ == "Alias" else inside
            found.append(Order(self._released(inside), bool(item.args.get("desc"))))
        return found

    def _count(self, part: str) -> int | None:
        node = self._node.args.get(part)
        if node is None:
            return None
        value = node.expression
        if type(value).__name__ != "Literal" or value.is_string or number(value).denominator != 1:
            raise QueryRefused(f"{part.upper()} that is not a whole number", f"write {part.upper()} 10")
        return int(number(value))

    def _released(self, node: Any) -> Released:
        """A function of released values: aggregates, keys, constants, and arithmetic and comparisons of them."""
        name = type(node).__name__
        key = self._as_key(node)
        if key is not None:
            return of_key(key)
        if name in _AGGREGATES or name in (
            "Count",
            "CountIf",
            "Filter",
            "PercentileCont",
            "PercentileDisc",
            "Quantile",
            "WithinGroup",
        ):
            return of_aggregate(self._aggregate(node))
        if name == "Paren":
            return self._released(node.this)
        if name == "Literal":
            return of_constant(str(node.this) if node.is_string else float(number(node)))
        if name == "Boolean":
            return of_constant(bool(node.this))
        if name == "Round":
            places = decimals(node)
            return combine(node.sql().lower(), lambda x: np.round(x, places), self._released(node.this))
        if name in _AFTER:
            parts = [self._released(node.this)]
            if node.args.get("expression") is not None:
                parts.append(self._released(node.expression))
            return combine(node.sql().lower(), _AFTER[name], *parts)
        if name == "Between":
            inside, low, high = (self._released(x) for x in (node.this, node.args["low"], node.args["high"]))
            return combine(node.sql().lower(), lambda x, a, b: (x >= a) & (x <= b), inside, low, high)
        return self._key_or_name(node)

    def _as_key(self, node: Any) -> str | None:
        """The group key an expression is, written out again."""
        if type(node).__name__ in ("Literal", "Boolean", "Null"):
            return None
        try:
            text = self._rows.read(node).text
        except QueryRefused:
            return None
        return next((key for key, expression in self._keys.items() if expression.text == text), None)

    def _key_or_name(self, node: Any) -> Released:
        if type(node).__name__ == "Column" and not node.table:
            for key in self._keys:
                if key.lower() == node.name.lower():
                    return of_key(key)
            named = self._named.get(node.name.lower())
            if named is not None and named is not node and named != node:
                return self._released(named)
        read = self._rows.read(node)
        for key, expression in self._keys.items():
            if expression.text == read.text:
                return of_key(key)
        raise QueryRefused(
            f"{read.text} outside an aggregate",
            "rows never leave: put it in GROUP BY, or inside count, sum, avg and the like",
        )

    def _aggregate(self, node: Any, keep: Expression | None = None) -> Aggregate:
        name = type(node).__name__
        if name == "Filter":
            return self._aggregate(node.this, c.condition(self._rows.read(node.expression.this)))
        if name == "CountIf":
            condition = c.condition(self._rows.read(node.this))
            condition = condition if keep is None else c.both(condition, keep)
            return checked(Aggregate("count", c.choose([(condition, e.constant(1))], None)))
        if name == "Count" and type(node.this).__name__ == "Star":
            return (
                Aggregate("count")
                if keep is None
                else checked(Aggregate("count", c.choose([(keep, e.constant(1))], None)))
            )
        if name == "Count" and type(node.this).__name__ == "Distinct":
            return self._distinct(node.this, keep)
        function, parameters, inside = self._parts(node)
        argument = self._rows.read(inside)
        if keep is not None:
            argument = c.choose([(keep, argument)], None)
        return checked(Aggregate(function, argument, parameters))

    def _distinct(self, node: Any, keep: Expression | None) -> Aggregate:
        if len(node.expressions) != 1:
            raise QueryRefused("count(DISTINCT …) of several columns", "count one column")
        inside = node.expressions[0]
        if (
            type(inside).__name__ == "Column"
            and self._unit is not None
            and inside.name.lower() == self._unit.lower()
            and keep is None
        ):
            return Aggregate("count units")
        argument = self._rows.read(inside)
        return Aggregate("count distinct", argument if keep is None else c.choose([(keep, argument)], None))

    def _parts(self, node: Any) -> tuple[Function, tuple[Any, ...], Any]:
        name = type(node).__name__
        if name == "WithinGroup":
            ordered = node.expression.expressions
            if (
                type(node.this).__name__ not in ("PercentileCont", "PercentileDisc")
                or len(ordered) != 1
                or ordered[0].args.get("desc")
            ):
                raise QueryRefused("WITHIN GROUP here", "write percentile_cont(0.5) WITHIN GROUP (ORDER BY column)")
            return "quantile", (_level(node.this.this),), ordered[0].this
        if name in ("PercentileCont", "PercentileDisc", "Quantile"):
            return "quantile", (_level(node.args.get("quantile") or node.args.get("expression")),), node.this
        if name == "Count":
            return "count", (), node.this
        function, parameters = _AGGREGATES[name]
        return function, parameters, node.this


def _level(node: Any) -> Any:
    value = None if node is None or type(node).__name__ != "Literal" or node.is_string else number(node)
    if value is None or not 0 <= value <= 1:
        raise QueryRefused("a quantile without a constant between 0 and 1", "write quantile_cont(column, 0.5)")
    return float(value)


def checked(aggregate: Aggregate) -> Aggregate:
    """The aggregate, refused if its argument is of the wrong kind."""
    argument = aggregate.argument
    if argument is None:
        return aggregate
    if aggregate.function in ("sum", "mean", "variance", "stddev", "quantile", "best price"):
        argument.number  # noqa: B018 - refuses what is not a number
    if aggregate.function in ("mode", "top") and isinstance(argument.kind, Secret):
        raise QueryRefused(f"{aggregate.text} of private keys", "group by the key instead, with a delta")
    if aggregate.function == "count" and not argument.kind.nullable:
        return Aggregate("count")
    return aggregate


_AGGREGATES: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "Sum": ("sum", ()),
    "Avg": ("mean", ()),
    "Variance": ("variance", ()),
    "VariancePop": ("variance", ()),
    "Stddev": ("stddev", ()),
    "StddevPop": ("stddev", ()),
    "StddevSamp": ("stddev", ()),
    "Median": ("quantile", (0.5,)),
    "Min": ("quantile", (LOWEST,)),
    "Max": ("quantile", (HIGHEST,)),
    "Mode": ("mode", ()),
}
_AFTER: dict[str, Callable[..., Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: np.where(b == 0, np.nan, a / np.where(b == 0, 1, b)),
    "Neg": lambda a: -a,
    "Abs": np.abs,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "EQ": lambda a, b: a == b,
    "NEQ": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LTE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GTE": lambda a, b: a >= b,
    "And": lambda a, b: a & b,
    "Or": lambda a, b: a | b,
    "Not": lambda a: ~np.asarray(a, dtype=bool),
}
