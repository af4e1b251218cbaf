"""Files that count rounds before they begin, and keep what a restarted process needs to go on."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, SessionClosed
from hubbub.learning.federated.plan import Priced

Arrays = dict[str, NDArray[Any]]


class Journal:
    """The plan, and how many of its rounds may have begun: written and synced before they do.

    Claim: after a crash at any moment, ``rounds`` is at least the number of rounds that released anything.
    Proof: a round begins only after its number was written, synced and renamed into place, under a lock and only if
        nobody else has written since this was read.
    Assumes: the file system keeps what it has synced, and its locks hold.
    """

    def __init__(self, path: str | Path, plan: Priced) -> None:
        self.path, self.plan = Path(path), plan
        self.rounds, self.paid = 0, False
        self._tag = json.dumps(plan.to_dict())
        self._kept = self.path.with_name(self.path.name + ".model")
        self.rounds, self.paid = self._read()

    def _read(self) -> tuple[int, bool]:
        if not self.path.exists():
            return 0, False
        try:
            found = json.loads(self.path.read_text())
            known, rounds, paid = found["plan"], int(found["rounds"]), found["paid"] is True
        except (ValueError, KeyError, TypeError) as wrong:
            raise ParameterError("journal", str(self.path), "is not a journal of a training") from wrong
        if known != json.loads(json.dumps(self.plan.to_dict())):
            raise ParameterError("journal", str(self.path), "belongs to another plan", "give each training its own")
        return rounds, paid

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else writes meanwhile, and nobody has written since this was read."""
        import fcntl  # where there is none, training without a journal goes on

        with self.path.with_name(self.path.name + ".lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if self._read() != (self.rounds, self.paid):
                raise SessionClosed(f"Somebody else has counted rounds in {self.path} meanwhile; start again.")
            yield

    def pay(self) -> None:
        """Remembers that the plan was paid for."""
        with self._alone():
            self.paid = True
            self._write()

    def reserve(self, round_: int) -> None:
        """Counts this round."""
        if round_ > self.rounds:
            with self._alone():
                self.rounds = round_
                self._write()

    def _write(self) -> None:
        data = {"plan": self.plan.to_dict(), "rounds": self.rounds, "paid": self.paid}
        _durably(self.path, json.dumps(data).encode())

    def keep(self, arrays: Arrays) -> None:
        """Keeps what a later process goes on from: released numbers only."""
        buffer = io.BytesIO()
        np.savez(buffer, plan=np.asarray(self._tag), **arrays)  # type: ignore[arg-type]
        _durably(self._kept, buffer.getvalue())

    def kept(self) -> Arrays | None:
        """What was kept last; None if nothing was."""
        if not self.rounds or not self._kept.exists():
            return None
        with np.load(self._kept, allow_pickle=False) as found:
            if "plan" not in found.files or str(found["plan"]) != self._tag:
                return None  # of another training, whose journal is gone
            return {name: found[name] for name in found.files if name != "plan"}


def _durably(path: Path, data: bytes) -> None:
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
