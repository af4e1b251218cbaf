"""Who may ask: owners and analysts, their tokens (shown once, kept as digests), and the data sets granted to them."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import os
import re
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from hubbub.curator.store import ACCOUNTS, CAPS, DATASETS, GRANTS, Store
from hubbub.errors import ParameterError, UnknownDataset
from hubbub.privacy.budget import Filter

Role = Literal["owner", "analyst"]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
TOKEN_BYTES = 32


@dataclass(frozen=True)
class Account:
    """A person (or program) known to the curator."""

    name: str
    role: Role
    expires: dt.datetime | None
    withdrawn: bool = False
    """Whether its token was taken away."""


class Accounts:
    """The accounts beside a ledger, in the same database."""

    def __init__(self, url: str) -> None:
        self._store = Store(url)

    def add(self, name: str, role: Role, *, valid_for: dt.timedelta | None = None) -> str:
        """Makes an account and returns its token, which is not kept and cannot be shown again."""
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ParameterError("name", name, "must be 1 to 64 letters, digits, . _ @ or -")
        if role not in ("owner", "analyst"):
            raise ParameterError("role", role, "must be 'owner' or 'analyst'")
        token = _new_token()
        with self._store.writing() as connection:
            if self._row(connection, name) is not None:
                raise ParameterError("name", name, "has an account already", "rotate its token instead")
            values = {"name": name, "role": role, "token": _digest(token), "expires": _until(valid_for)}
            connection.execute(sa.insert(ACCOUNTS).values(**values))
        return token

    def rotate(self, name: str, *, valid_for: dt.timedelta | None = None) -> str:
        """A new token for an account; the old one is worth nothing from now on."""
        token = _new_token()
        with self._store.writing() as connection:
            self._known(connection, name)
            new = {"token": _digest(token), "expires": _until(valid_for)}
            connection.execute(sa.update(ACCOUNTS).where(ACCOUNTS.c.name == name).values(**new))
        return token

    def revoke(self, name: str) -> None:
        """Takes an account's token away. Its entries in the ledger stay."""
        with self._store.writing() as connection:
            self._known(connection, name)
            connection.execute(sa.update(ACCOUNTS).where(ACCOUNTS.c.name == name).values(token=None))

    def known(self, name: str) -> None:
        """Refuses a name that has no account."""
        with self._store.reading() as connection:
            self._known(connection, name)

    def of_token(self, token: str, now: dt.datetime | None = None) -> Account | None:
        """Whose token this is; None if nobody's, or if it has expired or been revoked: these look the same."""
        if not isinstance(token, str) or not token.isascii() or len(token) > 200:
            return None
        with self._store.reading() as connection:
            query = sa.select(ACCOUNTS).where(ACCOUNTS.c.token == _digest(token))
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        expires = None if row["expires"] is None else dt.datetime.fromisoformat(row["expires"])
        if expires is not None and expires <= (now or dt.datetime.now(dt.UTC)):
            return None
        return Account(row["name"], row["role"], expires)

    def grant(self, name: str, dataset: str) -> None:
        """Lets an analyst ask a data set."""
        with self._store.writing() as connection:
            self._known(connection, name)
            if connection.execute(sa.select(DATASETS.c.name).where(DATASETS.c.name == dataset)).scalar() is None:
                raise UnknownDataset(dataset)
            if not self._granted(connection, name, dataset):
                connection.execute(sa.insert(GRANTS).values(analyst=name, dataset=dataset))

    def withdraw(self, name: str, dataset: str) -> None:
        """Ends a grant."""
        with self._store.writing() as connection:
            same = (GRANTS.c.analyst == name) & (GRANTS.c.dataset == dataset)
            connection.execute(sa.delete(GRANTS).where(same))

    def may_ask(self, account: Account, dataset: str) -> bool:
        """Whether an account may ask a data set; what does not exist may not be asked either."""
        with self._store.reading() as connection:
            return self._granted(connection, account.name, dataset)

    def granted(self, account: Account) -> list[str]:
        """The data sets an account may ask, by name."""
        query = sa.select(GRANTS.c.dataset).where(GRANTS.c.analyst == account.name).order_by(GRANTS.c.dataset)
        with self._store.reading() as connection:
            return list(connection.execute(query).scalars())

    def everybody(self) -> list[Account]:
        """Every account, by name."""
        with self._store.reading() as connection:
            rows = connection.execute(sa.select(ACCOUNTS).order_by(ACCOUNTS.c.name)).mappings().all()
        ends = [None if r["expires"] is None else dt.datetime.fromisoformat(r["expires"]) for r in rows]
        return [Account(r["name"], r["role"], end, r["token"] is None) for r, end in zip(rows, ends, strict=True)]

    def caps(self, dataset: str) -> dict[str, Filter]:
        """What each analyst with a cap on a data set may spend of it, and has spent."""
        query = sa.select(CAPS.c.analyst, CAPS.c.filter).where(CAPS.c.dataset == dataset)
        with self._store.reading() as connection:
            return {analyst: Filter.of_state(state) for analyst, state in connection.execute(query)}

    def close(self) -> None:
        """Lets go of the database."""
        self._store.close()

    def _row(self, connection: Any, name: str) -> Any:
        return connection.execute(sa.select(ACCOUNTS).where(ACCOUNTS.c.name == name)).mappings().first()

    def _known(self, connection: Any, name: str) -> None:
        if self._row(connection, name) is None:
            raise ParameterError("name", name, "has no account", "add it first")

    def _granted(self, connection: Any, name: str, dataset: str) -> bool:
        same = (GRANTS.c.analyst == name) & (GRANTS.c.dataset == dataset)
        return connection.execute(sa.select(GRANTS.c.dataset).where(same)).scalar() is not None


def _new_token() -> str:
    """256 bits from the operating system, as text that says what it is."""
    return "hub_" + base64.urlsafe_b64encode(os.urandom(TOKEN_BYTES)).rstrip(b"=").decode()


def _digest(token: str) -> str:
    """What is kept of a token. It is as long and as random as a key, so one round of hashing is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


def _until(valid_for: dt.timedelta | None) -> str | None:
    if valid_for is None:
        return None
    if valid_for <= dt.timedelta(0):
        raise ParameterError("valid_for", str(valid_for), "must be > 0")
    return (dt.datetime.now(dt.UTC) + valid_for).isoformat()
