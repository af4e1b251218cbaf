"""The question builder: a form's choices as SQL, so that what is built can be read, learnt from and edited."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hubbub.curator.config import Dataset
from hubbub.curator.web.numbers import number
from hubbub.domains.columns import Category, Column, Moment, Number
from hubbub.errors import ParameterError

WANTED, GROUPS, CONDITIONS = 3, 2, 2
"""How many of each the form has room for."""
OPERATORS = {
    "=": "is",
    "<>": "is not",
    ">=": "is at least",
    "<=": "is at most",
    ">": "is more than",
    "<": "is less than",
}
NUMBERS = {"avg": "average", "sum": "total", "median": "median", "stddev": "spread"}
RESERVED = """
    all and any as asc between by case cast cross date day desc distinct else end except false filter from full group
    having hour if in inner interval intersect into is join key left like limit minute month not null offset on or
    order outer over primary quarter right row rows select set table then time timestamp to true union unique using
    values when where with year
"""
"""Names that SQL wants quoted."""


@dataclass(frozen=True)
class Option:
    """A choice in a list: what is sent, what is read, and under which heading."""

    value: str
    label: str
    heading: str = ""


def wanted(dataset: Dataset) -> list[Option]:
    """Every number a group can be asked for."""
    found = [Option("count", "number of rows", "Counts")]
    if dataset.schema.unit is not None:
        found.append(Option("units", f"number of different {dataset.schema.unit}s", "Counts"))
    for name, column in dataset.schema.columns.items():
        if isinstance(column, Number):
            found += [Option(f"{f} {name}", f"{label} of {name}", name) for f, label in NUMBERS.items()]
        if isinstance(column, Category):
            found.append(Option(f"mode {name}", f"most frequent {name}", name))
    return found


def groups(dataset: Dataset) -> list[Option]:
    """Every column that can be grouped by."""
    found = []
    for name, column in dataset.schema.columns.items():
        if isinstance(column, Category):
            found.append(Option(name, name))
        elif not isinstance(column, Number | Moment):
            found.append(Option(name, f"{name} (private: needs a δ)"))
    return found


def built(dataset: Dataset, given: Mapping[str, str]) -> str:
    """The SQL that a form's choices stand for; a choice that was not offered is refused."""
    offered = {o.value for o in wanted(dataset)}
    asks = [given.get(f"want-{k}", "") for k in range(1, WANTED + 1)]
    asks = list(dict.fromkeys(a for a in asks if a in offered))
    if not asks:
        raise ParameterError("what", "", "must be chosen", "begin with the number of rows")
    keys = [given.get(f"group-{k}", "") for k in range(1, GROUPS + 1)]
    keys = list(dict.fromkeys(k for k in keys if k in dataset.schema.columns))
    shown = [identifier(k) for k in keys] + [_aggregate(dataset, a) for a in asks]
    lines = [f"SELECT {', '.join(shown)}", f"FROM {identifier(dataset.name)}"]
    conditions = [c for k in range(1, CONDITIONS + 1) if (c := _condition(dataset, given, k))]
    lines += [f"WHERE {' AND '.join(conditions)}"] if conditions else []
    lines += [f"GROUP BY {', '.join(identifier(k) for k in keys)}"] if keys else []
    return "\n".join(lines)


def examples(dataset: Dataset) -> list[tuple[str, str]]:
    """Questions of this very data set, in words and in SQL."""
    columns = dataset.schema.columns
    name = identifier(dataset.name)
    listed = [identifier(n) for n, c in columns.items() if isinstance(c, Category)]
    numbers = [identifier(n) for n, c in columns.items() if isinstance(c, Number)]
    found = [("How many rows are there?", f"SELECT count(*) AS n\nFROM {name}")]
    if listed:
        by = listed[0]
        found.append((f"How many in each {by}?", f"SELECT {by}, count(*) AS n\nFROM {name}\nGROUP BY {by}"))
    if numbers:
        of = numbers[0]
        by = f"{listed[0]}, " if listed else ""
        end = f"\nGROUP BY {listed[0]}" if listed else ""
        where = f" in each {listed[0]}" if listed else ""
        found.append((f"The average {of}{where}", f"SELECT {by}count(*) AS n, avg({of}) AS average\nFROM {name}{end}"))
        found.append((f"The middle half of {of}", _quartiles(of, name)))
    if len(listed) > 1:
        both = ", ".join(listed[:2])
        found.append((f"By {both}", f"SELECT {both}, count(*) AS n\nFROM {name}\nGROUP BY {both}"))
    return found


def identifier(name: str) -> str:
    """A name as SQL writes it, quoted where it must be.

    >>> identifier("age"), identifier("year"), identifier('a"b')
    ('age', '"year"', '"a""b"')
    """
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in RESERVED.split()
    return name if plain else '"' + name.replace('"', '""') + '"'


def _quartiles(column: str, name: str) -> str:
    return f"SELECT quantile_cont({column}, 0.25) AS low, quantile_cont({column}, 0.75) AS high\nFROM {name}"


def _aggregate(dataset: Dataset, choice: str) -> str:
    if choice == "count":
        return "count(*) AS n"
    if choice == "units":
        unit = dataset.schema.unit or ""
        return f"count(DISTINCT {identifier(unit)}) AS {identifier(f'{unit}s')}"
    function, _, column = choice.partition(" ")
    return f"{function}({identifier(column)}) AS {identifier(f'{function}_{column}')}"


def _condition(dataset: Dataset, given: Mapping[str, str], k: int) -> str:
    name, operator = given.get(f"where-{k}", ""), given.get(f"is-{k}", "=")
    column = dataset.schema.columns.get(name)
    if column is None:
        return ""
    if operator not in OPERATORS:
        raise ParameterError("condition", operator, "is not one of those offered")
    return f"{identifier(name)} {operator} {_literal(name, column, given.get(f'value-{k}', '').strip())}"


def _literal(name: str, column: Column, text: str) -> str:
    """A value as SQL writes it, of the column's kind."""
    match column:
        case Number():
            return repr(number(name, text, least=-1e18, most=1e18)).removesuffix(".0")
        case Category(values):
            for value in values:
                if str(value).lower() == text.lower():
                    return _text(value) if isinstance(value, str) else str(value).upper()
            listed = ", ".join(str(v) for v in values[:10])
            raise ParameterError(name, text, "is not one of its values", f"they are {listed}")
        case Moment():
            try:
                return f"DATE '{dt.date.fromisoformat(text).isoformat()}'"
            except ValueError:
                raise ParameterError(name, text, "must be a day", "such as 2026-01-31") from None
        case _:
            return _text(text)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
