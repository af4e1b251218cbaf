"""The ledger: every charge of every analyst, durable before any data are touched, chained so that loss of one shows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from hubbub.curator import backup, mark
from hubbub.curator.chain import (
    Entry,
    Limit,
    append,
    checked,
    digest_at,
    entries_of,
    entry_of,
    genesis,
    kept,
    limits_of,
    text,
    totals_of,
)
from hubbub.curator.store import ANSWERS, CAPS, DATASETS, ENTRIES, Store, asked, insert_if_absent, locked
from hubbub.errors import (
    BudgetExceeded,
    KeyReused,
    LedgerBroken,
    ParameterError,
    ParameterTypeError,
    UnknownDataset,
    UnknownEntry,
)
from hubbub.numeric.rational import Number, count, positive, rational
from hubbub.privacy.budget import Filter
from hubbub.privacy.families import NoLoss
from hubbub.privacy.loss import Loss, Neighbours, check_delta, check_neighbours, compose
from hubbub.privacy.odometer import Odometer

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection


@dataclass(frozen=True)
class Charge:
    """What a charge came to: its entry, and the answer if it has been given already."""

    entry: Entry
    fresh: bool
    """Whether this call made the charge; otherwise one under the same key was found."""
    answer: str | None


FAILED = "failed"
"""Stored in the place of an answer that could not be shown although its noise was drawn: it is never drawn again."""


class Ledger:
    """Charges to the budgets of data sets, append-only, in SQLite or PostgreSQL; as many processes as wanted.

    Claim: whatever analysts ask, adaptively, together or at once, the losses charged to a data set are together
        (epsilon, delta)-DP at its limits (if these were raised: see ``raise_limit``); those charged to one analyst fit
        the analyst's cap as well. A charge that was returned is on disk, and in the mark where there is one; at most
        one is made for a key of an analyst; a charge without an answer is found again under its key.
    Proof: Filter, whose state is read, decided on and written in one transaction that holds the data set's row (SQLite:
        the whole file) against all others; the entry is unique by (data set, analyst, key) and is committed with the
        state before ``charge`` returns.
    Assumes: as for Store; every process of a data set uses one ledger; an answer is shown only after ``store_answer``
        returned it. A cap bounds what is charged to an analyst, not what others tell them, nor answers that others
        had paid for.
    """

    def __init__(self, url: str, high_water_mark: str | Path | None = None) -> None:
        self._mark = Path(high_water_mark) if high_water_mark is not None else None
        self._store = Store(url)
        try:
            marks = mark.read(self._mark) if self._mark is not None else {}
            with self._store.reading() as connection:
                for dataset, (number, digest) in marks.items():
                    _reaches(connection, dataset, number, digest)
        except BaseException:
            self.close()
            raise

    # limits

    def open_dataset(
        self, name: str, *, epsilon: Number, delta: Number = 0.0, neighbours: Neighbours = "add-remove"
    ) -> None:
        """Makes a data set with its limits, or finds it, by the limits it was opened with or has now."""
        limits = Filter(positive("epsilon", epsilon), rational("delta", check_delta(delta)))
        check_neighbours(neighbours)
        first = {"neighbours": neighbours, "filter": limits.state(), "length": -1, "head": genesis(name, neighbours)}
        with self._store.writing() as connection:
            if locked(connection, text("dataset", name)) is None:
                insert_if_absent(connection, DATASETS, name=name, **first)
            row = self._row(connection, name)
            if row["length"] < 0:
                link = append(connection, row, limits.state(), _limit(None, limits))
            else:
                totals = totals_of(connection, name)
                link, wanted = totals[-1], (str(limits.epsilon), str(limits.delta))
                known = {(limit.epsilon, limit.delta) for limit in (totals[0], totals[-1])}
                if row["neighbours"] != neighbours or wanted not in known:
                    remedy = "use those, or another name"
                    raise ParameterError("dataset", name, "is in the ledger with other limits", remedy)
        self._raise_mark(link)

    def raise_limit(self, dataset: str, *, epsilon: Number) -> Limit:
        """Sets a higher epsilon for a data set, for all analysts together; its delta stays. A link of the chain.

        Claim: for every epsilon fixed in advance, all that is answered while the limit is at most that is (epsilon,
            delta)-DP, however raises depend on answers; and the odometer stays valid throughout. If a raise is decided
            without regard to answers, all is (new epsilon, delta)-DP. A limit chosen after looking at answers, with no
            ceiling fixed before, is not an epsilon of the whole: what the odometer shows is.
        Proof: losses are counted again under the new limit, at the order fixed at the opening; what fits a lower limit
            fits a higher one at the same order, so that a run up to the first raise above a fixed epsilon is a run of
            the filter at that epsilon. Odometer, whose levels do not depend on limits.
        Assumes: as for Ledger; the owner, who is trusted, decides.
        """
        wanted = positive("epsilon", epsilon)
        with self._store.writing() as connection:
            row = self._row(connection, dataset)
            now = kept(dataset, row["length"], row["filter"])
            if wanted <= now.epsilon:
                raise ParameterError("epsilon", epsilon, "is not above the data set's limit", "limits are only raised")
            raised = Filter.of_state(Filter(wanted, now.delta).state() | {"order": now.order.hex()})
            for entry in entries_of(connection, dataset):
                raised.add(entry.loss, Fraction(entry.delta))
            link: Limit = append(connection, row, raised.state(), _limit(None, raised))
        self._raise_mark(link)
        return link

    def cap(self, dataset: str, analyst: str, *, epsilon: Number, delta: Number = 0.0) -> None:
        """Sets what one analyst may spend of a data set, all in all; what was spent before counts.

        Caps may be changed at any time, for any reason: every charge also has to fit the data set's limit, which
        alone carries the guarantee, so a cap only ever refuses more. Those of several analysts may add up to more.
        """
        limits = Filter(positive("epsilon", epsilon), rational("delta", check_delta(delta)))
        with self._store.writing() as connection:
            row = self._row(connection, dataset)
            own = (CAPS.c.dataset == dataset) & (CAPS.c.analyst == text("analyst", analyst))
            there = connection.execute(sa.select(CAPS.c.filter).where(own)).scalar()
            if there is not None and (there["epsilon"], there["delta"]) == (str(limits.epsilon), str(limits.delta)):
                return
            wanted = _limit(analyst, limits)
            for entry in entries_of(connection, dataset, analyst):
                limits.add(entry.loss, Fraction(entry.delta))
            connection.execute(sa.delete(CAPS).where(own))
            connection.execute(sa.insert(CAPS).values(dataset=dataset, analyst=analyst, filter=limits.state()))
            link = append(connection, row, row["filter"], wanted)
        self._raise_mark(link)

    # charges and answers

    def charge(self, dataset: str, analyst: str, *, key: str, question: str, loss: Loss, delta: Number = 0.0) -> Charge:
        """Takes a loss out of the budget, durably, or raises BudgetExceeded with nothing spent.

        The same key again finds the charge it made, and its answer if there is one; with another question it is
        refused, and so is one without an answer at another price.
        """
        if not isinstance(loss, Loss):
            raise ParameterTypeError("loss", type(loss).__name__, "must be a Loss", "charge mechanism.loss")
        if not loss._parts():
            raise ParameterError("loss", loss, "costs nothing", "nothing is free; charge what runs")
        at = rational("delta", check_delta(delta))
        link = {
            "analyst": text("analyst", analyst),
            "key": text("key", key),
            "question": text("question", question),
            "loss": loss.to_json(),
            "delta": str(at),
        }
        with self._store.writing() as connection:
            row = self._row(connection, dataset)
            same = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.analyst == analyst) & (ENTRIES.c.key == key)
            found = connection.execute(sa.select(ENTRIES).where(same)).mappings().first()
            if found is None:
                entry, answer = self._charged(connection, row, link, loss, at), None
            else:
                entry = entry_of(found)
                answer = self._answer(connection, entry)
                price = (found["loss"], found["delta"]) == (link["loss"], link["delta"])
                if entry.question != question or not (price or answer is not None):
                    raise KeyReused(key)
        self._raise_mark(entry)
        return Charge(entry, found is None, answer)

    def store_answer(self, entry: Entry, body: str) -> str:
        """Keeps the answer of a charge, once; if one is there already, that one is returned and this is forgotten."""
        values = {"dataset": entry.dataset, "number": entry.number, "body": text("body", body)}
        with self._store.writing() as connection:
            self._row(connection, entry.dataset)
            if digest_at(connection, entry.dataset, entry.number) != entry.digest:
                raise LedgerBroken(entry.dataset, entry.number)
            there = self._answer(connection, entry)
            if there is None:
                connection.execute(sa.insert(ANSWERS).values(**values))
        return body if there is None else there

    def answer_of(self, entry: Entry) -> str | None:
        """The stored answer of a charge; None if it has none yet."""
        with self._store.reading() as connection:
            return self._answer(connection, entry)

    def answered(self, dataset: str, question: str) -> str | None:
        """The stored answer to a question somebody has asked before: telling it again costs nothing."""
        both = (ANSWERS.c.dataset == ENTRIES.c.dataset) & (ANSWERS.c.number == ENTRIES.c.number)
        same = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.asked == asked(text("question", question)))
        query = sa.select(ANSWERS.c.body).join(ENTRIES, both).where(same & (ENTRIES.c.question == question))
        query = query.where(ANSWERS.c.body != FAILED)
        with self._store.reading() as connection:
            body: str | None = connection.execute(query.order_by(ENTRIES.c.number).limit(1)).scalar()
        return body

    def find(self, dataset: str, analyst: str, key: str) -> Entry | None:
        """The charge an analyst made under a key, if there is one."""
        same = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.analyst == analyst) & (ENTRIES.c.key == key)
        with self._store.reading() as connection:
            row = connection.execute(sa.select(ENTRIES).where(same)).mappings().first()
        return None if row is None else entry_of(row)

    def receipt(self, dataset: str, number: int, analyst: str | None) -> tuple[Entry, str | None]:
        """One charge and its answer; another analyst's looks as if it were not there."""
        same = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.number == number)
        with self._store.reading() as connection:
            row = connection.execute(sa.select(ENTRIES).where(same)).mappings().first()
            if row is None or (analyst is not None and row["analyst"] != analyst):
                raise UnknownEntry(number)
            entry = entry_of(row)
            answer = self._answer(connection, entry)
            return entry, None if answer == FAILED else answer

    # what was spent

    def datasets(self) -> list[str]:
        """The names of all data sets, in order."""
        with self._store.reading() as connection:
            return list(connection.execute(sa.select(DATASETS.c.name).order_by(DATASETS.c.name)).scalars())

    def entries(
        self, dataset: str, analyst: str | None = None, *, limit: int | None = None, before: int | None = None
    ) -> list[Entry]:
        """Charges to a data set in order, of one analyst where named; with a limit the last so many, below a number."""
        most = None if limit is None else count("limit", limit)
        with self._store.reading() as connection:
            return list(entries_of(connection, dataset, analyst, most, before))

    def length(self, dataset: str, analyst: str | None = None) -> int:
        """How many charges were made, by one analyst where named."""
        same = ENTRIES.c.dataset == dataset
        same = same if analyst is None else same & (ENTRIES.c.analyst == analyst)
        with self._store.reading() as connection:
            return int(connection.execute(sa.select(sa.func.count()).select_from(ENTRIES).where(same)).scalar_one())

    def limits(self, dataset: str) -> list[Limit]:
        """Every limit and cap that was set, in order: the first is what the data set was opened with."""
        with self._store.reading() as connection:
            return limits_of(connection, dataset)

    def spent(self, dataset: str, analyst: str | None = None) -> Loss:
        """All that was charged, as one loss. Its epsilon is that of questions fixed in advance; see ``odometer``."""
        with self._store.reading() as connection:
            row = _known(connection, dataset)
            losses = [entry.loss for entry in entries_of(connection, dataset, analyst)]
        return compose([NoLoss(row["neighbours"]), *losses])

    def remaining(self, dataset: str, analyst: str | None = None) -> float:
        """The largest pure epsilon that would still be accepted, from this analyst where named."""
        with self._store.reading() as connection:
            filters = self._filters(connection, _known(connection, dataset), analyst)
        return min(f.left() for f in filters)

    def odometer(self, dataset: str, analyst: str | None = None) -> float:
        """What has been charged so far comes to at the data set's delta, whenever it is looked at; of one analyst where
        named (that is all the analyst knows only if others tell them nothing).

        Claim: as for Odometer, at the limits the data set was opened with.
        Proof: as for Odometer; it is counted again from the entries.
        Assumes: as for Ledger.
        """
        with self._store.reading() as connection:
            _known(connection, dataset)
            first = totals_of(connection, dataset)[0]
            found = Odometer(Fraction(first.epsilon), Fraction(first.delta))
            for entry in entries_of(connection, dataset, analyst):
                found.add(entry.loss, Fraction(entry.delta))
        return found.epsilon()

    # the ledger itself

    def verify(self, dataset: str) -> int:
        """Reads the whole chain and adds it up again: the number of charges, or LedgerBroken."""
        with self._store.reading() as connection:
            return checked(connection, _known(connection, dataset))

    def backup(self, path: str | Path) -> None:
        """Writes a verified copy of one moment to a new file while work goes on; PostgreSQL has pg_dump for this."""
        backup.write(self._store, Path(path))

    def close(self) -> None:
        """Lets go of the database."""
        self._store.close()

    def _row(self, connection: Connection, dataset: str) -> Any:
        """The data set's row, locked; refused if it has not come as far as the mark says."""
        row = locked(connection, dataset)
        if row is None:
            raise UnknownDataset(dataset)
        if self._mark is not None:
            marks = mark.read(self._mark)
            if dataset in marks:
                _reaches(connection, dataset, *marks[dataset])
        return row

    def _charged(self, connection: Connection, row: Any, link: dict[str, Any], loss: Loss, at: Fraction) -> Entry:
        if loss.neighbours != row["neighbours"]:
            raise ParameterError("neighbours", loss.neighbours, f"is not the data set's {row['neighbours']}")
        filters = self._filters(connection, row, link["analyst"])
        for budget in filters:
            if not budget.accepts(loss, at):
                limit = (float(budget.epsilon), float(budget.delta))
                raise BudgetExceeded(loss, NoLoss(loss.neighbours), limit, budget.left())
        for budget in filters:
            budget.add(loss, at)
        entry: Entry = append(connection, row, filters[0].state(), link)
        if len(filters) > 1:
            own = (CAPS.c.dataset == entry.dataset) & (CAPS.c.analyst == entry.analyst)
            connection.execute(sa.update(CAPS).where(own).values(filter=filters[1].state()))
        return entry

    def _filters(self, connection: Connection, row: Any, analyst: str | None) -> list[Filter]:
        filters = [kept(row["name"], row["length"], row["filter"])]
        own = (CAPS.c.dataset == row["name"]) & (CAPS.c.analyst == analyst)
        state = connection.execute(sa.select(CAPS.c.filter).where(own)).scalar() if analyst is not None else None
        return filters if state is None else [*filters, kept(row["name"], row["length"], state)]

    def _answer(self, connection: Connection, entry: Entry) -> str | None:
        same = (ANSWERS.c.dataset == entry.dataset) & (ANSWERS.c.number == entry.number)
        body: str | None = connection.execute(sa.select(ANSWERS.c.body).where(same)).scalar()
        return body

    def _raise_mark(self, link: Entry | Limit) -> None:
        if self._mark is not None:
            mark.raise_to(self._mark, link.dataset, link.number, link.digest)


def _known(connection: Connection, dataset: str) -> Any:
    row = connection.execute(sa.select(DATASETS).where(DATASETS.c.name == dataset)).mappings().first()
    if row is None:
        raise UnknownDataset(dataset)
    return row


def _limit(analyst: str | None, limits: Filter) -> dict[str, Any]:
    state = limits.state()
    return {"analyst": analyst, "epsilon": state["epsilon"], "delta": state["delta"], "order": state["order"]}


def _reaches(connection: Connection, dataset: str, number: int, digest: str) -> None:
    if digest_at(connection, dataset, number) != digest:
        raise LedgerBroken(dataset, number)
