"""The ledger on both databases: limits, keys, chains and races; see test_crash for kills."""

import json
import multiprocessing
import shutil
import threading
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import hubbub as hb
from hubbub.curator import Ledger
from hubbub.errors import KeyReused, LedgerBroken, ParameterError, UnknownDataset
from hubbub.privacy.budget import Filter


def opened(url: str, epsilon: float = 1.0, delta: float = 0.0, **options: Any) -> Ledger:
    ledger = Ledger(url, **options)
    ledger.open_dataset("survey", epsilon=epsilon, delta=delta)
    return ledger


def ask(ledger: Ledger, key: str, epsilon: float = 0.1, analyst: str = "ada", question: str = "") -> Any:
    return ledger.charge("survey", analyst, key=key, question=question or key, loss=hb.PureDP(epsilon))


def test_ten_tenths_fit_and_no_more(url: str) -> None:
    ledger = opened(url)
    for i in range(10):
        charge = ask(ledger, f"k{i}")
        assert charge.fresh
        assert charge.entry.number == i + 1
    for epsilon in (0.1, 1e-9):
        with pytest.raises(hb.BudgetExceeded) as refusal:
            ask(ledger, "more", epsilon)
        assert refusal.value.remaining == 0
    assert ledger.remaining("survey") == 0
    assert ledger.spent("survey").epsilon() == pytest.approx(1)
    assert ledger.verify("survey") == 10
    again = Ledger(url)
    assert again.verify("survey") == 10
    with pytest.raises(hb.BudgetExceeded):
        ask(again, "more")


def test_the_budget_is_everybody_s_and_a_cap_one_s_own(url: str) -> None:
    ledger = opened(url)
    ledger.cap("survey", "ada", epsilon=0.3)
    for i in range(3):
        ask(ledger, f"a{i}")
    with pytest.raises(hb.BudgetExceeded):
        ask(ledger, "a3")
    assert ledger.remaining("survey", "ada") == 0
    for i in range(7):
        ask(ledger, f"b{i}", analyst="bob")
    with pytest.raises(hb.BudgetExceeded):
        ask(ledger, "b7", analyst="bob")
    ledger.cap("survey", "ada", epsilon=0.5)
    assert ledger.remaining("survey", "ada") == 0  # the data set's is spent
    assert ledger.verify("survey") == 10
    ledger.open_dataset("other", epsilon=1)
    ledger.charge("other", "ada", key="a0", question="x", loss=hb.PureDP(1))


def test_raising_a_cap_keeps_what_was_spent(url: str) -> None:
    ledger = opened(url)
    ask(ledger, "a", 0.25)
    ledger.cap("survey", "ada", epsilon=0.5)
    assert ledger.remaining("survey", "ada") == 0.25
    ask(ledger, "b", 0.25)
    with pytest.raises(hb.BudgetExceeded):
        ask(ledger, "c", 0.01)


def test_a_key_is_charged_once(url: str) -> None:
    ledger = opened(url)
    first = ask(ledger, "k")
    again = ask(ledger, "k")
    assert not again.fresh
    assert again.entry == first.entry
    assert again.answer is None  # a crash before the answer: it is resumed, not charged
    assert ledger.store_answer(first.entry, "42") == "42"
    assert ledger.store_answer(first.entry, "43") == "42"
    assert ask(ledger, "k").answer == "42"
    assert ledger.answered("survey", "k") == "42"
    assert ledger.answered("survey", "something else") is None
    with pytest.raises(KeyReused):
        ask(ledger, "k", question="another")
    assert ask(ledger, "k", analyst="bob").fresh  # keys are an analyst's own
    assert ledger.remaining("survey") == 0.8


def test_losses_are_kept_not_epsilons(url: str) -> None:
    ledger = opened(url, 10.0, 1e-5)
    loss = hb.GaussianDP(0.5) + hb.PureDP(0.1)
    ledger.charge("survey", "ada", key="k", question="q", loss=loss, delta=1e-6)
    (entry,) = ledger.entries("survey")
    assert entry.loss == loss
    assert Fraction(entry.delta) == Fraction(1, 10**6)
    assert ledger.verify("survey") == 1


def test_bad_charges_change_nothing(url: str) -> None:
    ledger = opened(url)
    with pytest.raises(UnknownDataset):
        ledger.charge("nothing", "ada", key="k", question="q", loss=hb.PureDP(1))
    with pytest.raises(ParameterError):
        ledger.charge("survey", "ada", key="k", question="q", loss=hb.PureDP(1, neighbours="replace"))
    with pytest.raises(ParameterError):
        ledger.charge("survey", "ada", key="k", question="q", loss=hb.compose([hb.PureDP(1)]) * 0)
    with pytest.raises(ParameterError, match="other limits"):
        ledger.open_dataset("survey", epsilon=2)
    assert ledger.verify("survey") == 0


TAMPERINGS = [
    'UPDATE entries SET loss = \'{"epsilon": 0.01, "loss": "pure", "neighbours": "add-remove"}\' WHERE number = 2',
    "UPDATE entries SET analyst = 'eve' WHERE number = 2",
    "UPDATE entries SET question = 'x' WHERE number = 1",
    "DELETE FROM entries WHERE number = 3",
    "DELETE FROM entries WHERE number = 1",
    "UPDATE datasets SET length = 2",
    "UPDATE datasets SET head = 'x'",
    "UPDATE entries SET delta = '1/2' WHERE number = 1",
]


def change(url: str, statement: str, **values: str) -> None:
    """Somebody with access to the database writes to it."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text(statement), values)
    engine.dispose()


@pytest.mark.parametrize("statement", TAMPERINGS)
def test_tampering_shows(url: str, statement: str) -> None:
    ledger = opened(url)
    for i in range(3):
        ask(ledger, f"k{i}")
    assert ledger.verify("survey") == 3
    change(url, statement, loss=hb.PureDP(0.01).to_json()) if ":loss" in statement else change(url, statement)
    with pytest.raises(LedgerBroken):
        ledger.verify("survey")


def test_forgetting_what_was_spent_shows(url: str) -> None:
    ledger = opened(url)
    state = json.dumps(Filter(Fraction(1), Fraction(0)).state())
    ask(ledger, "k")
    change(
        url, f"UPDATE datasets SET filter = {'CAST(:state AS JSON)' if 'postgres' in url else ':state'}", state=state
    )
    with pytest.raises(LedgerBroken):
        ledger.verify("survey")


def test_an_old_copy_put_back_is_refused(tmp_path: Path) -> None:
    """The file is copied, three more are charged, the copy is put back: with a mark outside it, it is not opened."""
    path, mark = tmp_path / "ledger.db", tmp_path / "elsewhere" / "mark.json"
    mark.parent.mkdir()
    url = f"sqlite:///{path}"
    ledger = opened(url, high_water_mark=mark)
    ask(ledger, "k0")
    ledger.close()
    shutil.copy(path, tmp_path / "copy.db")
    ledger = opened(url, high_water_mark=mark)
    for i in range(1, 4):
        ask(ledger, f"k{i}")
    ledger.close()
    assert opened(url, high_water_mark=mark).verify("survey") == 4
    for leftover in tmp_path.glob("ledger.db*"):
        leftover.unlink()
    shutil.copy(tmp_path / "copy.db", path)
    with pytest.raises(LedgerBroken):
        Ledger(url, high_water_mark=mark)


def _spend(url: str, name: str, rounds: int, found: Any) -> None:
    ledger = Ledger(url)
    won = 0
    for i in range(rounds):
        with suppress(hb.BudgetExceeded):
            won += ask(ledger, f"{name}-{i}", analyst=name).fresh
    ledger.close()
    found.put(won)


def test_racing_processes_never_overspend(url: str) -> None:
    opened(url).close()
    context = multiprocessing.get_context("spawn")
    found = context.Queue()
    workers = [context.Process(target=_spend, args=(url, f"p{i}", 8, found)) for i in range(4)]
    for w in workers:
        w.start()
    won = [found.get(timeout=120) for _ in workers]
    for w in workers:
        w.join()
    assert sum(won) == 10
    ledger = Ledger(url)
    assert ledger.verify("survey") == 10
    assert ledger.remaining("survey") == 0


def test_racing_threads_on_one_key_are_charged_once(url: str) -> None:
    ledger = opened(url)
    fresh: list[bool] = []
    threads = [threading.Thread(target=lambda: fresh.append(ask(ledger, "same").fresh)) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(fresh) == [False] * 11 + [True]
    assert ledger.verify("survey") == 1
