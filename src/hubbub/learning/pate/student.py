"""The student: any model, taught with labels that were paid for, and with public rows that have none."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from hubbub.errors import FitFailure, ParameterError, ParameterTypeError

Integers = NDArray[np.int64]
Unlabelled = Literal["aside", "given"]


def teach_student(student: Any, public: NDArray[Any], labels: Integers, unlabelled: Unlabelled) -> Any:
    """A copy of the student, fitted to the rows with labels >= 0, or to all of them with -1 where there is none."""
    answered = labels >= 0
    if not answered.any():
        raise FitFailure("no public row was given a label")
    known = np.unique(labels[answered])
    if len(known) == 1:
        return DummyClassifier(strategy="constant", constant=known[0]).fit(public[answered], labels[answered])
    if unlabelled == "given":
        return clone(student).fit(public.copy(), np.where(answered, labels, -1))
    return clone(student).fit(public[answered], labels[answered])


def chances(student: Any, rows: NDArray[Any], classes: int) -> NDArray[np.float64]:
    """What the student thinks of every row: a chance for each class, 0 for those that it has never seen."""
    check_chances(student)
    told = np.asarray(student.predict_proba(rows), np.float64)
    if told.shape[1] == classes:
        return told
    found = np.zeros((len(rows), classes))
    found[:, np.asarray(student.classes_, np.int64)] = told
    return found


def check_chances(student: Any) -> None:
    """Refuses a student that cannot say how sure it is."""
    if not hasattr(student, "predict_proba"):
        raise ParameterTypeError(
            "student", type(student).__name__, "must have predict_proba to be asked what it expects"
        )


def check_unlabelled(unlabelled: Unlabelled) -> Unlabelled:
    """The setting itself; anything else is refused."""
    if unlabelled not in ("aside", "given"):
        raise ParameterError("unlabelled", unlabelled, 'must be "aside" or "given"')
    return unlabelled
