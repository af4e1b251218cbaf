"""The page on what epsilon means: beliefs, tests and errors, for any epsilon and delta."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from fastapi import APIRouter, Request
from starlette.responses import Response

from hubbub.curator.web.charts import Axis, Chart, Line, Mark, evenly
from hubbub.curator.web.layout import page
from hubbub.mechanisms import Laplace
from hubbub.privacy.families import ApproxDP, PureDP
from hubbub.privacy.loss import Loss

router = APIRouter(include_in_schema=False)

LIMITS = {"epsilon": (0.01, 10.0), "delta": (1e-12, 0.1), "prior": (0.001, 0.999), "people": (10.0, 1e8)}
FALSE_ALARMS = 0.05
STEPS = 61
PERCENT = tuple((k / 4, f"{25 * k}%") for k in range(5))


@dataclass(frozen=True)
class Setting:
    """What the sliders say."""

    epsilon: float = 1.0
    delta: float = 0.0
    prior: float = 0.1
    people: float = 1000.0

    @property
    def loss(self) -> Loss:
        """The loss the whole page is about."""
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    @property
    def belief(self) -> tuple[float, float]:
        """The least and the most somebody can come to believe."""
        return self.loss.posterior(self.prior, self.delta)

    @property
    def misses(self) -> float:
        """What a test with few false alarms must miss at least."""
        return self.loss.tradeoff(FALSE_ALARMS)

    @property
    def count_error(self) -> float:
        """The half-width of a count's 95 % interval."""
        return count_error(self.epsilon)

    @property
    def mean_error(self) -> float:
        """The same for the mean of so many values between 0 and 1."""
        return Laplace(1.0, epsilon=self.epsilon, neighbours="replace").error() / self.people

    @property
    def sampling_error(self) -> float:
        """How far a count of half of so many people is off by chance alone, had they been drawn at random."""
        return 1.96 * math.sqrt(self.people) / 2


def read(fields: Mapping[str, str]) -> Setting:
    """The setting a query string asks for; what cannot be read is as if it were not there, the rest kept in range."""
    setting = Setting()
    for name, (low, high) in LIMITS.items():
        try:
            value = float(fields[name])
        except (KeyError, ValueError):
            continue
        if math.isfinite(value) and not (name == "delta" and value <= 0):
            kept = min(max(value, low), high)
            setting = replace(setting, **{name: float(round(kept)) if name == "people" else kept})
    return setting


@lru_cache(maxsize=1024)
def count_error(epsilon: float) -> float:
    """What integer Laplace noise adds to a count at most, 95 times in 100."""
    return float(Laplace(1, epsilon=epsilon).error())


def posterior_chart(setting: Setting) -> Chart:
    """What every prior belief can become."""
    priors = evenly(0, 1, STEPS)
    bounds = [setting.loss.posterior(Fraction(prior), setting.delta) for prior in priors]
    low = [(x, b[0]) for x, b in zip(priors, bounds, strict=True)]
    high = [(x, b[1]) for x, b in zip(priors, bounds, strict=True)]
    return Chart(
        "Belief before and after",
        "Whatever somebody believed before, the answers can move it only within the shaded band around the diagonal.",
        Axis("believed before", 0, 1, PERCENT),
        Axis("believed after", 0, 1, PERCENT),
        (
            Line([*high, *reversed(low)], "area", "possible after the answers", "posterior-band"),
            Line([(0, 0), (1, 1)], "faint", "nothing learnt"),
            Line(high, id="posterior-high"),
            Line(low, id="posterior-low"),
        ),
        (
            Mark(setting.prior, setting.belief[0], "posterior-least"),
            Mark(setting.prior, setting.belief[1], "posterior-most"),
        ),
        "posterior",
    )


def tradeoff_chart(setting: Setting) -> Chart:
    """What any test for one person's presence must miss."""
    curve = [(x, setting.loss.tradeoff(Fraction(x))) for x in evenly(0, 1, STEPS)]
    return Chart(
        "False alarms and misses",
        "No test for one person's presence can lie in the shaded area: few false alarms mean many misses.",
        Axis("false alarms", 0, 1, PERCENT),
        Axis("misses", 0, 1, PERCENT),
        (
            Line([(0, 0), *curve], "area", "no test can be here", "tradeoff-area"),
            Line([(0, 1), (1, 0)], "faint", "guessing blindly"),
            Line(curve, id="tradeoff-curve"),
        ),
        (Mark(FALSE_ALARMS, setting.misses, "tradeoff-mark"),),
        "tradeoff",
    )


def error_chart(setting: Setting) -> Chart:
    """What privacy costs in accuracy."""
    prices = evenly(*LIMITS["epsilon"], 2 * STEPS - 1, log=True)
    sampling = [(x, setting.sampling_error) for x in LIMITS["epsilon"]]
    return Chart(
        "Error of a count",
        "The error of a count falls in proportion as epsilon grows; the dashed line is the chance error of a sample.",
        Axis("ε", *LIMITS["epsilon"], ((0.01, "0.01"), (0.1, "0.1"), (1, "1"), (10, "10")), log=True),
        Axis("± people", 0.5, 500, ((1, "1"), (10, "10"), (100, "100")), log=True),
        (
            Line(sampling, "second", "chance error of a sample this large", "error-sampling"),
            Line([(x, count_error(x)) for x in prices], "main", "noise of a count", "error-curve"),
        ),
        (Mark(setting.epsilon, setting.count_error, "error-mark"),),
        "error",
    )


@router.get("/meaning")
def meaning(request: Request) -> Response:
    """The page for the setting in the query string; a script redraws it as sliders move."""
    setting = read(request.query_params)
    examples = [replace(setting, epsilon=e) for e in (0.1, 0.5, 1.0, 2.0, 5.0)]
    charts = [posterior_chart(setting), tradeoff_chart(setting), error_chart(setting)]
    return page(request, "meaning.html", setting=setting, examples=examples, charts=charts, limits=LIMITS)
