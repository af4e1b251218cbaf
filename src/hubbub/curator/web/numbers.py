"""Numbers that people type into forms, or a sentence that says what is wrong with them."""

from __future__ import annotations

import math

from hubbub.errors import ParameterError

LONGEST = 40


def number(name: str, text: str, *, most: float, above: float | None = None, least: float | None = None) -> float:
    """A finite number that is more than ``above``, or at least ``least``, and at most ``most``.

    >>> number("epsilon", " 0.5 ", above=0, most=10)
    0.5
    """
    shown = text.strip()[:LONGEST]
    try:
        value = float(shown)
    except ValueError:
        raise ParameterError(name, shown, "must be a number") from None
    low = (above is None or value > above) and (least is None or value >= least)
    if not (math.isfinite(value) and low and value <= most):
        start = f"more than {above:g}" if above is not None else f"at least {least:g}"
        raise ParameterError(name, shown, f"must be {start} and at most {most:g}")
    return value


def whole(name: str, text: str, *, least: int, most: int) -> int:
    """The same for whole numbers."""
    value = number(name, text, least=least, most=most)
    if value != int(value):
        raise ParameterError(name, text.strip()[:LONGEST], "must be a whole number")
    return int(value)
