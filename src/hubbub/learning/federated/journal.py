"""Files that count rounds before they begin, and keep what a restarted process needs to go on."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.learning.federated.plan import Priced

Arrays = dict[str, NDArray[Any]]


class Journal:
    """The plan, and how many of its rounds may have begun: written and synced before they do.

    Claim: after a crash at any moment, ``rounds`` is at least the number of rounds that released anything.
    Proof: a round begins only after its number was written, synced and renamed into place.
    Assumes: the file system keeps what it has synced; one process at a time writes.
    """

    def __init__(self, path: str | Path, plan: Priced) -> None:
        self.path, self.plan = Path(path), plan
        self.rounds, self.paid = 0, False
        self._kept = self.path.with_name(self.path.name + ".model")
        if self.path.exists():
            try:
                found = json.loads(self.path.read_text())
                known, self.rounds = found["plan"], int(found["rounds"])
                self.paid = found["paid"] is True
            except (ValueError, KeyError, TypeError) as wrong:
                raise ParameterError("journal", str(path), "is not a journal of a training") from wrong
            if known != json.loads(json.dumps(plan.to_dict())):
                raise ParameterError("journal", str(path), "belongs to another plan", "give each training its own")

    def pay(self) -> None:
        """Remembers that the plan was paid for."""
        self.paid = True
        self._write()

    def reserve(self, round_: int) -> None:
        """Counts this round."""
        if round_ > self.rounds:
            self.rounds = round_
            self._write()

    def _write(self) -> None:
        data = {"plan": self.plan.to_dict(), "rounds": self.rounds, "paid": self.paid}
        _durably(self.path, json.dumps(data).encode())

    def keep(self, arrays: Arrays) -> None:
        """Keeps what a later process goes on from: released numbers only."""
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        _durably(self._kept, buffer.getvalue())

    def kept(self) -> Arrays | None:
        """What was kept last; None if nothing was."""
        if not self._kept.exists():
            return None
        with np.load(self._kept, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}


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
