"""Tokens are shown once and kept as digests; expired, revoked, rotated and made-up ones look alike."""

import datetime as dt
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from hubbub.curator import Accounts, Ledger
from hubbub.errors import ParameterError, UnknownDataset


@pytest.fixture
def accounts(url: str) -> Iterator[Accounts]:
    Ledger(url).open_dataset("survey", epsilon=1)
    found = Accounts(url)
    yield found
    found.close()


def test_a_token_opens_one_account_until_it_ends(accounts: Accounts) -> None:
    ada = accounts.add("ada", "analyst")
    bob = accounts.add("bob", "owner", valid_for=dt.timedelta(hours=1))
    assert ada != bob
    found = accounts.of_token(ada)
    assert found is not None
    assert (found.name, found.role, found.expires) == ("ada", "analyst", None)
    later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=2)
    assert accounts.of_token(bob) is not None
    assert accounts.of_token(bob, later) is None
    new = accounts.rotate("ada")
    assert accounts.of_token(ada) is None
    assert accounts.of_token(new) is not None
    accounts.revoke("ada")
    for token in (new, ada, "", "hub_", "hub_" + "x" * 43, "é", "x" * 10_000):
        assert accounts.of_token(token) is None
    assert [a.name for a in accounts.everybody()] == ["ada", "bob"]


def test_tokens_are_not_kept(accounts: Accounts, url: str) -> None:
    token = accounts.add("ada", "analyst")
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        kept = str(connection.exec_driver_sql("SELECT * FROM accounts").fetchall())
    engine.dispose()
    assert token not in kept
    assert token.removeprefix("hub_") not in kept


def test_grants(accounts: Accounts) -> None:
    ada = accounts.of_token(accounts.add("ada", "analyst"))
    assert ada is not None
    assert not accounts.may_ask(ada, "survey")
    accounts.grant("ada", "survey")
    accounts.grant("ada", "survey")
    assert accounts.may_ask(ada, "survey")
    assert not accounts.may_ask(ada, "nothing")
    assert accounts.granted(ada) == ["survey"]
    accounts.withdraw("ada", "survey")
    assert accounts.granted(ada) == []
    with pytest.raises(UnknownDataset):
        accounts.grant("ada", "nothing")


@pytest.mark.parametrize("name", ["", "a b", "a'; DROP TABLE accounts; --", "x" * 65, "é", None])
def test_bad_names_are_refused(accounts: Accounts, name: str) -> None:
    with pytest.raises(ParameterError):
        accounts.add(name, "analyst")


def test_other_refusals(accounts: Accounts) -> None:
    accounts.add("ada", "analyst")
    for work in (
        lambda: accounts.add("ada", "analyst"),
        lambda: accounts.add("bob", "king"),  # type: ignore[arg-type]
        lambda: accounts.add("bob", "owner", valid_for=dt.timedelta(0)),
        lambda: accounts.rotate("bob"),
        lambda: accounts.revoke("bob"),
        lambda: accounts.grant("bob", "survey"),
    ):
        with pytest.raises(ParameterError):
            work()
