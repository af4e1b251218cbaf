"""``hubbub attack reconstruct``: everybody's bit from counts of random groups."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hubbub import plots
from hubbub.attacks import AllSubsets, Questions, RandomSubsets, attack_curve, made_up_bits, reconstruct
from hubbub.attacks.answering import Answering, exact, released, rounded, suppressed
from hubbub.attacks.reconstruction import METHODS
from hubbub.cli.attack.showing import at_least, percent, progress, say_where, show
from hubbub.errors import ParameterError
from hubbub.mechanisms import Gaussian, Laplace

USUAL_PEOPLE = {"least-squares": 1000, "lp": 200, "exhaustive": 14}
BASE, BELOW = 5, 5
MOST_BITS = 4 * 10**9
"""People times questions: half a gigabyte of them."""
SWEEP = (0.05, 0.1, 0.15, 0.25, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0, 8.0, 16.0, 32.0)
"""Noise in the picture, in units of the square root of the number of people."""


@dataclass(frozen=True)
class Plan:
    """What will be asked, and how it will be attacked."""

    questions: Questions
    method: Any
    share: float
    epsilons: tuple[float, ...]
    seed: int

    @property
    def people(self) -> int:
        """How many people are made up."""
        return self.questions.people


def planned(people: int | None, questions: float, method: str, share: float, epsilons: list[float], seed: int) -> Plan:
    """The plan asked for, refused if it cannot be carried out."""
    if method not in METHODS:
        raise ParameterError("method", method, f"must be one of {', '.join(METHODS)}")
    size = at_least("people", USUAL_PEOPLE[method] if people is None else people, 2)
    if not 0 <= share <= 1:
        raise ParameterError("share", share, "must lie in [0, 1]")
    if not 1 <= questions <= 1000:
        raise ParameterError("questions", questions, "must lie in [1, 1000]")
    if method == "exhaustive":
        return Plan(AllSubsets(size), method, share, tuple(epsilons), seed)
    if questions * size**2 > MOST_BITS:
        raise ParameterError("people", size, f"are too many to ask {questions:g} questions each about")
    return Plan(RandomSubsets(math.ceil(questions * size), size, seed), method, share, tuple(epsilons), seed)


def report(plan: Plan, *, as_json: bool, picture: Path | None) -> None:
    """Attacks every way of answering in turn, and prints how many bits came out right."""
    secret = made_up_bits(plan.people, plan.share, plan.seed + 1)
    ways: dict[str, tuple[Answering, float | None, float]] = {
        "exact": (exact(secret), 0.0, 0.0),
        f"rounded to {BASE}s": (rounded(secret, BASE), float(BASE // 2), BASE / math.sqrt(12)),
        f"below {BELOW} withheld": (suppressed(secret, BELOW), 0.0, 0.0),
    }
    for epsilon in plan.epsilons:
        mechanism = _mechanism(plan, epsilon)
        ways[f"hubbub, epsilon = {epsilon:g} in all"] = released(secret, mechanism.release), None, _spread(mechanism)
    rows = []
    sweeps = _sweeps(plan) if picture else []
    with progress(len(ways) + len(sweeps) * len(SWEEP), "attacking") as step:
        for name, (answering, max_error, spread) in ways.items():
            told = answering(plan.questions)
            row: dict[str, Any] = {"answers": name, "spread": spread, "answered": int(np.sum(~np.isnan(told)))}
            if row["answered"]:
                weighed = max_error is None and plan.method == "least-squares" and 0 < plan.share < 1
                belief: dict[str, Any] = {"stddev": spread, "share": plan.share} if weighed else {}
                guess = reconstruct(plan.questions, told, plan.method, max_error=max_error, **belief)
                row |= {"right": guess.accuracy(secret), "wrong": guess.wrong(secret), "bound": guess.bound}
            rows.append(row)
            step()
        if picture:
            plots.save(_drawn(plan, secret, sweeps, step), picture)
    majority = max(plan.share, 1 - plan.share)
    about = {
        "story": f"{plan.people} people, {len(plan.questions)} questions, {plan.method}",
        "people": plan.people,
        "questions": len(plan.questions),
        "method": plan.method,
        "guessing": majority,
    }
    titles = {"answers": "answers", "spread": "noise (sd)", "right": "bits right", "bound": "wrong at most"}
    shown = [row | {"right": percent(row["right"]) if "right" in row else None} for row in rows]
    closing = f"Whoever guesses the same bit for all is right {percent(majority)} of the time."
    show(about, rows if as_json else shown, titles, closing, as_json=as_json)
    say_where(picture, as_json=as_json)


def _mechanism(plan: Plan, epsilon: float) -> Laplace:
    """One person is counted in so many questions at most, so all answers together cost epsilon."""
    return Laplace(plan.questions.overlap, epsilon=epsilon)


def _spread(mechanism: Laplace) -> float:
    return math.sqrt(mechanism.variance)


def _sweeps(plan: Plan) -> list[Questions]:
    """The questions of the picture: as many as were asked, and, if they are random, half and double."""
    if not isinstance(plan.questions, RandomSubsets):
        return [plan.questions]
    counts = (plan.questions.count // 2, plan.questions.count, 2 * plan.questions.count)
    return [RandomSubsets(count, plan.people, plan.seed) for count in counts if count > plan.people]


def _drawn(plan: Plan, secret: Any, sweeps: list[Questions], step: Callable[[], object]) -> plots.AnyChart:
    """Accuracy against noise, hubbub's own noise marked."""
    noises = [c * math.sqrt(plan.people) for c in SWEEP]
    curves = [
        attack_curve(
            secret, lambda sd: Gaussian(1.0, sigma=sd).release, noises, questions=asked, method=plan.method, each=step
        )
        for asked in sweeps
    ]
    marks = {f"hubbub, epsilon = {epsilon:g}": _spread(_mechanism(plan, epsilon)) for epsilon in plan.epsilons}
    return plots.reconstruction_accuracy(curves, marks)
