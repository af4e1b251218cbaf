"""Planted bugs of the accountant: privacy/pairs.py, grids.py, numerical.py, accountant.py, transforms.py, inversion.py.

``REFERENCE`` stops at the first setting whose truth the interval misses.
"""

from mutants.bug import ACCOUNTANT, ALGEBRA, INVERSION, NUMERICAL, REFERENCE, Bug

PAIRS = [
    Bug(
        "a Poisson sample of the wrong share",
        "privacy/pairs.py",
        "return (1 - self.rate) * q + self.rate * p, q",
        "return (1 - self.rate) * p + self.rate * q, q",
        REFERENCE,
    ),
    Bug(
        "unmixed with the rate squared",
        "privacy/pairs.py",
        "inner = np.log1p(np.expm1(np.minimum(losses, 500)) / rate)",
        "inner = np.log1p(np.expm1(np.minimum(losses, 500)) / rate**2)",
        REFERENCE,
    ),
    Bug(
        "mixed without the other share",
        "privacy/pairs.py",
        "change = rate * math.expm1(loss)",
        "change = rate * math.exp(loss)",
        ALGEBRA,
    ),
    Bug(
        "Laplace's middle counted twice",
        "privacy/pairs.py",
        "gap = -np.expm1(-np.diff(ends) / 2) / 2",
        "gap = -np.expm1(-np.diff(ends) / 2)",
        REFERENCE,
    ),
    Bug(
        "the Gaussian loss centred at 0",
        "privacy/pairs.py",
        "normal_masses(edges / mu - mu / 2), normal_masses(edges / mu + mu / 2)",
        "normal_masses(edges / mu), normal_masses(edges / mu)",
        REFERENCE,
    ),
    Bug(
        "reversed atoms keep P's masses",
        "privacy/pairs.py",
        "tuple((-loss, p * math.exp(-loss)) for loss, p in self.pair.atoms())",
        "tuple((-loss, p) for loss, p in self.pair.atoms())",
        REFERENCE,
    ),
]

GRIDS = [
    Bug(
        "masses not moved up", "privacy/grids.py", "    at_points[1:] += up\n", "    at_points[:-1] += up\n", NUMERICAL
    ),
    Bug(
        "the far tail dropped",
        "privacy/grids.py",
        "infinity = pair.infinity + float(p[-1])",
        "infinity = pair.infinity",
        NUMERICAL,
    ),
    Bug(
        "atoms lifted instead of lowered",
        "privacy/grids.py",
        "masses[held] * np.exp(-fall)",
        "masses[held] * np.exp(fall)",
        NUMERICAL,
    ),
    Bug("mass borrowed and kept", "privacy/grids.py", "    chances[below] -= share * cost\n", "", NUMERICAL),
    Bug(
        "grid begun one step late",
        "privacy/grids.py",
        "math.floor((low - anchor) / spacing - 1e-9), ",
        "math.ceil((low - anchor) / spacing) + 1, ",
        NUMERICAL,
    ),
    Bug(
        "coarser by straight lines",
        "privacy/numerical.py",
        "up = np.expm1(-rise) / math.expm1(-wide)",
        "up = rise / (2 * wide)",
        NUMERICAL,
    ),
    Bug(
        "coarser without its upper half",
        "privacy/numerical.py",
        "weights[1:] += _rows(",
        "weights[1:] += 0 * _rows(",
        NUMERICAL,
    ),
]

COMPOSITION = [
    Bug(
        "one step too few",
        "privacy/numerical.py",
        "spectrum *= _power(factor, n)",
        "spectrum *= _power(factor, max(1, n - 1))",
        NUMERICAL,
    ),
    Bug(
        "scales without counts",
        "privacy/numerical.py",
        "log_scale=sum(n * law.log_scale",
        "log_scale=sum(law.log_scale",
        NUMERICAL,
    ),
    Bug(
        "infinities without counts",
        "privacy/numerical.py",
        "-math.expm1(sum(n * math.log1p(",
        "-math.expm1(sum(math.log1p(",
        ACCOUNTANT,
    ),
    Bug(
        "infinity free",
        "privacy/numerical.py",
        "whole * (1 + self._grow) + law.infinity",
        "whole * (1 + self._grow)",
        ACCOUNTANT,
    ),
    Bug(
        "discounted twice",
        "privacy/numerical.py",
        "tail - math.exp(away) * float",
        "tail - 2 * math.exp(away) * float",
        NUMERICAL,
    ),
    Bug(
        "rounded to the wrong side",
        "privacy/numerical.py",
        "return max(0.0, high if upper else low)",
        "return max(0.0, low if upper else high)",
        NUMERICAL,
    ),
    Bug("ways not counted", "privacy/rare.py", "ways *= math.comb(n, taken[k])", "ways *= 1", NUMERICAL),
    Bug(
        "only none or one rare step",
        "privacy/rare.py",
        "_poisson_bound(expected, j + 1) <= SHARE * delta",
        "j >= 0",
        NUMERICAL,
    ),
    Bug(
        "one direction only",
        "privacy/accountant.py",
        "(tuple((p if p.symmetric else Reversed(p), n) for p, n in parts), sketch.reversed())",
        "(parts, sketch)",
        REFERENCE,
    ),
    Bug(
        "one direction of one step",
        "privacy/accountant.py",
        "[pair] if pair.symmetric else [pair, Reversed(pair)]",
        "[pair]",
        NUMERICAL,
    ),
    Bug(
        "infinity of one step free",
        "privacy/accountant.py",
        "+ beyond + pair.infinity",
        "+ beyond",
        NUMERICAL,
    ),
    Bug(
        "groups of too few",
        "privacy/accountant.py",
        "(law, n // groups) for law, n in laws",
        "(law, max(1, n // groups - 1)) for law, n in laws",
        NUMERICAL,
    ),
    Bug(
        "rests forgotten",
        "privacy/accountant.py",
        "return [*grouped, (compose(rest).coarser(factor), 1)] if rest else grouped",
        "return grouped",
        NUMERICAL,
    ),
]

TRANSFORMS = [
    Bug(
        "the other direction's mixture",
        "privacy/transforms.py",
        "MixtureTransform(upper, lower) if inner is pair else MixtureTransform(lower, upper)",
        "MixtureTransform(upper, lower)",
        INVERSION,
    ),
    Bug(
        "steps of the integral that no frequency shortens",
        "privacy/transforms.py",
        "grown = width**2 / 2 + most * width * apart",
        "grown = width**2 / 2",
        INVERSION,
    ),
    Bug(
        "outcomes left out unaccounted",
        "privacy/transforms.py",
        "missing = 1.01 * left_out / total + aliased",
        "missing = 0.0",
        INVERSION,
    ),
    Bug(
        "Laplace without its lower atom",
        "privacy/transforms.py",
        "(2 + fall - fall / (2 * c)) / total",
        "(1 - fall / (2 * c)) / total",
        INVERSION,
    ),
    Bug("decay twice too early", "privacy/transforms.py", "* widths / 2, 1e9)", "* widths, 1e9)", INVERSION),
    Bug(
        "all density counted at its largest",
        "privacy/transforms.py",
        "smallest = np.minimum(logs[1:], logs[:-1])",
        "smallest = np.maximum(logs[1:], logs[:-1]) + 0.5",
        INVERSION,
    ),
    Bug(
        "wrapped-around mass kept",
        "privacy/inversion.py",
        "total - error - self._wrapped(epsilon)",
        "total - error",
        INVERSION,
    ),
    Bug(
        "what wraps from below free",
        "privacy/inversion.py",
        "for side in (left, right)",
        "for side in (right,)",
        INVERSION,
    ),
    Bug(
        "the last term is all",
        "privacy/inversion.py",
        "(float(errors.sum()) + beyond)",
        "float(errors.sum())",
        INVERSION,
    ),
    Bug("the first term counted twice", "privacy/inversion.py", "    terms[0] /= 2\n", "", INVERSION),
    Bug("one of each part", "privacy/inversion.py", "logs += n * log\n", "logs += log\n", INVERSION),
    Bug(
        "rounding does not add up",
        "privacy/inversion.py",
        "grown += n * (np.log1p",
        "grown += (np.log1p",
        INVERSION,
    ),
    Bug(
        "moments that are anything taken at their word",
        "privacy/inversion.py",
        "if grown[0] + doubt > UNSURE:",
        "if doubt > UNSURE:",
        INVERSION,
    ),
    Bug(
        "small sums taken from 1",
        "privacy/pairs.py",
        "return math.log1p(change) if change > -0.5 else math.log((1 - rate) + rate * math.exp(loss))",
        "return math.log1p(change)",
        INVERSION,
    ),
    Bug(
        "the second direction dismissed",
        "privacy/inversion.py",
        "if low and _chernoff_epsilon(parts, tilt, delta - infinite * (1 + 1e-12)) <= low:",
        "if low:",
        INVERSION,
    ),
    Bug(
        "failures free",
        "privacy/inversion.py",
        "least = (delta - infinite * (1 + 1e-12))",
        "least = (delta + 0 * infinite)",
        INVERSION,
    ),
]

BUGS: list[Bug] = [*PAIRS, *GRIDS, *COMPOSITION, *TRANSFORMS]
