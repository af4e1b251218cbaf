"""Surveys as JSON: what is asked, and the one place reports come in. A program may answer as a browser does."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Request
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from hubbub.curator.bodies import Problem
from hubbub.curator.questionnaire import MOST_QUESTIONS
from hubbub.curator.web.layout import curator
from hubbub.errors import UnknownSurvey

router = APIRouter(prefix="/v1/surveys", tags=["surveys"])


class AskedQuestion(BaseModel):
    """A question, and the randomised response to answer it with."""

    text: str
    options: list[str]
    epsilon: str


class AskedSurvey(BaseModel):
    """A survey as respondents see it. Randomise each answer's number with RandomizedResponse(epsilon, categories)."""

    id: str
    title: str
    introduction: str
    questions: list[AskedQuestion]
    epsilon: str
    neighbours: str
    invited: bool
    open: bool


class Submission(BaseModel):
    """One person's reports, randomised already: an option's number for every question."""

    model_config = ConfigDict(extra="forbid")
    submission: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    reports: Annotated[list[StrictInt], Field(min_length=1, max_length=MOST_QUESTIONS)]
    invitation: Annotated[str | None, Field(max_length=100)] = None


class Counted(BaseModel):
    """Whether a submission was new; it counts once however often it is sent."""

    counted: bool


class Share(BaseModel):
    """An option's estimated share, with its interval."""

    option: str
    share: float
    low: float
    high: float


class EstimatedQuestion(BaseModel):
    """A question's estimates so far; none before the first report."""

    text: str
    reports: int
    shares: list[Share]


class Estimates(BaseModel):
    """What a survey says so far, and what it cost everyone who answered."""

    id: str
    loss: str
    epsilon: float
    neighbours: str
    confidence: float
    questions: list[EstimatedQuestion]


ABSENT: dict[int | str, dict[str, object]] = {
    404: {"model": Problem, "description": "No such survey, or not yours"},
    422: {"model": Problem, "description": "Malformed"},
}
REFUSED: dict[int | str, dict[str, object]] = {
    400: {"model": Problem, "description": "Not JSON"},
    403: {"model": Problem, "description": "No unused invitation"},
    409: {"model": Problem, "description": "Closed"},
}


@router.get("/{survey}", responses=ABSENT)
def asked(request: Request, survey: str) -> AskedSurvey:
    """What a survey asks, for anybody who has its id."""
    found = curator(request).surveys.find(survey)
    return AskedSurvey(
        id=found.id,
        title=found.title,
        introduction=found.introduction,
        questions=[
            AskedQuestion(text=q.text, options=list(q.options), epsilon=f"{q.epsilon:f}") for q in found.questions
        ],
        epsilon=f"{found.epsilon:f}",
        neighbours="replace",
        invited=found.invited,
        open=found.open,
    )


@router.post("/{survey}/reports", status_code=201, responses={**ABSENT, **REFUSED})
def submit(request: Request, survey: str, sent: Submission) -> Counted:
    """Counts one submission of reports that were randomised by whoever sends them."""
    new = curator(request).surveys.submit(survey, sent.submission, sent.reports, sent.invitation)
    return Counted(counted=new)


@router.get("/{survey}/estimates", responses=ABSENT)
def estimates(request: Request, survey: str, authorization: Annotated[str, Header(max_length=300)] = "") -> Estimates:
    """The estimates so far, for the survey's owner by token; for others there is no such survey."""
    found = curator(request).surveys.find(survey)
    account = curator(request).accounts.of_token(authorization.removeprefix("Bearer ").strip())
    if account is None or account.name != found.owner:
        raise UnknownSurvey
    asked = [
        EstimatedQuestion(
            text=result.question.text,
            reports=result.reports,
            shares=[Share(option=o, share=s, low=low, high=high) for o, s, low, high in result.rows()],
        )
        for result in curator(request).surveys.results(survey)
    ]
    loss = found.loss
    return Estimates(
        id=found.id,
        loss=loss.to_json(),
        epsilon=loss.epsilon(),
        neighbours=loss.neighbours,
        confidence=0.95,
        questions=asked,
    )
