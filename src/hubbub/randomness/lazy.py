"""Normal variables known as far as needed: of two uniform numbers by Box and Muller, with more bits for the asking.

For sums whose noise is computed in floating point: what doubles decide without doubt is taken from them, and the rest
is decided here.
"""

from __future__ import annotations

import math
from decimal import Decimal, getcontext, localcontext

from hubbub.randomness.bits import SECURE, Bits

PREFIX = 64
"""Bits of either uniform number that are given."""
MORE = 128
"""Bits drawn at a time."""


def rounded_sum(value: float, spread: float, radial: int, angular: int, cosine: bool, bits: Bits = SECURE) -> int:
    """The integer nearest to value + spread * z, for the standard normal z whose uniform numbers begin with these bits.

    Claim: for independent uniform prefixes of 64 bits, the result has the law of the rounded sum, exactly.
    Proof: z = sqrt(-2 ln u) cos(2 pi v), or sin, of independent uniform u and v is standard normal (BM58). More bits
        of u and v are drawn until an enclosure of the sum, widened for the arithmetic, holds no half-integer.
    Assumes: decimal's ln and sqrt are correctly rounded; the bits are uniform.

    >>> rounded_sum(5.0, 1e-9, 1 << 63, 1 << 62, cosine=True)
    5
    """
    length = PREFIX
    u, v = radial, angular
    while True:
        with localcontext() as context:
            context.prec = length // 3 + 60
            one = Decimal(2) ** -length
            low = u * one
            if u:
                radius = (-2 * (low + one / 2).ln()).sqrt()
                angle = (v * one + one / 2) * 2 * _pi(context.prec)
                z = radius * (_cos(angle) if cosine else _cos(angle - _pi(context.prec) / 2))
                # du moves -2 ln u by at most one/u, and its root by that over the root or by the root of that
                moved = one / low
                far = min(moved / radius, moved.sqrt()) + radius * 7 * one
                total = Decimal(value) + Decimal(spread) * z
                doubt = (
                    Decimal(spread) * far * 2 + (abs(total) + Decimal(spread) * radius) * Decimal("1e-20") * one.sqrt()
                )
                below, above = math.floor(total - doubt + Decimal("0.5")), math.floor(total + doubt + Decimal("0.5"))
                if below == above:
                    return below
        u, v = _longer(u, bits), _longer(v, bits)
        length += MORE


def _longer(prefix: int, bits: Bits) -> int:
    for _ in range(MORE // 64):
        prefix = prefix << 64 | bits.word()
    return prefix


def _pi(digits: int) -> Decimal:
    """pi by Machin's formula."""

    def arctan_of_inverse(n: int) -> Decimal:
        term = total = Decimal(1) / n
        k = 1
        while abs(term) > Decimal(10) ** -(digits + 5):
            term /= -n * n
            k += 2
            total += term / k
        return total

    return 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)


def _cos(angle: Decimal) -> Decimal:
    """The cosine by its series, after halving the angle to below 1/256 and doubling back."""
    halvings = 12
    x = (angle / 2**halvings) ** 2
    term = total = Decimal(1)
    k = 0
    while abs(term) > Decimal(10) ** -getcontext().prec:
        term = -term * x / ((k + 1) * (k + 2))
        k += 2
        total += term
    for _ in range(halvings):
        total = 2 * total * total - 1
    return total
