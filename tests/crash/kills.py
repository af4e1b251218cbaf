"""Workers that charge and answer, killed at uniformly random moments and started again: promises are kept."""

from __future__ import annotations

import heapq
import itertools
import json
import os
import random
import select
import signal
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crash.checks import Found, Promises, check

import hubbub as hb
from hubbub.curator import Ledger
from hubbub.errors import BudgetExceeded, LedgerBusy, LedgerUnavailable

EACH, FITS = 0.1, 50
"""What a question costs, and how many a data set has room for."""
SPAN = 0.4
"""Seconds a worker may live: enough to open the ledger and ask some questions."""
SLOW, STUCK = 3.0, 40.0
"""Seconds without a new answer after which nobody is killed for a while, and those that count as stuck then."""

Tell = Callable[..., None]


@dataclass
class Slot:
    """A worker's place: what it has to do next, whoever holds the place."""

    number: int
    key: int = 0
    dataset: int = 0
    process: int = 0
    pipe: int = 0


@dataclass
class Tally:
    """What happened."""

    kills: int = 0
    resumed: int = 0
    errors: int = 0
    server_kills: int = 0
    span: float = SPAN
    promises: Promises = field(default_factory=Promises)
    found: Found | None = None


def work(url: str, mark: Path | None, slot: Slot, tell: Tell) -> None:
    """Asks question after question until it is killed; a failure is told, and the same key sent again."""
    ledger: Ledger | None = None
    number = slot.dataset
    for i in itertools.count(slot.key):
        while True:
            dataset, key = f"d{number}", f"{slot.number}-{i}"
            try:
                ledger = ledger or Ledger(url, mark)
                ledger.open_dataset(dataset, epsilon=EACH * FITS)
                tell("open", dataset, number)
                charge = ledger.charge(dataset, "ada", key=key, question=key, loss=hb.PureDP(EACH))
                tell("charge", dataset, key, charge.entry.digest, charge.fresh)
                answer = charge.answer or ledger.store_answer(charge.entry, f"{os.getpid()}, {time.monotonic_ns()}")
                tell("answer", dataset, key, answer, i)
                break
            except BudgetExceeded:
                number += 1
                tell("full", dataset, number)
            except (LedgerBusy, LedgerUnavailable) as error:
                tell("error", type(error).__name__)
                time.sleep(0.05)


def kill_workers(
    url: str, kills: int, seed: int, *, mark: Path | None = None, workers: int = 4, server: int = 0
) -> Tally:
    """Keeps so many workers going and kills one after the other; the ledger is checked at the end.

    ``server``: how often a process of PostgreSQL itself is killed meanwhile, which takes the whole server down and up.
    """
    generator, tally = random.Random(seed), Tally()
    slots = [Slot(n) for n in range(workers)]
    due: list[tuple[float, int]] = []
    told = [b""] * workers

    def start(slot: Slot) -> None:
        slot.pipe, out = os.pipe()
        slot.process = os.fork()
        if slot.process == 0:
            try:
                work(url, mark, slot, lambda *what: os.write(out, json.dumps(what).encode() + b"\n") and None)
            finally:
                os._exit(1)
        os.close(out)
        heapq.heappush(due, (time.monotonic() + generator.random() * tally.span, slot.number))

    def listen(seconds: float) -> None:  # pipes are emptied meanwhile, so that nobody waits for us
        ready, _, _ = select.select([s.pipe for s in slots], [], [], seconds)
        for s in slots:
            if s.pipe in ready:
                told[s.number] += os.read(s.pipe, 1 << 16)

    def patient() -> None:  # a busy machine is no stuck ledger: whoever is left alone gets an answer
        tally.span = min(1.5 * tally.span, 4 * SPAN)
        until = time.monotonic() + STUCK
        while not any(b'"answer"' in said for said in told):
            assert time.monotonic() < until, "nobody gets anywhere, though nobody is killed"
            listen(0.1)

    with closing(Ledger(url, mark)) as warm:  # what this imports, workers need not
        warm.open_dataset("warm", epsilon=1)
        warm.store_answer(warm.charge("warm", "ada", key="k", question="q", loss=hb.PureDP(EACH)).entry, "answer")
    for slot in slots:
        start(slot)
    progress, last = time.monotonic(), 0
    try:
        while tally.kills < kills:
            when, n = heapq.heappop(due)
            while (wait := when - time.monotonic()) > 0:
                listen(wait)
            slot = slots[n]
            os.kill(slot.process, signal.SIGKILL)
            _, status = os.waitpid(slot.process, 0)
            assert os.WIFSIGNALED(status), "a worker ended by itself"
            while part := os.read(slot.pipe, 1 << 16):
                told[n] += part
            os.close(slot.pipe)
            _heard(slot, told[n], tally)
            told[n] = b""
            tally.kills += 1
            if tally.kills % 1000 == 0:
                print(f"  {tally.kills} kills, {len(tally.promises.answered)} answers", flush=True)
            start(slot)
            if len(tally.promises.answered) > last:
                progress, last = time.monotonic(), len(tally.promises.answered)
                tally.span = max(SPAN, 0.99 * tally.span)
            elif time.monotonic() - progress > SLOW:
                patient()
                progress = time.monotonic()
            if server and tally.kills < kills and tally.kills % max(1, kills // (server + 1)) == 0:
                tally.server_kills += _server_killed(url, generator)
    finally:
        for slot in slots:
            os.kill(slot.process, signal.SIGKILL)
            os.waitpid(slot.process, 0)
            os.close(slot.pipe)
    tally.found = check(url, tally.promises, mark=mark, resume=True, each=EACH)
    return tally


def _heard(slot: Slot, said: bytes, tally: Tally) -> None:
    """Takes down what a worker said before it was killed, and holds it against what was said before."""
    promises = tally.promises
    for line in said.split(b"\n")[:-1]:
        kind, *rest = json.loads(line)
        if kind == "open":
            promises.opened.add(rest[0])
            slot.dataset = rest[1]
        elif kind == "charge":
            dataset, key, digest, fresh = rest
            before = promises.charged.setdefault((dataset, "ada", key), digest)
            assert before == digest, f"{key} was charged twice"
            tally.resumed += not fresh
        elif kind == "answer":
            dataset, key, body, i = rest
            assert promises.answered.setdefault((dataset, "ada", key), body) == body, f"{key} has two answers"
            slot.key = i + 1
        elif kind == "full":
            promises.full.add(rest[0])
            slot.dataset = rest[1]
        else:
            tally.errors += 1


def _server_killed(url: str, generator: random.Random) -> int:
    """Kills one process of PostgreSQL that serves a client; the others are ended by it, and it recovers."""
    import psycopg
    import sqlalchemy as sa

    where: Any = sa.make_url(url)
    query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    with psycopg.connect(host=where.host, port=where.port, user=where.username, dbname=where.database) as connection:
        found = [row[0] for row in connection.execute(query)]
    if not found:
        return 0
    os.kill(generator.choice(found), signal.SIGKILL)
    return 1
