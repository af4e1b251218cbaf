"""Planted bugs of numeric/, and of the closed forms for Gaussians and Renyi divergences."""

from mutants.bug import ACCOUNTANT, ENCLOSURE, FORMS, LOSS, RATIONAL, Bug

NUMERIC = [
    Bug(
        "e**-x rounded down at the top",
        "numeric/enclosure.py",
        "low, high = low * low >> work, -(-high * high >> work)\n    shift = work - bits\n"
        "    return low >> shift, min(-(-high >> shift), 1 << bits)",
        "low, high = low * low >> work, -(-high * high >> work)\n    shift = work - bits\n"
        "    return low >> shift, min(high >> shift, 1 << bits)",
        ENCLOSURE,
    ),
    Bug(
        "e**-x is zero far out",
        "numeric/enclosure.py",
        "if x > bits:  # e**-x < 2**-bits\n        return 0, 1",
        "if x > bits:  # e**-x < 2**-bits\n        return 0, 0",
        ENCLOSURE,
    ),
    Bug(
        "quotient rounded inwards",
        "numeric/enclosure.py",
        "return (numerator[0] << bits) // denominator[1], -((-numerator[1] << bits) // denominator[0])",
        "return (numerator[0] << bits) // denominator[1], (numerator[1] << bits) // denominator[0]",
        ENCLOSURE,
    ),
    Bug(
        "square root without its upper end",
        "numeric/enclosure.py",
        "    return low, low + 1",
        "    return low, low",
        ENCLOSURE,
    ),
    Bug(
        "erf loses a factor", "numeric/enclosure.py", "n, doubled = 0, 2 * square", "n, doubled = 0, square", ENCLOSURE
    ),
    Bug(
        "the normal law's sides exchanged",
        "numeric/enclosure.py",
        "    if x >= 0:\n        return (one + low) >> 3",
        "    if x < 0:\n        return (one + low) >> 3",
        ENCLOSURE,
    ),
    Bug(
        "Gaussian delta without its second term",
        "numeric/enclosure.py",
        "high = (1 << work) - (density[0] * (near[0] + far[0]) >> work)",
        "high = (1 << work) - (density[0] * near[0] >> work)",
        ENCLOSURE,
    ),
    Bug(
        "Gaussian delta rounded down",
        "numeric/enclosure.py",
        "return max(0, low >> 16), -(-high >> 16)",
        "return max(0, low >> 16), high >> 16",
        ENCLOSURE,
    ),
    Bug(
        "theta counts one side only",
        "numeric/enclosure.py",
        "low, high = low + 2 * smallest, high + 2 * largest",
        "low, high = low + smallest, high + largest",
        ENCLOSURE,
    ),
    Bug(
        "float_up to the nearest",
        "numeric/rational.py",
        "return nearest if exact else math.nextafter(nearest, math.inf)",
        "return nearest",
        RATIONAL,
    ),
    Bug(
        "float_down is float_up",
        "numeric/rational.py",
        "return -float_up(-value)",
        "return float_up(value)",
        RATIONAL,
    ),
    Bug("floats read in binary", "numeric/rational.py", "Fraction(str(value))\n", "Fraction(float(value))\n", RATIONAL),
    Bug(
        "the larger of two readings",
        "numeric/rational.py",
        "return min(exact, Fraction(float(value)))",
        "return max(exact, Fraction(float(value)))",
        RATIONAL,
    ),
    Bug("zero counts as one", "numeric/rational.py", "    if value < least:", "    if value < least - 1:", RATIONAL),
    Bug(
        "an open end taken as closed",
        "numeric/rational.py",
        "if not low < exact < high:",
        "if not low <= exact < high:",
        RATIONAL,
    ),
    Bug(
        "floor of the logarithm off by one",
        "numeric/rational.py",
        "return k if power_of_two(k) <= value else k - 1",
        "return k if power_of_two(k) < value else k - 1",
        RATIONAL,
    ),
]

GAUSSIAN = [
    Bug(
        "Gaussian delta to the nearest float",
        "privacy/gaussian.py",
        "return min(1.0, float_up(Fraction(high, 1 << bits)))",
        "return min(1.0, float(Fraction(high, 1 << bits)))",
        LOSS,
    ),
    Bug(
        "far Gaussian tails are free",
        "privacy/gaussian.py",
        "        return 5e-324",
        "        return 0.0",
        FORMS,
    ),
    Bug(
        "the search returns its failing side",
        "privacy/gaussian.py",
        "high, above, aim = middle, value(middle), -1\n    return low",
        "high, above, aim = middle, value(middle), -1\n    return high",
        LOSS,
    ),
    Bug(
        "calibration's margin on the wrong side",
        "privacy/gaussian.py",
        "return mu * (1 - MARGIN)",
        "return mu * (1 + MARGIN)",
        LOSS,
    ),
]

RENYI = [
    Bug(
        "conversion takes off too much",
        "privacy/renyi.py",
        "- (math.log(delta) + math.log(order)) / (order - 1)",
        "- (math.log(delta) + 2 * math.log(order)) / (order - 1)",
        FORMS,
    ),
    Bug(
        "conversion back takes off too much",
        "privacy/renyi.py",
        "return (order - 1) * (divergence + lost + math.log1p(-1 / order) - epsilon) - math.log(order)",
        "return (order - 1) * (divergence + lost + math.log1p(-1 / order) - epsilon) - 2 * math.log(order)",
        FORMS,
    ),
    Bug(
        "a quarter of order epsilon**2",
        "privacy/renyi.py",
        "plain = min(epsilon, order * epsilon * epsilon / 2)",
        "plain = min(epsilon, order * epsilon * epsilon / 4)",
        ("tests/privacy/test_theorems.py", *FORMS),
    ),
    Bug(
        "Laplace: the far side's exponent",
        "privacy/renyi.py",
        "second = math.log((order - 1) / (2 * order - 1)) - shift * order",
        "second = math.log((order - 1) / (2 * order - 1)) - 2 * shift * order",
        FORMS,
    ),
    Bug(
        "the chord's ends exchanged",
        "privacy/renyi.py",
        "chord = (high - order) * ends[0] + (order - low) * ends[1]",
        "chord = (high - order) * ends[1] + (order - low) * ends[0]",
        ACCOUNTANT,
    ),
    Bug("the rate squared", "privacy/renyi.py", "+ k * math.log(rate) +", "+ 2 * k * math.log(rate) +", FORMS),
]

BUGS: list[Bug] = [*NUMERIC, *GAUSSIAN, *RENYI]
