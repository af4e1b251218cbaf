"""Planted bugs of the numerical accountant: privacy/pairs.py, privacy/numerical.py, privacy/accountant.py.

``REFERENCE`` stops at the first setting whose truth the interval misses.
"""

from mutants.bug import ALGEBRA, REFERENCE, Bug

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
        "return math.log1p(rate * math.expm1(loss))",
        "return math.log1p(rate * math.exp(loss))",
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

BUGS: list[Bug] = [*PAIRS]
