"""Rows and labels as people give them, read one element at a time: no element changes how another is read, and no
error quotes one."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from hubbub.errors import DataTypeError, ParameterError

_MISSING = ("NAType", "NaTType", "NoneType")
"""Types of which every value stands for none: counted as nan."""


def numbers(name: str, values: Any) -> NDArray[np.float64]:
    """The values as floats: nan for what is missing, infinity for what is too large; text that is no number is refused.

    >>> numbers("X", [[1, None], ["2.5", 10**400]]).tolist()
    [[1.0, nan], [2.5, inf]]
    """
    try:
        plain = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise DataTypeError(f"{name}: must be a table of numbers, with as many in each row") from None
    kind = plain.dtype.kind
    if kind == "c":
        raise ParameterError(name, "…", "must be real numbers: Complex data not supported")
    if kind not in "fiubOUS":
        raise DataTypeError(f"{name}: must hold numbers, not {plain.dtype}")
    with np.errstate(all="ignore"):
        try:
            return plain.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            return np.array([_number(name, v) for v in plain.ravel().tolist()], np.float64).reshape(plain.shape)


def _number(name: str, value: Any) -> float:
    if type(value).__name__ in _MISSING or (isinstance(value, str) and not value.strip()):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        raise DataTypeError(f"{name}: every argument must be a number, or a string that is a number") from None


def labels_of(y: Any) -> NDArray[Any]:
    """The labels: an array of one type as it is, anything else as separate objects."""
    if isinstance(y, list | tuple | range):
        found = np.empty(len(y), dtype=object)
        for place, label in enumerate(y):
            found[place] = label
        return found
    plain = np.asarray(y)
    if plain.ndim == 2 and plain.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=3)
        return plain.ravel()
    if plain.ndim != 1:
        raise ParameterError("y", "…", f"y should be a 1d array, got an array of shape {plain.shape} instead")
    return plain


def places(classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """The place of each label among the classes; -1 for one that is not among them, whatever it is.

    >>> places(np.array([0, 1]), labels_of([1, "?", 0.0, None, [2]])).tolist()
    [1, -1, 0, -1, -1]
    """
    if _comparable(classes, labels):
        found = np.full(len(labels), -1, dtype=np.intp)
        for k, name in enumerate(classes):
            found[labels == name] = k
        return found
    known = {name: k for k, name in enumerate(classes.tolist())}
    return np.array([_place(known, label) for label in labels.tolist()], dtype=np.intp)


def _place(known: dict[Any, int], label: Any) -> int:
    try:
        return known.get(label, -1)
    except TypeError:  # a list, say
        return -1


def agree(told: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each prediction is the label."""
    if _comparable(told, truth):
        return np.asarray(told == truth)
    return np.array([_same(a, b) for a, b in zip(told.tolist(), truth.tolist(), strict=True)], dtype=np.bool_)


def _same(one: Any, other: Any) -> bool:
    try:
        return (one == other) is True
    except Exception:  # whatever it was, it may tell of a label
        return False


def _comparable(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether both are arrays of numbers, or both of strings."""
    kinds = {one.dtype.kind, other.dtype.kind}
    return kinds <= set("biuf") or kinds == {"U"}
