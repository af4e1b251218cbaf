"""Which public rows to ask about: chosen from public rows and released labels alone, so choosing costs nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.learning.pate.aggregators import Aggregator
from hubbub.learning.pate.student import chances
from hubbub.learning.pate.teachers import table_of
from hubbub.numeric.rational import Number, count
from hubbub.privacy.calibration import calibrate

Indices = NDArray[np.intp]


def spread(public: Any, questions: int, *, seed: int = 0) -> Indices:
    """The places of all public rows, first those so many that lie at the middle of as many clusters.

    Asked in this order, with ``answers`` as many as questions, rows are labelled that stand for many others.

    >>> rows = np.repeat([[0.0], [5.0], [9.0]], 4, axis=0)
    >>> sorted(rows[spread(rows, 3)[:3], 0].tolist())
    [0.0, 5.0, 9.0]
    """
    from sklearn.cluster import MiniBatchKMeans

    rows = table_of("public", public)
    flat = rows.reshape(len(rows), -1)
    many = count("questions", questions)
    if many > len(flat):
        raise ParameterError("questions", questions, "must be at most as many as public rows")
    found = MiniBatchKMeans(many, n_init=1, random_state=count("seed", seed, least=0), batch_size=4096).fit(flat)
    squares = (flat**2).sum(axis=1)
    free, chosen = np.ones(len(flat), np.bool_), []
    for centre in found.cluster_centers_:
        away = np.where(free, squares - 2 * flat @ centre, np.inf)
        chosen.append(int(away.argmin()))
        free[chosen[-1]] = False
    return np.concatenate((np.array(chosen, np.intp), np.flatnonzero(free)))


def doubtful(student: Any, public: Any) -> Indices:
    """The places of all public rows, those first of which a student made of released labels is least sure.

    What is asked then depends on answers: the price for all votes holds, one by votes (``for_owner``) does not.
    """
    told = chances(student, table_of("public", public), len(student.classes_))
    ordered = np.sort(told, axis=1)
    return np.argsort(ordered[:, -1] - ordered[:, -2], kind="stable")


def most_answers(aggregator: Aggregator, *, epsilon: Number, delta: Number, asked: int | None = None) -> int:
    """How many answers fit in (epsilon, delta): of as many questions, or of ``asked`` where some are refused.

    Claim: ``aggregator.loss(asked, answers)`` has epsilon(delta) at most the given.
    Proof: that of ``calibrate``.
    Assumes: as for Aggregator.

    >>> from hubbub.learning.pate import GaussianMax
    >>> most_answers(GaussianMax(50), epsilon=1.97, delta=1e-5)
    306
    """
    found = calibrate(
        lambda n: aggregator.loss(int(n) if asked is None else asked, int(n)),
        epsilon=epsilon,
        delta=delta,
        low=1,
        high=10**7 if asked is None else asked,
    )
    return int(found)
