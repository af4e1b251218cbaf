"""SQL expressions read by an allow-list: sqlglot parses, every node must be known here, and no text reaches an
engine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from hubbub.errors import QueryRefused
from hubbub.queries import conditions as c
from hubbub.queries import expressions as e
from hubbub.queries.expressions import Expression
from hubbub.queries.extras import sqlglot
from hubbub.queries.kinds import Listed, Secret, Time, written

LONGEST = 20_000
"""Longer statements are refused."""
DEEPEST = 60
"""Deeper nesting is refused."""
HEAVIEST = 500
"""Statements that would be longer than this many parts, once written out for an engine, are refused."""
MOST_CAST = 10
"""A choice of more texts than this is not cast to numbers: engines write it out for each of them."""

MOST_DECIMALS = 15
"""Numbers are rounded to at most so many decimals, or so many places before the point."""

ALLOWED: dict[str, set[str]] = {
    "Select": {"expressions", "from_", "where", "group", "having", "order", "limit", "offset", "joins"},
    "From": {"this"}, "Where": {"this"}, "Having": {"this"}, "Group": {"expressions"}, "Order": {"expressions"},
    "Ordered": {"this", "desc", "nulls_first"}, "Limit": {"expression"}, "Offset": {"expression"},
    "Join": {"this", "using", "on", "side", "kind"},
    "Table": {"this", "alias"}, "TableAlias": {"this"}, "Alias": {"this", "alias"},
    "Column": {"this", "table"}, "Identifier": {"this", "quoted"}, "Literal": {"this", "is_string"},
    "Boolean": {"this"}, "Null": set(), "Star": set(), "Paren": {"this"}, "Var": {"this"},
    "Add": {"this", "expression"}, "Sub": {"this", "expression"}, "Mul": {"this", "expression"},
    "Div": {"this", "expression", "typed", "safe"}, "IntDiv": {"this", "expression"}, "Mod": {"this", "expression"},
    "Neg": {"this"}, "Abs": {"this"}, "Floor": {"this"}, "Ceil": {"this"}, "Round": {"this", "decimals"},
    "Greatest": {"this", "expressions", "ignore_nulls"}, "Least": {"this", "expressions", "ignore_nulls"},
    "And": {"this", "expression"}, "Or": {"this", "expression"}, "Not": {"this"},
    "EQ": {"this", "expression"}, "NEQ": {"this", "expression"}, "LT": {"this", "expression"},
    "LTE": {"this", "expression"}, "GT": {"this", "expression"}, "GTE": {"this", "expression"},
    "Between": {"this", "low", "high"}, "In": {"this", "expressions"}, "Is": {"this", "expression"},
    "Case": {"this", "ifs", "default"}, "If": {"this", "true", "false"},
    "Coalesce": {"this", "expressions"}, "Nullif": {"this", "expression"},
    "Cast": {"this", "to", "_type"}, "DataType": {"this", "nested"},
    "TryCast": {"this", "to", "_type", "safe", "requires_string"},
    "Extract": {"this", "expression"}, "Year": {"this"}, "Quarter": {"this"}, "Month": {"this"}, "Day": {"this"},
    "Hour": {"this"}, "Minute": {"this"}, "Date": {"this"}, "DayOfWeekIso": {"this"}, "DayOfMonth": {"this"},
    "TimestampTrunc": {"this", "unit"}, "DateTrunc": {"this", "unit"},
    "Count": {"this", "big_int"}, "CountIf": {"this"}, "Distinct": {"expressions"}, "Filter": {"this", "expression"},
    "Sum": {"this"}, "Avg": {"this"}, "Variance": {"this"}, "VariancePop": {"this"},
    "Stddev": {"this"}, "StddevPop": {"this"}, "StddevSamp": {"this"},
    "Median": {"this"}, "PercentileCont": {"this", "expression"}, "PercentileDisc": {"this", "expression"},
    "Quantile": {"this", "quantile"}, "WithinGroup": {"this", "expression"},
    "Min": {"this"}, "Max": {"this"}, "Mode": {"this"},
}  # fmt: skip
"""Every kind of node that may stand in a statement, and the parts of it that are understood."""

REASONS = {
    "Window": ("window functions (OVER)", "they depend on the order of rows; use GROUP BY"),
    "Subquery": ("a query inside a query", "ask it as a separate question"),
    "Union": ("UNION", "ask two questions"),
    "With": ("WITH", "write one SELECT"),
    "Distinct": ("DISTINCT here", "use GROUP BY, or count(DISTINCT column)"),
    "TableSample": ("a sample of the table", "sampling is done by hubbub, with its price"),
    "Rand": ("random()", "the only randomness is hubbub's own noise"),
    "Like": ("LIKE", "texts can be compared with = , <> and IN only"),
    "Command": ("this statement", "only SELECT is understood"),
    "Star": ("SELECT *", "rows never leave; ask for count(*), avg(…) and the like"),
}
FALLBACK = (
    "a question is SELECT keys, aggregates FROM the table "
    "[JOIN a public table] [WHERE] [GROUP BY] [HAVING] [ORDER BY] [LIMIT]"
)

FUNCTIONS = (
    "of rows there are + - * / // % abs floor ceil round least greatest coalesce nullif CASE IF CAST date date_trunc "
    "year quarter month day hour minute; of groups count sum avg variance stddev median quantile_cont min max mode"
)


def parse(text: str) -> Any:
    """The one statement in a text, every node of it on the list."""
    glot = sqlglot()
    if not isinstance(text, str) or len(text) > LONGEST:
        raise QueryRefused(
            "a question that is not a text of reasonable length", f"write at most {LONGEST} characters of SQL"
        )
    try:
        first = next((t.text.upper() for t in glot.tokenize(text, read="duckdb")), "")
        if first not in ("SELECT", "WITH"):  # what sqlglot cannot parse it would also log, with whatever it holds
            raise QueryRefused(f"a statement that begins with {first[:20] or 'nothing'}", FALLBACK)
        statements = [s for s in glot.parse(text, read="duckdb") if s is not None]
    except (glot.errors.SqlglotError, RecursionError):
        raise QueryRefused("this text, which is not readable as SQL", FALLBACK) from None
    if len(statements) != 1:
        raise QueryRefused(f"{len(statements)} statements", "write exactly one SELECT")
    check(statements[0])
    return statements[0]


def parse_expression(text: str) -> Any:
    """One expression, every node of it on the list."""
    statement = parse(f"SELECT {text}")
    if set(_present(statement)) != {"expressions"} or len(statement.expressions) != 1:
        raise QueryRefused("this text, which is not one expression", "write a column name or an expression of columns")
    return statement.expressions[0]


def _present(node: Any) -> list[str]:
    return [k for k, v in node.args.items() if v not in (None, False, [])]


def check(statement: Any) -> None:
    """Refuses any node or part of a node that is not on the list."""
    for node in statement.walk():
        name = type(node).__name__
        depth = node.depth
        if depth > DEEPEST:
            raise QueryRefused("an expression this deeply nested", "write a simpler one")
        if name not in ALLOWED:
            _refuse(name, node)
        extra = set(_present(node)) - ALLOWED[name]
        if extra:
            part = sorted(extra)[0].strip("_")
            _refuse({"with": "With", "distinct": "Distinct", "sample": "TableSample"}.get(part, ""), node, part)
    if _weight(statement) > HEAVIEST:
        raise QueryRefused("an expression this long once written out", "write a simpler one")


def _weight(node: Any) -> int:
    """How many parts a node has once written out: some functions write their arguments more than once."""
    name = type(node).__name__
    if name == "In":  # a short list is a comparison each for the engine, a long one is looked up
        plain = type(node.this).__name__ == "Column"
        return 1 + (1 if plain else len(node.expressions)) * _weight(node.this)
    copies = {
        "Between": 2,
        "Coalesce": 2,
        "Nullif": 2,
        "Is": 4,
        "IntDiv": 2,
        "Div": 2,
        "TimestampTrunc": 2,
        "DateTrunc": 2,
    }.get(name, 1)
    if name in ("Greatest", "Least"):
        copies = 3 ** len(node.expressions).bit_length()
    if name in ("Cast", "TryCast") and any(x.is_string for x in node.find_all(sqlglot().exp.Literal)):
        copies = MOST_CAST
    if name == "Case" and node.this is not None:
        copies = len(node.args["ifs"])
    return 1 + copies * sum(_weight(part) for part in node.iter_expressions())


def _refuse(name: str, node: Any, part: str = "") -> None:
    if name in REASONS:
        raise QueryRefused(*REASONS[name])
    if isinstance(node, sqlglot().exp.Func) and not part:
        called = node.name if name == "Anonymous" else node.sql_name().lower()
        raise QueryRefused(f"the function {called}()", FUNCTIONS)
    what = getattr(node, "key", name).upper() if not part else f"{part.upper()} in {getattr(node, 'key', name).upper()}"
    raise QueryRefused(what, FALLBACK)


class ExpressionReader:
    """Reads row-by-row expressions over the columns of one table (and of public tables joined to it)."""

    def __init__(self, columns: Mapping[str, Expression], tables: Mapping[str, Mapping[str, Expression]]) -> None:
        self._columns = {name.lower(): x for name, x in columns.items()}
        self._known = {x.text for cs in (columns, *tables.values()) for x in cs.values()}
        self._tables = {t.lower(): {n.lower(): x for n, x in cs.items()} for t, cs in tables.items()}

    def read(self, node: Any) -> Expression:
        """The expression a node stands for."""
        name = type(node).__name__
        if name in _BINARY:
            return _BINARY[name](self.read(node.this), self.read(node.expression))
        if name in _COMPARISONS:
            return self._comparison(_COMPARISONS[name], node.this, node.expression)
        if name in _PARTS:
            return c.part(_PARTS[name], self.read(node.this))
        method = getattr(self, f"_{name.lower()}", None)
        if method is None:
            raise QueryRefused(f"{node.key.upper()} here", FALLBACK)
        result: Expression = method(node)
        return result

    def _column(self, node: Any) -> Expression:
        table, name = node.table.lower(), node.name.lower()
        if table and table not in self._tables:
            raise QueryRefused(f"the table {node.table!r}", f"tables here: {', '.join(self._tables)}")
        found = (self._tables[table] if table else self._columns).get(name)
        if found is None:
            known = ", ".join(sorted(self._columns))
            raise QueryRefused(
                f"the column {node.name!r}, which is not declared", f"declared columns: {known or 'none'}"
            )
        return found

    def _paren(self, node: Any) -> Expression:
        return self.read(node.this)

    def _literal(self, node: Any) -> Expression:
        return c.text_constant(node.this) if node.is_string else e.constant(number(node))

    def _boolean(self, node: Any) -> Expression:
        return e.truth(bool(node.this))

    def _null(self, _: Any) -> Expression:
        return e.missing()

    def _neg(self, node: Any) -> Expression:
        return e.negative(self.read(node.this))

    def _abs(self, node: Any) -> Expression:
        return e.absolute(self.read(node.this))

    def _floor(self, node: Any) -> Expression:
        return e.floored(self.read(node.this))

    def _ceil(self, node: Any) -> Expression:
        return e.floored(self.read(node.this), "ceil")

    def _round(self, node: Any) -> Expression:
        return e.rounded(self.read(node.this), decimals(node))

    def _intdiv(self, node: Any) -> Expression:
        return e.floored(e.divide(self.read(node.this), self.read(node.expression)))

    def _greatest(self, node: Any) -> Expression:
        return e.extreme([self.read(x) for x in (node.this, *node.expressions)], largest=True)

    def _least(self, node: Any) -> Expression:
        return e.extreme([self.read(x) for x in (node.this, *node.expressions)], largest=False)

    def _not(self, node: Any) -> Expression:
        return c.negated(self.read(node.this))

    def _is(self, node: Any) -> Expression:
        inside, kind = self.read(node.this), type(node.expression).__name__
        if kind == "Null":
            return c.is_missing(inside)
        if kind == "Boolean":
            known = c.first_present([c.condition(inside), e.truth(False)])
            return known if node.expression.this else c.both(c.negated(c.is_missing(inside)), c.negated(known))
        raise QueryRefused("IS with anything but NULL, TRUE or FALSE", "use =")

    def _between(self, node: Any) -> Expression:
        above = self._comparison(">=", node.this, node.args["low"])
        return c.both(above, self._comparison("<=", node.this, node.args["high"]))

    def _in(self, node: Any) -> Expression:
        if not node.expressions:
            raise QueryRefused("IN without a list of constants", "write IN (1, 2, 3)")
        values = [constant_value(x) for x in node.expressions]
        known = [v for v in values if v is not None]
        if len(known) < len(values):
            raise QueryRefused("IN with anything but constants", "write IN (1, 2, 3)")
        return c.among(self.read(node.this), known)

    def _case(self, node: Any) -> Expression:
        branches = []
        for branch in node.args["ifs"]:
            test = self.read(branch.this) if node.this is None else self._comparison("=", node.this, branch.this)
            branches.append((test, self.read(branch.args["true"])))
        default = node.args.get("default")
        return c.choose(branches, self.read(default) if default is not None else None)

    def _if(self, node: Any) -> Expression:
        default = node.args.get("false")
        return c.choose([(self.read(node.this), self.read(node.args["true"]))], self.read(default) if default else None)

    def _coalesce(self, node: Any) -> Expression:
        return c.first_present([self.read(x) for x in (node.this, *node.expressions)])

    def _nullif(self, node: Any) -> Expression:
        return c.missing_if(self.read(node.this), self.read(node.expression))

    def _cast(self, node: Any) -> Expression:
        target = node.args["to"].this.name
        if target in _WHOLE or target in _REAL:
            inside = self.read(node.this)
            if (
                isinstance(inside.kind, Listed)
                and len(inside.kind.values) > MOST_CAST
                and inside.text not in self._known
            ):
                raise QueryRefused(f"CAST of a choice of {len(inside.kind.values)} texts", "cast the column itself")
            return c.to_number(inside, target in _WHOLE)
        if target == "DATE":
            return c.day_of(self.read(node.this))
        raise QueryRefused(f"CAST to {target}", "cast to INTEGER, DOUBLE or DATE")

    def _trycast(self, node: Any) -> Expression:
        return self._cast(node)

    def _date(self, node: Any) -> Expression:
        return c.day_of(self.read(node.this))

    def _timestamptrunc(self, node: Any) -> Expression:
        return c.first_day(node.args["unit"].name.lower(), self.read(node.this))

    def _datetrunc(self, node: Any) -> Expression:
        return self._timestamptrunc(node)

    def _dayofweekiso(self, node: Any) -> Expression:
        return e.add(c.part("weekday", self.read(node.this)), e.constant(1))

    def _extract(self, node: Any) -> Expression:
        name = node.this.name.lower()
        if name == "isodow":
            return e.add(c.part("weekday", self.read(node.expression)), e.constant(1))
        return c.part(name, self.read(node.expression))

    def _comparison(self, sign: str, left: Any, right: Any) -> Expression:
        one, other = constant_value(left), constant_value(right)
        if other is not None and one is None:
            return c.compare_with(sign, self.read(left), other)
        if one is not None and other is None:
            return c.compare_with(_MIRRORED[sign], self.read(right), one)
        a, b = self.read(left), self.read(right)
        if any(
            isinstance(x.kind, Secret | Time) or (isinstance(x.kind, Listed) and isinstance(x.kind.values[0], str))
            for x in (a, b)
        ):
            raise QueryRefused(f"comparing {a.text} with {b.text}", "compare texts, keys and dates with constants only")
        return c.compare(sign, a, b)


def constant_value(node: Any) -> c.Constant | None:
    """The constant a node is, or None."""
    name = type(node).__name__
    if name == "Paren":
        return constant_value(node.this)
    if name == "Neg":
        inside = constant_value(node.this)
        return -inside if isinstance(inside, int | Fraction) else None
    if name == "Boolean":
        return bool(node.this)
    if name == "Literal":
        return str(node.this) if node.is_string else number(node)
    if name == "Cast" and type(node.this).__name__ == "Literal" and node.args["to"].this.name in ("DATE", "TIMESTAMP"):
        moment = c.parse_time(str(node.this.this))
        if node.args["to"].this.name == "TIMESTAMP" and not isinstance(moment, dt.datetime):
            return dt.datetime(moment.year, moment.month, moment.day)
        return moment
    return None


def decimals(node: Any) -> int:
    """How many decimals round(x, n) keeps."""
    if node.args.get("decimals") is None:
        return 0
    value = constant_value(node.args["decimals"])
    if not isinstance(value, Fraction) or value.denominator != 1 or abs(value) > MOST_DECIMALS:
        raise QueryRefused("round() to anything but a few decimals", "write round(x, 2)")
    return int(value)


def number(node: Any) -> Fraction:
    """A number as written."""
    value = written(str(node.this))
    if value is None:
        raise QueryRefused(f"the number {str(node.this)[:40]}", "write it in few digits, between 1e-30 and 1e30")
    return value


_BINARY: dict[str, Callable[[Expression, Expression], Expression]] = {
    "Add": e.add,
    "Sub": lambda a, b: e.add(a, e.negative(b)),
    "Mul": e.multiply,
    "Div": e.divide,
    "Mod": e.modulo,
    "And": c.both,
    "Or": c.either,
}
_COMPARISONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PARTS = {
    "Year": "year",
    "Quarter": "quarter",
    "Month": "month",
    "Day": "day",
    "DayOfMonth": "day",
    "Hour": "hour",
    "Minute": "minute",
}
_WHOLE = {"INT", "BIGINT", "SMALLINT", "TINYINT"}
_REAL = {"DOUBLE", "FLOAT", "DECIMAL"}
