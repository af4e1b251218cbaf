"""Sessions end with their time, their token, or by signing out; the database does not hold the cookie."""

import datetime as dt
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from hubbub.curator import Accounts, sessions
from hubbub.curator.sessions import Sessions
from hubbub.curator.store import Store


@pytest.fixture
def accounts(url: str) -> Iterator[Accounts]:
    found = Accounts(url)
    yield found
    found.close()


@pytest.fixture
def found(url: str) -> Iterator[Sessions]:
    made = Sessions(url)
    yield made
    made.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    time = {"now": 1e9}
    monkeypatch.setattr(sessions, "_now", lambda: time["now"])
    return time


def opened(accounts: Accounts, found: Sessions, name: str = "ada") -> str:
    token = accounts.add(name, "owner")
    cookie = found.start(accounts.of_token(token))
    assert cookie is not None
    return cookie


def test_a_cookie_stands_for_its_account_until_sign_out(accounts: Accounts, found: Sessions, url: str) -> None:
    ada, bob = opened(accounts, found), opened(accounts, found, "bob")
    assert found.account(ada).name == "ada"
    assert found.account(bob).role == "owner"
    for wrong in ("", "x", ada[:-1], ada.upper()):
        assert found.account(wrong) is None
    found.end(ada)
    assert found.account(ada) is None
    assert found.account(bob) is not None
    store = Store(url)
    with store.reading() as connection:
        kept = str(connection.execute(sa.text("SELECT * FROM web_sessions")).all())
    store.close()
    assert bob not in kept


@pytest.mark.parametrize("end", ["rotate", "revoke"])
def test_rotation_and_revocation_end_sessions(accounts: Accounts, found: Sessions, end: str) -> None:
    ada, bob = opened(accounts, found), opened(accounts, found, "bob")
    account = found.account(ada)
    getattr(accounts, end)("ada")
    assert found.account(ada) is None
    assert found.account(bob) is not None
    if end == "revoke":
        assert found.start(account) is None


def test_sessions_end_by_themselves(accounts: Accounts, found: Sessions, clock: dict[str, float], url: str) -> None:
    idle, busy = opened(accounts, found), opened(accounts, found, "bob")
    for _ in range(2):
        clock["now"] += 20 * 60
        assert found.account(busy) is not None
    assert found.account(idle) is None
    for _ in range(34):
        clock["now"] += 20 * 60 - 1
        assert found.account(busy) is not None
    clock["now"] += 20 * 60
    assert found.account(busy) is None
    opened(accounts, found, "carol")
    store = Store(url)
    with store.reading() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM web_sessions")).scalar() == 1
    store.close()


def test_an_expired_token_ends_its_session(accounts: Accounts, found: Sessions, clock: dict[str, float]) -> None:
    token = accounts.add("ada", "analyst", valid_for=dt.timedelta(minutes=5))
    clock["now"] = dt.datetime.now(dt.UTC).timestamp()
    cookie = found.start(accounts.of_token(token))
    assert found.account(cookie) is not None
    clock["now"] += 6 * 60
    assert found.account(cookie) is None
