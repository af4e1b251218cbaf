"""Expressions over declared columns, row by row: total functions with derived public bounds, built for any engine.

Every number is a whole number of public steps, so engines compute exactly and agree. Missing values stay missing (SQL's
rules); dividing by zero gives a missing value; nothing a row holds can raise an error.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from hubbub.domains.columns import Category, Column, Key, Moment, Number, Value
from hubbub.errors import QueryRefused
from hubbub.numeric.rational import floor_log2, power_of_two
from hubbub.queries.extras import ibis
from hubbub.queries.kinds import LARGEST, Kind, Listed, Secret, Time, Truth, Whole, common_step

Build = Callable[[Any], Any]
"""From an Ibis table to an Ibis column; numbers come out as int64 steps."""

LONGEST = 20_000
"""Expressions that would be longer than this, written out, are refused."""
QUOTIENT_LEVELS = 20
"""A quotient of two columns is floored to a grid of about 2**20 steps."""
SAFE_DIGITS = 38
"""Decimals of so many digits are doubles in every engine."""


@dataclass(frozen=True)
class Expression:
    """A total function of one row: what is known of it, how it reads, and how an engine computes it."""

    kind: Kind
    text: str
    build: Build = field(repr=False, compare=False)
    constant: Fraction | None = None
    """The value of a number that does not depend on the row."""
    raw: Build | None = field(default=None, repr=False, compare=False)
    """A listed column as it is, other values included: for those who filter them out first, which engines do faster."""

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST:  # what occurs twice in an expression is written out twice
            raise QueryRefused("an expression this long", "write a simpler one")

    @property
    def number(self) -> Whole:
        """The kind of a number; anything else is refused."""
        if isinstance(self.kind, Whole):
            return self.kind
        if isinstance(self.kind, Truth):
            return Whole(Fraction(1), 0, 1, self.kind.nullable)
        if isinstance(self.kind, Listed) and not isinstance(self.kind.values[0], str):
            numbers = [int(v) for v in self.kind.values]
            return Whole(Fraction(1), min(numbers), max(numbers), self.kind.nullable)
        raise QueryRefused(f"arithmetic on {self.text}", "only columns declared with bounds (low, high) are numbers")

    def steps(self, table: Any) -> Any:
        """The column of whole steps of a number (a truth counts as 0 or 1)."""
        self.number  # noqa: B018 - refuses what is not a number
        built = self.build(table)
        return built if isinstance(self.kind, Whole) else built.cast("int64")


def from_column(name: str, declared: Column, source: Any) -> Expression:
    """A declared column of a table whose source type (public) is an Ibis type."""
    match declared:
        case Number():
            return _number_column(name, declared, source)
        case Category(values, nullable):
            known = source.is_string() if isinstance(values[0], str) else source.is_boolean() or source.is_integer()
            if isinstance(values[0], bool) and not source.is_boolean():
                known = False
            _expect(known, name, source, "categories of that type")
            return Expression(
                Listed(values, nullable),
                name,
                lambda t: _present(_listed(t[name], values), values[0], nullable),
                raw=(lambda t: t[name]) if nullable else None,
            )
        case Moment(low, high, nullable):
            _expect(source.is_date() or source.is_timestamp(), name, source, "days or times")
            return Expression(
                Time(low, high, nullable), name, lambda t: _present(_moment(t[name], low, high), low, nullable)
            )
        case Key(nullable):
            _expect(source.is_string() or source.is_integer() or source.is_date(), name, source, "keys")
            if source.is_date():  # engines know years that Python, which reads the keys, does not
                return Expression(Secret(False, nullable), name, lambda t: clamped(t[name], dt.date.min, dt.date.max))
            return Expression(Secret(source.is_string(), nullable), name, lambda t: t[name])


def _present(value: Any, instead: Any, nullable: bool) -> Any:
    """A column declared never to be missing is not, whatever the rows hold: a public value stands in."""
    return value if nullable else value.fill_null(ibis().literal(instead, value.type()))


def _moment(value: Any, low: dt.date, high: dt.date) -> Any:
    """Days or moments between the bounds; clamped before the cast, too, which fails for years far away."""
    kind = value.type()
    if kind.is_date():
        latest = dt.date(high.year, high.month, high.day)
        if isinstance(high, dt.datetime) and latest < dt.date.max:
            latest += dt.timedelta(days=1)
        value = clamped(value, dt.date(low.year, low.month, low.day), latest)
    elif kind.scale in (0, 3):
        latest = high if isinstance(high, dt.datetime) else dt.datetime(high.year, high.month, high.day)
        earliest = low if isinstance(low, dt.datetime) else dt.datetime(low.year, low.month, low.day)
        value = clamped(value, ibis().literal(earliest).cast(kind), ibis().literal(latest).cast(kind))
    return clamped(value.cast("timestamp" if isinstance(low, dt.datetime) else "date"), low, high)


def _expect(fits: bool, name: str, source: Any, what: str) -> None:
    if not fits:
        raise QueryRefused(f"column {name!r} is {source} in the source, declared as {what}", "declare it as what it is")


def _listed(value: Any, values: tuple[Value, ...]) -> Any:
    return ibis().cases((among(value, values), value), else_=ibis().null(value.type()))


def among(value: Any, values: tuple[Value, ...]) -> Any:
    """Whether a value is one of a list, in the engine; whole numbers in a row are compared with its ends only."""
    numbers = [v for v in values if type(v) is int]
    if len(numbers) == len(values) == max(numbers) - min(numbers) + 1:
        return (value >= min(numbers)) & (value <= max(numbers))
    return value.isin(list(values))


def clamped(value: Any, low: Any, high: Any) -> Any:
    """The value between two bounds, in the engine."""
    least, most = (v if isinstance(v, ibis().Expr) else ibis().literal(v) for v in (low, high))
    return ibis().cases((value < least, least), (value > most, most), else_=value)


def as_double(value: Any, low: int, high: int) -> Any:
    """A number as a double, nan as missing; endless decimals are held between two whole numbers before the cast, which
    could fail."""
    kind = value.type()
    if kind.is_decimal() and (kind.precision is None or kind.precision > SAFE_DIGITS):
        known = ibis().cases((value.cast("string") == "NaN", ibis().null(kind)), else_=value)
        value = clamped(known, *(ibis().literal(str(bound)).cast(kind) for bound in (low, high)))
    return value.cast("float64").nullif(float("nan"))


def _number_column(name: str, declared: Number, source: Any) -> Expression:
    _expect(source.is_numeric() and not source.is_boolean(), name, source, "numbers with bounds")
    whole = source.is_integer()
    step = declared.grid(whole)
    low, high = declared.steps(whole)
    kind = Whole(step, low, high, declared.nullable)

    def integers(table: Any) -> Any:
        value = table[name].cast("decimal(38, 0)") if source.is_unsigned_integer() else table[name]
        return _present(clamped(value, low, high).cast("int64"), low, declared.nullable)

    def floats(table: Any) -> Any:
        value = as_double(table[name], math.floor(low * step), math.ceil(high * step))
        bounded = clamped(value, float(low * step), float(high * step))
        # the product and the sum round once each, in the same way in every engine, by far less than the half that is
        # added: both ends, below 2**52 steps, come out as themselves
        scaled = bounded * float(1 / step) if (1 / step).denominator == 1 else bounded / float(step)
        return _present((scaled + 0.5).floor().cast("int64"), low, declared.nullable)

    return Expression(kind, name, integers if whole and step == 1 else floats)


def constant(value: Fraction | int) -> Expression:
    """A number written in the query."""
    exact = Fraction(value)
    step = abs(exact) or Fraction(1)
    n = 0 if not exact else (1 if exact > 0 else -1)
    text = str(exact) if exact.denominator == 1 else repr(float(exact))
    return Expression(Whole(step, n, n, False), text, lambda _: ibis().literal(n, "int64"), exact)


def missing() -> Expression:
    """NULL, as a number."""
    return Expression(Whole(Fraction(1), 0, 0), "NULL", lambda _: ibis().null("int64"))


def truth(value: bool) -> Expression:
    """TRUE or FALSE, written in the query."""
    return Expression(Truth(False), str(value).upper(), lambda _: ibis().literal(value))


def on_grid(step: Fraction, e: Expression) -> Build:
    """The number in finer steps."""
    factor = e.number.per(step)
    return (lambda t: e.steps(t) * factor) if factor != 1 else e.steps


def add(a: Expression, b: Expression) -> Expression:
    """a + b."""
    x, y = a.number, b.number
    step = common_step(x.step, y.step)
    p, q = x.per(step), y.per(step)
    kind = Whole(step, x.low * p + y.low * q, x.high * p + y.high * q, x.nullable or y.nullable)
    one, other = on_grid(step, a), on_grid(step, b)
    total = None if a.constant is None or b.constant is None else a.constant + b.constant
    return (
        constant(total)
        if total is not None
        else Expression(kind, f"({a.text} + {b.text})", lambda t: one(t) + other(t))
    )


def negative(a: Expression) -> Expression:
    """-a."""
    if a.constant is not None:
        return constant(-a.constant)
    kind = a.number
    return Expression(replace(kind, low=-kind.high, high=-kind.low), f"(-{a.text})", lambda t: -a.steps(t))


def multiply(a: Expression, b: Expression) -> Expression:
    """a * b. A constant factor only changes the step."""
    if a.constant is not None and b.constant is not None:
        return constant(a.constant * b.constant)
    if a.constant is not None:
        a, b = b, a
    x, y = a.number, b.number
    if b.constant is not None:
        if b.constant == 0:
            return multiply(a, Expression(Whole(Fraction(1), 0, 0, False), "0", lambda _: ibis().literal(0, "int64")))
        scaled = Expression(replace(x, step=x.step * abs(b.constant)), f"({a.text} * {b.text})", a.steps)
        return scaled if b.constant > 0 else replace(negative(scaled), text=scaled.text)
    corners = [p * q for p in (x.low, x.high) for q in (y.low, y.high)]
    kind = Whole(x.step * y.step, min(corners), max(corners), x.nullable or y.nullable)
    return Expression(kind, f"({a.text} * {b.text})", lambda t: a.steps(t) * b.steps(t))


def divide(a: Expression, b: Expression) -> Expression:
    """a / b, floored to a grid; missing where b is 0."""
    if b.constant is not None:
        if b.constant == 0:
            return replace(multiply(a, missing()), text=f"({a.text} / 0)")
        return replace(multiply(a, constant(1 / b.constant)), text=f"({a.text} / {b.text})")
    x, y = a.number, b.number
    divisors = [n for n in (y.low, y.high, -1, 1) if y.low <= n <= y.high and n]
    if not divisors:
        return replace(multiply(a, missing()), text=f"({a.text} / {b.text})")
    corners = [Fraction(p, q) * x.step / y.step for p in (x.low, x.high) for q in divisors]
    least, most = min(corners), max(corners)
    size = most - least or abs(most) or Fraction(1)
    step = power_of_two(floor_log2(size) - QUOTIENT_LEVELS)
    ratio = x.step / y.step / step
    up, down = ratio.numerator, ratio.denominator
    if max(abs(x.low), abs(x.high)) * up > LARGEST or max(abs(y.low), abs(y.high)) * down > LARGEST:
        raise QueryRefused(
            f"the quotient {a.text} / {b.text} needs too fine a grid", "declare a larger step= for its columns"
        )
    low, high = math.floor(least / step), math.floor(most / step)

    def build(t: Any) -> Any:
        # both are below 2**52, so the rounded quotient has the exact quotient's floor
        over = (b.steps(t) * down).nullif(0)
        return ((a.steps(t) * up).cast("float64") / over.cast("float64")).floor().cast("int64")

    return Expression(Whole(step, low, high), f"({a.text} / {b.text})", build)


def floored(a: Expression, towards: str = "floor") -> Expression:
    """floor(a), ceil(a) or round(a) (halves up): a whole number."""
    x = a.number
    if x.step.denominator == 1:
        return a
    shift = {"floor": Fraction(0), "ceil": 1 - x.step, "round": Fraction(1, 2)}[towards]
    if towards == "ceil":
        return replace(negative(floored(negative(a))), text=f"ceil({a.text})")
    moved = add(a, constant(shift)) if shift else a
    y = moved.number
    per, up = y.step.denominator, y.step.numerator
    low, high = math.floor(y.low * y.step), math.floor(y.high * y.step)
    if max(abs(y.low), abs(y.high)) * up > LARGEST:
        raise QueryRefused(f"rounding {a.text}", "declare tighter bounds")
    return Expression(
        Whole(Fraction(1), low, high, x.nullable),
        f"{towards}({a.text})",
        lambda t: ((moved.steps(t) * up).cast("float64") / float(per)).floor().cast("int64"),
    )


def rounded(a: Expression, decimals: int) -> Expression:
    """round(a, decimals): the nearest multiple of a power of ten, halves up."""
    if not decimals:
        return floored(a, "round")
    unit = Fraction(10) ** -decimals
    if (a.number.step / unit).denominator == 1:
        return a
    near = floored(multiply(a, constant(1 / unit)), "round")
    return replace(multiply(near, constant(unit)), text=f"round({a.text}, {decimals})")


def absolute(a: Expression) -> Expression:
    """|a|."""
    x = a.number
    low = 0 if x.low <= 0 <= x.high else min(abs(x.low), abs(x.high))
    kind = replace(x, low=low, high=max(abs(x.low), abs(x.high)))
    return Expression(kind, f"abs({a.text})", lambda t: a.steps(t).abs())


def extreme(values: Sequence[Expression], largest: bool) -> Expression:
    """greatest(...) or least(...): missing values are passed over, as engines do; missing if all are."""
    one, *rest = values
    for other in rest:
        a, b = one, other
        x, y = a.number, b.number
        step = common_step(x.step, y.step)
        p, q = x.per(step), y.per(step)
        pick = max if largest else min
        ends = [(pick(x.low * p, y.low * q), pick(x.high * p, y.high * q))]
        ends += [(y.low * q, y.high * q)] if x.nullable else []
        ends += [(x.low * p, x.high * p)] if y.nullable else []
        kind = Whole(step, min(e[0] for e in ends), max(e[1] for e in ends), x.nullable and y.nullable)
        name = "greatest" if largest else "least"
        one = Expression(kind, f"{name}({a.text}, {b.text})", _picked(on_grid(step, a), on_grid(step, b), largest))
    return one


def _picked(one: Build, other: Build, largest: bool) -> Build:
    return lambda t: (ibis().greatest if largest else ibis().least)(one(t), other(t))


def modulo(a: Expression, b: Expression) -> Expression:
    """a mod a positive whole constant, between 0 and that constant."""
    if b.constant is None or b.constant.denominator != 1 or b.constant < 1:
        raise QueryRefused(f"{a.text} % {b.text}", "the divisor must be a positive whole number")
    x, m = a.number, int(b.constant)
    if x.step.denominator != 1:
        raise QueryRefused(f"{a.text} % {b.text}", "take floor() of the number first")
    by = int(x.step)
    Whole(Fraction(1), x.low * by, x.high * by)  # refuses what is too large
    kind = Whole(Fraction(1), 0, m - 1, x.nullable)
    return Expression(kind, f"({a.text} % {b.text})", lambda t: ((a.steps(t) * by) % m + m) % m)
