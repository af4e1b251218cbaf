"""Planted bugs of PATE."""

from mutants.bug import Bug

AGGREGATORS = ("tests/learning/pate/test_aggregators.py",)
ACCOUNTING = ("tests/learning/pate/test_accounting.py",)
SMOOTH = ("tests/learning/pate/test_smooth.py",)
DEALING = ("tests/learning/pate/test_dealing.py",)
PATE = ("tests/learning/pate/test_pate.py",)

BUGS = [
    Bug(
        "Laplace noise of scale 1/epsilon is said to cost epsilon",
        "learning/pate/aggregators.py",
        "epsilon=2 / width, noise=",
        "epsilon=1 / width, noise=",
        AGGREGATORS,
    ),
    Bug(
        "a moved vote is counted once",
        "learning/pate/counting.py",
        "_mu=nudged_up(math.sqrt(2) / float_down(width)),",
        "_mu=nudged_up(1 / float_down(width)),",
        AGGREGATORS + ACCOUNTING,
    ),
    Bug(
        "people are dealt by position",
        "learning/pate/dealing.py",
        "int.from_bytes(blake2b(name.encode(), key=secret, digest_size=16).digest()) % many for name in names]",
        "k % many for k, name in enumerate(names)]",
        DEALING,
    ),
    Bug(
        "rows are dealt, not people",
        "learning/pate/dealing.py",
        "places.setdefault(name, len(places)) for name in names]",
        "places.setdefault((name, len(places)), len(places)) for name in names]",
        DEALING,
    ),
    Bug(
        "dealing at random goes round",
        "learning/pate/dealing.py",
        "        return np.asarray(uniform_below(many, rows, bits), np.int64)",
        "        return (np.arange(rows) + int(uniform_below(many, 1, bits)[0])) % many",
        DEALING,
    ),
    Bug(
        "the check's noise is one for all questions",
        "learning/pate/counting.py",
        "        return max(whole_votes(value)) + self._law.draw(bits) >= self._least",
        "        self.__dict__.setdefault('once', self._law.draw(bits))\n"
        "        return max(whole_votes(value)) + self.__dict__['once'] >= self._least",
        AGGREGATORS,
    ),
    Bug(
        "the check has no noise",
        "learning/pate/counting.py",
        "max(whole_votes(value)) + self._law.draw(bits) >= self._least",
        "max(whole_votes(value)) >= self._least",
        AGGREGATORS,
    ),
    Bug(
        "all classes share one draw of noise",
        "learning/pate/counting.py",
        "        noisy = [n + self._law.draw(bits) for n in votes]",
        "        shift = self._law.draw(bits)\n        noisy = [n + shift for n in votes]",
        AGGREGATORS,
    ),
    Bug(
        "checks are free",
        "learning/pate/aggregators.py",
        "        return compose([self.check.loss * questions, self.choice.loss * labels])",
        "        return self.choice.loss * labels",
        AGGREGATORS,
    ),
    Bug(
        "answers beyond those paid for",
        "learning/pate/aggregators.py",
        "                left -= 1\n",
        "                left -= 0\n",
        AGGREGATORS,
    ),
    Bug(
        "the card tells the owner's epsilon",
        "learning/pate/pate.py",
        "        low, high = self.loss_.epsilon_interval(check_delta(delta))",
        "        low, high = 0.0, self.for_owner().epsilon(delta)",
        (PATE[0] + "::test_what_is_shown_of_prices_does_not_depend_on_votes",),
    ),
    Bug(
        "loss_ is the price at these very votes",
        "learning/pate/pate.py",
        "        self._votes, self._shape, self._ran = votes, asked.shape[1:], aggregator\n",
        "        self._votes, self._shape, self._ran = votes, asked.shape[1:], aggregator\n"
        "        self.loss_ = self.for_owner().loss()\n",
        (PATE[0] + "::test_what_is_shown_of_prices_does_not_depend_on_votes",),
    ),
    Bug(
        "the student's pickle holds the votes",
        "learning/pate/pate.py",
        '        return {**state, "_votes": None} if "_votes" in state else state',
        "        return state",
        (PATE[0] + "::test_copies_of_the_student_carry_no_votes",),
    ),
    Bug(
        "votes are trained before they are paid for",
        "learning/pate/pate.py",
        "        if votes is None or key not in votes.record:\n            self._charge(price)\n",
        "        if lesson:\n            lesson.votes()\n            lesson = None\n            self._charge(price)\n",
        (PATE[0] + "::test_nothing_is_taught_before_it_is_paid_for",),
    ),
    Bug(
        "labels of saved votes are drawn again for nothing",
        "learning/pate/pate.py",
        '        labels = votes.record.get(key, {}).get("labels")\n',
        "        labels = None\n",
        (PATE[0] + "::test_votes_are_kept_for_their_owner_and_labels_drawn_once",),
    ),
    Bug(
        "other questions to saved votes are free",
        "learning/pate/pate.py",
        "        if votes is None or key not in votes.record:",
        "        if votes is None:",
        (PATE[0] + "::test_votes_are_kept_for_their_owner_and_labels_drawn_once",),
    ),
    Bug(
        "anybody may read the votes",
        "learning/pate/votes.py",
        "0o600",
        "0o644",
        (PATE[0] + "::test_votes_are_kept_for_their_owner_and_labels_drawn_once",),
    ),
    Bug(
        "teachers share chance",
        "learning/pate/seeds.py",
        'sys.modules["random"], check_random_state(None)',
        'sys.modules["random"], check_random_state(0)',
        (PATE[0] + "::test_chance_used_by_one_teacher_does_not_move_another",),
    ),
    Bug(
        "a teacher that fails tells why",
        "learning/pate/teachers.py",
        "    except Exception:  # whatever it was, it may tell of a row\n",
        "    except ZeroDivisionError:\n",
        (PATE[0] + "::test_teachers_that_fail_vote_for_the_first_class",),
    ),
    Bug(
        "one way round is enough",
        "learning/pate/accounting.py",
        "        (theirs * np.exp((1 - order) * ratio)).sum(axis=1) * grown + _rest(rest_others, order, whole),\n",
        "",
        ACCOUNTING,
    ),
    Bug(
        "what is no number costs nothing",
        "learning/pate/accounting.py",
        "    return math.inf if math.isnan(found) else max(0.0, found) / (order - 1)",
        "    return max(0.0, found) / (order - 1)",
        ACCOUNTING,
    ),
    Bug(
        "votes dealt by a key are read under replace",
        "learning/pate/pate.py",
        '        if found.keyed and aggregator.neighbours == "replace":',
        "        if False:",
        (PATE[0] + "::test_votes_dealt_by_a_key_are_not_read_as_if_dealt_at_random",),
    ),
    Bug(
        "the vote that left is forgotten",
        "learning/pate/accounting.py",
        "        others[i, :, i] = down @ (law.pmf(at[i] + 1) * rest)",
        "        others[i, :, i] = down @ (law.pmf(at[i]) * rest)",
        ACCOUNTING,
    ),
    Bug(
        "rare outcomes are left out",
        "learning/pate/accounting.py",
        "RARE = 1e-18",
        "RARE = 1e-2",
        ACCOUNTING,
    ),
    Bug(
        "ties go to nobody",
        "learning/pate/accounting.py",
        "        least = np.where(first, below[-1], below[0])",
        "        least = below[-1]",
        ACCOUNTING,
    ),
    Bug(
        "a lead falls by one",
        "learning/pate/smooth.py",
        "log_ndtr(-(lead - 3) /",
        "log_ndtr(-(lead + 1) /",
        SMOOTH,
    ),
    Bug(
        "leads further away are not looked at",
        "learning/pate/smooth.py",
        "        change, distance = maximum_filter(change, window), distance + 1",
        "        distance += 1",
        SMOOTH,
    ),
    Bug(
        "one teacher moves a lead by one",
        "learning/pate/smooth.py",
        "    window = (3 if len(table) > 1 else 1, 5)",
        "    window = (3 if len(table) > 1 else 1, 3)",
        SMOOTH,
    ),
    Bug(
        "noise is priced as if its size told nothing",
        "learning/pate/smooth.py",
        "* left) + max(spread)) *",
        "* left)) *",
        SMOOTH,
    ),
    Bug(
        "a released epsilon is free",
        "learning/pate/smooth.py",
        '        budget.spend(loss, note="released epsilon of votes")',
        "        pass",
        SMOOTH,
    ),
]
