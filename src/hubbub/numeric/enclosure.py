"""Certified enclosures: pairs of integers (low, high) with  low <= 2**bits * value <= high.

All arithmetic is on Python integers, every division and shift rounded outwards, so an enclosure is true by
construction; ``bits`` only says how narrow it should be. Callers ask for more bits until a question is settled.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

Enclosure = tuple[int, int]


def exp_minus(x: Fraction, bits: int) -> Enclosure:
    """Encloses e**-x for x >= 0, a few units wide.

    e**-x = (e**-y)**(2**j) with y = x / 2**j below 2**-8: Taylor for e**-y (alternating, so the truth lies
    between successive partial sums), then j squarings, each rounded outwards.

    >>> low, high = exp_minus(Fraction(1), 64)
    >>> low / 2**64, high - low <= 3
    (0.36787944117144233, True)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x > bits:  # e**-x < 2**-bits
        return 0, 1
    halvings = max(0, (x.numerator // x.denominator).bit_length() + 8)
    work = bits + 2 * halvings + 8
    scale = x.denominator << halvings
    numerator = x.numerator
    term_low = term_high = low = high = 1 << work
    n, sign = 1, -1
    while term_high > 1:
        term_low = term_low * numerator // (scale * n)
        term_high = -(-term_high * numerator // (scale * n))
        if sign < 0:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
        n, sign = n + 1, -sign
    low, high = low - 1, high + 1  # the rest of an alternating series is smaller than its last term
    for _ in range(halvings):
        low, high = low * low >> work, -(-high * high >> work)
    shift = work - bits
    return low >> shift, min(-(-high >> shift), 1 << bits)


def quotient(numerator: Enclosure, denominator: Enclosure, bits: int) -> Enclosure:
    """Encloses numerator / denominator, both positive and enclosed at one common number of bits."""
    return (numerator[0] << bits) // denominator[1], -((-numerator[1] << bits) // denominator[0])


@lru_cache(maxsize=64)
def pi(bits: int) -> Enclosure:
    """Encloses pi, by Machin's formula 16 arctan(1/5) - 4 arctan(1/239)."""
    work = bits + 16

    def arctan_of_inverse(k: int) -> Enclosure:
        power, total, n, sign = (1 << work) // k, 0, 1, 1
        while power:
            total += sign * (power // n)
            power //= k * k
            n, sign = n + 2, -sign
        return total - n, total + n  # at most one unit lost per term, twice

    low5, high5 = arctan_of_inverse(5)
    low239, high239 = arctan_of_inverse(239)
    return (16 * low5 - 4 * high239) >> 16, -((-16 * high5 + 4 * low239) >> 16)


def square_root(x: Fraction, bits: int) -> Enclosure:
    """Encloses the square root of x >= 0."""
    low = isqrt((x.numerator << 2 * bits) // x.denominator)
    return low, low + 1


def erf_of_root(square: Fraction, bits: int) -> Enclosure:
    """Encloses erf(sqrt(square)) for square >= 0.

    erf(z) = (2/sqrt(pi)) e**(-z*z) * sum_n z**(2n+1) 2**n / (1*3*...*(2n+1)): positive terms only. Once the
    ratio 2*z*z/(2n+3) is below 1/2 the rest is smaller than the last term.
    """
    if square == 0:
        return 0, 0
    if square > bits:  # 1 - erf(z) < e**(-z*z) < 2**-bits
        return (1 << bits) - 1, 1 << bits
    size = square.numerator // square.denominator + 1
    work = bits + 3 * size + 32  # the sum grows like e**(z*z), its product with e**(-z*z) is below 1
    root = square_root(square, work)
    total_low = total_high = 0
    low, high = root
    n, doubled = 0, 2 * square
    while True:
        total_low, total_high = total_low + low, total_high + high
        odd = 2 * n + 3
        low = low * doubled.numerator // (doubled.denominator * odd)
        high = -(-high * doubled.numerator // (doubled.denominator * odd))
        n += 1
        if high <= 2 and 2 * doubled < odd:
            break
    total_high += 2 * high
    decay = exp_minus(square, work)
    root_pi = isqrt(pi(work)[0] << work), isqrt(pi(work)[1] << work) + 1
    product_low = 2 * (total_low * decay[0] >> work)
    product_high = 2 * -(-total_high * decay[1] >> work)
    low, high = quotient((product_low, product_high), root_pi, work)
    shift = work - bits
    return low >> shift, min(-(-high >> shift), 1 << bits)


def normal_cdf(x: Fraction, bits: int) -> Enclosure:
    """Encloses the standard normal distribution function at x."""
    low, high = erf_of_root(x * x / 2, bits + 2)
    one = 1 << (bits + 2)
    if x >= 0:
        return (one + low) >> 3, -(-(one + high) >> 3)
    return (one - high) >> 3, -(-(one - low) >> 3)


def _normal_density(x: Fraction, bits: int) -> Enclosure:
    """Encloses the standard normal density at x."""
    root_two_pi = isqrt(2 * pi(bits)[0] << bits), isqrt(2 * pi(bits)[1] << bits) + 1
    return quotient(exp_minus(x * x / 2, bits), root_two_pi, bits)


def mills_ratio(x: Fraction, bits: int) -> Enclosure:
    """Encloses (1 - Phi(x)) / phi(x) for x >= 0, the normal tail over the normal density.

    Below 8 from the error function. From there on by Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/(x +
    ...)))), whose convergents lie alternately above and below; more are taken until two agree.
    """
    if x < 8:
        work = bits + 80  # e**(x*x/2) is below 2**47
        tail_low, tail_high = normal_cdf(-x, work)
        low, high = quotient((tail_low, tail_high), _normal_density(x, work), work)
        return low >> 80, -(-high >> 80)
    work, terms = bits + 16, 16
    here = (x.numerator << work) // x.denominator, -((-x.numerator << work) // x.denominator)
    while True:
        ends = [_convergent(here, n, work) for n in (terms, terms + 1)]
        low, high = min(e[0] for e in ends), max(e[1] for e in ends)
        if high - low <= 1 << 12 or terms > 1 << 14:
            return low >> 16, -(-high >> 16)
        terms *= 2


def _convergent(x: Enclosure, terms: int, bits: int) -> Enclosure:
    """Encloses the convergent of the given depth of Laplace's continued fraction."""
    one = (1 << bits, 1 << bits)
    low, high = x
    for k in range(terms, 0, -1):
        inner = quotient((k << bits, k << bits), (low, high), bits)
        low, high = x[0] + inner[0], x[1] + inner[1]
    return quotient(one, (low, high), bits)


def gaussian_delta(mu: Fraction, epsilon: Fraction, bits: int = 64) -> Enclosure:
    """Encloses Phi(a) - e**epsilon Phi(-b) with a = mu/2 - epsilon/mu and b = mu/2 + epsilon/mu: the Gaussian profile.

    Because e**epsilon phi(b) = phi(a), that is phi(a) (mills(-a) - mills(b)) for a <= 0 and 1 - phi(a) (mills(a) +
    mills(b)) otherwise: no large factor appears. ``bits`` is absolute: the result's width is about 2**-bits.
    """
    a, b = mu / 2 - epsilon / mu, mu / 2 + epsilon / mu
    work = bits + 16
    density = _normal_density(a, work)
    near, far = mills_ratio(abs(a), work), mills_ratio(b, work)
    if a <= 0:
        low = density[0] * (near[0] - far[1]) >> work
        high = -(-density[1] * (near[1] - far[0]) >> work)
    else:
        low = (1 << work) + (-density[1] * (near[1] + far[1]) >> work)
        high = (1 << work) - (density[0] * (near[0] + far[0]) >> work)
    return max(0, low >> 16), -(-high >> 16)


def theta(rate: Fraction, bits: int) -> Enclosure:
    """Encloses the sum of e**(-rate k**2) over all integers k, for rate > 0.

    Summed as it stands for rate >= 1, else through Poisson's formula sqrt(pi/rate) * sum of e**(-pi**2 k**2 / rate),
    so that a handful of terms is enough for any rate. Terms shrink by more than a half each.

    >>> low, high = theta(Fraction(1), 60)
    >>> round(low / 2**60, 6)
    1.772637
    """
    work = bits + 16 + max(0, -_log2_floor(rate))
    pi_low, pi_high = pi(work + 16)
    unit = 1 << (work + 16)
    if rate >= 1:
        exponents = (rate, rate)
    else:
        exponents = (Fraction(pi_low, unit) ** 2 / rate, Fraction(pi_high, unit) ** 2 / rate)
    low = high = 1 << work
    k = 1
    while True:
        smallest, largest = exp_minus(exponents[1] * k * k, work)[0], exp_minus(exponents[0] * k * k, work)[1]
        low, high = low + 2 * smallest, high + 2 * largest
        k += 1
        if largest <= 1:
            high += 4
            break
    if rate < 1:
        shifted = work - 16  # pi is enclosed at work + 16 bits; its root at work bits needs 2 * work
        root_low = isqrt((pi_low << shifted) * rate.denominator // rate.numerator)
        root_high = isqrt((pi_high << shifted) * rate.denominator // rate.numerator + 1) + 1
        low, high = low * root_low >> work, -(-high * root_high >> work)
    shift = work - bits
    return low >> shift, -(-high >> shift)


def _log2_floor(x: Fraction) -> int:
    """An integer within one below or at log2(x)."""
    return x.numerator.bit_length() - x.denominator.bit_length() - 1
