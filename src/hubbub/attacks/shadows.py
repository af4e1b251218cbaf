"""Membership in a model's training data, by likelihood ratio against shadow models (CCNSTT22)."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.attacks.coins import coins
from hubbub.attacks.questions import Floats
from hubbub.errors import ParameterError

Variant = Literal["online", "offline"]
VARIANTS = ("online", "offline")
MANY_SHADOWS = 200
"""With fewer shadow models than this, all records share one spread of confidence."""
SURE = 1e-4
"""Probabilities nearer to 0 and 1 than this count as this near: forests say 0 and 1 too easily."""
LEAST_SPREAD = 1e-6


class Classifier(Protocol):
    """What scikit-learn calls a classifier."""

    def fit(self, records: Any, labels: Any) -> Any:
        """Learns from labelled records."""

    def predict_proba(self, records: Any) -> Any:
        """The probability of every class, in sorted order of those seen, for every record."""


def likelihood_ratio_attack(
    predict: Callable[[Any], ArrayLike],
    model: Classifier,
    records: ArrayLike,
    labels: ArrayLike,
    *,
    variant: Variant = "online",
    background: tuple[ArrayLike, ArrayLike] | None = None,
    shadows: int = 64,
    seed: int = 0,
    sure: float = SURE,
    each: Callable[[], object] = lambda: None,
) -> Floats:
    """A score for each labelled record, higher for those likelier to have trained the model behind ``predict``.

    ``predict`` answers with class probabilities (a fitted model's ``predict_proba``); ``model`` is an untrained
    classifier of the same kind, copied for every shadow; ``background`` is labelled records from the same population.
    Online, shadows are trained on random halves of records and background together, and the score is the log-likelihood
    ratio of the target's confidence under those with and those without the record. Offline, they are trained on halves
    of the background alone, before any record is known, and the score is by how many spreads the target is more
    confident than they are. Probabilities nearer to 0 and 1 than ``sure`` count as that near. ``each`` is called after
    every shadow.
    """
    given, classes_of = np.asarray(records), np.asarray(labels)
    if len(given) != len(classes_of) or not len(given):
        raise ParameterError("labels", classes_of.shape, "must be one for every record")
    if variant not in VARIANTS:
        raise ParameterError("variant", variant, f"must be one of {', '.join(VARIANTS)}")
    if not 0 < sure < 0.5:
        raise ParameterError("sure", sure, "must lie strictly between 0 and 1/2")
    if shadows < 4 or shadows % 2:
        raise ParameterError("shadows", shadows, "must be even, and at least 4")
    if background is None:
        if variant == "offline":
            raise ParameterError("background", None, "must be given", "offline shadows are trained on nothing else")
        pool, pool_labels = given, classes_of
    else:
        others, other_labels = np.asarray(background[0]), np.asarray(background[1])
        online = variant == "online"
        pool = np.concatenate([given, others]) if online else others
        pool_labels = np.concatenate([classes_of, other_labels]) if online else other_labels
    classes = np.unique(np.concatenate([classes_of, pool_labels]))
    trained_on = _halves(len(pool), shadows, seed)
    confidences = np.empty((shadows, len(given)))
    for shadow, half in enumerate(trained_on):
        fitted = deepcopy(model)
        fitted.fit(pool[half], pool_labels[half])
        seen = getattr(fitted, "classes_", np.unique(pool_labels[half]))
        confidences[shadow] = confidence(fitted.predict_proba(given), classes_of, np.asarray(seen), sure)
        each()
    target = confidence(predict(given), classes_of, classes, sure)
    if variant == "offline":
        mean, spread = _normals(confidences, np.ones(confidences.shape, bool))
        return np.asarray((target - mean) / spread)
    inside = trained_on[:, : len(given)]
    with_it, without = (_log_density(target, *_normals(confidences, half)) for half in (inside, ~inside))
    return np.asarray(with_it - without)


def confidence(probabilities: ArrayLike, labels: NDArray[Any], classes: NDArray[Any], sure: float = SURE) -> Floats:
    """The log-odds each record's own label is given, held to finite numbers."""
    chances = np.asarray(probabilities, np.float64)
    if chances.shape != (len(labels), len(classes)):
        raise ParameterError("predict", chances.shape, f"must give probabilities of shape {len(labels), len(classes)}")
    own = labels[:, None] == classes[None, :]
    right = np.where(own, chances, 0).sum(axis=1).clip(sure, 1)
    wrong = np.where(own, 0, chances).sum(axis=1).clip(sure, 1)
    return np.asarray(np.log(right) - np.log(wrong))


def _halves(records: int, shadows: int, seed: int) -> NDArray[np.bool_]:
    """Random halves and their complements in turn, so that each record trains exactly half of the shadows."""
    generator = coins(seed)
    halves = np.zeros((shadows, records), bool)
    for pair in range(shadows // 2):
        halves[2 * pair, generator.permutation(records)[: records // 2]] = True
        halves[2 * pair + 1] = ~halves[2 * pair]
    return halves


def _normals(confidences: Floats, counted: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """For every record, mean and spread of confidence over the shadows counted; one spread for all if they are few."""
    held = np.where(counted, confidences, np.nan)
    mean = np.nanmean(held, axis=0)
    squares = (held - mean) ** 2
    degrees = counted.sum(axis=0) - 1
    if len(confidences) >= MANY_SHADOWS:
        spread = np.sqrt(np.nansum(squares, axis=0) / degrees)
    else:
        spread = np.full(len(mean), math.sqrt(float(np.nansum(squares)) / float(degrees.sum())))
    return mean, spread.clip(LEAST_SPREAD)


def _log_density(x: Floats, mean: Floats, spread: Floats) -> Floats:
    return np.asarray(-(((x - mean) / spread) ** 2) / 2 - np.log(spread))
