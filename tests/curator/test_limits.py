"""Limits and caps as links of the chain, raises, odometers, pages of entries, copies, and what is refused."""

import json
import os
import shutil
import sqlite3
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import hubbub as hb
from hubbub.curator import Ledger, backup, chain, restore, store
from hubbub.errors import (
    KeyReused,
    LedgerBroken,
    LedgerBusy,
    LedgerUnavailable,
    ParameterError,
    SessionClosed,
    UnknownDataset,
)
from hubbub.privacy.budget import Filter


def opened(url: str, epsilon: float = 1.0, delta: float = 0.0, mark: Path | None = None) -> Ledger:
    ledger = Ledger(url, mark)
    ledger.open_dataset("survey", epsilon=epsilon, delta=delta)
    return ledger


def ask(ledger: Ledger, key: str, loss: hb.Loss | None = None, analyst: str = "ada", delta: float = 0.0) -> Any:
    return ledger.charge("survey", analyst, key=key, question=key, loss=loss or hb.PureDP(0.1), delta=delta)


def change(url: str, statement: str) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text(statement))
    engine.dispose()


def test_a_raise_is_a_link_and_makes_room(url: str) -> None:
    ledger = opened(url)
    for i in range(10):
        ask(ledger, f"k{i}")
    with pytest.raises(hb.BudgetExceeded):
        ask(ledger, "more")
    link = ledger.raise_limit("survey", epsilon=1.2)
    assert (link.number, link.epsilon, link.analyst) == (11, "6/5", None)
    assert ask(ledger, "more").entry.before == link.digest
    assert ledger.remaining("survey") == 0.1
    assert [x.epsilon for x in ledger.limits("survey")] == ["1", "6/5"]
    assert ledger.verify("survey") == 11
    for wanted in (1, 1.2):
        ledger.open_dataset("survey", epsilon=wanted)
        with pytest.raises(ParameterError):
            ledger.raise_limit("survey", epsilon=wanted)
    for other in ({"epsilon": 1.1}, {"epsilon": 1, "delta": 1e-6}, {"epsilon": 1, "neighbours": "replace"}):
        with pytest.raises(ParameterError, match="other limits"):
            ledger.open_dataset("survey", **other)


def test_a_loss_without_a_price_in_sums_has_none_after_a_raise_either(url: str) -> None:
    """Its place in the sum was 'more than the limit'; under a higher limit that must not become room."""
    ledger = opened(url, 1.0, 1e-6)
    ask(ledger, "gauss", hb.GaussianDP(0.05))
    ledger.raise_limit("survey", epsilon=10)
    fresh = Filter(Fraction(10), Fraction(1, 10**6))
    fresh = Filter.of_state(fresh.state() | {"order": Filter(Fraction(1), Fraction(1, 10**6)).order.hex()})
    fresh.add(hb.GaussianDP(0.05))
    assert ledger.remaining("survey") == fresh.left() < 10
    with ledger._store.reading() as connection:
        assert connection.execute(sa.select(store.DATASETS.c.filter)).scalar() == fresh.state()
    assert ledger.verify("survey") == 1


def test_caps_are_links_and_the_same_again_is_none(url: str) -> None:
    ledger = opened(url)
    ledger.cap("survey", "ada", epsilon=0.2)
    ledger.cap("survey", "ada", epsilon=0.2)
    ledger.cap("survey", "bob", epsilon=5, delta=1e-6)
    ask(ledger, "a")
    ledger.cap("survey", "ada", epsilon=0.1)
    assert [(x.analyst, x.epsilon) for x in ledger.limits("survey")] == [
        (None, "1"),
        ("ada", "1/5"),
        ("bob", "5"),
        ("ada", "1/10"),
    ]
    with pytest.raises(hb.BudgetExceeded):
        ask(ledger, "b")
    assert ledger.remaining("survey", "ada") == 0
    assert ledger.remaining("survey", "bob") == ledger.remaining("survey") == 0.9
    assert ledger.verify("survey") == 1


TAMPERINGS = [
    "UPDATE limits SET epsilon = '9' WHERE number = 0",
    "DELETE FROM limits WHERE number = 0",
    "DELETE FROM limits",
    "UPDATE limits SET analyst = 'eve' WHERE analyst = 'ada'",
    "UPDATE limits SET epsilon = '1/0' WHERE number = 0",
    "DELETE FROM caps",
    "UPDATE entries SET asked = 'x'",
    "UPDATE entries SET loss = 'no loss'",
    "UPDATE entries SET loss = '7'",
    "UPDATE entries SET number = 9 WHERE number = 2",
]


@pytest.mark.parametrize("statement", TAMPERINGS)
def test_tampering_with_limits_shows(url: str, statement: str) -> None:
    ledger = opened(url)
    ledger.cap("survey", "ada", epsilon=0.5)
    ask(ledger, "k")
    assert ledger.verify("survey") == 1
    change(url, statement)
    with pytest.raises(LedgerBroken):
        ledger.verify("survey")
    if statement in ("DELETE FROM limits", TAMPERINGS[1]):
        for work in (lambda: ledger.odometer("survey"), lambda: ledger.open_dataset("survey", epsilon=1)):
            with pytest.raises(LedgerBroken):
                work()


def _as_json(url: str, text: str) -> str:
    return f"CAST('{text}' AS JSON)" if "postgres" in url else f"'{text}'"


def test_a_cap_reset_by_hand_shows(url: str) -> None:
    ledger = opened(url)
    ledger.cap("survey", "ada", epsilon=0.5)
    with ledger._store.reading() as connection:
        fresh = connection.exec_driver_sql("SELECT filter FROM caps").scalar()
    ask(ledger, "k")
    text = fresh if isinstance(fresh, str) else json.dumps(fresh)
    change(url, f"UPDATE caps SET filter = {_as_json(url, text)}".replace(":", r"\:"))
    with pytest.raises(LedgerBroken):
        ledger.verify("survey")


def test_a_lowered_limit_in_a_chain_shows(url: str) -> None:
    """Nobody could have written it through the ledger: totals only rise, at one order and delta."""
    ledger = opened(url, 2.0, 1e-6)
    with ledger._store.writing() as connection:
        row = store.locked(connection, "survey")
        lower = Filter(Fraction(1), Fraction(1, 10**6))
        order = Filter(Fraction(2), Fraction(1, 10**6)).order.hex()
        lower = Filter.of_state(lower.state() | {"order": order})
        link = {"analyst": None, "epsilon": "1", "delta": "1/1000000", "order": order}
        chain.append(connection, row, lower.state(), link)
    with pytest.raises(LedgerBroken):
        ledger.verify("survey")


@pytest.mark.parametrize("text", ["{}", "7", '{"epsilon": "1/0"}'])
def test_a_state_that_makes_no_sense_stops_charges(url: str, text: str) -> None:
    ledger = opened(url)
    change(url, f"UPDATE datasets SET filter = {_as_json(url, text)}".replace(":", r"\:"))
    for work in (lambda: ask(ledger, "k"), lambda: ledger.remaining("survey"), lambda: ledger.verify("survey")):
        with pytest.raises(LedgerBroken):
            work()


def test_a_state_that_is_no_json_stops_charges(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = opened(url)
    change(url, "UPDATE datasets SET filter = 'x'")
    with pytest.raises(LedgerUnavailable):
        ask(ledger, "k")


def test_an_answer_goes_to_its_own_charge_only(url: str) -> None:
    """The database was put back and charged anew in between: the number is there, the charge is another."""
    ledger = opened(url)
    entry = ask(ledger, "k").entry
    other = chain.Entry(**{**entry.__dict__, "digest": "0" * 64})
    with pytest.raises(LedgerBroken):
        ledger.store_answer(other, "42")
    gone = chain.Entry(**{**entry.__dict__, "number": 9})
    with pytest.raises(LedgerBroken):
        ledger.store_answer(gone, "42")
    assert ledger.answer_of(entry) is None


def test_a_key_at_another_price_is_refused_until_it_is_answered(url: str) -> None:
    ledger = opened(url)
    entry = ask(ledger, "k").entry
    for loss, delta in ((hb.PureDP(0.01), 0.0), (hb.PureDP(0.1), 0.1)):
        with pytest.raises(KeyReused):
            ask(ledger, "k", loss, delta=delta)
    ledger.store_answer(entry, "42")
    again = ask(ledger, "k", hb.PureDP(0.01))
    assert (again.fresh, again.answer, again.entry.loss) == (False, "42", hb.PureDP(0.1))


def test_pages_of_entries(url: str) -> None:
    ledger = opened(url)
    for i in range(6):
        ask(ledger, f"k{i}", analyst="ada" if i % 2 else "bob")
    assert ledger.datasets() == ["survey"]
    assert [e.number for e in ledger.entries("survey")] == [1, 2, 3, 4, 5, 6]
    assert [e.number for e in ledger.entries("survey", limit=2)] == [5, 6]
    assert [e.number for e in ledger.entries("survey", limit=2, before=5)] == [3, 4]
    assert [e.number for e in ledger.entries("survey", before=3)] == [1, 2]
    assert [e.number for e in ledger.entries("survey", "ada", limit=2)] == [4, 6]
    with pytest.raises(ParameterError):
        ledger.entries("survey", limit=0)
    for work in (ledger.spent, ledger.remaining, ledger.odometer, ledger.verify):
        with pytest.raises(UnknownDataset):
            work("nothing")


def test_long_questions_are_found_again(url: str) -> None:
    ledger = opened(url)
    long = os.urandom(5000).hex()
    entry = ledger.charge("survey", "ada", key="k", question=long, loss=hb.PureDP(0.1)).entry
    ledger.store_answer(entry, "42")
    assert ledger.answered("survey", long) == "42"
    assert ledger.answered("survey", long[:-1]) is None


def test_odometers_follow_the_entries_and_survive_a_raise(url: str) -> None:
    ledger = opened(url, 1.0, 1e-6)
    assert ledger.odometer("survey") == 0
    for i in range(3):
        ask(ledger, f"k{i}", hb.GaussianDP(0.02), "ada" if i else "bob")
    total, hers, his = (ledger.odometer("survey", who) for who in (None, "ada", "bob"))
    assert 0 < his <= hers <= total <= 1
    assert (hb.GaussianDP(0.02) * 3).epsilon(1e-6) <= total
    ledger.cap("survey", "ada", epsilon=0.7)
    ledger.raise_limit("survey", epsilon=5)
    assert ledger.odometer("survey") == total
    assert ledger.odometer("survey", "nobody") == 0


def test_losses_that_are_none_are_refused(url: str) -> None:
    ledger = opened(url)
    for loss in (0.1, None, hb.privacy.NoLoss("add-remove")):
        with pytest.raises(ParameterError):
            ledger.charge("survey", "ada", key="k", question="q", loss=loss)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["", "\0", "\ud800", "x" * 201, None, 7])
def test_texts_that_a_database_would_not_keep_are_refused(url: str, bad: Any) -> None:
    ledger = opened(url)
    for analyst, key, question in ((bad, "k", "q"), ("ada", bad, "q"), ("ada", "k", bad or "")):
        if question == bad == "x" * 201:
            continue
        with pytest.raises(ParameterError):
            ledger.charge("survey", analyst, key=key, question=question, loss=hb.PureDP(0.1))
    with pytest.raises(ParameterError):
        ledger.open_dataset(bad, epsilon=1)
    assert ledger.verify("survey") == 0


def test_a_ledger_stays_with_its_process(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork would share its connection with its parent."""
    ledger = opened(url)
    with monkeypatch.context() as patch:
        patch.setattr(store.os, "getpid", lambda: 7)
        for work in (lambda: ledger.remaining("survey"), lambda: ask(ledger, "k")):
            with pytest.raises(SessionClosed):
                work()
    assert ask(ledger, "k").fresh


def test_others_wait_so_long_and_no_longer(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(url)
    monkeypatch.setattr(store, "PATIENCE", 1.0)
    other = opened(url)
    with ledger._store.writing() as connection:
        store.locked(connection, "survey")
        with pytest.raises(LedgerBusy):
            ask(other, "k")
        found: list[type] = []

        def also() -> None:
            try:
                ask(ledger, "k")
            except Exception as error:
                found.append(type(error))

        if "sqlite" in url:
            thread = threading.Thread(target=also)
            thread.start()
            thread.join()
            assert found == [LedgerBusy]
        assert other.remaining("survey") == 1  # readers do not wait
    assert ask(other, "k").fresh


def test_commits_wait_for_the_disk_whatever_the_database_was_told(url: str) -> None:
    if "postgres" in url:
        change(url, f"ALTER DATABASE {url.rsplit('/', 1)[1]} SET synchronous_commit = off")
    with opened(url)._store.writing() as connection:
        if "postgres" in url:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
        else:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 3
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


@pytest.mark.parametrize("where", ["sqlite://", "sqlite:///:memory:", "mysql://somewhere/db", "no url", ""])
def test_no_ledger_where_none_can_be(where: str) -> None:
    with pytest.raises(ParameterError):
        Ledger(where)


def test_a_database_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path / 'no folder' / 'ledger.db'}", "postgresql+psycopg://x@127.0.0.1:1/x"):
        with pytest.raises(LedgerUnavailable):
            Ledger(url)


# copies


def test_a_backup_is_one_moment_and_can_be_put_back(tmp_path: Path) -> None:
    url, copy = f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "copy.db"
    ledger = opened(url, mark=tmp_path / "mark")
    entry = ask(ledger, "k").entry
    ledger.store_answer(entry, "42")
    ledger.backup(copy)
    assert sorted(p.name for p in tmp_path.iterdir() if "copy" in p.name) == ["copy.db"]
    with pytest.raises(ParameterError, match="already"):
        ledger.backup(copy)
    ledger.close()
    for leftover in tmp_path.glob("ledger.db*"):
        leftover.unlink()
    assert restore(copy, url, tmp_path / "mark") == ["survey"]
    again = Ledger(url, tmp_path / "mark")
    assert again.verify("survey") == 1
    assert again.answered("survey", "k") == "42"
    assert restore(copy, url) == ["survey"]  # the same once more changes nothing
    ask(again, "k2")
    for mark in (None, tmp_path / "mark"):
        with pytest.raises(LedgerBroken):
            restore(copy, url, mark)
    assert again.verify("survey") == 2
    again.close()
    for leftover in tmp_path.glob("ledger.db*"):
        leftover.unlink()
    with pytest.raises(LedgerBroken):
        restore(copy, url, tmp_path / "mark")


def test_a_broken_copy_is_neither_kept_nor_put_back(tmp_path: Path) -> None:
    url, copy = f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "copy.db"
    ledger = opened(url)
    ask(ledger, "k")
    ledger.backup(copy)
    change(f"sqlite:///{copy}", "UPDATE entries SET question = 'x'")
    with pytest.raises(LedgerBroken):
        restore(copy, f"sqlite:///{tmp_path / 'new.db'}")
    assert not (tmp_path / "new.db").exists()
    change(url, "UPDATE entries SET question = 'x'")
    with pytest.raises(LedgerBroken):
        ledger.backup(tmp_path / "second.db")
    assert not list(tmp_path.glob("second*"))
    with pytest.raises(ParameterError):
        restore(tmp_path / "nothing.db", url)
    with pytest.raises(LedgerUnavailable):
        ledger.backup(tmp_path / "no folder" / "copy.db")


def test_backups_go_on_while_others_charge(tmp_path: Path) -> None:
    ledger = opened(f"sqlite:///{tmp_path / 'ledger.db'}", 1000)
    stop = threading.Event()

    def work() -> None:
        for i in range(10_000):
            if stop.is_set():
                return
            ask(ledger, f"k{i}")

    thread = threading.Thread(target=work)
    thread.start()
    for i in range(5):
        ledger.backup(tmp_path / f"copy{i}.db")
    stop.set()
    thread.join()
    lengths = []
    for i in range(5):
        with closing(Ledger(f"sqlite:///{tmp_path / f'copy{i}.db'}")) as copy:
            lengths.append(copy.verify("survey"))
    assert lengths == sorted(lengths)


def test_a_backup_that_cannot_be_synced_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(f"sqlite:///{tmp_path / 'ledger.db'}")
    with monkeypatch.context() as patch:
        patch.setattr(backup, "_synced", lambda _: (_ for _ in ()).throw(OSError))
        with pytest.raises(LedgerUnavailable):
            ledger.backup(tmp_path / "copy.db")
    assert not list(tmp_path.glob("copy*"))


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_postgresql_has_its_own_means(url: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="pg_dump"):
        opened(url).backup(tmp_path / "copy.db")
    with closing(opened(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.backup(tmp_path / "copy.db")
    with pytest.raises(ParameterError, match="pg_restore"):
        restore(tmp_path / "copy.db", url)


# versions

VERSION_1 = Path(__file__).parent / "version1.sql"


def version_1(url: str) -> None:
    """A ledger as version 1 had it, with two charges, a cap, and an empty data set."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for statement in VERSION_1.read_text().split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement.replace("%", "%%") if "postgres" in url else statement)
    engine.dispose()


def test_version_1_is_refused_and_migrated(url: str, tmp_path: Path) -> None:
    version_1(url)
    with pytest.raises(ParameterError, match="migrate"):
        Ledger(url)
    assert store.migrate(url) == 1
    assert store.migrate(url) == store.VERSION
    ledger = Ledger(url)
    heads = [e.digest for e in ledger.entries("survey")]
    assert ledger.verify("survey") == 2
    assert ledger.verify("empty") == 0
    assert [(x.number, x.analyst, x.epsilon) for x in ledger.limits("survey")] == [(3, None, "1"), (4, "ada", "1/2")]
    assert ledger.remaining("survey", "ada") == 0.3
    assert ledger.answered("survey", "how many?") == "42"
    ledger.open_dataset("survey", epsilon=1)
    assert ask(ledger, "k3").entry.number == 5
    ledger.raise_limit("survey", epsilon=2)
    assert ledger.verify("survey") == 3
    assert ledger.odometer("survey") == pytest.approx(0.3)
    marked = tmp_path / "mark"
    marked.write_text(f'{{"survey": [2, "{heads[1]}"]}}')
    assert Ledger(url, marked).verify("survey") == 3  # a mark of version 1 keeps its meaning


def test_an_empty_version_1_is_migrated(url: str) -> None:
    version_1(url)
    for table in ("answers", "entries", "caps", "datasets"):
        change(url, f"DELETE FROM {table}")
    assert store.migrate(url) == 1
    assert Ledger(url).datasets() == []


@pytest.mark.parametrize("version", ["3", "0", "x", "-1"])
def test_other_versions_are_refused(url: str, version: str) -> None:
    opened(url).close()
    change(url, f"UPDATE meta SET value = '{version}'")
    for work in (lambda: Ledger(url), lambda: store.migrate(url)):
        with pytest.raises(ParameterError):
            work()


def test_a_failed_migration_changes_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    version_1(url)

    def half(connection: Any) -> None:
        connection.exec_driver_sql("DROP INDEX entries_by_question")
        connection.exec_driver_sql("no statement")

    with monkeypatch.context() as patch:
        patch.setitem(store.STEPS, 1, half)
        with pytest.raises(LedgerUnavailable):
            store.migrate(url)
    assert store.migrate(url) == 1
    assert Ledger(url).verify("survey") == 2


def test_tables_of_others_are_left_alone(url: str, tmp_path: Path) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE entries (x INTEGER)")
    engine.dispose()
    with pytest.raises(ParameterError, match="no ledger's"):
        Ledger(url)
    text = tmp_path / "text.db"
    text.write_text("this is no database, and long enough to be seen as none" * 20)
    with pytest.raises(LedgerUnavailable):
        Ledger(f"sqlite:///{text}")
    shutil.copy(text, tmp_path / "copy.db")
    with pytest.raises(LedgerUnavailable):
        restore(tmp_path / "copy.db", url)
    with closing(sqlite3.connect(tmp_path / "empty.db")):
        pass
    with pytest.raises(ParameterError):
        store.migrate(f"sqlite:///{tmp_path / 'empty.db'}")
