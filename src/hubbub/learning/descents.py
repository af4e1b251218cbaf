"""Gradient descent, small enough to read: plain, stochastic and noisy, each projected to a ball.

Each returns all its points. Theorem 12 of the source notes bounds the excess risk of their average by RG/sqrt(T); the
last point alone may lose a factor of log T.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.learning.given import numbers
from hubbub.learning.rows import Floats
from hubbub.mechanisms import Gaussian
from hubbub.numeric.rational import Number, count, fraction_between, positive
from hubbub.privacy.gaussian import largest_mu
from hubbub.privacy.loss import Loss
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.choice import draw_below

MOST_ROWS = 2**20
Gradients = Callable[[Floats, Floats], Floats]
"""Of the losses of some rows at a point: one line a row."""


def descend(gradient: Callable[[Floats], Floats], start: Any, *, steps: int, size: float, radius: float) -> Floats:
    """Projected gradient descent on a ball around 0, for any convex function.

    >>> path = descend(lambda w: np.sign(w - 1), [0.0], steps=100, size=0.1, radius=2)
    >>> bool(abs(path.mean(axis=0)[0] - 1) < 0.1)
    True
    """
    w = np.asarray(start, dtype=np.float64)
    path = []
    for _ in range(count("steps", steps)):
        path.append(w)
        w = projected(w - size * gradient(w), radius)
    return np.array(path)


def descend_stochastically(
    gradients: Gradients, rows: Any, start: Any, *, steps: int, size: float, radius: float, bits: Bits = SECURE
) -> Floats:
    """The same with the gradient of one row a step, drawn at random. Not private: it shows what privacy costs."""
    table = np.asarray(rows, dtype=np.float64)

    def of_one(w: Floats) -> Floats:
        at = draw_below(len(table), bits)
        return np.asarray(gradients(w, table[at : at + 1])[0])

    return descend(of_one, start, steps=steps, size=size, radius=radius)


def descend_privately(
    gradients: Gradients,
    rows: Any,
    start: Any,
    *,
    steps: int,
    size: float,
    radius: float,
    clip: Number,
    epsilon: Number,
    delta: Number,
    bits: Bits = SECURE,
) -> tuple[Floats, Loss]:
    """Noisy gradient descent, and what it cost: each step releases the sum of clipped gradients by a Gaussian.

    ``size`` multiplies the sum divided by the number of rows, which is public here.

    Claim: the returned loss, under replacement of one row.
    Proof: a clipped gradient is no longer than ``clip``, so replacing one moves the sum by at most twice that;
        Gaussians compose in squares, adaptively (DRS22, Corollary 3.3).
        Sums of up to MOST_ROWS clipped gradients are exact.
    Assumes: the number of rows is public; a gradient of a row depends on no other row.
    """
    table = numbers("rows", rows)
    if not 0 < len(table) <= MOST_ROWS:
        raise ParameterError("rows", "…", f"must be 1 to {MOST_ROWS}: their number is public here and divides the step")
    times, longest = count("steps", steps), float(positive("clip", clip))
    price = positive("epsilon", epsilon)
    mu = largest_mu(price, fraction_between("delta", delta, 0, 1, "give a delta such as 1e-6"))
    width = len(np.atleast_1d(np.asarray(start)))
    noise = Gaussian(
        2 * longest,
        sigma=2 * longest * math.sqrt(times) / mu * (1 + 1e-6),
        neighbours="replace",
        max_length=width,
    )

    def noisy(w: Floats) -> Floats:
        return np.asarray(noise.release(clipped(gradients(w, table), longest).sum(axis=0), bits)) / len(table)

    return descend(noisy, start, steps=times, size=size, radius=radius), noise.loss * times


def clipped(gradients: Floats, longest: float) -> Floats:
    """Rows shortened to a length a hair below ``longest``, on a grid on which up to MOST_ROWS of them add up exactly.

    What is not a number counts as nothing.
    """
    sane = np.where(np.isfinite(gradients), gradients, 0.0)
    sane = np.clip(sane, -longest, longest)
    lengths = np.linalg.norm(sane, axis=1, keepdims=True)
    short = sane * np.minimum(1.0, longest * (1 - 1e-9) / np.maximum(lengths, 1e-300))
    step = 2.0 ** (math.ceil(math.log2(longest)) - 31)
    return np.asarray(np.trunc(short / step) * step)


def projected(w: Floats, radius: float) -> Floats:
    """The nearest point of the ball around 0."""
    length = float(np.linalg.norm(w))
    return w if length <= radius else w * (radius / length)
