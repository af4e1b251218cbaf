"""The ledger's tables and its connection: SQLite that is durable at every commit, or PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hubbub.errors import MissingExtra, ParameterError

try:
    import sqlalchemy as sa
    from sqlalchemy import event
except ImportError as missing:
    raise MissingExtra("server") from missing

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

VERSION = 1
"""Of the tables. A ledger of another version is refused until it is migrated."""
PATIENCE = 30
"""Seconds a writer waits for another."""

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
sa.Index("entries_by_question", ENTRIES.c.dataset, ENTRIES.c.question)


def connect(url: str) -> Engine:
    """An engine for the ledger at a URL such as sqlite:///ledger.db or postgresql+psycopg://…, its tables made."""
    kind = sa.make_url(url).get_backend_name()
    if kind not in ("sqlite", "postgresql"):
        raise ParameterError(
            "ledger", kind, "is no database for a ledger", "use sqlite:///path or postgresql+psycopg://…"
        )
    if kind == "sqlite":
        engine = sa.create_engine(url, connect_args={"timeout": PATIENCE})
        event.listen(engine, "connect", _durable)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    else:
        engine = sa.create_engine(url, pool_pre_ping=True)
    with engine.begin() as connection:
        if kind == "postgresql":  # two servers may start at once
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7236842)")
        TABLES.create_all(connection)
        found = connection.execute(sa.select(META.c.value).where(META.c.name == "version")).scalar()
        if found is None:
            connection.execute(sa.insert(META).values(name="version", value=str(VERSION)))
        elif found != str(VERSION):
            raise ParameterError("ledger", f"version {found}", f"is not version {VERSION}", "migrate it first")
    return engine


def _durable(connection: Any, _: Any) -> None:
    """Every commit reaches the disk before it returns; SQLAlchemy begins transactions, not the driver."""
    connection.isolation_level = None
    for setting in ("journal_mode=WAL", "synchronous=EXTRA", "foreign_keys=ON", f"busy_timeout={PATIENCE * 1000}"):
        connection.execute(f"PRAGMA {setting}").close()


def locked(connection: Connection, dataset: str) -> Any:
    """The row of a data set, held against every other writer until the transaction ends; None if there is none."""
    return (
        connection.execute(sa.select(DATASETS).where(DATASETS.c.name == dataset).with_for_update()).mappings().first()
    )
