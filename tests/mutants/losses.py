"""Planted bugs of losses: their algebra, kinds, sampling and JSON."""

from mutants.bug import ALGEBRA, FORMS, LOSS, THEOREMS, Bug

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

BUGS: list[Bug] = [*LOSSES, *SAMPLING, *JSON]
