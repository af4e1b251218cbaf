"""A file that counts steps before they run, so that none is forgotten by a crash."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hubbub.errors import ParameterError
from hubbub.learning.sgd.plan import Plan

AHEAD = 16
"""Steps counted at a time: so many at most are lost to a crash."""


class Journal:
    """The plan, and how many of its steps may have been taken: written and synced before they are.

    Claim: after a crash at any moment, ``steps`` is at least the number of steps that released anything.
    Proof: a step is taken only after a number not below it was written, synced and renamed into place.
    Assumes: the file system keeps what it has synced; one process at a time writes.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self.plan = path, plan
        self.steps, self.paid = 0, False
        if path.exists():
            try:
                found = json.loads(path.read_text())
                known, self.steps = Plan.from_dict(found["plan"]), int(found["steps"])
                self.paid = found.get("paid") is True
            except (ValueError, KeyError, TypeError) as wrong:
                raise ParameterError(
                    "journal", str(path), "is not a journal of a run", "give a path of its own"
                ) from wrong
            if known != plan:
                raise ParameterError("journal", str(path), "belongs to another plan", "give each run a path of its own")

    def reserve(self, step: int) -> None:
        """Counts this step, and some more to come."""
        if step <= self.steps:
            return
        self.steps = min(self.plan.steps, step + AHEAD - 1)
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
