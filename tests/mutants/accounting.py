"""Planted bugs of the numerical accountant: privacy/accountant.py, privacy/numerical.py."""

from mutants.bug import Bug

REFERENCE = ("tests/privacy/test_reference.py::test_never_below_the_truth",)

BUGS: list[Bug] = []
