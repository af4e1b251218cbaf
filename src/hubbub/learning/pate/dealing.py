"""Who teaches whom: every person goes to one teacher, chosen without regard to anybody else."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import DataTypeError, ParameterError, ParameterTypeError
from hubbub.numeric.rational import count
from hubbub.privacy.loss import Neighbours, check_neighbours
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.choice import uniform_below

Integers = NDArray[np.int64]


def deal(
    rows: int,
    teachers: int,
    *,
    units: Iterable[Any] | None = None,
    key: str | bytes | None = None,
    neighbours: Neighbours = "add-remove",
    bits: Bits = SECURE,
) -> Integers:
    """The teacher of every row: 0 to teachers - 1.

    ``units`` says whose each row is; without it every row is a person of its own. Dealt at random, person by person;
    or, with a ``key``, by a keyed hash of the person, the same wherever and whenever it is computed.

    Claim: one person's rows are all with one teacher, and one person more, less or replaced changes the rows of one
        teacher only.
    Proof: a person's teacher is drawn by itself (or is a function of the person alone), so that nobody else's depends
        on who is there: not on positions, which shift. Replaced, at random: give the newcomer the teacher of whoever
        left, which changes no distribution. Losses that hold for every way to deal hold for their mixture (convexity).
    Assumes: a person has one entry in ``units``, however many rows; with a key, that persons were not made to fit it.

    >>> part = deal(4, 250, units=["ann", "bob", "ann", "cy"], key="2026")
    >>> part[0] == part[2], (part[:2] == deal(2, 250, units=["ann", "bob"], key="2026")).all()
    (np.True_, np.True_)
    """
    many = count("teachers", teachers, least=2)
    check_neighbours(neighbours)
    if units is None:
        if key is not None:
            raise ParameterError("key", "…", "needs units", "say whose each row is, or leave the key out")
        return np.asarray(uniform_below(many, rows, bits), np.int64)
    names = [_name(unit) for unit in units]
    if len(names) != rows:
        raise ParameterError("units", "…", "must have one entry for each row of X")
    if key is None:
        places: dict[Hashable, int] = {}
        of_row = np.array([places.setdefault(name, len(places)) for name in names], np.int64)
        return np.asarray(uniform_below(many, len(places), bits), np.int64)[of_row]
    if neighbours == "replace":
        raise ParameterError(
            "key", "…", "would send whoever replaces a person to another teacher", "deal at random, or use add-remove"
        )
    if not isinstance(key, str | bytes):
        raise ParameterTypeError("key", type(key).__name__, "must be a string, the same for all who compute it")
    secret = blake2b(key.encode() if isinstance(key, str) else key, digest_size=32).digest()
    numbers = [int.from_bytes(blake2b(name.encode(), key=secret, digest_size=16).digest()) % many for name in names]
    return np.array(numbers, np.int64)


def _name(unit: Any) -> str:
    """A person's name in letters; all rows of nobody in particular are one person's."""
    if isinstance(unit, np.generic):
        unit = unit.item()
    if isinstance(unit, str):
        return unit
    if unit is None or type(unit).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(unit, bytes):
        return repr(unit)
    if isinstance(unit, int | float):  # 1, 1.0 and True are one person: a column of integers turns to floats by one gap
        return "" if unit != unit else repr(int(unit) if unit == unit // 1 else unit)
    raise DataTypeError("units must be strings or numbers: one entry for each row")
