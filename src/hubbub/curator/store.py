"""The ledger's tables and its database: SQLite that is durable at every commit, or PostgreSQL."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.errors import HubbubError, LedgerBusy, LedgerUnavailable, MissingExtra, ParameterError, SessionClosed

try:
    import sqlalchemy as sa
    from sqlalchemy import event
    from sqlalchemy.dialects import postgresql, sqlite
except ImportError as missing:  # pragma: no cover
    raise MissingExtra("server") from missing

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

VERSION = 2
"""Of the tables. A ledger of another version is refused until it is migrated."""
PATIENCE = 30.0
"""Seconds a writer waits for another, and a transaction whose client is silent keeps others waiting."""
TURN = 7236842
"""The PostgreSQL advisory lock of those who make or migrate tables."""

_log = logging.getLogger("hubbub.curator")

TABLES = sa.MetaData()
META = sa.Table(
    "meta", TABLES, sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False)
)
DATASETS = sa.Table(
    "datasets",
    TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("neighbours", sa.Text, nullable=False),
    sa.Column("filter", sa.JSON, nullable=False),
    sa.Column("length", sa.Integer, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
)
LIMITS = sa.Table(
    "limits",
    TABLES,
    sa.Column("dataset", sa.Text, sa.ForeignKey("datasets.name"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("analyst", sa.Text, nullable=True),
    sa.Column("epsilon", sa.Text, nullable=False),
    sa.Column("delta", sa.Text, nullable=False),
    sa.Column("order", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("before", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
CAPS = sa.Table(
    "caps",
    TABLES,
    sa.Column("dataset", sa.Text, sa.ForeignKey("datasets.name"), primary_key=True),
    sa.Column("analyst", sa.Text, primary_key=True),
    sa.Column("filter", sa.JSON, nullable=False),
)
ENTRIES = sa.Table(
    "entries",
    TABLES,
    sa.Column("dataset", sa.Text, sa.ForeignKey("datasets.name"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("analyst", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("loss", sa.Text, nullable=False),
    sa.Column("delta", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("before", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("asked", sa.Text, nullable=False, server_default=""),
    sa.UniqueConstraint("dataset", "analyst", "key"),
)
ANSWERS = sa.Table(
    "answers",
    TABLES,
    sa.Column("dataset", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(["dataset", "number"], ["entries.dataset", "entries.number"]),
)
ACCOUNTS = sa.Table(
    "accounts",
    TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("token", sa.Text, nullable=True, unique=True),
    sa.Column("expires", sa.Text, nullable=True),
)
GRANTS = sa.Table(
    "grants",
    TABLES,
    sa.Column("analyst", sa.Text, sa.ForeignKey("accounts.name"), primary_key=True),
    sa.Column("dataset", sa.Text, sa.ForeignKey("datasets.name"), primary_key=True),
)
sa.Index("entries_by_asked", ENTRIES.c.dataset, ENTRIES.c.asked)


class Store:
    """A database and its two kinds of transaction; what goes wrong in one is LedgerBusy or LedgerUnavailable.

    Claim: what ``writing`` wrote is on disk when it ends without an error; after an error it is there whole or not at
        all; one that reads sees a single moment. No message of the database reaches the caller.
    Proof: SQLite: write-ahead log, synced at every commit (synchronous=EXTRA), BEGIN IMMEDIATE; every connection
        first writes and syncs again what it finds in the log, so that nothing is appended to what a failed sync left.
        PostgreSQL: synchronous_commit on, whatever the server's default; locks and silent clients time out.
    Assumes: storage that keeps what it says it has synced; PostgreSQL run with fsync and full_page_writes on.
    """

    def __init__(self, url: str) -> None:
        self.url, self.kind, self._engine = url, _kind(url), _engine(url)
        self._turn = threading.Lock()
        self._process = os.getpid()
        try:
            with self.writing() as connection:
                _prepare(connection)
        except BaseException:
            self._engine.dispose()
            raise

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes, durable when it ends; SQLite has one at a time, PostgreSQL one per locked row."""
        self._at_home()
        alone = self.kind == "sqlite"
        if alone and not self._turn.acquire(timeout=PATIENCE):
            raise LedgerBusy
        try:
            with _plainly(), self._engine.begin() as connection:
                yield connection
        finally:
            if alone:
                self._turn.release()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one moment of the database and holds nobody up."""
        self._at_home()
        how: dict[str, Any] = {"reading": True} if self.kind == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        with _plainly(), self._engine.connect() as plain:
            connection = plain.execution_options(**how)
            with connection.begin():
                yield connection

    @contextmanager
    def raw(self) -> Iterator[Any]:
        """The driver's own connection, outside any transaction: for copying whole databases."""
        self._at_home()
        with _plainly(), self._engine.connect() as connection:
            yield connection.connection.driver_connection

    def close(self) -> None:
        """Lets go of the database."""
        self._engine.dispose()

    def _at_home(self) -> None:
        if os.getpid() != self._process:
            raise SessionClosed("this ledger was opened by another process; open it anew after a fork.")


def locked(connection: Connection, dataset: str) -> Any:
    """The row of a data set, held against every other writer until the transaction ends; None if there is none."""
    query = sa.select(DATASETS).where(DATASETS.c.name == dataset).with_for_update()
    return connection.execute(query).mappings().first()


def insert_if_absent(connection: Connection, table: sa.Table, **values: Any) -> None:
    """Writes a row unless one with its key is there, or is being written by another at this moment."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    connection.execute(dialect.insert(table).values(**values).on_conflict_do_nothing())


def digest(link: Mapping[str, Any]) -> str:
    """The digest of a link of a chain."""
    return hashlib.sha256(json.dumps(link, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def asked(question: str) -> str:
    """A digest of a question, to find it by: indexes take no long texts."""
    return hashlib.sha256(question.encode()).hexdigest()


def migrate(url: str) -> int:
    """Brings a ledger of an older version up to date, in one transaction; its version before. Stop its servers first.

    Chains are continued, never rewritten, so that high-water marks keep their meaning.
    """
    kind, engine = _kind(url), _engine(url)
    try:
        with _plainly(), engine.begin() as connection:
            if kind == "postgresql":
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({TURN})")
            found = _version(connection)
            if found is None or not 1 <= found <= VERSION:
                raise ParameterError("ledger", f"version {found}", f"cannot be migrated to version {VERSION}")
            for step in range(found, VERSION):
                STEPS[step](connection)
            connection.execute(sa.update(META).where(META.c.name == "version").values(value=str(VERSION)))
    finally:
        engine.dispose()
    return found


def _limits_into_the_chain(connection: Connection) -> None:
    """1 to 2: limits and caps become links of the chain; questions are found by a digest."""
    LIMITS.create(connection)
    connection.exec_driver_sql("DROP INDEX entries_by_question")
    connection.exec_driver_sql("ALTER TABLE entries ADD COLUMN asked TEXT NOT NULL DEFAULT ''")
    of_entry = (ENTRIES.c.dataset == sa.bindparam("d")) & (ENTRIES.c.number == sa.bindparam("n"))
    fill = sa.update(ENTRIES).where(of_entry).values(asked=sa.bindparam("a"))
    rows = connection.execute(sa.select(ENTRIES.c.dataset, ENTRIES.c.number, ENTRIES.c.question)).all()
    if rows:
        connection.execute(fill, [{"d": r.dataset, "n": r.number, "a": asked(r.question)} for r in rows])
    connection.exec_driver_sql("CREATE INDEX entries_by_asked ON entries (dataset, asked)")
    for row in connection.execute(sa.select(DATASETS)).mappings().all():
        filters = [(None, row["filter"])]
        own = sa.select(CAPS.c.analyst, CAPS.c.filter).where(CAPS.c.dataset == row["name"]).order_by(CAPS.c.analyst)
        filters += [(cap.analyst, cap.filter) for cap in connection.execute(own)]
        number, head = row["length"], row["head"]
        for analyst, kept in filters:
            number += 1
            limits = {"epsilon": kept["epsilon"], "delta": kept["delta"], "order": kept["order"]}
            link = {"dataset": row["name"], "number": number, "analyst": analyst, **limits, "at": "", "before": head}
            head = digest(link)
            connection.execute(sa.insert(LIMITS).values(**link, digest=head))
        new = sa.update(DATASETS).where(DATASETS.c.name == row["name"])
        connection.execute(new.values(length=number, head=head))


STEPS: dict[int, Callable[[Connection], None]] = {1: _limits_into_the_chain}
"""By the version each starts from."""


def _kind(url: str) -> str:
    try:
        kind = sa.make_url(url).get_backend_name()
    except sa.exc.SQLAlchemyError:
        kind = "no URL"
    if kind not in ("sqlite", "postgresql"):
        remedy = "use sqlite:///path or postgresql+psycopg://…"
        raise ParameterError("ledger", kind, "is no database for a ledger", remedy)
    if kind == "sqlite" and sa.make_url(url).database in (None, "", ":memory:"):
        raise ParameterError("ledger", "sqlite in memory", "forgets what was spent", "give the path of a file")
    return kind


def _engine(url: str) -> Engine:
    """An engine whose connections are durable, whose errors show no values, and which waits so long and no longer."""
    common: dict[str, Any] = {"hide_parameters": True, "pool_timeout": PATIENCE}
    few = {"pool_size": 10, "max_overflow": 0}  # which stay open: opening one costs a sync
    if _kind(url) == "sqlite":
        engine = sa.create_engine(url, connect_args={"timeout": PATIENCE}, poolclass=sa.QueuePool, **few, **common)
        event.listen(engine, "connect", _durable)
        event.listen(engine, "begin", _begin)
        event.listen(engine, "handle_error", _left)
    else:
        alive = {"connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
        given = sa.make_url(url).query
        ours = {name: value for name, value in alive.items() if name not in given}
        engine = sa.create_engine(
            url, connect_args=ours, pool_pre_ping=True, isolation_level="READ COMMITTED", **common
        )
        event.listen(engine, "connect", _impatient)
    return engine


def _durable(connection: sqlite3.Connection, _: Any) -> None:
    """Every commit reaches the disk before it returns; SQLAlchemy begins transactions, not the driver."""
    connection.isolation_level = None
    patience, mac = f"busy_timeout={int(PATIENCE * 1000)}", ("fullfsync=ON", "checkpoint_fullfsync=ON")
    for setting in (patience, "synchronous=EXTRA", *mac, "journal_mode=WAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {setting}").close()
    _log_kept(connection)


def _begin(connection: Connection) -> None:
    reads = connection.get_execution_options().get("reading")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _left(context: Any) -> None:
    """A connection that failed, not only waited, is not used again: what it remembers of the file may be wrong."""
    code = getattr(context.original_exception, "sqlite_errorname", None)
    context.is_disconnect = code not in BUSY or context.statement != "BEGIN IMMEDIATE"
    context.invalidate_pool_on_disconnect = False


def _impatient(connection: Any, _: Any) -> None:
    """Commits wait for the disk; nobody waits for ever, neither for a lock nor for a client that fell silent."""
    milliseconds = int(PATIENCE * 1000)
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = on")
        cursor.execute(f"SET lock_timeout = {milliseconds}")
        cursor.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}")
    connection.commit()


def _log_kept(connection: Any) -> None:
    """Writes and syncs once more what a crash left in the write-ahead log, while no other process writes.

    Where a sync had failed, the system may show what it never wrote; SQLite would append to it.
    """
    connection.execute("BEGIN IMMEDIATE").close()
    try:
        name = connection.execute("PRAGMA database_list").fetchone()[2]
        rewrite(Path(f"{name}-wal"))
    finally:
        connection.execute("ROLLBACK").close()


def rewrite(path: Path) -> None:
    """Writes a file as it is, and syncs it."""
    with path.open("r+b") as file:
        body = file.read()
        file.seek(0)
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


def _prepare(connection: Connection) -> None:
    """Makes the tables of a new ledger; refuses one of another version, and tables that are no ledger's."""
    if connection.dialect.name == "postgresql":  # two servers may start at once
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({TURN})")
    found = _version(connection)
    if found == VERSION:
        return
    if found is not None:
        raise ParameterError("ledger", f"version {found}", f"is not version {VERSION}", "migrate it first")
    if set(sa.inspect(connection).get_table_names()) & set(TABLES.tables):
        raise ParameterError("ledger", "unknown", "has tables of these names that are no ledger's", "use another")
    TABLES.create_all(connection)
    connection.execute(sa.insert(META).values(name="version", value=str(VERSION)))


def _version(connection: Connection) -> int | None:
    """The version of the tables there; None if there are none."""
    if not sa.inspect(connection).has_table("meta"):
        return None
    found = connection.execute(sa.select(META.c.value).where(META.c.name == "version")).scalar()
    return int(found) if found is not None and found.isdecimal() else None


@contextmanager
def _plainly() -> Iterator[None]:
    """Turns every error of the database into one of two constant sentences; its code, without values, is logged."""
    try:
        yield
    except HubbubError:
        raise
    except (sa.exc.SQLAlchemyError, sqlite3.Error, OSError, ValueError, MemoryError) as error:
        said = getattr(error, "orig", error)
        code = getattr(said, "sqlite_errorname", None) or getattr(said, "sqlstate", None) or type(said).__name__
        _log.error("ledger: %s", code)
        _let_go(error)
        busy = isinstance(error, sa.exc.TimeoutError) or code in BUSY
        raise (LedgerBusy if busy else LedgerUnavailable)() from None


def _let_go(error: BaseException | None) -> None:
    """Frees what the frames of an error hold: a cursor there would keep a closed connection, and its lock, alive."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


BUSY = {"SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_BUSY_TIMEOUT", "SQLITE_LOCKED", "55P03", "40P01"}
"""What databases say when others hold them for too long."""
