"""A high-water mark outside the ledger: how far it had come, so that an older copy of it put back is noticed."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hubbub.errors import LedgerBroken, LedgerUnavailable


def read(path: Path) -> dict[str, tuple[int, str]]:
    """How far each data set's chain had come at least: the number of its last link, and its digest.

    No file is no mark; one that cannot be read or understood stops everything.
    """
    with _plainly():
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return {}
        try:
            text = _all_of(file)
        finally:
            os.close(file)
        return {str(dataset): (int(number), str(digest)) for dataset, (number, digest) in json.loads(text).items()}


def raise_to(path: Path, dataset: str, number: int, digest: str) -> None:
    """Writes that a chain has come this far, on disk before it returns; never back.

    Claim: after it returns, and after any loss of power then, ``read`` finds this number or a higher one; at every
        moment it finds a whole mark, old or new.
    Proof: the new mark is written beside the old, synced, put in its place by a rename, and the folder is synced; a
        lock of the system, which a killed process lets go, keeps others out meanwhile.
    Assumes: storage that keeps what it says it has synced, and renames whole.
    """
    with _plainly(), _held(path.with_name(path.name + ".lock")):
        marks = read(path)
        there = marks.get(dataset, (-1, ""))
        if there[0] == number and there[1] != digest:
            raise LedgerBroken(dataset, number)
        if there[0] < number:
            new = path.with_name(path.name + ".new")
            _write(new, json.dumps({**marks, dataset: (number, digest)}).encode())
            os.replace(new, path)  # noqa: PTH105 (all calls to the disk go through os)
        folder = os.open(path.parent, os.O_RDONLY)  # a rename found here may be another's, who was killed before this
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _all_of(file: int) -> bytes:
    parts = []
    while part := os.read(file, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def _write(path: Path, body: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        while body:
            body = body[os.write(file, body) :]
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def _held(path: Path) -> Iterator[None]:
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


@contextmanager
def _plainly() -> Iterator[None]:
    """A disk that fails and a mark that makes no sense are the same constant sentence to the caller."""
    try:
        yield
    except (OSError, ValueError, TypeError, AttributeError):
        raise LedgerUnavailable from None
