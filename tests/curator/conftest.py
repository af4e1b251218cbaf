"""Ledgers in SQLite and in PostgreSQL."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import services

from hubbub.curator import Ledger


@pytest.fixture(scope="session")
def cluster() -> Iterator[dict[str, Any]]:
    with services.postgres() as arguments:
        yield arguments


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory where there is one: tests that play the disk themselves need none, and sync without end."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every ledger a test opens is closed after it."""
    made: list[Ledger] = []
    begin = Ledger.__init__

    def begun(self: Ledger, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        made.append(self)

    monkeypatch.setattr(Ledger, "__init__", begun)
    yield
    for ledger in made:
        ledger.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh, empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    arguments = request.getfixturevalue("cluster")
    name = f"ledger_{abs(hash(str(tmp_path))):x}"
    where = {"host": arguments["host"], "port": arguments["port"], "user": arguments["user"]}
    with psycopg.connect(**where, dbname="postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql+psycopg://{where['user']}@{where['host']}:{where['port']}/{name}"
