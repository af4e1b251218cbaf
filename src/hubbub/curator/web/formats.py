"""Numbers as people read them."""

from __future__ import annotations

import math

THIN, MINUS, TIMES = "\u202f", "\u2212", "\u00d7"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """A number in so many significant digits, thousands apart.

    >>> number(2), number(0.012345), number(12345.678) == f"12{THIN}346", number(-2) == f"{MINUS}2", number(1e-6)[-4:]
    ('2', '0.0123', True, True, '10⁻⁶')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -4:
        power = f"{value:.{digits - 1}e}".split("e")
        return f"{power[0].rstrip('0').rstrip('.')} {TIMES} 10".replace("-", MINUS) + str(int(power[1])).translate(
            RAISED
        )
    text = f"{value:,.{max(0, digits - 1 - size)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace(",", THIN).replace("-", MINUS)


def beside(value: float, error: float) -> str:
    """A value in as many digits as its error is told in: two of the error's.

    >>> beside(203.53, 25.1), beside(49.678, 6.12), beside(7.0, 0.0), beside(28_624, 41_428) == f"29{THIN}000"
    ('204', '49.7', '7', True)
    """
    if not (math.isfinite(value) and math.isfinite(error)) or error <= 0:
        return number(value, 4)
    digits = min(12, 1 - math.floor(math.log10(error)))
    text = f"{round(value, digits):,.{max(0, digits)}f}"
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
