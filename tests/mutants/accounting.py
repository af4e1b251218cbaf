"""Planted bugs of the numerical accountant: privacy/accountant.py, privacy/numerical.py.

Each is Bug(name, file, fragment that occurs once, replacement, tests); ``REFERENCE`` stops at the first setting whose
truth the interval misses.
"""

from mutants.bug import Bug

REFERENCE = ("tests/privacy/test_reference.py::test_never_below_the_truth",)

BUGS: list[Bug] = []
