"""A file that counts steps before they run, so that none is forgotten by a crash."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hubbub.errors import ParameterError, SessionClosed
from hubbub.learning.sgd.plan import Plan

AHEAD = 16
"""Steps counted at a time: so many at most are lost to a crash."""


class Journal:
    """The plan, and how many of its steps may have been taken: written and synced before they are.

    Claim: after a crash at any moment, ``steps`` is at least the number of steps that released anything.
    Proof: a step is taken only after a number not below it was written, synced and renamed into place, under a lock
        and only if nobody else has written since this was read.
    Assumes: the file system keeps what it has synced, and its locks hold.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self.plan = path, plan
        self.steps, self.paid = self._read()
        self._known = self.steps

    def _read(self) -> tuple[int, bool]:
        if not self.path.exists():
            return 0, False
        try:
            found = json.loads(self.path.read_text())
            known, steps, paid = Plan.from_dict(found["plan"]), int(found["steps"]), found.get("paid") is True
        except (ValueError, KeyError, TypeError) as wrong:
            raise ParameterError(
                "journal", str(self.path), "is not a journal of a run", "give a path of its own"
            ) from wrong
        if known != self.plan:
            raise ParameterError(
                "journal", str(self.path), "belongs to another plan", "give each run a path of its own"
            )
        return steps, paid

    def reserve(self, step: int) -> None:
        """Counts this step, and some more to come."""
        if step <= self.steps:
            return
        import fcntl  # where there is none, training without a journal goes on

        with self.path.with_name(self.path.name + ".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._read()[0] != self._known:
                raise SessionClosed(f"Another run has counted steps in {self.path} meanwhile; make this run anew.")
            self.steps = self._known = min(self.plan.steps, step + AHEAD - 1)
            self._write()

    def _write(self) -> None:
        fresh = self.path.with_name(self.path.name + ".new")
        with fresh.open("w") as file:
            json.dump({"plan": self.plan.to_dict(), "steps": self.steps, "paid": self.paid}, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
