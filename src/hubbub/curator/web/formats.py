"""Numbers as people read them."""

from __future__ import annotations

import math

THIN, MINUS, TIMES = "\u202f", "\u2212", "\u00d7"


def number(value: float, digits: int = 3) -> str:
    """A number in so many significant digits, thousands apart.

    >>> number(2), number(0.012345), number(12345.678) == f"12{THIN}346", number(-2) == f"{MINUS}2"
    ('2', '0.0123', True, True)
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -4:
        power = f"{value:.{digits - 1}e}".split("e")
        return f"{power[0].rstrip('0').rstrip('.')} {TIMES} 10^{int(power[1])}".replace("-", MINUS)
    text = f"{value:,.{max(0, digits - 1 - size)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace(",", THIN).replace("-", MINUS)


def share(value: float, digits: int = 1) -> str:
    """A share as a percentage.

    >>> share(0.1234) == f"12.3{THIN}%", share(-0.02) == f"{MINUS}2.0{THIN}%"
    (True, True)
    """
    return f"{100 * value:.{digits}f}{THIN}%".replace("-", MINUS)


def plain(value: float) -> str:
    """A number as a program would read it.

    >>> plain(0.1), plain(1.0), plain(1e-06)
    ('0.1', '1', '1e-06')
    """
    return f"{value:.12g}"
