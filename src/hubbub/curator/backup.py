"""Copies of a ledger: made while it works, put back only if they add up and nothing is forgotten by it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa

from hubbub.curator import mark
from hubbub.curator.chain import checked, digest_at
from hubbub.curator.store import DATASETS, Store
from hubbub.errors import LedgerBroken, LedgerUnavailable, ParameterError


def write(store: Store, path: Path) -> None:
    """Copies one moment of a ledger into a new file and verifies the copy; on disk when it returns."""
    _only_sqlite(store, "pg_dump")
    new = path.with_name(path.name + ".new")
    if path.exists():
        raise ParameterError("path", str(path), "is there already", "give another name")
    _removed(new)
    try:
        with store.raw() as here, closing(sqlite3.connect(new)) as out:
            here.backup(out)
        with closing(Store(f"sqlite:///{new}")) as copy:
            _verified(copy)
        _synced(new)
        new.rename(path)
        _synced(path.parent)
    except OSError:
        raise LedgerUnavailable from None
    finally:
        _removed(new)


def restore(path: str | Path, url: str, high_water_mark: str | Path | None = None) -> list[str]:
    """Puts a copy in the place of a SQLite ledger, in one transaction, and returns its data sets. Stop servers first.

    Claim: nothing is replaced unless the copy's chains add up, reach the mark where one is given, and hold every link
        of the ledger that is there.
    Proof: all three are checked before the first page is written; SQLite writes the pages as one transaction.
    Assumes: no other process charges meanwhile. Links that neither the mark nor the ledger there knows of cannot be
        missed: what was charged after the copy was made, and lost with the disk, has to be counted as spent.
    """
    source = Path(path)
    if not source.is_file():
        raise ParameterError("path", str(path), "is no file", "give the path of a backup")
    marks = mark.read(Path(high_water_mark)) if high_water_mark is not None else {}
    with closing(Store(f"sqlite:///{source}")) as copy:
        names = _verified(copy)
        with closing(Store(url)) as target:
            _only_sqlite(target, "pg_restore")
            with target.reading() as connection:
                there = {row.name: (row.length, row.head) for row in connection.execute(sa.select(DATASETS))}
            with copy.reading() as connection:
                for dataset, (number, digest) in [*marks.items(), *there.items()]:
                    if digest_at(connection, dataset, number) != digest:
                        raise LedgerBroken(dataset, number)
            with copy.raw() as out, target.raw() as into:
                out.backup(into)
    return names


def _only_sqlite(store: Store, instead: str) -> None:
    if store.kind != "sqlite":
        raise ParameterError("ledger", store.kind, "is not copied by hubbub", f"use {instead}")


def _verified(store: Store) -> list[str]:
    """The names of the data sets of a ledger, every chain of which adds up."""
    with store.reading() as connection:
        rows = connection.execute(sa.select(DATASETS).order_by(DATASETS.c.name)).mappings().all()
        for row in rows:
            checked(connection, row)
    return [row["name"] for row in rows]


def _synced(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _removed(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
