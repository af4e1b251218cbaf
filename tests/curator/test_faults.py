"""The n-th call to the disk or the database fails, for every n: no answer without its durable charge, none twice."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from curator import faults, links

import hubbub as hb
from hubbub.curator import Ledger, restore, store
from hubbub.errors import LedgerBusy, LedgerUnavailable

REFUSED = (LedgerBusy, LedgerUnavailable)


@pytest.fixture
def disk(memory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str, faults.Disk]]:
    """The URL of a ledger on a disk that can fail, its plain URL, and the disk."""
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    with faults.faulty() as (label, found):
        yield faults.url(memory / "ledger.db", label), f"sqlite:///{memory / 'ledger.db'}", found


def ask(ledger: Ledger, key: str) -> str:
    charge = ledger.charge("survey", "ada", key=key, question=key, loss=hb.PureDP(0.001))
    return charge.answer or ledger.store_answer(charge.entry, f"answer to {key}")


def sound(url: str, key: str, shown: str | None) -> None:
    """What anybody else finds: a chain that adds up, and an answer that was shown on its only charge."""
    with closing(Ledger(url)) as other:
        other.verify("survey")
        charges = [entry for entry in other.entries("survey") if entry.key == key]
        assert len(charges) <= 1
        if shown is not None:
            assert len(charges) == 1
            assert other.answered("survey", key) == shown


def failing(code: str, n: int, onwards: bool) -> Callable[[int, str], int]:
    return lambda number, _: faults.CODES[code] if number == n or (onwards and number > n) else 0


@pytest.mark.parametrize("onwards", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("code", faults.CODES)
def test_every_call_to_the_disk_fails_once(disk: Any, code: str, onwards: bool) -> None:
    url, plain, files = disk
    ledger = Ledger(url)
    ledger.open_dataset("survey", epsilon=100)
    ledger.cap("survey", "ada", epsilon=50)
    refused = 0
    for n in itertools.count(1):
        key, shown = f"{code} {n}", None
        files.arm(failing(code, n, onwards))
        try:
            shown = ask(ledger, key)
        except REFUSED:
            refused += 1
        touched = files.calls >= n
        files.heal()
        sound(plain, key, shown)
        if n % 3 == 0:  # now and then the server is restarted as well
            ledger.close()
            ledger = Ledger(url)
        assert ask(ledger, key) == f"answer to {key}"
        if not touched:
            break
    assert refused >= 10 or code == "BUSY"  # SQLite waits and tries again
    assert n >= 25
    assert ledger.verify("survey") == n


@pytest.mark.parametrize("code", ["EIO", "ENOSPC", "READONLY"])
def test_opening_and_owners_work_fail_whole(disk: Any, code: str) -> None:
    """Opening, making a data set, caps and raises: what failed is there whole or not at all, and can be done again."""
    url, plain, files = disk

    def work(n: int) -> None:
        with closing(Ledger(url)) as ledger:
            ledger.open_dataset("survey", epsilon=100)
            ledger.cap("survey", "ada", epsilon=n)
            if len([x for x in ledger.limits("survey") if x.analyst is None]) < n:
                ledger.raise_limit("survey", epsilon=100 + n)

    for n in itertools.count(1):
        files.arm(failing(code, n, True))
        with suppress(*REFUSED):
            work(n)
        touched = files.calls >= n
        files.heal()
        work(n)
        with closing(Ledger(plain)) as other:
            assert other.verify("survey") == 0
        if not touched:
            break
    assert n > 60


def test_a_copy_is_put_back_whole_or_not_at_all(disk: Any, memory: Path) -> None:
    """A ledger of one charge, a copy of it with three: after a failure at any call there are one or three."""
    url, plain, files = disk
    seen = set()
    with closing(Ledger(plain)) as ledger:
        ledger.open_dataset("survey", epsilon=100)
        ask(ledger, "k0")
        ledger.backup(memory / "one.db")
        ask(ledger, "k1")
        ask(ledger, "k2")
        ledger.backup(memory / "three.db")
    for n in itertools.count(1):
        for leftover in memory.glob("ledger.db*"):
            leftover.unlink()
        files.heal()
        files.images.clear()
        restore(memory / "one.db", plain)
        files.arm(failing("EIO", n, True))
        with suppress(*REFUSED):
            restore(memory / "three.db", url)
        touched = files.calls >= n
        files.heal()
        with closing(Ledger(plain)) as other:
            seen.add(other.verify("survey"))
        if not touched:
            break
    assert seen == {1, 3}
    assert n > 30


def test_a_failing_log_that_cannot_be_emptied_stops_the_opening(disk: Any) -> None:
    url, _, files = disk
    with closing(Ledger(url)) as ledger:
        ledger.open_dataset("survey", epsilon=1)
    files.arm(lambda _, name: faults.CODES["EIO"] if name == "open" else 0)
    with pytest.raises(LedgerUnavailable) as refusal:
        Ledger(url)
    assert str(refusal.value) == str(LedgerUnavailable())
    assert refusal.value.__suppress_context__


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("whose", ["client", "server"])
@pytest.mark.parametrize("delivered", [True, False], ids=["after", "before"])
def test_the_link_to_the_database_is_cut_at_every_message(url: str, whose: links.Side, delivered: bool) -> None:
    with links.proxy(url) as (through, link):
        ledger = Ledger(through)
        ledger.open_dataset("survey", epsilon=100)
        refused, made = 0, 0
        for n in itertools.count(1):
            key, shown = f"cut {n}", None
            link.cut_at(whose, n, delivered)
            try:
                shown = ask(ledger, key)
            except REFUSED:
                refused += 1
            cut = link.was_cut
            link.heal()
            sound(url, key, shown)
            made += shown is None and any(entry.key == key for entry in ledger.entries("survey"))
            assert ask(ledger, key) == f"answer to {key}"
            if not cut:
                break
        assert refused >= 10
        assert made > 0  # charges that were made although nobody heard of it, and found again
        assert ledger.verify("survey") == n


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_client_that_falls_silent_does_not_block_others_for_ever(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its host has lost power while it held the data set: the server lets others in after a while."""
    monkeypatch.setattr(store, "PATIENCE", 0.5)
    with links.proxy(url) as (through, _), closing(Ledger(through)) as silent, closing(Ledger(url)) as other:
        other.open_dataset("survey", epsilon=100)
        with suppress(*REFUSED), silent._store.writing() as connection:
            assert store.locked(connection, "survey") is not None
            with suppress(LedgerBusy):
                ask(other, "k")
            assert ask(other, "k") == "answer to k"
            store.locked(connection, "survey")
            pytest.fail("the silent one still holds the data set")


def test_nothing_of_the_database_shows(url: str) -> None:
    ledger = Ledger(url)
    ledger.open_dataset("survey", epsilon=100)
    with ledger._store.writing() as connection:
        connection.exec_driver_sql("DROP TABLE answers")
    with pytest.raises(LedgerUnavailable) as refusal:
        ask(ledger, "a secret question")
    assert "secret" not in repr(refusal.value)
    assert "answers" not in str(refusal.value)
