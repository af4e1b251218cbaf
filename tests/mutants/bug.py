"""A planted bug: one place in the source, what to put there instead, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

ENCLOSURE = ("tests/numeric/test_enclosure.py",)
RATIONAL = ("tests/numeric/test_rational.py",)
LOSS = ("tests/privacy/test_loss.py",)
ALGEBRA = ("tests/privacy/test_algebra.py",)
BUDGET = ("tests/privacy/test_budget.py",)
THEOREMS = ("tests/privacy/test_theorems.py",)
FORMS = ("tests/privacy/test_forms.py",)
NUMERICAL = ("tests/privacy/test_numerical.py",)
RANGES = ("tests/privacy/test_ranges.py",)
ACCOUNTANT = ("tests/privacy/test_accountant.py",)
INVERSION = ("tests/privacy/test_inversion.py",)
REFERENCE = ("tests/privacy/test_reference.py::test_never_below_the_truth",)


@dataclass(frozen=True)
class Bug:
    """``fragment`` occurs exactly once in src/hubbub/``file``; with ``replacement`` in its place a guarantee is false.

    ``tests`` are pytest's arguments: files, or single tests of them.
    """

    name: str
    file: str
    fragment: str
    replacement: str
    tests: tuple[str, ...]

    def occurrences(self, root: Path = ROOT) -> int:
        """How often the fragment occurs."""
        return (root / "src" / "hubbub" / self.file).read_text().count(self.fragment)

    def plant(self, root: Path) -> str:
        """Puts the bug into a copy of the tree; returns the file's text as it was."""
        path = root / "src" / "hubbub" / self.file
        before = path.read_text()
        path.write_text(before.replace(self.fragment, self.replacement))
        return before

    def heal(self, root: Path, before: str) -> None:
        """Takes it out again."""
        (root / "src" / "hubbub" / self.file).write_text(before)
