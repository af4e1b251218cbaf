"""What a survey will cost and tell, before anybody answers."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from hubbub.curator.questionnaire import Question, Survey
from hubbub.curator.web.charts import Axis, Chart, Line, Mark, evenly
from hubbub.curator.web.formats import number, share
from hubbub.errors import ParameterError

FEWEST, MOST = 10, 1_000_000
MOST_RESPONDENTS = 10**12


@dataclass(frozen=True)
class Row:
    """One question of a plan."""

    question: Question
    keep: float
    respondents: int


@dataclass(frozen=True)
class Plan:
    """How many people must answer for the wanted error."""

    survey: Survey
    error: float
    rows: tuple[Row, ...]
    respondents: int
    chart: Chart


def plan(survey: Survey, error: Decimal) -> Plan:
    """The plan of a survey for errors at most ``error`` (a share), each but for 5 % doubt."""
    if not 0 < error < 1:
        raise ParameterError("error", str(error), "must lie between 0 and 1", "0.05 means five points of a percentage")
    rows = tuple(Row(q, q.mechanism.keep_probability, q.sample_size(error)) for q in survey.questions)
    needed = survey.sample_size(error)
    if needed > MOST_RESPONDENTS:
        raise ParameterError("error", str(error), "needs more people than there are", "allow a larger error")
    return Plan(survey, float(error), rows, needed, error_chart(survey, needed))


def error_chart(survey: Survey, respondents: int | None) -> Chart:
    """The expected half-width of the least accurate question's intervals, against the number of respondents."""

    def worst(people: float) -> float:
        return max(survey.expected_error(round(people)))

    curve = [(people, worst(people)) for people in evenly(FEWEST, MOST, 41, log=True)]
    marks = (Mark(respondents, worst(respondents)),) if respondents else ()
    said = f" With {number(respondents, 9)} it is {share(worst(respondents))}." if respondents else ""
    return Chart(
        "Expected error and respondents",
        f"The more people answer, the smaller the error: it falls with the root of their number.{said}",
        Axis(
            "respondents",
            FEWEST,
            MOST,
            ((10, "10"), (100, "100"), (1e3, "1 000"), (1e4, "10 000"), (1e5, "10⁵"), (1e6, "10⁶")),
            log=True,
        ),
        Axis("error of a share", 0.001, 1, ((0.001, "0.1%"), (0.01, "1%"), (0.1, "10%"), (1, "100%")), log=True),
        (Line(curve, label="half-width of the 95 % interval, worst question"),),
        marks,
        "expected-error",
    )
