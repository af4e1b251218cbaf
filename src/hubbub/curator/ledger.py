"""The ledger: every charge of every analyst, durable before any data are touched, chained so that loss of one shows."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from hubbub.curator import mark
from hubbub.curator.store import ANSWERS, CAPS, DATASETS, ENTRIES, connect, locked
from hubbub.errors import BudgetExceeded, KeyReused, LedgerBroken, ParameterError, UnknownDataset, UnknownEntry
from hubbub.numeric.rational import Number, positive, rational
from hubbub.privacy.budget import Filter
from hubbub.privacy.families import NoLoss
from hubbub.privacy.loss import Loss, Neighbours, check_delta, check_neighbours, compose


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
class Charge:
    """What a charge came to: its entry, and the answer if it has been given already."""

    entry: Entry
    fresh: bool
    """Whether this call made the charge; otherwise one under the same key was found."""
    answer: str | None


class Ledger:
    """Charges to the budgets of data sets, append-only, in SQLite or PostgreSQL; as many processes as wanted.

    Claim: whatever analysts ask, adaptively, together or at once, the losses charged to a data set are (epsilon,
        delta)-DP at its limits, and an analyst's own at theirs; a charge that was returned is on disk, and at most
        one is made for a key.
    Proof: Filter, whose state is read, decided on and written in one transaction that holds the data set's row (SQLite:
        the whole file) against all others; the entry is unique by (data set, analyst, key) and is committed with the
        state before ``charge`` returns.
    Assumes: storage that keeps what it says it has written; every process of a data set uses one ledger.
    """

    def __init__(self, url: str, high_water_mark: str | Path | None = None) -> None:
        self._engine = connect(url)
        self._mark = Path(high_water_mark) if high_water_mark is not None else None
        if self._mark is not None:
            self._not_rolled_back(mark.read(self._mark))

    def open_dataset(
        self, name: str, *, epsilon: Number, delta: Number = 0.0, neighbours: Neighbours = "add-remove"
    ) -> None:
        """Makes a data set with its limits, or finds it; limits of a data set that exists are not changed here."""
        limits = Filter(positive("epsilon", epsilon), rational("delta", check_delta(delta)))
        check_neighbours(neighbours)
        with self._engine.begin() as connection:
            row = locked(connection, name)
            if row is None:
                first = _digest({"dataset": name, "neighbours": neighbours})
                connection.execute(
                    sa.insert(DATASETS).values(
                        name=name, neighbours=neighbours, filter=limits.state(), length=0, head=first
                    )
                )
            elif (row["neighbours"], row["filter"]["epsilon"], row["filter"]["delta"]) != (
                neighbours,
                str(limits.epsilon),
                str(limits.delta),
            ):
                raise ParameterError(
                    "dataset", name, "is in the ledger with other limits", "use those, or another name"
                )

    def cap(self, dataset: str, analyst: str, *, epsilon: Number, delta: Number = 0.0) -> None:
        """Sets what one analyst may spend of a data set, all in all; raising it later keeps what was spent."""
        limits = Filter(positive("epsilon", epsilon), rational("delta", check_delta(delta)))
        with self._engine.begin() as connection:
            _known(locked(connection, dataset), dataset)
            for entry in self._entries(connection, dataset):
                if entry.analyst == analyst:
                    limits.add(entry.loss, Fraction(entry.delta))
            connection.execute(sa.delete(CAPS).where(CAPS.c.dataset == dataset, CAPS.c.analyst == analyst))
            connection.execute(sa.insert(CAPS).values(dataset=dataset, analyst=analyst, filter=limits.state()))

    def charge(self, dataset: str, analyst: str, *, key: str, question: str, loss: Loss, delta: Number = 0.0) -> Charge:
        """Takes a loss out of the budget, durably, or raises BudgetExceeded with nothing spent.

        The same key again finds the charge it made, and its answer if there is one; with another question it is
        refused.
        """
        if not loss._parts():
            raise ParameterError("loss", loss, "costs nothing", "nothing is free; charge what runs")
        at = rational("delta", check_delta(delta))
        with self._engine.begin() as connection:
            row = _known(locked(connection, dataset), dataset)
            found = self._find(connection, dataset, analyst, key)
            if found is not None:
                if found.question != question:
                    raise KeyReused(key)
                return Charge(found, False, self._answer(connection, found))
            if loss.neighbours != row["neighbours"]:
                raise ParameterError("neighbours", loss.neighbours, f"is not the data set's {row['neighbours']}")
            filters = self._filters(connection, row, analyst)
            for budget in filters:
                if not budget.accepts(loss, at):
                    limit = (float(budget.epsilon), float(budget.delta))
                    raise BudgetExceeded(loss, NoLoss(loss.neighbours), limit, budget.left())
            for budget in filters:
                budget.add(loss, at)
            entry = self._append(connection, row, analyst, key, question, loss, at, filters[0].state())
            if len(filters) > 1:
                own = (CAPS.c.dataset == dataset) & (CAPS.c.analyst == analyst)
                connection.execute(sa.update(CAPS).where(own).values(filter=filters[1].state()))
        if self._mark is not None:
            mark.raise_to(self._mark, dataset, entry.number, entry.digest)
        return Charge(entry, True, None)

    def find(self, dataset: str, analyst: str, key: str) -> Entry | None:
        """The charge an analyst made under a key, if there is one."""
        with self._engine.begin() as connection:
            return self._find(connection, dataset, analyst, key)

    def store_answer(self, entry: Entry, body: str) -> str:
        """Keeps the answer of a charge, once; if one is there already, that one is returned and this is forgotten."""
        with self._engine.begin() as connection:
            locked(connection, entry.dataset)
            there = self._answer(connection, entry)
            if there is not None:
                return there
            connection.execute(sa.insert(ANSWERS).values(dataset=entry.dataset, number=entry.number, body=body))
        return body

    def answered(self, dataset: str, question: str) -> str | None:
        """The stored answer to a question somebody has asked before: telling it again costs nothing."""
        both = (ANSWERS.c.dataset == ENTRIES.c.dataset) & (ANSWERS.c.number == ENTRIES.c.number)
        asked = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.question == question)
        query = sa.select(ANSWERS.c.body).join(ENTRIES, both).where(asked).order_by(ENTRIES.c.number).limit(1)
        with self._engine.begin() as connection:
            body: str | None = connection.execute(query).scalar()
        return body

    def entries(self, dataset: str, analyst: str | None = None) -> list[Entry]:
        """Every charge to a data set, in order; of one analyst where named."""
        with self._engine.begin() as connection:
            found = list(self._entries(connection, dataset))
        return [e for e in found if analyst is None or e.analyst == analyst]

    def page(self, dataset: str, analyst: str | None, *, before: int | None = None, limit: int = 100) -> list[Entry]:
        """The newest charges before an entry, newest first; of one analyst where named."""
        query = sa.select(ENTRIES).where(ENTRIES.c.dataset == dataset).order_by(ENTRIES.c.number.desc()).limit(limit)
        if analyst is not None:
            query = query.where(ENTRIES.c.analyst == analyst)
        if before is not None:
            query = query.where(ENTRIES.c.number < before)
        with self._engine.begin() as connection:
            return [_entry(dict(row)) for row in connection.execute(query).mappings()]

    def receipt(self, dataset: str, number: int, analyst: str | None) -> tuple[Entry, str | None]:
        """One charge and its answer; another analyst's looks as if it were not there."""
        same = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.number == number)
        with self._engine.begin() as connection:
            row = connection.execute(sa.select(ENTRIES).where(same)).mappings().first()
            if row is None or (analyst is not None and row["analyst"] != analyst):
                raise UnknownEntry(number)
            entry = _entry(dict(row))
            return entry, self._answer(connection, entry)

    def spent(self, dataset: str, analyst: str | None = None) -> Loss:
        """All that was charged, as one loss."""
        with self._engine.begin() as connection:
            row = _known(locked(connection, dataset), dataset)
        return compose([NoLoss(row["neighbours"]), *(e.loss for e in self.entries(dataset, analyst))])

    def remaining(self, dataset: str, analyst: str | None = None) -> float:
        """The largest pure epsilon that would still be accepted, from this analyst where named."""
        with self._engine.begin() as connection:
            row = _known(locked(connection, dataset), dataset)
            filters = self._filters(connection, row, analyst)
        return min(f.left() for f in filters)

    def length(self, dataset: str) -> int:
        """How many charges were made to a data set."""
        with self._engine.begin() as connection:
            return int(_known(locked(connection, dataset), dataset)["length"])

    def verify(self, dataset: str) -> int:
        """Reads the whole chain and adds it up again: the number of entries, or LedgerBroken."""
        with self._engine.begin() as connection:
            row = _known(locked(connection, dataset), dataset)
            entries = list(self._entries(connection, dataset))
        kept = row["filter"]
        total = Filter(Fraction(kept["epsilon"]), Fraction(kept["delta"]))
        total = Filter.of_state(total.state() | {"order": kept["order"]})
        before = _digest({"dataset": dataset, "neighbours": row["neighbours"]})
        for number, entry in enumerate(entries, 1):
            if entry.number != number or entry.before != before or _digest(_link(entry)) != entry.digest:
                raise LedgerBroken(dataset, number)
            total.add(entry.loss, Fraction(entry.delta))
            before = entry.digest
        if row["length"] != len(entries) or row["head"] != before or total.state() != dict(kept):
            raise LedgerBroken(dataset, len(entries))
        return len(entries)

    def close(self) -> None:
        """Lets go of the database."""
        self._engine.dispose()

    def _append(
        self, connection: Any, row: Any, analyst: str, key: str, question: str, loss: Loss, at: Fraction, state: Any
    ) -> Entry:
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        link = {
            "dataset": row["name"],
            "number": row["length"] + 1,
            "analyst": analyst,
            "key": key,
            "question": question,
            "loss": loss.to_json(),
            "delta": str(at),
            "at": now,
            "before": row["head"],
        }
        digest = _digest(link)
        connection.execute(sa.insert(ENTRIES).values(**link, digest=digest))
        new = {"filter": state, "length": link["number"], "head": digest}
        connection.execute(sa.update(DATASETS).where(DATASETS.c.name == row["name"]).values(**new))
        return Entry(**{**link, "loss": loss}, digest=digest)

    def _filters(self, connection: Any, row: Any, analyst: str | None) -> list[Filter]:
        filters = [Filter.of_state(row["filter"])]
        own = (CAPS.c.dataset == row["name"]) & (CAPS.c.analyst == analyst)
        state = connection.execute(sa.select(CAPS.c.filter).where(own)).scalar() if analyst is not None else None
        return filters if state is None else [*filters, Filter.of_state(state)]

    def _find(self, connection: Any, dataset: str, analyst: str, key: str) -> Entry | None:
        same = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.analyst == analyst) & (ENTRIES.c.key == key)
        row = connection.execute(sa.select(ENTRIES).where(same)).mappings().first()
        return None if row is None else _entry(row)

    def _answer(self, connection: Any, entry: Entry) -> str | None:
        same = (ANSWERS.c.dataset == entry.dataset) & (ANSWERS.c.number == entry.number)
        body: str | None = connection.execute(sa.select(ANSWERS.c.body).where(same)).scalar()
        return body

    def _entries(self, connection: Any, dataset: str) -> Iterator[Entry]:
        query = sa.select(ENTRIES).where(ENTRIES.c.dataset == dataset).order_by(ENTRIES.c.number)
        for row in connection.execute(query).mappings():
            yield _entry(row)

    def _not_rolled_back(self, marks: Mapping[str, tuple[int, str]]) -> None:
        with self._engine.begin() as connection:
            for dataset, (number, digest) in marks.items():
                same = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.number == number)
                if connection.execute(sa.select(ENTRIES.c.digest).where(same)).scalar() != digest:
                    raise LedgerBroken(dataset, number)


def _known(row: Any, dataset: str) -> Any:
    if row is None:
        raise UnknownDataset(dataset)
    return row


def _entry(row: Mapping[str, Any]) -> Entry:
    return Entry(**{**row, "loss": Loss.from_json(row["loss"])})


def _link(entry: Entry) -> dict[str, Any]:
    """What an entry's digest is taken of."""
    fields = {name: getattr(entry, name) for name in Entry.__dataclass_fields__ if name != "digest"}
    return {**fields, "loss": entry.loss.to_json()}


def _digest(link: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(link, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
