"""Models as vectors, updates as vectors of whole numbers no longer than a public radius, and their noisy sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flwr.app import Array, ArrayRecord

from hubbub.learning.federated.rotation import Floats
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.thresholds import Integers

RADIUS = 1 << 24
"""The clip norm, in steps of the grid."""
SLACK = 1 - 2.0**-40
"""What lengths give away so that rounding cannot make them too large."""


def length_of(arrays: ArrayRecord) -> int:
    """How many numbers there are to train: those of floating arrays."""
    return sum(a.size for a in _floating(arrays).values())


def _floating(arrays: ArrayRecord) -> dict[str, np.ndarray]:
    found = {name: array.numpy() for name, array in arrays.items()}
    return {name: values for name, values in found.items() if np.issubdtype(values.dtype, np.floating)}


def flat(arrays: ArrayRecord, like: ArrayRecord) -> Floats:
    """The floating arrays in one vector. Raises ValueError where names or shapes are not those of ``like``."""
    given, wanted = _floating(arrays), _floating(like)
    if {n: a.shape for n, a in given.items()} != {n: a.shape for n, a in wanted.items()}:
        raise ValueError("shape")
    parts = [given[name].astype(np.float64).reshape(-1) for name in wanted]
    return np.concatenate(parts) if parts else np.zeros(0)


def moved(arrays: ArrayRecord, change: Floats) -> ArrayRecord:
    """The arrays after a change of their floating ones."""
    found, at = {}, 0
    for name, array in arrays.items():
        values = array.numpy()
        if np.issubdtype(values.dtype, np.floating):
            part = change[at : at + values.size].reshape(values.shape)
            found[name] = Array((values.astype(np.float64) + part).astype(values.dtype))
            at += values.size
        else:
            found[name] = array
    return ArrayRecord(found)


@dataclass(frozen=True)
class Whole:
    """An update in whole steps, and whether its length was within the clip norm as it came."""

    steps: Integers
    within: bool


def clipped(vector: Floats, clip: float, radius: int = RADIUS) -> Whole:
    """The vector in whole steps of clip/radius, shortened to ``radius`` if it is longer.

    Claim: whatever the vector holds, the squares of the steps add up to at most radius**2.
    Proof: what holds anything but finite numbers counts as zero; the rest is shortened in doubles, truncated towards
        zero, and its sum of squares is then computed in whole numbers and, while it is too large, the vector is
        shortened again.
    Assumes: radius is at most 2**24 (squares and their sums stay below 2**63).

    >>> clipped(np.array([3.0, -4.0]), clip=1.0, radius=10)
    Whole(steps=array([ 5, -7]), within=False)
    """
    with np.errstate(all="ignore"):  # numbers that warn or raise would tell of them
        return _clipped(vector, clip, radius)


def _clipped(vector: Floats, clip: float, radius: int) -> Whole:
    largest = float(np.max(np.abs(vector), initial=0.0))
    if not np.isfinite(largest):
        return Whole(np.zeros(len(vector), np.int64), False)
    if largest == 0:
        return Whole(np.zeros(len(vector), np.int64), True)
    unit = vector / largest
    length = float(np.sqrt(np.sum(unit * unit)))
    whole = float(np.float64(largest) / clip)
    factor = min(whole, SLACK / length)
    steps = np.trunc(unit * (factor * radius)).astype(np.int64)
    while int(np.dot(steps, steps)) > radius * radius:
        steps = np.trunc(steps * (1 - 2.0**-20)).astype(np.int64)
    return Whole(steps, whole * length <= 1)


def noisy_sum(parts: Sequence[Integers], length: int, noise: float, bits: Bits = SECURE) -> Integers:
    """The sum of whole updates, with one Gaussian noise of standard deviation noise * RADIUS, rounded.

    Claim: as ``Gaussian`` of sensitivity RADIUS: a client more or less moves the sum by at most that.
    Proof: each part has length at most RADIUS (``clipped``); the sum is exact; the noise is drawn once.
    Assumes: one part for a client; every part is of ``clipped``; fewer than 2**38 parts.
    """
    total = np.zeros(length, np.int64)
    for part in parts:
        total += part
    released: Integers = Gaussian(RADIUS, sigma=Fraction(noise) * RADIUS).release(total, bits)
    return released
