"""What must be true of a ledger after anything: promises kept, nothing charged twice, overspent or stuck."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import hubbub as hb
from hubbub.curator import Ledger
from hubbub.errors import BudgetExceeded

Key = tuple[str, str, str]
"""Data set, analyst, key."""


@dataclass
class Promises:
    """What somebody was told: charges that were returned, and answers that may have been shown."""

    opened: set[str] = field(default_factory=set)
    charged: dict[Key, str] = field(default_factory=dict)
    """The digest of the entry."""
    answered: dict[Key, str] = field(default_factory=dict)
    full: set[str] = field(default_factory=set)
    """Data sets that had no room for one more."""

    def copy(self) -> Promises:
        return Promises(set(self.opened), dict(self.charged), dict(self.answered), set(self.full))


@dataclass(frozen=True)
class Found:
    """What the check of a ledger has seen."""

    charges: int
    answers: int
    resumed: int


def check(url: str, promises: Promises, *, mark: Path | None = None, resume: bool = False, each: float = 0.01) -> Found:
    """LEDG: each answer has exactly one durable charge, sums fit, chains add up; AssertionError or LedgerBroken else.

    With ``resume``, charges without an answer are asked for again under their keys: they are found, not made, and
    one more of the size ``each`` can be charged or is refused for want of budget only.
    """
    charges, answers, resumed = 0, 0, 0
    with closing(Ledger(url, mark)) as ledger:
        assert promises.opened <= set(ledger.datasets())
        digests, bodies = {}, {}
        for dataset in ledger.datasets():
            entries = ledger.entries(dataset)
            assert ledger.verify(dataset) == len(entries)
            charges += len(entries)
            digests |= {(dataset, e.analyst, e.key): e.digest for e in entries}
            assert max(Counter((e.analyst, e.key) for e in entries).values(), default=1) == 1
            limit = [x for x in ledger.limits(dataset) if x.analyst is None][-1]
            spent = sum((e.loss._basic_total()[0] for e in entries), Fraction(0))  # type: ignore[index]
            assert spent <= Fraction(limit.epsilon)
            bodies |= {(dataset, e.analyst, e.key): ledger.answer_of(e) for e in entries}
            for e in entries:
                if resume and bodies[dataset, e.analyst, e.key] is None:
                    again = ledger.charge(
                        dataset, e.analyst, key=e.key, question=e.question, loss=e.loss, delta=Fraction(e.delta)
                    )
                    assert not again.fresh
                    assert again.entry == e
                    assert ledger.store_answer(again.entry, "resumed") == "resumed"
                    resumed += 1
            left = ledger.remaining(dataset)
            assert left < each or dataset not in promises.full
            if resume:
                try:
                    key = f"after everything, {len(entries)}"
                    assert ledger.charge(dataset, "eve", key=key, question=key, loss=hb.PureDP(each)).fresh
                    assert left >= each
                except BudgetExceeded:
                    assert left < each
                ledger.verify(dataset)
        for key, digest in promises.charged.items():
            assert digests.get(key) == digest, f"lost: {key}"
        for key, body in promises.answered.items():
            assert bodies.get(key) == body, f"lost: the answer to {key}"
        answers = sum(body is not None for body in bodies.values())
    return Found(charges, answers, resumed)
