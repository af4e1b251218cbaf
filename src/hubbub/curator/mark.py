"""A high-water mark outside the ledger: how far it had come, so that an older copy of it put back is noticed."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path


def read(path: Path) -> dict[str, tuple[int, str]]:
    """How far each data set's chain had come at least: its number of entries, and the digest of the last."""
    if not path.exists():
        return {}
    return {dataset: (int(number), str(digest)) for dataset, (number, digest) in json.loads(path.read_text()).items()}


def raise_to(path: Path, dataset: str, number: int, digest: str) -> None:
    """Writes that a chain has come this far, on disk before it returns; never back."""
    lock = path.with_suffix(path.suffix + ".lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        marks = read(path)
        if marks.get(dataset, (0, ""))[0] >= number:
            return
        new = path.with_suffix(path.suffix + ".new")
        with new.open("w") as file:
            json.dump({**marks, dataset: (number, digest)}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
