"""What is asked of parameters, before any work is done."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, ParameterTypeError


def finite(name: str, value: Any, least: float = -math.inf) -> float:
    """The number, refused unless it is finite and at least so much."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ParameterTypeError(name, value, "must be a number")
    if not least <= value < math.inf:
        raise ParameterError(name, value, f"must be >= {least:g} and finite" if least > -math.inf else "must be finite")
    return float(value)


def share_of(name: str, value: Any) -> float:
    """The number, refused unless it lies in [0, 1]."""
    if not 0 <= finite(name, value) <= 1:
        raise ParameterError(name, value, "must lie in [0, 1]")
    return float(value)


def whole(name: str, value: Any, least: int) -> int:
    """The integer, refused unless it is at least so much."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParameterTypeError(name, value, "must be an int")
    if value < least:
        raise ParameterError(name, value, f"must be >= {least}")
    return int(value)


def numbers(name: str, values: Any, requirement: str) -> NDArray[np.float64]:
    """The values as an array of floats; what they are is not shown if they are refused."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ParameterTypeError(name, type(values).__name__, requirement) from None
