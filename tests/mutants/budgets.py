"""Planted bugs of budgets, calibration, theorems and mechanisms."""

from mutants.bug import BUDGET, FORMS, THEOREMS, Bug

BUDGETS = [
    Bug(
        "a refused spend is charged",
        "privacy/budget.py",
        "                raise BudgetExceeded(",
        "                self._filter.add(loss)\n                raise BudgetExceeded(",
        BUDGET,
    ),
    Bug(
        "spends first, checks then",
        "privacy/budget.py",
        "            if not self._filter.accepts(loss, at):",
        "            self._filter.add(loss)\n            if self._filter.sum_epsilon > self._filter.epsilon:",
        BUDGET,
    ),
    Bug(
        "below, not at most",
        "privacy/budget.py",
        "if (sum_epsilon <= self.epsilon and",
        "if (sum_epsilon < self.epsilon and",
        BUDGET,
    ),
    Bug(
        "one filter takes both shares of delta",
        "privacy/budget.py",
        "and sum_delta <= self.delta / 2) or",
        "and sum_delta <= self.delta) or",
        BUDGET,
    ),
    Bug(
        "the Renyi filter takes both shares",
        "privacy/budget.py",
        "_best_order(float(epsilon), float(delta) / 2)",
        "_best_order(float(epsilon), float(delta))",
        BUDGET,
    ),
    Bug(
        "no lock",
        "privacy/budget.py",
        "        with self._lock:\n            if not self._filter.accepts(loss, at):",
        "        if True:\n            if not self._filter.accepts(loss, at):",
        BUDGET,
    ),
    Bug("deltas without counts", "privacy/budget.py", "sum(n * price[1] for", "sum(price[1] for", BUDGET),
    Bug(
        "losses without a pure price are free",
        "privacy/budget.py",
        "if whole < math.inf else self.epsilon + 1",
        "if whole < math.inf else Fraction(0)",
        BUDGET,
    ),
    Bug(
        "whatever comes first is accepted",
        "privacy/budget.py",
        "return self.count == 0 and loss.epsilon(float_down(self.delta)) <= float_down(self.epsilon)",
        "return self.count == 0",
        BUDGET,
    ),
    Bug(
        "a kept filter forgets its order",
        "privacy/budget.py",
        "found.order, found.capacity = order, _capacity(order, float(found.epsilon), float(found.delta) / 2)",
        "pass",
        BUDGET,
    ),
    Bug(
        "any spend may be priced alone",
        "privacy/budget.py",
        "return self.count == 0 and loss",
        "return loss",
        BUDGET,
    ),
    Bug(
        "a loss priced at a delta leaves the delta out",
        "privacy/budget.py",
        "            sum_delta += at",
        "            pass",
        BUDGET,
    ),
    Bug(
        "every level gets all of delta",
        "privacy/budget.py",
        "Filter(exact * k / LEVELS, room / LEVELS)",
        "Filter(exact * k / LEVELS, room)",
        BUDGET,
    ),
    Bug(
        "the odometer overlooks what has no pure price",
        "privacy/budget.py",
        "sums = level.sum_epsilon <= level.epsilon and level.sum_delta <= level.delta / 2",
        "sums = level.sum_epsilon <= level.epsilon",
        BUDGET,
    ),
    Bug(
        "relations are not compared",
        "privacy/budget.py",
        "if loss.neighbours != self.neighbours:",
        "if False:",
        BUDGET,
    ),
]

CALIBRATION = [
    Bug("calibrate returns the failing side", "privacy/calibration.py", "    return good", "    return bad", THEOREMS),
    Bug(
        "calibrate lets a thousandth pass",
        "privacy/calibration.py",
        "make_loss(parameter).epsilon(delta) <= target",
        "make_loss(parameter).epsilon(delta) <= target * 1.001",
        THEOREMS,
    ),
    Bug(
        "steps off by one",
        "privacy/calibration.py",
        "(1 if whole else RELATIVE_STEP * abs(good))",
        "(2 if whole else RELATIVE_STEP * abs(good))",
        THEOREMS,
    ),
    Bug(
        "the wrong end of a range",
        "privacy/calibration.py",
        "return low if shrinks else high",
        "return high if shrinks else low",
        THEOREMS,
    ),
]

TEACHING = [
    Bug(
        "the notes' k delta",
        "privacy/theorems.py",
        "growth = math.expm1(k * e) / math.expm1(e) if e else float(k)",
        "growth = float(k)",
        THEOREMS,
    ),
    Bug(
        "advanced composition without its 2",
        "privacy/theorems.py",
        "math.sqrt(-2 * k * math.log(room))",
        "math.sqrt(-k * math.log(room))",
        FORMS,
    ),
    Bug(
        "advanced composition without slack",
        "privacy/theorems.py",
        "min(1.0, k * d + room)",
        "min(1.0, k * d)",
        FORMS,
    ),
    Bug(
        "optimal composition's lattice",
        "privacy/theorems.py",
        "loss = (k - 2 * j) * e",
        "loss = (k - 2 * j - 1) * e",
        THEOREMS,
    ),
    Bug(
        "simulation back at epsilon",
        "privacy/theorems.py",
        "return 2 * float(check_epsilon(epsilon))",
        "return float(check_epsilon(epsilon))",
        THEOREMS,
    ),
    Bug(
        "sampling scales epsilon",
        "privacy/theorems.py",
        "return mixed(e, q), q * d",
        "return q * e, q * d",
        THEOREMS,
    ),
    Bug(
        "finite mechanisms one way only",
        "privacy/divergences.py",
        "for a, b in ((one, other), (other, one))",
        "for a, b in ((one, other),)",
        THEOREMS,
    ),
    Bug(
        "total variation twice",
        "privacy/divergences.py",
        "np.abs(first - second).sum()) / 2",
        "np.abs(first - second).sum())",
        THEOREMS,
    ),
    Bug(
        "impossible outcomes are overlooked",
        "privacy/divergences.py",
        "    if a > 1 and np.any(second[seen] == 0):\n        return math.inf\n",
        "",
        THEOREMS,
    ),
]

MECHANISMS = [
    Bug(
        "scores of both signs priced as monotone",
        "mechanisms/selection.py",
        "(1 if self.monotone else 2))",
        "(1 if self.monotone else 1))",
        ("tests/mechanisms/test_selection.py", "tests/mechanisms/test_contract.py"),
    ),
    Bug(
        "the threshold's answers too precise",
        "mechanisms/threshold.py",
        "reach * (1 if monotone else 2) / (price - for_threshold)",
        "reach / (price - for_threshold)",
        ("tests/mechanisms/test_threshold.py", "tests/mechanisms/test_contract.py"),
    ),
    Bug(
        "an answer is kept too often",
        "mechanisms/response.py",
        "return Chance.of(odds / (odds + categories - 1))",
        "return Chance.of(odds / (odds + categories - 2))",
        ("tests/mechanisms/test_response.py",),
    ),
]

BUGS: list[Bug] = [*BUDGETS, *CALIBRATION, *TEACHING, *MECHANISMS]
