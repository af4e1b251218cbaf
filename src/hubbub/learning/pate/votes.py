"""The votes of all teachers, kept in memory or in a file: private, and with a record of what was released from them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

Integers = NDArray[np.int64]


def fingerprint(public: NDArray[Any]) -> str:
    """What tells one table of public rows from another."""
    whole = np.ascontiguousarray(public)
    return sha256(f"{whole.dtype.str}{whole.shape}".encode() + whole.tobytes()).hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class Votes:
    """How many teachers said what of every public row. Private: for the owner of the data, never for an analyst.

    ``counts`` has a row for each public row and a column for each of the ``classes``.
    """

    counts: Integers
    teachers: int
    classes: NDArray[Any]
    asked: str = ""
    """The fingerprint of the public rows."""
    keyed: bool = False
    """Whether people were dealt by a key: then somebody who takes a person's place is with another teacher."""
    record: dict[str, Any] = field(default_factory=dict)
    """What was released: for every way to ask, whether it was paid for, and the labels once they were drawn."""

    def __repr__(self) -> str:
        return f"<Votes of {self.teachers} teachers on {len(self.counts)} public rows: private>"

    def __len__(self) -> int:
        return len(self.counts)

    def gaps(self) -> Integers:
        """By how many votes the first class leads the second, of every row. Private."""
        ordered = np.sort(self.counts, axis=1)
        return ordered[:, -1] - ordered[:, -2]

    def agreement(self) -> NDArray[np.float64]:
        """The share of teachers who say what most say, of every row. Private."""
        return np.asarray(self.counts.max(axis=1) / self.teachers)

    def noting(self, key: str, labels: Integers | None) -> Votes:
        """The same votes, their record saying that ``key`` was paid for, and what labels were drawn, if any yet."""
        entry = {"paid": True, "labels": None if labels is None else labels.tolist()}
        return replace(self, record=self.record | {key: entry})

    def save(self, path: str | Path) -> Path:
        """Writes the file, for its owner's eyes only (mode 600), whole or not at all; returns its path.

        It holds private votes in the clear: keep it where the private data are kept.
        """
        target = Path(path)
        fresh = target.with_name(target.name + ".new")
        buffer = BytesIO()
        facts = json.dumps({"teachers": self.teachers, "asked": self.asked, "keyed": self.keyed, "record": self.record})
        np.savez_compressed(buffer, counts=self.counts, classes=_plain(self.classes), facts=np.array(facts))
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(buffer.getvalue())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return target

    @classmethod
    def load(cls, path: str | Path) -> Votes:
        """The votes that were saved, with the record of what was released from them."""
        try:
            with np.load(path, allow_pickle=False) as file:
                facts = json.loads(str(file["facts"]))
                counts = np.asarray(file["counts"], np.int64)
                facts["teachers"], facts["record"] = int(facts["teachers"]), dict(facts["record"])
                found = cls(counts, classes=file["classes"], **facts)
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
            raise ParameterError("votes", str(path), "is not a file of votes", "give a path of its own") from None
        if found.counts.shape[1:] != found.classes.shape or (found.counts.sum(axis=1) != found.teachers).any():
            raise ParameterError("votes", str(path), "is not a file of votes", "give a path of its own")
        return found


def _plain(classes: NDArray[Any]) -> NDArray[Any]:
    """Classes that can be written without pickling: strings where they are objects."""
    return classes.astype(str) if classes.dtype == object else classes
