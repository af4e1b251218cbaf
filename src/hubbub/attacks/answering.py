"""Ways to answer counting questions about a secret: what an attack is run against.

Each is a callable from questions to answers, with nan where an answer is withheld. Anything else of that shape will do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hubbub.attacks.demands import whole
from hubbub.attacks.questions import Floats, Integers, Questions
from hubbub.errors import DataTypeError

Answering = Callable[[Questions], Floats]


def exact(secret: ArrayLike) -> Answering:
    """Answers with the true counts.

    >>> from hubbub.attacks.questions import questions
    >>> exact([1, 0, 1])(questions([[1, 1, 0], [1, 0, 1]])).tolist()
    [1.0, 2.0]
    """
    bits = secret_bits(secret)
    return lambda asked: asked.counts(bits).astype(np.float64)


def rounded(secret: ArrayLike, base: int = 5) -> Answering:
    """Answers with the counts rounded to the nearest multiple of a base: errors of at most base/2."""
    whole("base", base, 1)
    bits = secret_bits(secret)
    return lambda asked: base * np.rint(asked.counts(bits) / base)


def suppressed(secret: ArrayLike, below: int = 5) -> Answering:
    """Answers with the counts, but withholds those below a threshold, as statistical offices do."""
    whole("below", below, 1)
    bits = secret_bits(secret)

    def answer(asked: Questions) -> Floats:
        counts = asked.counts(bits)
        return np.where(counts < below, np.nan, counts)

    return answer


def released(secret: ArrayLike, release: Callable[[Any], Any]) -> Answering:
    """Answers with what a mechanism's ``release`` makes of the counts, all at once.

    For all answers together to cost epsilon, the mechanism's sensitivity must be the questions' ``overlap``:
    ``released(secret, hb.Laplace(asked.overlap, epsilon=1).release)``.
    """
    bits = secret_bits(secret)
    return lambda asked: np.asarray(release(asked.counts(bits)), np.float64)


def secret_bits(secret: ArrayLike) -> Integers:
    """The secret as an array of 0s and 1s. What it holds is not shown if it is refused."""
    bits = np.asarray(secret)
    if bits.ndim != 1 or bits.dtype.kind not in "biuf" or not np.isin(bits, (0, 1)).all():
        raise DataTypeError("a secret is a flat list of 0s and 1s, one a person")
    return bits.astype(np.int64)
