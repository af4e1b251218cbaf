"""The chain of a data set: charges and limits in one order, each holding the digest of the one before."""

from __future__ import annotations

import datetime as dt
import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from hubbub.curator.store import CAPS, DATASETS, ENTRIES, LIMITS, asked, digest
from hubbub.errors import LedgerBroken, ParameterError
from hubbub.privacy.budget import Filter
from hubbub.privacy.loss import Loss

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

LONGEST = {"dataset": 200, "analyst": 200, "key": 200, "question": 1_000_000, "body": 100_000_000}
"""Characters a text of the ledger may have."""
NONSENSE = (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError)
"""What reading something raises that no ledger has written."""


@dataclass(frozen=True)
class Entry:
    """One charge: whose, for what, how much, and the link to the one before."""

    dataset: str
    number: int
    analyst: str
    key: str
    question: str
    loss: Loss
    delta: str
    at: str
    before: str
    digest: str


@dataclass(frozen=True)
class Limit:
    """One limit as an owner set it: of the whole data set, or of one analyst within it."""

    dataset: str
    number: int
    analyst: str | None
    """None: the limit of all together."""
    epsilon: str
    delta: str
    order: str
    """Of the Renyi filter, fixed when the data set was opened."""
    at: str
    before: str
    digest: str


def text(name: str, value: str) -> str:
    """The text itself; refused unless both databases can keep it as it is."""
    if not isinstance(value, str) or not value or len(value) > LONGEST[name]:
        raise ParameterError(name, _hinted(name, value), f"must be a text of 1 to {LONGEST[name]} characters")
    if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise ParameterError(name, _hinted(name, value), "must not hold NUL or half a character")
    return value


def _hinted(name: str, value: object) -> str:
    """What an error may show of a text: the beginning of a name, nothing of an answer."""
    return "…" if name == "body" else str(value)[:50]


def genesis(dataset: str, neighbours: str) -> str:
    """What the first link of a chain has before it."""
    return digest({"dataset": dataset, "neighbours": neighbours})


def append(connection: Connection, row: Any, filter_: Any, link: dict[str, Any]) -> Any:
    """Writes the next link and the state that goes with it; ``row`` is the data set's, locked. The link as a value."""
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    link = {"dataset": row["name"], "number": row["length"] + 1, **link, "at": now, "before": row["head"]}
    new = digest(link)
    if "loss" in link:
        made: Entry | Limit = Entry(**{**link, "loss": Loss.from_json(link["loss"])}, digest=new)
        connection.execute(sa.insert(ENTRIES).values(**link, digest=new, asked=asked(link["question"])))
    else:
        made = Limit(**link, digest=new)
        connection.execute(sa.insert(LIMITS).values(**link, digest=new))
    state = {"filter": filter_, "length": link["number"], "head": new}
    connection.execute(sa.update(DATASETS).where(DATASETS.c.name == row["name"]).values(**state))
    return made


def entry_of(row: Any) -> Entry:
    """The entry in a row; LedgerBroken if there is none in it."""
    values = {f.name: row[f.name] for f in fields(Entry)}
    try:
        return Entry(**{**values, "loss": Loss.from_json(row["loss"])})
    except NONSENSE:
        raise LedgerBroken(row["dataset"], row["number"]) from None


def entries_of(
    connection: Connection,
    dataset: str,
    analyst: str | None = None,
    limit: int | None = None,
    before: int | None = None,
) -> Iterator[Entry]:
    """The charges to a data set in order; with a limit, the last so many below ``before``."""
    query = sa.select(ENTRIES).where(ENTRIES.c.dataset == dataset)
    if analyst is not None:
        query = query.where(ENTRIES.c.analyst == analyst)
    if before is not None:
        query = query.where(ENTRIES.c.number < before)
    if limit is None:
        for row in connection.execute(query.order_by(ENTRIES.c.number)).mappings():
            yield entry_of(row)
    else:
        last = connection.execute(query.order_by(ENTRIES.c.number.desc()).limit(limit)).mappings().all()
        yield from (entry_of(row) for row in reversed(last))


def limits_of(connection: Connection, dataset: str) -> list[Limit]:
    """Every limit that was set, in order."""
    query = sa.select(LIMITS).where(LIMITS.c.dataset == dataset).order_by(LIMITS.c.number)
    return [Limit(**row) for row in connection.execute(query).mappings()]


def totals_of(connection: Connection, dataset: str) -> list[Limit]:
    """The limits of the whole data set: the first is what it was opened with, the last is in force."""
    totals = [limit for limit in limits_of(connection, dataset) if limit.analyst is None]
    if not totals:
        raise LedgerBroken(dataset, 0)
    return totals


def begun(limit: Limit) -> Filter:
    """A filter at a limit, nothing counted yet."""
    fresh = Filter(Fraction(limit.epsilon), Fraction(limit.delta))
    return Filter.of_state(fresh.state() | {"order": limit.order})


def kept(dataset: str, number: int, state: Any) -> Filter:
    """The filter of a state that was kept; LedgerBroken if it is none."""
    try:
        return Filter.of_state(state)
    except NONSENSE:
        raise LedgerBroken(dataset, number) from None


def digest_at(connection: Connection, dataset: str, number: int) -> str | None:
    """The digest of a link by its number; None if there is no such link."""
    for table in (ENTRIES, LIMITS):
        same = (table.c.dataset == dataset) & (table.c.number == number)
        found: str | None = connection.execute(sa.select(table.c.digest).where(same)).scalar()
        if found is not None:
            return found
    return None


def checked(connection: Connection, row: Any) -> int:
    """Reads a whole chain and adds it up again: the number of charges, or LedgerBroken."""
    dataset, charges, number = row["name"], 0, -1
    try:
        limits = limits_of(connection, dataset)
        filters = {limit.analyst: begun(limit) for limit in limits}  # the last of each
        number = (limits[0].number if limits and limits[0].number == 0 else 1) - 1
        before = genesis(dataset, row["neighbours"])
        totals: list[Limit] = []
        links: Iterator[Entry | Limit] = heapq.merge(limits, entries_of(connection, dataset), key=_number)
        for link in links:
            number += 1
            _require(link.number == number and link.before == before and digest(_linked(link)) == link.digest)
            before = link.digest
            if isinstance(link, Limit):
                totals += [link] if link.analyst is None else []
                continue
            charges += 1
            for whose in {None, link.analyst} & set(filters):
                filters[whose].add(link.loss, Fraction(link.delta))
        _require(row["length"] == number and row["head"] == before and len(totals) > 0)
        for old, new in itertools.pairwise(totals):
            _require(new.order == old.order and new.delta == old.delta)
            _require(Fraction(new.epsilon) > Fraction(old.epsilon))
        _require(filters.pop(None).state() == dict(row["filter"]))
        caps = connection.execute(sa.select(CAPS.c.analyst, CAPS.c.filter).where(CAPS.c.dataset == dataset))
        _require({name: f.state() for name, f in filters.items()} == {cap.analyst: dict(cap.filter) for cap in caps})
        query = sa.select(ENTRIES.c.question, ENTRIES.c.asked).where(ENTRIES.c.dataset == dataset)
        _require(all(asked(found.question) == found.asked for found in connection.execute(query)))
    except NONSENSE:
        raise LedgerBroken(dataset, max(number, 0)) from None
    return charges


def _linked(link: Entry | Limit) -> dict[str, Any]:
    """What a link's digest is taken of."""
    values = {f.name: getattr(link, f.name) for f in fields(link) if f.name != "digest"}
    return {**values, "loss": link.loss.to_json()} if isinstance(link, Entry) else values


def _number(link: Entry | Limit) -> int:
    return link.number


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError
