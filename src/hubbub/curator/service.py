"""The curator itself, whoever asks it: who may ask what, debit first, one answer for a charge, no word about rows."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.curator import opening
from hubbub.curator.accounts import Account, Accounts
from hubbub.curator.chain import LONGEST, Entry
from hubbub.curator.config import Config, Dataset
from hubbub.curator.ledger import FAILED, Ledger
from hubbub.curator.surveys import Surveys
from hubbub.errors import EngineFailure, QueryRefused, ReleaseFailure, UnknownDataset
from hubbub.queries import Explanation, Table
from hubbub.queries.plan import Plan
from hubbub.queries.questions import Asked
from hubbub.queries.sql import parse
from hubbub.queries.table import Ready

MOST_CELLS = 100_000
"""The largest answer: groups times columns."""
THREADS = 8
"""Questions computed side by side in one process; of one data set, one at a time."""


@dataclass(frozen=True)
class Price:
    """What an analyst offers for an answer: an epsilon, or the error it should have; at a delta."""

    epsilon: Any = None
    delta: Any = 0.0
    error: Any = None
    confidence: Any = 0.95
    group_size: int | None = None

    @property
    def goal(self) -> dict[str, Any]:
        """The part of it that says how good the answer should be."""
        if self.error is None:
            return {}
        return {"error": self.error, "confidence": self.confidence, "group_size": self.group_size}


@dataclass(frozen=True)
class Told:
    """An answer on its way out."""

    answer: str
    """As JSON."""
    key: str
    number: int | None
    """The entry it was charged as; None where it was told before and costs nothing."""
    computed: bool
    """Whether rows were read for it just now, so that its time has to be hidden."""


class Curator:
    """Data sets, their ledger and the accounts that may ask them.

    Claim: all that analysts see of a data set (answers, refusals, charges, whatever they ask, together, adaptively) is
        (epsilon, delta)-DP at the data set's limits, time excepted.
    Proof: what is refused is refused from the question and public facts, before a row is read (Table._prepared). Then
        the loss is charged (Ledger), then rows are read and the answer released at that loss (Table._paid), once: the
        first answer stored under a charge is the one that leaves, and a stored answer told again is post-processing.
        A failure after the charge is one sentence, and its charge stays.
    Assumes: declared schemas are true; a version of the data is named anew when the data change; failures of engines
        that are not caused by rows.
    """

    def __init__(self, config: Config, tables: Mapping[str, Table] | None = None) -> None:
        self.config = config
        self.url = config.server.ledger
        self.ledger = Ledger(self.url, config.server.high_water_mark)
        self.accounts = Accounts(self.url)
        self.surveys = Surveys(self.url)
        self.datasets: Mapping[str, Dataset] = config.datasets
        for d in self.datasets.values():
            self.ledger.open_dataset(d.name, epsilon=d.epsilon, delta=d.delta, neighbours=d.schema.neighbours)
        self.tables = tables or {d.name: opening.table(d, str(config.path)) for d in self.datasets.values()}
        self._busy = {name: threading.Lock() for name in self.datasets}
        self._pool = ThreadPoolExecutor(THREADS, "engine")

    def visible(self, account: Account) -> list[Dataset]:
        """The data sets an account may see: an owner all, an analyst those granted."""
        names = set(self.datasets) if account.role == "owner" else set(self.accounts.granted(account))
        return [d for name, d in self.datasets.items() if name in names]

    def dataset(self, account: Account, name: str) -> Dataset:
        """One of them; what is not there and what is not theirs look the same."""
        found = self.datasets.get(name)
        if found is None or not (account.role == "owner" or self.accounts.may_ask(account, name)):
            raise UnknownDataset(name)
        return found

    def grant(self, name: str, dataset: str) -> None:
        """Lets an analyst ask a data set, within the cap its configuration gives to each."""
        self.accounts.known(name)
        caps = self.datasets[dataset].caps
        if caps and name not in self.accounts.caps(dataset):
            self.ledger.cap(dataset, name, **caps)
        self.accounts.grant(name, dataset)

    def budget(self, account: Account, name: str) -> dict[str, Any]:
        """A data set's limits, what was charged to it, and what still fits, for all and for this account."""
        self.dataset(account, name)
        limit = [link for link in self.ledger.limits(name) if link.analyst is None][-1]
        epsilon, left = float(Fraction(limit.epsilon)), self.ledger.remaining(name)
        return {
            "epsilon": epsilon,
            "delta": float(Fraction(limit.delta)),
            "spent": max(0.0, epsilon - left),
            "remaining": left,
            "yours": self.ledger.remaining(name, account.name),
            "entries": self.ledger.length(name),
        }

    def explain(self, account: Account, name: str, asked: Asked, price: Price) -> Explanation:
        """What a question would cost and how good its answer would be."""
        table = self.tables[self.dataset(account, name).name]
        query = table._reader.question(asked)
        return Explanation(table._plan(query, price.epsilon, price.delta, **price.goal))

    def known(self, account: Account, name: str, asked: Asked, price: Price) -> str | None:
        """The stored answer to this very question at this very price, if there is one; telling it costs nothing."""
        dataset = self.dataset(account, name)
        table = self.tables[name]
        plan = table._plan(table._reader.question(asked), price.epsilon, price.delta, **price.goal)
        return self.ledger.answered(name, identity(dataset, asked, plan))

    def ask(self, account: Account, name: str, asked: Asked, price: Price, key: str | None = None) -> Told:
        """The answer to a question: a stored one at no cost, or a new one, charged first.

        The same key again finds its charge, and the answer; where there is none yet it is computed, not charged again.
        """
        dataset = self.dataset(account, name)
        table = self.tables[name]
        plan = table._plan(table._reader.question(asked), price.epsilon, price.delta, **price.goal)
        question = identity(dataset, asked, plan)
        used = key or os.urandom(16).hex()
        mine = self.ledger.find(name, account.name, used)
        known = self.ledger.answered(name, question) if mine is None else None
        if known is not None:
            return Told(known, used, None, computed=False)
        _small(plan)
        ready = Ready(plan, table._prepared(plan))
        charge = self.ledger.charge(name, account.name, key=used, question=question, loss=plan.loss, delta=plan.delta)
        if charge.answer == FAILED:
            raise ReleaseFailure
        if charge.answer is not None:
            return Told(charge.answer, used, charge.entry.number, computed=False)
        body = self._computed(charge.entry, ready, _plainly(asked).words)
        if body == FAILED:
            raise ReleaseFailure
        return Told(body, used, charge.entry.number, computed=True)

    def _computed(self, entry: Entry, ready: Ready, words: str) -> str:
        """Reads the rows and keeps the answer, each within the time allowed. An answer that was drawn is kept, or
        FAILED is: it is never drawn a second time after the first could have been noticed."""
        table, begun, limit = self.tables[entry.dataset], threading.Event(), self.config.server.timeout

        def work() -> str:
            with self._busy[entry.dataset]:
                begun.set()
                body = FAILED
                try:
                    body = table._paid(ready, words).to_json()
                except ReleaseFailure:
                    pass
                except EngineFailure:
                    raise
                except Exception:
                    pass
            return self.ledger.store_answer(entry, body if len(body) <= LONGEST["body"] else FAILED)

        future = self._pool.submit(work)
        if not begun.wait(limit):
            future.cancel()
            raise EngineFailure
        try:
            return future.result(limit)
        except TooLate:
            table._engine.interrupt()  # what runs is this question: others wait for the same lock
            raise EngineFailure from None

    def close(self) -> None:
        """Waits for questions under way, then lets go of the databases."""
        self._pool.shutdown(wait=True)
        self.ledger.close()
        self.accounts.close()
        self.surveys.close()


def identity(dataset: Dataset, asked: Asked, plan: Plan) -> str:
    """A question as the ledger knows it: the same text for the same question of the same data at the same price."""
    price = {"loss": json.loads(plan.loss.to_json()), "delta": str(plan.delta), "version": dataset.version}
    declared = hashlib.sha256(repr((dataset.schema, sorted(dataset.schema.columns.items()))).encode()).hexdigest()[:16]
    told = {**_plainly(asked).to_json(), **price, "schema": declared}
    return json.dumps(told, sort_keys=True, separators=(",", ":"))


def _plainly(asked: Asked) -> Asked:
    """The question without what does not matter: spacing, the case of SQL's words, comments."""
    return asked if asked.sql is None else Asked(sql=parse(asked.sql).sql(dialect="duckdb", comments=False))


def _small(plan: Plan) -> None:
    """Refuses an answer that would be too large to write down, from public facts, before it is charged."""
    groups = plan.group_count or 1
    listed = [max((len(str(v)) for v in values), default=0) for values in plan.groups or ()]
    width = 40 * len(plan.query.outputs) + sum(listed) * len(plan.query.outputs)
    if groups * len(plan.query.outputs) > MOST_CELLS or groups * width > LONGEST["body"] // 4:
        raise QueryRefused(f"an answer of {groups} groups by {len(plan.query.outputs)} columns", "group by fewer keys")
