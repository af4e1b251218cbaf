"""Planted bugs of the totals that models are made of."""

from mutants.bug import Bug

MOMENTS = ("tests/learning/test_moments.py",)
MODELS = ("tests/learning/test_from_moments.py::test_a_refused_budget_touches_no_row",)

BUGS = [
    Bug(
        "a row that changes its class counts once",
        "learning/moments.py",
        "max(2 * self._one_row(norm), self._replaced(norm))",
        "max(self._one_row(norm), self._replaced(norm))",
        MOMENTS,
    ),
    Bug(
        "loud squares cost nothing under replacement",
        "learning/moments.py",
        "for size in self.sizes) if steep else 0",
        "for size in self.sizes) if steep and norm == 1 else 0",
        MOMENTS,
    ),
    Bug(
        "products cost nothing under replacement",
        "learning/moments.py",
        "(w.cross**norm * t * rest + w.target",
        "(w.target",
        MOMENTS,
    ),
    Bug(
        "squares are left out of the 1-norm",
        "learning/moments.py",
        "bend = 8 * w.square * WHOLE",
        "bend = 0",
        MOMENTS,
    ),
    Bug(
        "the count is not paid for",
        "learning/moments.py",
        "return [w.count * WHOLE**2, *found] if self.counted else found",
        "return [w.count, *found] if self.counted else found",
        MOMENTS,
    ),
    Bug(
        "sums of floats overflow into rounding",
        "learning/moments.py",
        "CHUNK = 4096",
        "CHUNK = 1 << 30",
        MOMENTS,
    ),
    Bug(
        "rows are read before they are paid for",
        "learning/scaling.py",
        "        self._charge(mechanism.loss)\n",
        "        rows = rows + 0.0\n        self._charge(mechanism.loss)\n",
        MODELS,
    ),
]
