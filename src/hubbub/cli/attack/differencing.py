"""``hubbub attack difference``: one person's bit from two counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hubbub import plots
from hubbub.attacks import difference, made_up_bits, single_out
from hubbub.attacks.answering import Answering, exact, rounded, suppressed
from hubbub.cli.attack.showing import at_least, percent, progress, say_where, show
from hubbub.errors import ParameterError
from hubbub.mechanisms import Laplace

BASE = 5


@dataclass(frozen=True)
class Plan:
    """Who is made up, and what they are attacked through."""

    people: int
    below: int
    epsilons: tuple[float, ...]
    repeats: int
    seed: int


def planned(people: int, below: int, epsilons: list[float], repeats: int, seed: int) -> Plan:
    """The plan asked for, refused if it cannot be carried out."""
    if people > 5000:
        raise ParameterError("people", people, "must be at most 5000", "each of them is attacked in turn")
    return Plan(
        at_least("people", people, 2),
        at_least("below", below, 1),
        tuple(epsilons),
        at_least("repeats", repeats, 1),
        seed,
    )


def report(plan: Plan, *, as_json: bool, picture: Path | None) -> None:
    """Attacks every person through every way of answering, and prints how many were found out."""
    secret = made_up_bits(plan.people, 0.5, plan.seed)
    counting: dict[str, tuple[Answering, dict[str, Any]]] = {
        "exact": (exact(secret), {}),
        f"below {plan.below} withheld": (suppressed(secret, plan.below), {"below": plan.below}),
        f"rounded to {BASE}s": (rounded(secret, BASE), {"max_error": BASE // 2}),
    }
    noisy = [(epsilon, 1) for epsilon in plan.epsilons] + [(plan.epsilons[-1], plan.repeats)] * (plan.repeats > 1)
    mechanisms = {(epsilon, times): Laplace(1, epsilon=epsilon) for epsilon, times in noisy}
    rows: list[dict[str, Any]] = []
    with progress((len(counting) + len(mechanisms)) * plan.people, "attacking") as step:
        for name, (answering, known) in counting.items():
            rows.append({"answers": name, "ceiling": None, **_certain(plan, secret, answering, known, step)})
        for (epsilon, times), mechanism in mechanisms.items():
            asked = "" if times == 1 else f", {times} times"
            ceiling = 1 / (1 + math.exp(-epsilon * times))
            guessed = _guessed(plan, secret, mechanism, times, step)
            rows.append({"answers": f"hubbub, epsilon = {epsilon:g}{asked}", "ceiling": ceiling, **guessed})
    if picture:
        plots.save(plots.posterior(plan.epsilons), picture)
    about = {"story": f"{plan.people} people, each attacked in turn", "people": plan.people, "below": plan.below}
    titles = {
        "answers": "answers",
        "certain": "certain",
        "right": "right",
        "ceiling": "at most",
        "trick": "by asking for",
    }
    shares = ("certain", "right", "ceiling")
    shown = [
        {key: percent(value) if key in shares and value is not None else value for key, value in row.items()}
        for row in rows
    ]
    closing = "Tossing a coin is right half of the time; 'at most' is what epsilon promises, on average over people."
    show(about, rows if as_json else shown, titles, closing, as_json=as_json)
    say_where(picture, as_json=as_json)


def _certain(
    plan: Plan, secret: Any, answering: Answering, known: dict[str, Any], step: Callable[[], object]
) -> dict[str, Any]:
    """The share of people whose bit comes out for certain, and the trick that mostly did it."""
    tricks: dict[str | None, int] = {}
    for person in range(plan.people):
        found = single_out(answering, person, plan.people, seed=plan.seed, **known)
        if found.value is not None and found.value == secret[person]:
            tricks[found.trick] = tricks.get(found.trick, 0) + 1
        step()
    share = sum(tricks.values()) / plan.people
    usual = max(tricks, key=lambda trick: tricks[trick], default=None)
    return {"certain": share, "right": share + (1 - share) / 2, "trick": usual}


def _guessed(plan: Plan, secret: Any, mechanism: Laplace, times: int, step: Callable[[], object]) -> dict[str, Any]:
    """The share of people whose bit is guessed right from noisy counts of everybody, and of everybody else."""
    law, total, right = mechanism.distribution(0), int(secret.sum()), 0
    for bit in secret.tolist():
        everybody = mechanism.release(np.full(times, total))
        others = mechanism.release(np.full(times, total - bit))
        right += difference(everybody, others, noise=law).guess == bit
        step()
    return {"certain": 0.0, "right": right / plan.people, "trick": "everybody, and everybody else"}
