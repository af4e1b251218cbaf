"""Surveys as pages: the owner's plan and results, and the respondent's page, whose answers the browser randomises."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from hubbub.curator.accounts import Account
from hubbub.curator.questionnaire import Survey
from hubbub.curator.surveys import draft
from hubbub.curator.web import plans
from hubbub.curator.web.cookies import checked_form
from hubbub.curator.web.layout import curator, owner, page
from hubbub.errors import ParameterError, UnknownSurvey

router = APIRouter(include_in_schema=False)
BLOCKS = 6
"""Questions the form has room for."""
LONGEST_NUMBER = 24

Owner = Annotated[Account, Depends(owner)]
Form = Annotated[FormData, Depends(checked_form)]


@router.get("/surveys")
def listed(request: Request, account: Owner) -> Response:
    """The owner's surveys."""
    return page(request, "surveys.html", surveys=curator(request).surveys.of_owner(account.name))


@router.get("/surveys/new")
def new(request: Request, account: Owner) -> Response:  # noqa: ARG001
    """The form for a new survey."""
    return page(request, "survey_new.html", given={}, blocks=BLOCKS, plan=None, wrong=None)


@router.post("/surveys/new")
def plan(request: Request, account: Owner, form: Form) -> Response:
    """Prices and plans what the form asks, or makes the survey where the owner says so."""
    given = {name: str(value) for name, value in form.items()}
    try:
        asked, weights = _questions(given)
        drafted = draft(
            account.name,
            given.get("title", ""),
            asked,
            epsilon=_decimal(given, "epsilon"),
            weights=weights,
            introduction=given.get("introduction", ""),
            invited="invited" in given,
        )
        planned = plans.plan(drafted, _decimal(given, "error"))
    except ParameterError as wrong:
        return page(request, "survey_new.html", 422, given=given, blocks=BLOCKS, plan=None, wrong=wrong)
    if given.get("step") == "open":
        return RedirectResponse(f"/surveys/{curator(request).surveys.keep(drafted).id}", 303)
    return page(request, "survey_new.html", given=given, blocks=BLOCKS, plan=planned, wrong=None)


@router.get("/surveys/{survey}")
def results(request: Request, account: Owner, survey: str) -> Response:
    """What the reports say so far."""
    return _results(request, _own(request, account, survey))


@router.post("/surveys/{survey}/close")
def close(request: Request, account: Owner, survey: str, _: Form) -> Response:
    """Closes a survey."""
    curator(request).surveys.close_survey(_own(request, account, survey).id)
    return RedirectResponse(f"/surveys/{survey}", 303)


@router.post("/surveys/{survey}/invitations")
def invite(request: Request, account: Owner, survey: str, form: Form) -> Response:
    """New invitation codes, shown this once."""
    found = _own(request, account, survey)
    try:
        people = int(_decimal({"people": str(form.get("people", ""))}, "people").to_integral_value())
        codes = curator(request).surveys.invite(found.id, people)
    except ParameterError as wrong:
        return _results(request, found, 422, wrong=wrong)
    return _results(request, found, codes=codes)


@router.get("/s/{survey}")
def respond(request: Request, survey: str) -> Response:
    """The respondent's page, for anybody with the link."""
    return page(request, "respond.html", survey=curator(request).surveys.find(survey))


def _results(
    request: Request,
    survey: Survey,
    status: int = 200,
    codes: list[str] | None = None,
    wrong: ParameterError | None = None,
) -> Response:
    found = curator(request).surveys.results(survey.id)
    answers = found[0].reports
    return page(
        request,
        "survey.html",
        status,
        survey=survey,
        results=found,
        answers=answers,
        link=str(request.base_url) + f"s/{survey.id}",
        invitations=curator(request).surveys.invitations(survey.id),
        chart=plans.error_chart(survey, answers or None),
        codes=codes,
        wrong=wrong,
    )


def _own(request: Request, account: Account, survey: str) -> Survey:
    """The owner's survey; somebody else's is as absent as none."""
    found = curator(request).surveys.find(survey)
    if found.owner != account.name:
        raise UnknownSurvey
    return found


def _questions(given: dict[str, str]) -> tuple[list[tuple[str, list[str]]], list[Decimal]]:
    """The blocks of the form that have a question in them, and their weights."""
    filled = [k for k in range(1, BLOCKS + 1) if given.get(f"question-{k}", "").strip()]
    asked = []
    for k in filled:
        lines = given.get(f"options-{k}", "").splitlines()
        asked.append((given[f"question-{k}"], [option for option in lines if option.strip()]))
    return asked, [_decimal(given, f"weight-{k}", "weight") for k in filled]


def _decimal(given: dict[str, str], field: str, name: str | None = None) -> Decimal:
    text, value = given.get(field, "").strip()[:LONGEST_NUMBER], Decimal(0)
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ParameterError(name or field, text, "must be a number") from None
    size = value.copy_abs()
    if not value.is_finite() or size > 10**9 or 0 < size < Decimal("1e-9"):
        raise ParameterError(name or field, text, "must be a number of ordinary size")
    return value
