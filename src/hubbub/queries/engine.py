"""The exact integers behind a plan, computed inside an engine: bound each person's rows, then add up by group.

Only grouped results leave the engine. Which rows of a person are kept is decided by an order hashed over the person
and the row's own values, so it depends on no other person, nor on row order, threads or partitions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import QueryRefused
from hubbub.mechanisms.quantile import Counted
from hubbub.queries.expressions import Expression, among
from hubbub.queries.extras import ibis
from hubbub.queries.kinds import Listed, Time, Truth, Whole
from hubbub.queries.plan import Choice, Plan

UNIT = "hb_unit"
Integers = NDArray[Any]
"""int64, or Python integers where 64 bits do not suffice."""


@dataclass(frozen=True, eq=False)
class Exact:
    """What the engine found: private. One column per group; sums by measure, numbers of people, values for choices."""

    keys: list[tuple[Any, ...]]
    sums: list[Integers]
    people: Integers | None
    values: list[list[Any]] = field(default_factory=list)

    def only(self, keys: list[tuple[Any, ...]]) -> Exact:
        """The same for some keys; those that do not occur have no rows."""
        place = {key: i for i, key in enumerate(self.keys)}
        at = [place.get(key) for key in keys]
        sums = [
            np.stack([s[:, i] if i is not None else s[:, :0].sum(axis=1) for i in at], axis=1) if at else s[:, :0]
            for s in self.sums
        ]
        nothing = Counted(np.zeros(0, np.int64), np.zeros(0, np.int64))
        values = [[v[i] if i is not None else _none_of(v, nothing) for i in at] for v in self.values]
        return Exact(keys, sums, None, values)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Ibis expressions of grouped results: the sums, those of people's capped totals, the values of each choice."""

    names: list[str]
    grouped: Any
    capped: dict[int, Any]
    choices: list[Any]


def _none_of(values: list[Any], nothing: Counted) -> Any:
    return {} if values and isinstance(values[0], dict) else nothing


class Engine:
    """Computes plans on one Ibis table (and public tables beside it)."""

    def __init__(self, table: Any, public: Mapping[str, Any]) -> None:
        self._table, self._public = table, public

    def prepare(self, plan: Plan) -> Prepared:
        """Everything that will be asked of the engine, built without reading a row."""
        kept, names = self.kept(plan), key_names(plan)
        aggregates: dict[str, Any] = {}
        capped = {}
        for i, noisy in enumerate(plan.noisy):
            if noisy.measure.cap is not None:
                totals = noisy.measure.by_person(kept, [UNIT, *names], f"hb_x{i}")
                capped[i] = _aggregate(totals, names, {f"hb_s{i}_0": noisy.measure.sums(totals, UNIT, f"hb_x{i}")[0]})
                continue
            for j, part in enumerate(noisy.measure.sums(kept, UNIT if plan.schema.unit else None, f"hb_x{i}")):
                aggregates[f"hb_s{i}_{j}"] = part
        if plan.keys is not None:
            aggregates["hb_people"] = kept[UNIT].nunique() if plan.schema.unit else kept.count()
        choices = []
        for i in range(len(plan.choices)):
            present = kept.filter(kept[f"hb_c{i}"].notnull())
            choices.append(_aggregate(present, [*names, f"hb_c{i}"], {"hb_times": present.count()}))
        grouped = _aggregate(kept, names, aggregates or {"hb_rows": kept.count()})
        return Prepared(names, grouped, capped, choices)

    def compute(self, plan: Plan, prepared: Prepared | None = None) -> Exact:
        """The exact answer, before noise."""
        asked = prepared or self.prepare(plan)
        names, grouped = asked.names, self._fetch(asked.grouped)
        index = _Index(plan, grouped, names)
        places = index.places(grouped)
        sums = []
        for i, noisy in enumerate(plan.noisy):
            found = self._fetch(asked.capped[i]) if i in asked.capped else grouped
            at = index.places(found) if i in asked.capped else places
            sums.append(_stack([index.spread(at, found[f"hb_s{i}_{j}"]) for j in range(noisy.measure.parts)]))
        people = index.spread(places, grouped["hb_people"]) if plan.keys is not None else None
        values = []
        for i, choice in enumerate(plan.choices):
            values.append(index.collect(self._fetch(asked.choices[i]), f"hb_c{i}", choice))
        return Exact(index.keys, sums, people, values)

    def interrupt(self) -> None:
        """Asks the engine to give up what it is computing, if it can."""
        backend = self._table.get_backend()
        connection = getattr(backend, "con", None)
        stop = getattr(connection, "interrupt", None) or getattr(connection, "cancel", None)
        with suppress(Exception):
            if stop is not None:
                stop()

    def kept(self, plan: Plan) -> Any:
        """The rows that count of every person: at most so many a group, so many groups, so many in all.

        People with so few rows that groups and total are within bounds, nearly all as a rule, are recognised by
        counting, and so are groups with too many rows of one of them; only the rows of the others are put in order.
        Every step looks at one person's rows only.
        """
        source, unit = self._table, plan.schema.unit
        for join in plan.query.joins:
            source = _joined(source, self._public[join.table], join)
        if unit is None:
            return _projected(source, plan)
        c, names = plan.contribution, key_names(plan)
        few = min(c.groups if names else c.rows, c.most_rows)
        # the source is projected anew for each use: a shared projection would be written down in full by some engines
        # while the people beyond their bounds, named, are looked for once
        over = _more_than(few, _projected(source, plan, arguments=False), [UNIT]).alias("hb_over")
        same = source[unit] == over[UNIT]
        cut = _cut(_projected(source.semi_join(over, same), plan), plan)
        fine = _projected(source.anti_join(over, same), plan)
        parts = [fine, cut]
        if names and c.rows < few:
            by = [UNIT, *names]
            crowded = _more_than(c.rows, _projected(source, plan, arguments=False), by).alias("hb_crowded")
            parts = [fine.anti_join(crowded, by), _first_rows(fine.semi_join(crowded, by), plan), cut]
        return ibis().union(*(part.select(fine.columns) for part in parts), distinct=False)

    def _fetch(self, expression: Any) -> dict[str, list[Any]]:
        fetched: dict[str, list[Any]] = expression.to_pyarrow().to_pydict()
        return fetched


def _chosen(choice: Choice, table: Any) -> Any:
    argument = choice.aggregate.argument
    assert argument is not None
    if choice.aggregate.function in ("quantile", "best price"):
        return argument.steps(table)
    return argument.build(table)


def _joined(table: Any, public: Any, join: Any) -> Any:
    """The table with a public one's columns; a public row is found at most once for each key."""
    renamed = public.select(**{f"{join.table}.{c}": public[c] for c in public.columns})
    how = "left" if join.keep_unmatched else "inner"
    on = join.on.build(table)
    return table.mutate(hb_join=on).join(renamed, [("hb_join", f"{join.table}.{join.key}")], how=how).drop("hb_join")


def _aggregate(table: Any, by: list[str], aggregates: Mapping[str, Any]) -> Any:
    return table.group_by(by).agg(**aggregates) if by else table.agg(**aggregates)


def key_names(plan: Plan) -> list[str]:
    """What the keys are called in the engine."""
    return [f"hb_k{i}" for i in range(len(plan.query.keys))]


def _projected(table: Any, plan: Plan, arguments: bool = True) -> Any:
    """The rows of a table that count, with person, keys and arguments computed, and nothing else."""
    query, names = plan.query, key_names(plan)
    if query.where is not None:
        table = table.filter(query.where.build(table))
    for _, expression in query.keys:
        if expression.raw is not None and isinstance(expression.kind, Listed):
            table = table.filter(among(expression.raw(table), expression.kind.values))
    columns: dict[str, Any] = {}
    if plan.schema.unit is not None:
        columns[UNIT] = table[plan.schema.unit]
    for name, (_, expression) in zip(names, query.keys, strict=True):
        columns[name] = (expression.raw or expression.build)(table)
    for i, noisy in enumerate(plan.noisy if arguments else ()):
        if noisy.measure.argument is not None:
            columns[f"hb_x{i}"] = noisy.measure.prepared(table)
    for i, choice in enumerate(plan.choices if arguments else ()):
        columns[f"hb_c{i}"] = _chosen(choice, table)
    rows = table.select(**columns) if columns else table
    for name in [*([UNIT] if plan.schema.unit else []), *names]:
        rows = rows.filter(rows[name].notnull())
    return rows


def _more_than(most: int, rows: Any, by: list[str]) -> Any:
    """The people, or the people in groups, with more rows than this."""
    counted = rows.group_by(by).agg(hb_n=rows.count())
    return counted.filter(counted.hb_n > most).select(by)


def _cut(rows: Any, plan: Plan) -> Any:
    """The first groups of each person, the first rows in each, the first rows of these, all in hashed orders."""
    c, names = plan.contribution, key_names(plan)
    if names:  # before rows are cut, which leaves no group empty: the next order is then of fewer rows
        keyed = rows.mutate(hb_g=_hash(rows, [UNIT, *names]))
        window = ibis().window(group_by=UNIT, order_by=[keyed.hb_g, *(keyed[n] for n in names)])
        ranked = keyed.mutate(hb_group=ibis().dense_rank().over(window))
        rows = ranked.filter(ranked.hb_group < c.groups).select(rows.columns)
    kept = _first_rows(rows, plan)
    if c.total is not None:
        window = ibis().window(group_by=UNIT, order_by=[kept.hb_r, *(kept[n] for n in rows.columns if n != UNIT)])
        kept = kept.mutate(hb_place=ibis().row_number().over(window))
        kept = kept.filter(kept.hb_place < c.total)
    return kept


def _first_rows(rows: Any, plan: Plan) -> Any:
    """The first rows of each person in each group, in a hashed order; equal rows are alike."""
    by = [UNIT, *key_names(plan)]
    values = [n for n in rows.columns if n not in by]
    keyed = rows.mutate(hb_r=_hash(rows, [*by, *values]))
    window = ibis().window(group_by=by, order_by=[keyed.hb_r, *(keyed[v] for v in values)])
    kept = keyed.mutate(hb_row=ibis().row_number().over(window))
    return kept.filter(kept.hb_row < plan.contribution.rows)


SALT = 0x68756262  # "hubb"


def _hash(table: Any, columns: list[str]) -> Any:
    """A hash of several columns together: each one's hash is mixed into that of those before."""
    mixed = ibis().literal(SALT, "int64")
    for name in columns:
        value = table[name]
        kind = value.type()
        if kind.is_signed_integer():
            plain = value.cast("int64").fill_null(0)
        else:  # texts are what every engine can hash
            plain = (value if kind.is_string() else value.cast("string")).fill_null("~")
        mixed = (mixed ^ plain.hash()).hash()
    return mixed


class _Index:
    """Where each group of the engine's result belongs in the answer."""

    def __init__(self, plan: Plan, grouped: Mapping[str, list[Any]], names: list[str]) -> None:
        self._readers, self._names = [_reader(x) for _, x in plan.query.keys], names
        found = self._tuples(grouped)
        if plan.groups is None:
            self.keys = sorted(set(found), key=sortable)
        else:
            self.keys = plan.group_keys()
        self._place = {key: i for i, key in enumerate(self.keys)}

    def _tuples(self, columns: Mapping[str, list[Any]]) -> list[tuple[Any, ...]]:
        if not self._names:
            return [()] * len(next(iter(columns.values())))
        read = [list(map(r, columns[n])) for r, n in zip(self._readers, self._names, strict=True)]
        return list(zip(*read, strict=True))

    def places(self, found: Mapping[str, list[Any]]) -> list[int | None]:
        """Where each group of a result belongs in the answer."""
        return [self._place.get(key) for key in self._tuples(found)]

    def spread(self, places: list[int | None], values: list[Any]) -> Integers:
        """The values in the answer's order, 0 where a group has none."""
        integers = [0 if v is None or v != v else int(v) for v in values]
        kind = np.int64 if all(-(1 << 62) < v < 1 << 62 for v in integers) else object
        out = np.zeros(len(self.keys), dtype=kind)
        for place, value in zip(places, integers, strict=True):
            if place is not None:
                out[place] = value
        return out

    def collect(self, found: Mapping[str, list[Any]], column: str, choice: Choice) -> list[Any]:
        """For each group, the values of a chosen aggregate's argument and how often each occurs."""
        if not self._names:  # one group: all of them, which may be as many as there are rows
            lists = [(found[column], found["hb_times"])]
        else:
            lists = [([], []) for _ in self.keys]
            for place, value, times in zip(self.places(found), found[column], found["hb_times"], strict=True):
                if place is not None:
                    lists[place][0].append(value)
                    lists[place][1].append(int(times))
        if choice.aggregate.function in ("quantile", "best price"):
            return [Counted(np.array(v, np.int64), np.array(t, np.int64)) for v, t in lists]
        return [dict(zip(v, t, strict=True)) for v, t in lists]


def _stack(columns: list[Integers]) -> Integers:
    wide = any(c.dtype == object for c in columns)
    return np.stack([c.astype(object) if wide else c for c in columns])


def _reader(key: Expression) -> Any:
    """From what the engine returns to the value shown."""
    match key.kind:
        case Whole(step):
            return (lambda n: int(n * step)) if step.denominator == 1 else (lambda n: float(n * step))
        case Truth():
            return bool
        case Time():
            return lambda v: v.date() if isinstance(v, dt.datetime) else v
        case Listed():
            return lambda v: v
        case _:
            return lambda v: v


def sortable(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """An order for keys of any types."""
    return tuple((str(type(v)), v) for v in key)


def check_unit(table: Any, unit: str | None) -> None:
    """Refuses units that cannot be told apart safely."""
    if unit is None:
        return
    kind = table.schema()[unit]
    if not (kind.is_string() or kind.is_integer() or kind.is_uuid() or kind.is_date()):
        raise QueryRefused(f"the unit column {unit!r}, which is {kind}", "use a column of texts or whole numbers")
