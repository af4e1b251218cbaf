"""``hubbub attack membership``: who was in the data, from means or from a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hubbub import plots
from hubbub.attacks import Membership, likelihood_ratio_attack, predicted_power, trace
from hubbub.attacks.coins import coins
from hubbub.cli.attack.showing import at_least, progress, say_where, show
from hubbub.cli.attack.victim import Logistic
from hubbub.errors import ParameterError
from hubbub.mechanisms import Gaussian
from hubbub.privacy import Loss

AGAINST = ("means", "model")
OTHERS = 2000
"""People who were not in the data, to count false alarms with."""
RATES = (0.001, 0.01, 0.1)
USUAL_ATTRIBUTES = {"means": 1000, "model": 50}
CLOSING = """'At 1%': the share of members found where 1% of others are accused, beside what theory expects.
Guessing has an AUC of 0.5 and an advantage of 0."""
RIDGES = {"model, ridge 0.0001": 1e-4, "model, ridge 1": 1.0}


@dataclass(frozen=True)
class Plan:
    """Who is made up, and what is published about them."""

    against: str
    people: int
    attributes: int
    epsilons: tuple[float, ...]
    delta: float
    shadows: int
    seed: int


def planned(
    against: str, people: int, attributes: int | None, epsilons: list[float], delta: float, shadows: int, seed: int
) -> Plan:
    """The plan asked for, refused if it cannot be carried out."""
    if against not in AGAINST:
        raise ParameterError("against", against, f"must be one of {', '.join(AGAINST)}")
    if not 0 < delta < 1:
        raise ParameterError("delta", delta, "must lie strictly between 0 and 1", "Gaussian noise needs some")
    least = 2 if against == "means" else 20
    people = at_least("people", people, least)
    attributes = at_least("attributes", USUAL_ATTRIBUTES[against] if attributes is None else attributes, 1)
    if max(people, OTHERS) * attributes > 2 * 10**8:
        raise ParameterError("attributes", attributes, "are too many for so many people")
    return Plan(against, people, attributes, tuple(epsilons), delta, shadows, seed)


def report(plan: Plan, *, as_json: bool, picture: Path | None) -> None:
    """Attacks what was published, in every way it was, and prints how well members were told from others."""
    steps = 2 + len(plan.epsilons) if plan.against == "means" else plan.shadows * len(RIDGES)
    with progress(steps, "attacking") as step:
        attack = _means if plan.against == "means" else _model
        found, losses, expected = attack(plan, step)
    if picture:
        plots.save(plots.membership_roc({name: f.roc() for name, f in found.items()}, losses), picture)
    rows: list[dict[str, Any]] = [
        {
            "published": name,
            "auc": seen.auc,
            "advantage": seen.advantage,
            "found": {f"{rate:g}": seen.true_positive_rate(rate) for rate in RATES},
            "expected": expected.get(name),
        }
        for name, seen in found.items()
    ]
    titles = {"published": "published", "auc": "AUC", "advantage": "advantage"}
    titles |= {f"{rate:g}": f"at {100 * rate:g}%" for rate in RATES}
    titles |= {"expected": "theory"} if expected else {}
    shown = [{**row, **row["found"]} for row in rows]
    about = {
        "story": f"{plan.people} members, {plan.attributes} attributes, {plan.against} published",
        "people": plan.people,
        "attributes": plan.attributes,
        "against": plan.against,
    }
    show(about, rows if as_json else shown, titles, CLOSING, as_json=as_json)
    say_where(picture, as_json=as_json)


Found = tuple[dict[str, Membership], dict[str, Loss], dict[str, float]]


def _means(plan: Plan, step: Callable[[], object]) -> Found:
    """Tracing by the means of every attribute."""
    generator = coins(plan.seed)
    population = generator.uniform(0.2, 0.8, plan.attributes)
    members = generator.random((plan.people, plan.attributes)) < population
    others = generator.random((OTHERS, plan.attributes)) < population
    counts = members.sum(axis=0).astype(np.float64)
    spread = math.sqrt(float(np.mean(population * (1 - population))))
    share = 0.5 - math.sqrt(0.25 - spread**2)
    published: dict[str, tuple[Any, float, Loss | None]] = {
        "exact means": (counts / plan.people, 0.0, None),
        "means to 5 per cent": (np.round(20 * counts / plan.people) / 20, 0.0, None),
    }
    for epsilon in plan.epsilons:
        noise = Gaussian(math.sqrt(plan.attributes), epsilon=epsilon, delta=plan.delta, max_length=plan.attributes)
        stddev = math.sqrt(noise.variance) / plan.people
        published[f"hubbub, epsilon = {epsilon:g}"] = noise.release(counts) / plan.people, stddev, noise.loss
    found, losses, expected = {}, {}, {}
    for name, (means, stddev, loss) in published.items():
        tracer = trace(means, population, people=plan.people, stddev=stddev)
        found[name] = Membership(tracer.scores(members), tracer.scores(others))
        expected[name] = predicted_power(
            RATES[1], people=plan.people, attributes=plan.attributes, stddev=stddev, share=share
        )
        if loss is not None:
            losses[name] = loss
        step()
    return found, losses, expected


def _model(plan: Plan, step: Callable[[], object]) -> Found:
    """The likelihood-ratio attack with shadow models on a classifier, half of whose candidates trained it."""
    generator = coins(plan.seed)
    weights = generator.normal(size=plan.attributes) / math.sqrt(plan.attributes)
    records = generator.normal(size=(2 * plan.people, plan.attributes))
    labels = (records @ weights + generator.normal(size=len(records)) > 0).astype(np.int64)
    member = np.arange(len(records)) < plan.people
    found = {}
    for name, ridge in RIDGES.items():
        target = Logistic(ridge).fit(records[member], labels[member])
        scores = likelihood_ratio_attack(
            target.predict_proba, Logistic(ridge), records, labels, shadows=plan.shadows, seed=plan.seed, each=step
        )
        found[name] = Membership(scores[member], scores[~member])
    return found, {}, {}
