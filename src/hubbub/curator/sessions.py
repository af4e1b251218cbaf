"""Sessions of the web page: who a browser's cookie stands for, kept as digests, ended by time, sign-out or rotation."""

from __future__ import annotations

import datetime as dt
import hashlib
import os

import sqlalchemy as sa

from hubbub.curator.accounts import Account
from hubbub.curator.store import ACCOUNTS, TABLES, Store

SESSIONS = sa.Table(
    "web_sessions",
    TABLES,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("account", sa.Text, sa.ForeignKey("accounts.name"), nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("started", sa.Float, nullable=False),
    sa.Column("seen", sa.Float, nullable=False),
)
LONGEST = dt.timedelta(hours=12)
IDLE = dt.timedelta(minutes=30)
TICK = 60.0
"""Seconds between two notes that a session is in use."""


class Sessions:
    """The sessions beside a ledger, in the same database.

    Claim: a cookie stands for an account only while the token it was opened with is that account's, has not expired,
        and the session is younger than ``longest`` and was used within ``idle``; the database does not hold the cookie.
    Proof: every look-up compares the digest of the token kept at sign-in with the account's own, which rotation and
        revocation change, and both times with now; only the cookie's SHA-256 is kept, of 256 random bits.
    Assumes: the clock does not go back.
    """

    def __init__(self, url: str, longest: dt.timedelta = LONGEST, idle: dt.timedelta = IDLE) -> None:
        self._store = Store(url)
        self._longest, self._idle = longest.total_seconds(), idle.total_seconds()

    def start(self, account: Account) -> str | None:
        """A new session's cookie, to be given to the browser; None where the account has no token any more."""
        cookie, now = os.urandom(32).hex(), _now()
        with self._store.writing() as connection:
            self._sweep(connection, now)
            token = connection.execute(sa.select(ACCOUNTS.c.token).where(ACCOUNTS.c.name == account.name)).scalar()
            if token is None:
                return None
            values = {"digest": _digest(cookie), "account": account.name, "token": token, "started": now, "seen": now}
            connection.execute(sa.insert(SESSIONS).values(**values))
        return cookie

    def account(self, cookie: str) -> Account | None:
        """Whose session this cookie opens; None if nobody's, or no longer: these look the same."""
        now = _now()
        both = (SESSIONS.c.account == ACCOUNTS.c.name) & (SESSIONS.c.token == ACCOUNTS.c.token)
        columns = (ACCOUNTS.c.name, ACCOUNTS.c.role, ACCOUNTS.c.expires, SESSIONS.c.started, SESSIONS.c.seen)
        query = sa.select(*columns).join(ACCOUNTS, both).where(SESSIONS.c.digest == _digest(cookie))
        with self._store.reading() as connection:
            row = connection.execute(query).mappings().first()
        if row is None or now >= row["started"] + self._longest or now >= row["seen"] + self._idle:
            return None
        if now > row["seen"] + TICK:
            with self._store.writing() as connection:
                here = SESSIONS.c.digest == _digest(cookie)
                connection.execute(sa.update(SESSIONS).where(here).values(seen=now))
        expires = None if row["expires"] is None else dt.datetime.fromisoformat(row["expires"])
        if expires is not None and expires.timestamp() <= now:
            return None
        return Account(row["name"], row["role"], expires)

    def end(self, cookie: str) -> None:
        """Signs a browser out."""
        with self._store.writing() as connection:
            connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.digest == _digest(cookie)))

    def close(self) -> None:
        """Lets go of the database."""
        self._store.close()

    def _sweep(self, connection: sa.Connection, now: float) -> None:
        """Deletes sessions that open nothing any more."""
        alive = sa.select(ACCOUNTS.c.token).where(ACCOUNTS.c.token.is_not(None))
        over = (SESSIONS.c.started <= now - self._longest) | (SESSIONS.c.seen <= now - self._idle)
        connection.execute(sa.delete(SESSIONS).where(over | SESSIONS.c.token.not_in(alive)))


def _now() -> float:
    return dt.datetime.now(dt.UTC).timestamp()


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
