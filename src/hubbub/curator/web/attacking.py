"""Attacks on a made-up village, small enough to run while somebody waits: one person from two counts, all from many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from hubbub.attacks import (
    AttackCurve,
    Questions,
    RandomSubsets,
    attack_curve,
    difference,
    exact,
    made_up_bits,
    questions,
    reconstruct,
    released,
    rounded,
    single_out,
    suppressed,
)
from hubbub.attacks.answering import Answering
from hubbub.mechanisms import Gaussian, Laplace

PEOPLE, BASE, BELOW = 100, 5, 5
SECRET = tuple(int(bit) for bit in made_up_bits(PEOPLE, 0.5, seed=1))
"""Who of the made-up residents is for the dam."""
NOISES = (0.3, 1.0, 3.0, 6.0, 10.0, 20.0, 40.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0)
WAYS = {
    "exact": "exact counts",
    "suppressed": f"counts below {BELOW} withheld",
    "rounded": f"counts rounded to {BASE}s",
    "private": "hubbub",
}


@dataclass(frozen=True)
class Singled:
    """What two counts, or a few, say of one resident."""

    way: str
    told: tuple[str, ...]
    """The answers, in words."""
    belief: float
    """That the resident is for the dam, of somebody who thought it a toss-up."""
    certain: bool


@dataclass(frozen=True)
class Rebuilt:
    """What many counts say of everybody."""

    way: str
    right: tuple[bool, ...]
    answered: int
    noise: float
    """The spread of one answer's error."""

    @property
    def share(self) -> float:
        """Of residents whose opinion was found out."""
        return sum(self.right) / len(self.right)

    @property
    def wrong(self) -> list[int]:
        """The residents of whom the attacker believes the wrong thing."""
        return [n for n, right in enumerate(self.right, 1) if not right]


@lru_cache(maxsize=8)
def subsets(count: int) -> Questions:
    """The attacker's questions: random halves of the village."""
    return RandomSubsets(count, PEOPLE, seed=0)


def rebuilt(count: int, epsilon: float) -> list[Rebuilt]:
    """Everybody's opinion from so many counts, answered in each of four ways; noise is fresh every time."""
    asked = subsets(count)
    mechanism = Laplace(asked.overlap, epsilon=epsilon)
    spread = math.sqrt(mechanism.variance)
    ways: dict[str, tuple[Answering, float]] = {
        "exact": (exact(SECRET), 0.0),
        "suppressed": (suppressed(SECRET, BELOW), 0.0),
        "rounded": (rounded(SECRET, BASE), BASE / math.sqrt(12)),
        "private": (released(SECRET, mechanism.release), spread),
    }
    found = []
    for way, (answering, noise) in ways.items():
        guess = reconstruct(asked, answering, stddev=noise if way == "private" else None)
        right = tuple(bool(g == bit) for g, bit in zip(guess.bits, SECRET, strict=True))
        found.append(Rebuilt(WAYS[way], right, guess.answered, noise))
    return found


def singled(person: int, epsilon: float) -> list[Singled]:
    """One resident's opinion (counted from 0) from counts, answered in each of four ways."""
    tables: list[tuple[str, Answering, dict[str, int]]] = [
        ("exact", exact(SECRET), {}),
        ("suppressed", suppressed(SECRET, BELOW), {"below": BELOW}),
        ("rounded", rounded(SECRET, BASE), {"max_error": BASE // 2}),
    ]
    found = []
    for way, answering, known in tables:
        learnt = single_out(answering, person, PEOPLE, **known)  # type: ignore[arg-type]
        belief = 0.5 if learnt.value is None else float(learnt.value)
        told = (f"for {learnt.trick}", f"{learnt.asked} question{'s' if learnt.asked != 1 else ''}")
        found.append(Singled(WAYS[way], told, belief, learnt.value is not None))
    pair = questions([[1] * PEOPLE, [int(i != person) for i in range(PEOPLE)]])
    mechanism = Laplace(pair.overlap, epsilon=epsilon)
    everybody, others = released(SECRET, mechanism.release)(pair)
    guess = difference(everybody, others, noise=mechanism.distribution(0))
    told = ("for everybody, and everybody else", f"told {everybody:.0f} and {others:.0f} this time")
    return [*found, Singled(WAYS["private"], told, guess.posterior[1], certain=False)]


@lru_cache(maxsize=8)
def curve(count: int) -> AttackCurve:
    """The same reconstruction against growing noise, once for every number of questions."""
    return attack_curve(SECRET, lambda sd: Gaussian(1.0, sigma=sd).release, NOISES, questions=subsets(count))
