"""Rows as models see them: clamped to public bounds, scaled, shortened to length 1, on a public grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.errors import ParameterError, ParameterTypeError

Floats = NDArray[np.float64]
STEP = 2.0**-20
"""The grid of encoded numbers: integers in these steps, so that products can be added up exactly."""
CHUNK = 256
"""Rows whose contributions are added up together in floats."""
_FORMS = "give bounds=(low, high): two numbers, or two lists with one number a feature"


def public_bounds(bounds: Any, features: int, name: str = "bounds") -> tuple[Floats, Floats]:
    """The least and largest value of every feature, as declared; missing or crossed ones are refused.

    >>> public_bounds((0, [1, 2]), 2)
    (array([0., 0.]), array([1., 2.]))
    """
    if bounds is None:
        raise ParameterError(name, None, "must be given: they are public and never read from data", _FORMS)
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ParameterTypeError(name, type(bounds).__name__, "must be a pair", _FORMS)
    ends = []
    for end in bounds:
        try:
            ends.append(np.broadcast_to(np.asarray(end, dtype=np.float64), (features,)).copy())
        except (TypeError, ValueError):
            raise ParameterError(name, "…", f"do not fit {features} features", _FORMS) from None
    low, high = ends
    sized = (np.abs(low) <= 2.0**500) & (np.abs(high) <= 2.0**500)
    if not (sized.all() and (low < high).all() and (high - low >= 2.0**-500).all()):
        raise ParameterError(name, "…", "must be finite, low < high", _FORMS)
    return low, high


def clamped(rows: ArrayLike, low: Floats, high: Floats) -> Floats:
    """Every value brought within its bounds; nan counts as the allowed value nearest zero."""
    found = np.asarray(rows, dtype=np.float64)
    return np.where(np.isnan(found), np.clip(0.0, low, high), np.clip(found, low, high))


@dataclass(frozen=True, eq=False)
class Encoding:
    """The public map from rows to vectors of length at most 1, with a last coordinate for the intercept.

    Every feature is clamped to its bounds and measured from the allowed value nearest zero, in units of its range. Then
    a 1 is appended and the row is scaled to length 1 (which side of a plane it lies on is unchanged), or shortened if
    it is longer than ``longest`` and divided by that. Length is Euclidean, or the sum of sizes for ``norm=1``.

    Claim: whatever a row holds, its image has length at most 1 and coordinates that are multiples of STEP.
    Proof: each coordinate is finite after clamping; a float length is right to (width + 2) units in the last place;
        dividing by it, a little more than that shorter, and truncating towards zero only shortens.
    Assumes: bounds chosen without looking at the data.
    """

    low: Floats
    high: Floats
    longest: float | None = None
    norm: Literal[1, 2] = 2

    @classmethod
    def of(
        cls,
        bounds: Any,
        features: int,
        *,
        longest: float | None = None,
        norm: Literal[1, 2] = 2,
    ) -> Encoding:
        """The encoding for public bounds, each a number or one a feature; missing ones are refused.

        >>> Encoding.of((0, 10), 2)([[5, 20]]).round(3).tolist()
        [[0.333, 0.667, 0.667]]
        """
        if longest is not None and not (math.isfinite(longest) and longest > 0):
            raise ParameterError("longest", longest, "must be a number > 0")
        return cls(*public_bounds(bounds, features), longest, norm)

    @property
    def width(self) -> int:
        """The number of coordinates of an encoded row."""
        return len(self.low) + 1

    def __call__(self, rows: ArrayLike) -> Floats:
        """The encoded rows."""
        anchor = np.clip(0.0, self.low, self.high)
        scaled = clamped(rows, self.low, self.high)
        scaled -= anchor
        scaled /= np.maximum(self.high - anchor, anchor - self.low)
        scaled = np.hstack([scaled, np.ones((len(scaled), 1))])
        lengths = np.abs(scaled).sum(axis=1)
        if self.norm == 2:
            lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        if self.longest is None:
            by = lengths
        else:
            by = np.maximum(lengths, self.longest)
        scaled *= ((1 - (self.width + 8) * 2.0**-52) / STEP / by)[:, None]
        return np.trunc(scaled, out=scaled) * STEP


def summed(rows: Floats, weights: Floats) -> Floats:
    """The sum of weighted rows, right to CHUNK units in the last place of the weights' total: in chunks by floats,
    over chunks exactly."""
    whole = len(rows) // CHUNK * CHUNK
    parts = np.einsum("cij,ci->cj", rows[:whole].reshape(-1, CHUNK, rows.shape[1]), weights[:whole].reshape(-1, CHUNK))
    last = weights[whole:] @ rows[whole:]
    return np.array([math.fsum(column) for column in np.vstack([parts, last]).T])


def differing(rows: NDArray[Any], others: NDArray[Any]) -> tuple[int, int]:
    """How many rows are in one table only, each way, as multisets: what tells whether two tables are neighbours."""
    if rows.ndim != 2 or others.ndim != 2 or rows.shape[1] != others.shape[1]:
        return len(rows), len(others)
    counts: dict[bytes, int] = {}
    for row in np.ascontiguousarray(rows):
        counts[row.tobytes()] = counts.get(row.tobytes(), 0) + 1
    for row in np.ascontiguousarray(others):
        counts[row.tobytes()] = counts.get(row.tobytes(), 0) - 1
    return sum(n for n in counts.values() if n > 0), -sum(n for n in counts.values() if n < 0)
