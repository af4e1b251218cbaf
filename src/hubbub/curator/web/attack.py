"""The attack page: differencing and reconstruction, run while you wait, against four ways of answering."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from hubbub.attacks import guessing_accuracy
from hubbub.curator.web import attacking
from hubbub.curator.web.charts import Axis, Chart, Line, Mark, evenly
from hubbub.curator.web.formats import number, share
from hubbub.curator.web.layout import page

router = APIRouter(include_in_schema=False)
EPSILONS = (0.1, 1.0, 10.0, 100.0)
COUNTS = (200, 500, 1000, 2000)
SIDE = 10
"""Residents in a row of the picture."""


@dataclass(frozen=True)
class Setting:
    """What the form says: the total price of all answers, how many questions, and who is singled out."""

    epsilon: float = 1.0
    count: int = 500
    person: int = 42


def read(fields: Mapping[str, str]) -> Setting:
    """The setting a query string asks for; what is not offered is as if it were not there.

    >>> read({"epsilon": "10", "count": "999999", "person": "7"})
    Setting(epsilon=10.0, count=500, person=7)
    """
    first = Setting()
    epsilon = {f"{e:g}": e for e in EPSILONS}.get(fields.get("epsilon", ""), first.epsilon)
    count = {str(c): c for c in COUNTS}.get(fields.get("count", ""), first.count)
    person = {str(p): p for p in range(1, attacking.PEOPLE + 1)}.get(fields.get("person", ""), first.person)
    return Setting(epsilon, count, person)


def accuracy_chart(setting: Setting, run: attacking.Rebuilt) -> Chart:
    """How many residents are found out as noise grows, and where this run lies."""
    curve = attacking.curve(setting.count)
    low, high = attacking.NOISES[0], attacking.NOISES[-1]
    theory = [(x, curve.theory(x) or 0.5) for x in evenly(low, high, 61, log=True)]
    return Chart(
        "Accuracy against noise",
        f"With noise of ± {number(run.noise)} the attacker got {share(run.share, 0)} right; guessing gets half.",
        Axis(
            "spread of the noise",
            low,
            high,
            ((1, "1"), (10, "10"), (100, "100"), (1e3, "1 000"), (1e4, "10⁴")),
            log=True,
        ),
        Axis("residents found out", 0.3, 1, tuple((k / 10, f"{10 * k}%") for k in (4, 5, 6, 7, 8, 9, 10))),
        (
            Line([(low, 0.5), (high, 0.5)], "faint", "tossing a coin"),
            Line([(p.noise, p.accuracy) for p in curve.points], "second", "attacks run with more and more noise"),
            Line(theory, "main", "what theory expects"),
        ),
        (Mark(run.noise, run.share),),
        "accuracy",
    )


@router.get("/attack")
def attack(request: Request) -> Response:
    """Runs both attacks on the made-up village and shows who was found out."""
    setting = read(request.query_params)
    runs = attacking.rebuilt(setting.count, setting.epsilon)
    return page(
        request,
        "attack.html",
        setting=setting,
        epsilons=EPSILONS,
        counts=COUNTS,
        people=attacking.PEOPLE,
        side=SIDE,
        truth=attacking.SECRET[setting.person - 1],
        singled=attacking.singled(setting.person - 1, setting.epsilon),
        ceiling=1 / (1 + math.exp(-setting.epsilon)),
        runs=runs,
        luck=guessing_accuracy(0.5, attacking.PEOPLE),
        overlap=attacking.subsets(setting.count).overlap,
        chart=accuracy_chart(setting, runs[-1]),
    )
