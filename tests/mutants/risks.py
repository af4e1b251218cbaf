"""Bugs planted in private empirical risk and in what judges and predicts."""

from mutants.bug import Bug

MINIMISERS = ("tests/learning/test_minimisers.py",)
LINEAR = ("tests/learning/test_linear.py",)
PREDICTING = ("tests/learning/test_predicting.py",)
JUDGING = ("tests/learning/test_judging.py",)
OBJECTIVE = "learning/objective.py"

BUGS = [
    Bug(
        "objective perturbation forgets that replacing moves twice",
        OBJECTIVE,
        "spread = people * point_loss.slope / math.sqrt(",
        "spread = point_loss.slope / math.sqrt(",
        MINIMISERS,
    ),
    Bug(
        "pure objective perturbation forgets that replacing moves twice",
        OBJECTIVE,
        "spread = people * point_loss.slope / float(",
        "spread = point_loss.slope / float(",
        MINIMISERS,
    ),
    Bug(
        "the determinants cost nothing",
        OBJECTIVE,
        "left = price - rational(",
        "left = price - 0 * rational(",
        MINIMISERS,
    ),
    Bug("one corner for all labelings", OBJECTIVE, "ends = 2 ** (many * people)", "ends = 2", MINIMISERS),
    Bug(
        "several labelings at the price of one",
        OBJECTIVE,
        "each = mu / math.sqrt(many) * (1 - 1e-12)",
        "each = mu * (1 - 1e-12)",
        MINIMISERS,
    ),
    Bug(
        "output perturbation forgets that replacing moves twice",
        "learning/output.py",
        "moved = (people * checked(point_loss).slope + 2",
        "moved = (checked(point_loss).slope + 2",
        MINIMISERS,
    ),
    Bug(
        "a minimiser is believed before it is certified",
        "learning/minimising.py",
        "if float(np.linalg.norm(slope)) <= short / 4 and",
        "if float(np.linalg.norm(slope)) <= 100 * short or",
        MINIMISERS,
    ),
    Bug(
        "descent spends each step's price once",
        "learning/descending.py",
        "math.sqrt((mu**2 - counting.mu**2) / times)",
        "math.sqrt(mu**2 - counting.mu**2)",
        MINIMISERS,
    ),
    Bug(
        "the notes' constant under replacement",
        "learning/exponential.py",
        "reach = people * checked(point_loss).slope * far",
        "reach = checked(point_loss).slope * far",
        MINIMISERS,
    ),
    Bug(
        "rows are not shortened",
        "learning/rows.py",
        "            by = np.maximum(lengths, self.longest)\n",
        "            by = np.full(len(scaled), self.longest)\n",
        ("tests/learning/test_rows.py",),
    ),
    Bug(
        "a model is trained before it is paid for",
        "learning/linear.py",
        "        self._charge(mechanism.loss)\n        return mechanism\n",
        "        return mechanism\n",
        LINEAR,
    ),
    Bug(
        "a failing copy tells of its rows",
        "learning/predicting.py",
        "        except Exception:  # whatever it was, it may tell of a row\n            return None\n",
        "        except ZeroDivisionError:\n            return None\n",
        PREDICTING,
    ),
    Bug(
        "many predictions at the price of one",
        "learning/predicting.py",
        "self._charge(self._mechanism.loss * len(rows))",
        "self._charge(self._mechanism.loss)",
        PREDICTING,
    ),
    Bug(
        "right and wrong counts under replacement at half the noise",
        "learning/judging.py",
        'Laplace(1 if neighbours == "add-remove" else 2, epsilon',
        "Laplace(1, epsilon",
        JUDGING,
    ),
]
