"""Comparisons, logic, choices and parts of dates: the expressions that are not arithmetic. All are total, as SQL has
it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hubbub.domains.columns import Value
from hubbub.errors import QueryRefused
from hubbub.queries.expressions import Build, Expression, constant, floored, on_grid
from hubbub.queries.extras import ibis
from hubbub.queries.kinds import Listed, Secret, Time, Truth, Whole, common_step, written

Constant = str | int | bool | Fraction | dt.date
"""What a query may write."""
MOST_TIMES = 50
"""How many dates a list may hold."""

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def compare(sign: str, a: Expression, b: Expression) -> Expression:
    """a sign b for two numbers. A constant is put on the other's grid, as the data were."""
    x, y = a.number, b.number
    text = f"({a.text} {sign} {b.text})"
    nullable = x.nullable or y.nullable
    run = _COMPARE[sign]
    if b.constant is not None and a.constant is None:
        n = x.near(b.constant)
        return Expression(Truth(nullable), text, lambda t: run(a.steps(t), n))
    if a.constant is not None and b.constant is None:
        m = y.near(a.constant)
        return Expression(Truth(nullable), text, lambda t: run(ibis().literal(m, "int64"), b.steps(t)))
    step = common_step(x.step, y.step)
    for side in (x, y):
        Whole(step, side.low * side.per(step), side.high * side.per(step))  # refuses what is too large
    one, other = on_grid(step, a), on_grid(step, b)
    return Expression(Truth(nullable), text, lambda t: run(one(t), other(t)))


def compare_with(sign: str, a: Expression, value: Constant) -> Expression:
    """a sign constant, for a category, a key, a time or a number."""
    if isinstance(value, bool) and isinstance(a.kind, Truth):
        same = value == (sign == "=")
        _equality(sign, a)
        return replace(a if same else negated(a), text=f"({a.text} {sign} {value})")
    if isinstance(value, bool | str) or isinstance(a.kind, Listed | Secret):
        return _compare_value(sign, a, value)
    if isinstance(value, dt.date):
        return _compare_time(sign, a, value)
    return compare(sign, a, constant(value))


def _equality(sign: str, a: Expression) -> None:
    if sign not in ("=", "<>"):
        raise QueryRefused(f"{a.text} {sign} …", "texts, categories and keys can be compared with = , <> and IN only")


def _compare_value(sign: str, a: Expression, value: Constant) -> Expression:
    if isinstance(a.kind, Time) and isinstance(value, str):
        return _compare_time(sign, a, parse_time(value))
    _equality(sign, a)
    text = f"({a.text} {sign} {value!r})"
    if isinstance(value, Fraction) and value.denominator == 1:
        value = int(value)
    match a.kind:
        case Listed(values):
            fits = isinstance(value, type(values[0])) and isinstance(value, bool) == isinstance(values[0], bool)
        case Secret(is_text):
            whole = isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) < value < 1 << 63
            fits = isinstance(value, str) if is_text else whole
        case _:
            fits = False
    if not fits:
        raise QueryRefused(f"comparing {a.text} with {value!r}", "compare a column with a value of its own type")
    run = _COMPARE[sign]
    return Expression(Truth(a.kind.nullable), text, lambda t: run(a.build(t), value))


def among(a: Expression, values: Sequence[Constant]) -> Expression:
    """a IN (constants)."""
    tests = [compare_with("=", a, value) for value in values]
    text = f"({a.text} IN ({', '.join(map(str, values))}))"
    if isinstance(a.kind, Listed | Secret):
        exact = [int(v) if isinstance(v, Fraction) else v for v in values]
        return Expression(Truth(a.kind.nullable), text, lambda t: a.build(t).isin(exact))
    if isinstance(a.kind, Whole):
        near = [a.number.near(Fraction(v)) for v in values if isinstance(v, Fraction | int)]
        return Expression(Truth(a.kind.nullable), text, lambda t: a.steps(t).isin(near))
    if len(tests) > MOST_TIMES:
        raise QueryRefused(f"IN with {len(tests)} times", f"write at most {MOST_TIMES}")
    result = tests[0]
    for test in tests[1:]:
        result = either(result, test)
    return replace(result, text=text)


def parse_time(text: str) -> dt.date:
    """A day or a moment written in ISO form."""
    try:
        moment = dt.datetime.fromisoformat(text) if len(text) > 10 else dt.date.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or (isinstance(moment, dt.datetime) and moment.tzinfo is not None):
        raise QueryRefused(f"the date {text[:40]!r}", "write it as 2026-11-30 or 2026-11-30T12:00:00")
    return moment


def _compare_time(sign: str, a: Expression, value: dt.date) -> Expression:
    if not isinstance(a.kind, Time):
        raise QueryRefused(f"comparing {a.text} with a date", "compare a column with a value of its own type")
    if a.kind.daily and isinstance(value, dt.datetime):
        raise QueryRefused(f"comparing the days {a.text} with a time", "compare them with a date")
    if not a.kind.daily and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    run = _COMPARE[sign]
    text = f"({a.text} {sign} {value.isoformat()!r})"
    return Expression(Truth(a.kind.nullable), text, lambda t: run(a.build(t), ibis().literal(value)))


def condition(a: Expression) -> Expression:
    """The expression as a condition; anything but a truth is refused."""
    if isinstance(a.kind, Truth):
        return a
    if isinstance(a.kind, Listed) and isinstance(a.kind.values[0], bool):
        return Expression(Truth(a.kind.nullable), a.text, a.build)
    raise QueryRefused(f"{a.text} as a condition", "write a comparison")


def both(a: Expression, b: Expression) -> Expression:
    """a AND b."""
    a, b = condition(a), condition(b)
    nullable = a.kind.nullable or b.kind.nullable
    return Expression(Truth(nullable), f"({a.text} AND {b.text})", lambda t: a.build(t) & b.build(t))


def either(a: Expression, b: Expression) -> Expression:
    """a OR b."""
    a, b = condition(a), condition(b)
    nullable = a.kind.nullable or b.kind.nullable
    return Expression(Truth(nullable), f"({a.text} OR {b.text})", lambda t: a.build(t) | b.build(t))


def negated(a: Expression) -> Expression:
    """NOT a."""
    a = condition(a)
    return Expression(a.kind, f"(NOT {a.text})", lambda t: ~a.build(t))


def is_missing(a: Expression) -> Expression:
    """a IS NULL."""
    return Expression(Truth(False), f"({a.text} IS NULL)", lambda t: a.build(t).isnull())


def choose(cases: Sequence[tuple[Expression, Expression]], otherwise: Expression | None) -> Expression:
    """CASE WHEN … THEN … ELSE … END, of numbers, of truths, or of texts written in the query."""
    conditions = [condition(c) for c, _ in cases]
    results = [r for _, r in cases] + ([otherwise] if otherwise is not None else [])
    text = "CASE " + " ".join(f"WHEN {c.text} THEN {r.text}" for c, r in zip(conditions, results, strict=False))
    text += f" ELSE {otherwise.text} END" if otherwise is not None else " END"
    nullable = otherwise is None or any(r.kind.nullable for r in results)
    present = [r for r in results if r.text != "NULL"]
    if present and all(isinstance(r.kind, Truth) or _is_truth(r.kind) for r in present):
        results = [_as_truth(r) for r in results]
    if any(isinstance(r.kind, Listed) for r in results):
        return _choose_listed(conditions, results, text, nullable)
    if all(isinstance(r.kind, Truth) for r in results):
        return Expression(Truth(nullable), text, _cases(conditions, [r.build for r in results], "boolean"))
    hull = _hull(results, nullable)
    return Expression(hull, text, _cases(conditions, [on_grid(hull.step, r) for r in results], "int64"))


def _is_truth(kind: Any) -> bool:
    return isinstance(kind, Listed) and isinstance(kind.values[0], bool)


def _as_truth(a: Expression) -> Expression:
    return Expression(Truth(), a.text, lambda _: ibis().null("boolean")) if a.text == "NULL" else condition(a)


def _choose_listed(conditions: list[Expression], results: list[Expression], text: str, nullable: bool) -> Expression:
    values: dict[Value, None] = {}
    for r in results:
        if isinstance(r.kind, Listed):
            values |= dict.fromkeys(r.kind.values)
        elif r.text != "NULL":
            raise QueryRefused("CASE with texts and numbers", "let every branch be of one type")
    if len({type(v) for v in values}) != 1:
        raise QueryRefused("CASE with values of different types", "let every branch be of one type")
    kind = "string" if isinstance(next(iter(values)), str) else "int64"
    builds: list[Build] = [r.build if r.text != "NULL" else (lambda _: ibis().null(kind)) for r in results]
    return Expression(Listed(tuple(values), nullable), text, _cases(conditions, builds, kind))


def _cases(conditions: list[Expression], results: list[Build], kind: str) -> Build:
    def build(t: Any) -> Any:
        pairs = [(c.build(t), r(t)) for c, r in zip(conditions, results, strict=False)]
        rest = results[len(conditions)](t) if len(results) > len(conditions) else ibis().null(kind)
        return ibis().cases(*pairs, else_=rest)

    return build


def text_constant(value: str) -> Expression:
    """A text written in the query, for CASE branches."""
    return Expression(Listed((value,), False), repr(value), lambda _: ibis().literal(value))


def first_present(values: Sequence[Expression]) -> Expression:
    """COALESCE(…)."""
    text = f"coalesce({', '.join(v.text for v in values)})"
    nullable = all(v.kind.nullable for v in values)
    if all(isinstance(v.kind, Truth) for v in values):
        return Expression(Truth(nullable), text, lambda t: ibis().coalesce(*(v.build(t) for v in values)))
    if any(isinstance(v.kind, Listed) and isinstance(v.kind.values[0], str) for v in values):
        *most, last = values
        chosen = choose([(negated(is_missing(v)), v) for v in most], last)
        return replace(chosen, kind=replace(chosen.kind, nullable=nullable), text=text)
    kind = _hull(values, nullable)
    builds = [on_grid(kind.step, v) for v in values]
    return Expression(kind, text, lambda t: ibis().coalesce(*(b(t) for b in builds)))


def _hull(values: Sequence[Expression], nullable: bool) -> Whole:
    """The kind of a number that is one of several."""
    kinds = [v.number for v in values]
    step = kinds[0].step
    for kind in kinds[1:]:
        step = common_step(step, kind.step)
    return Whole(step, min(k.low * k.per(step) for k in kinds), max(k.high * k.per(step) for k in kinds), nullable)


def missing_if(a: Expression, b: Expression) -> Expression:
    """NULLIF(a, b), for numbers; a constant is put on the grid of a."""
    x = a.number
    text = f"nullif({a.text}, {b.text})"
    if b.constant is not None:
        n = x.near(b.constant)
        return Expression(replace(x, nullable=True), text, lambda t: a.steps(t).nullif(n))
    kind = _hull([a, b], True)
    one, other = on_grid(kind.step, a), on_grid(kind.step, b)
    held = replace(kind, low=x.low * x.per(kind.step), high=x.high * x.per(kind.step))
    return Expression(held, text, lambda t: one(t).nullif(other(t)))


def to_number(a: Expression, whole: bool) -> Expression:
    """CAST(a AS INTEGER) or AS DOUBLE: numbers, truths, and categories through their public list (missing if none)."""
    name = "INTEGER" if whole else "DOUBLE"
    if isinstance(a.kind, Listed):
        numbers = {v: n for v in a.kind.values if (n := _as_number(v)) is not None}
        if not numbers:
            raise QueryRefused(f"CAST({a.text} AS {name})", "none of its categories is a number")
        a = _looked_up(a, numbers)
    cast = floored(a, "round") if whole else Expression(a.number, a.text, a.steps, a.constant)
    return replace(cast, text=f"CAST({a.text} AS {name})")


def _looked_up(a: Expression, numbers: dict[Value, Fraction]) -> Expression:
    """The number of each category; missing for others."""
    step = Fraction(1)
    for n in numbers.values():
        step = common_step(step, n)
    steps = {v: int(n / step) for v, n in numbers.items()}
    kind = Whole(step, min(steps.values()), max(steps.values()))
    return Expression(
        kind, a.text, lambda t: a.build(t).cases(*steps.items(), else_=ibis().null("int64")).cast("int64")
    )


def _as_number(value: Value) -> Fraction | None:
    return written(value) if isinstance(value, str) else Fraction(value)


_PARTS: dict[str, tuple[int, int, Callable[[Any], Any]]] = {
    "year": (1, 9999, lambda v: v.year()),
    "quarter": (1, 4, lambda v: v.quarter()),
    "month": (1, 12, lambda v: v.month()),
    "day": (1, 31, lambda v: v.day()),
    "weekday": (0, 6, lambda v: v.day_of_week.index()),
    "hour": (0, 23, lambda v: v.hour()),
    "minute": (0, 59, lambda v: v.minute()),
}


def part(name: str, a: Expression) -> Expression:
    """A part of a day or moment: year, quarter, month, day, weekday (Monday is 0), hour, minute."""
    if not isinstance(a.kind, Time):
        raise QueryRefused(f"{name}({a.text})", "only columns declared with two dates have parts")
    if a.kind.daily and name in ("hour", "minute"):
        raise QueryRefused(f"{name}({a.text})", "the column holds days; declare it with two datetimes")
    if name == "year":
        low, high, run = a.kind.low.year, a.kind.high.year, _PARTS["year"][2]
    elif name in _PARTS:
        low, high, run = _PARTS[name]
    else:
        raise QueryRefused(f"the date part {name}", f"use {', '.join(_PARTS)}")
    kind = Whole(Fraction(1), low, high, a.kind.nullable)
    return Expression(kind, f"{name}({a.text})", lambda t: run(a.build(t)).cast("int64"))


def day_of(a: Expression) -> Expression:
    """The day of a moment: date(a)."""
    if not isinstance(a.kind, Time):
        raise QueryRefused(f"date({a.text})", "only columns declared with two dates or datetimes have a day")
    if a.kind.daily:
        return a
    low, high = a.kind.low, a.kind.high
    assert isinstance(low, dt.datetime)
    assert isinstance(high, dt.datetime)
    return Expression(Time(low.date(), high.date(), a.kind.nullable), f"date({a.text})", lambda t: a.build(t).date())


_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def first_day(unit: str, a: Expression) -> Expression:
    """The first day of the year, quarter or month of a day or moment, or its day: date_trunc(unit, a)."""
    if not isinstance(a.kind, Time):
        raise QueryRefused(f"date_trunc of {a.text}", "only columns declared with two dates or datetimes have months")
    if unit == "day":
        return day_of(a)
    if unit not in _MONTHS:
        raise QueryRefused(f"date_trunc to {unit!r}", "use year, quarter, month or day")
    low, high = (_first_of(_MONTHS[unit], bound) for bound in (a.kind.low, a.kind.high))

    def build(t: Any) -> Any:
        value = a.build(t)
        month = {"month": value.month, "quarter": lambda: value.quarter() * 3 - 2, "year": lambda: value.year() * 0 + 1}
        return ibis().date(*(part.cast("int32") for part in (value.year(), month[unit]())), 1)

    return Expression(Time(low, high, a.kind.nullable, _MONTHS[unit]), f"date_trunc({unit!r}, {a.text})", build)


def _first_of(months: int, day: dt.date) -> dt.date:
    return dt.date(day.year, (day.month - 1) // months * months + 1, 1)
