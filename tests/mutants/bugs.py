"""Planted bugs: dropped factors, rounding to the wrong side, a missing direction, a check that comes too late."""

from mutants.bug import Bug

ENCLOSURE = ("tests/numeric/test_enclosure.py",)
RATIONAL = ("tests/numeric/test_rational.py",)
LOSS = ("tests/privacy/test_loss.py",)
ALGEBRA = ("tests/privacy/test_algebra.py",)
BUDGET = ("tests/privacy/test_budget.py",)
THEOREMS = ("tests/privacy/test_theorems.py",)
FORMS = ("tests/privacy/test_forms.py",)
REFERENCE = ("tests/privacy/test_reference.py::test_never_below_the_truth",)

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
        "((high - order) * ends[0] + (order - low) * ends[1])",
        "((high - order) * ends[1] + (order - low) * ends[0])",
        FORMS,
    ),
    Bug("the rate squared", "privacy/renyi.py", "+ k * math.log(rate) +", "+ 2 * k * math.log(rate) +", FORMS),
]

LOSSES = [
    Bug(
        "nothing is nudged up",
        "privacy/loss.py",
        "return value + abs(value) * 2.0**-48 + 5e-324",
        "return value",
        LOSS,
    ),
    Bug(
        "repeats forget earlier repeats",
        "privacy/loss.py",
        "Composed(tuple((part, n * repeated) for part, n in self._parts()))",
        "Composed(tuple((part, repeated) for part, n in self._parts()))",
        ALGEBRA,
    ),
    Bug(
        "merged parts counted once",
        "privacy/loss.py",
        'merged[part] = merged.get(part, 0) + m * count("count", n)',
        'merged[part] = m * count("count", n)',
        ALGEBRA,
    ),
    Bug("sums lose the relation", "privacy/loss.py", "if len(relations) > 1:", "if len(relations) > 2:", ALGEBRA),
    Bug(
        "composed losses mix relations",
        "privacy/loss.py",
        "if len({part.neighbours for part in merged}) > 1:",
        "if len({part.neighbours for part in merged}) > 2:",
        ALGEBRA,
    ),
    Bug(
        "a group of one is not oneself",
        "privacy/loss.py",
        "        if people == 1:\n            return self\n",
        "",
        ALGEBRA,
    ),
    Bug(
        "replacing costs one step",
        "privacy/loss.py",
        "Loss.from_dict(self._group(2).to_dict()",
        "Loss.from_dict(self._group(1).to_dict()",
        ALGEBRA,
    ),
    Bug("pure sums without counts", "privacy/loss.py", "total += n * pure", "total += pure", ALGEBRA),
    Bug(
        "Gaussians join without counts",
        "privacy/loss.py",
        'squares += n * max(Fraction(mu), rational("mu", mu)) ** 2',
        'squares += max(Fraction(mu), rational("mu", mu)) ** 2',
        ALGEBRA,
    ),
    Bug(
        "trade-off forgets delta",
        "privacy/loss.py",
        "best = max(best, 1 - delta - grown * rate, (1 - delta - rate) / grown)",
        "best = max(best, 1 - grown * rate, (1 - rate) / grown)",
        ALGEBRA,
    ),
    Bug(
        "posterior's factor upside down",
        "privacy/loss.py",
        "belief / (belief + (1 - belief) * factor)",
        "belief / (belief + (1 - belief) / factor)",
        ALGEBRA,
    ),
    Bug(
        "groups with k delta",
        "privacy/families.py",
        "growth = math.expm1(min(size * e, 700.0)) / math.expm1(min(e, 700.0)) if e else float(size)",
        "growth = float(size)",
        THEOREMS,
    ),
    Bug(
        "delta is not added",
        "privacy/families.py",
        "nudged_up(self.delta_bound + (1 - self.delta_bound) * beyond)",
        "nudged_up((1 - self.delta_bound) * beyond)",
        FORMS,
    ),
    Bug(
        "failures are forgotten",
        "privacy/families.py",
        "(epsilon, keep)), infinity=failure)",
        "(epsilon, keep)), infinity=0.0)",
        FORMS,
    ),
    Bug(
        "stated delta is not enough",
        "privacy/families.py",
        'if check_delta(delta) < rational("delta", self.delta_bound):',
        'if check_delta(delta) < rational("delta", self.delta_bound) / 2:',
        LOSS,
    ),
    Bug(
        "zCDP groups grow linearly",
        "privacy/families.py",
        'rational("rho", self.rho) * size**2',
        'rational("rho", self.rho) * size',
        ALGEBRA,
    ),
    Bug(
        "Renyi groups double",
        "privacy/families.py",
        "e * 3**doublings",
        "e * 2**doublings",
        FORMS,
    ),
    Bug(
        "chord between Renyi orders",
        "privacy/families.py",
        "(upper - a) * (low - 1) * self.epsilons[k - 1]",
        "(upper - a) * (low - 2) * self.epsilons[k - 1]",
        ALGEBRA,
    ),
    Bug(
        "Renyi beyond the last order",
        "privacy/families.py",
        "                return nudged_up(own)\n        return math.inf",
        "                return nudged_up(own)\n        return self.epsilons[-1]",
        ALGEBRA,
    ),
    Bug(
        "bounded range too cheap",
        "privacy/families.py",
        "max(0.0, x - 1 - math.log(x) - e * e / 8) + e * e * a / 8))",
        "max(0.0, x - 1 - math.log(x) - e * e / 8) + e * e * a / 16))",
        FORMS,
    ),
]

SAMPLING = [
    Bug(
        "the sampling rate squared",
        "privacy/sampling.py",
        'object.__setattr__(self, "rate", float_up(share))\n        object.__setattr__(self, "scheme", scheme)',
        'object.__setattr__(self, "rate", float_up(share * share))\n        object.__setattr__(self, "scheme", scheme)',
        ALGEBRA,
    ),
    Bug(
        "Poisson under replace-one",
        "privacy/sampling.py",
        'wanted = "add-remove" if scheme == "poisson" else "replace"',
        'wanted = "replace" if scheme == "poisson" else "add-remove"',
        ALGEBRA,
    ),
    Bug(
        "failures are sampled away",
        "privacy/sampling.py",
        "if pair is None or not pair.symmetric or pair.infinity:",
        "if pair is None or not pair.symmetric:",
        FORMS,
    ),
    Bug(
        "amplification linear in epsilon",
        "privacy/sampling.py",
        "Fraction(nudged_up(mixed(float_up(pure), self.rate)))",
        "Fraction(nudged_up(float_up(pure) * self.rate))",
        ALGEBRA,
    ),
    Bug(
        "replace-one as add-remove",
        "privacy/sampling.py",
        "((1 - q, 0.0), (q, 1.0)), ((1 - q, 0.0), (q, -1.0))",
        "((1 - q, 0.0), (q, 1.0)), ((1.0, 0.0),)",
        FORMS,
    ),
    Bug(
        "a group's mixture without binomials",
        "privacy/sampling.py",
        "(math.comb(self.people, j) * q**j",
        "(q**j",
        FORMS,
    ),
    Bug(
        "Renyi of a replacement, one step",
        "privacy/sampling.py",
        'steps = 2 if self.neighbours == "replace" else self.people',
        'steps = 1 if self.neighbours == "replace" else self.people',
        FORMS,
    ),
    Bug(
        "Renyi of a group, one person",
        "privacy/sampling.py",
        'steps = 2 if self.neighbours == "replace" else self.people',
        'steps = 2 if self.neighbours == "replace" else 1',
        FORMS,
    ),
]

JSON = [
    Bug(
        "unknown tags cost nothing",
        "privacy/kinds.py",
        'raise ParameterError("loss", tag, f"must be one of',
        'return NoLoss()\n        raise ParameterError("loss", tag, f"must be one of',
        ALGEBRA,
    ),
    Bug(
        "unknown and missing fields pass",
        "privacy/kinds.py",
        'if set(data) != set(loss.to_dict()) or data["neighbours"] != loss.neighbours:',
        'if data.get("neighbours", loss.neighbours) != loss.neighbours:',
        ALGEBRA,
    ),
    Bug(
        "the written relation is ignored",
        "privacy/kinds.py",
        ' or data["neighbours"] != loss.neighbours:',
        ":",
        ALGEBRA,
    ),
]

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
        "            if not self._filter.accepts(loss):",
        "            self._filter.add(loss)\n            if self._filter.sum_epsilon > self._filter.epsilon:",
        BUDGET,
    ),
    Bug(
        "below, not at most",
        "privacy/budget.py",
        "return (sum_epsilon <= self.epsilon and",
        "return (sum_epsilon < self.epsilon and",
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
        "        with self._lock:\n            if not self._filter.accepts(loss):",
        "        if True:\n            if not self._filter.accepts(loss):",
        BUDGET,
    ),
    Bug("deltas without counts", "privacy/budget.py", "sum_delta += n * rational(", "sum_delta += rational(", BUDGET),
    Bug(
        "losses without a pure price are free",
        "privacy/budget.py",
        "sum_delta = Fraction(1)  # no such price",
        "sum_delta = Fraction(0)  # no such price",
        BUDGET,
    ),
    Bug(
        "every level gets all of delta",
        "privacy/budget.py",
        "_Filter(exact * k / LEVELS, room / LEVELS)",
        "_Filter(exact * k / LEVELS, room)",
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
        "math.sqrt(2 * k * math.log(1 / room))",
        "math.sqrt(k * math.log(1 / room))",
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
        "return math.log1p(q * math.expm1(e)), q * d",
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

BUGS: list[Bug] = [
    *NUMERIC,
    *GAUSSIAN,
    *RENYI,
    *LOSSES,
    *SAMPLING,
    *JSON,
    *BUDGETS,
    *CALIBRATION,
    *TEACHING,
    *PAIRS,
    *MECHANISMS,
]
