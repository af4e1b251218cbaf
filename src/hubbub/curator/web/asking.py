"""Asking: a question built by choosing or written in SQL, its price and errors beforehand, then the answer."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from hubbub.curator.accounts import Account
from hubbub.curator.config import Dataset
from hubbub.curator.shown import asked
from hubbub.curator.timing import on_time
from hubbub.curator.web import building, telling
from hubbub.curator.web.cookies import checked_form
from hubbub.curator.web.layout import curator, page, somebody
from hubbub.curator.web.prices import LONGEST_SQL, Foretold, Wanted, foretold, price
from hubbub.curator.web.refusals import Refused
from hubbub.curator.web.standings import Standing, standing
from hubbub.errors import BudgetExceeded, EngineFailure, ParameterError, QueryRefused

router = APIRouter(include_in_schema=False)
WAYS = ("build", "sql")
DEFAULTS = {"pay": "epsilon", "epsilon": "0.1", "error": "", "rows": "", "delta": "0"}

Someone = Annotated[Account, Depends(somebody)]
Again = Annotated[int | None, Query(ge=1, le=2**31)]
Form = Annotated[FormData, Depends(checked_form)]


@router.get("/datasets/{name}/ask")
def ask_page(
    request: Request, account: Someone, name: str, way: str = "build", example: int = 0, again: Again = None
) -> Response:
    """The form, with a first question in it (an example, or one that was asked before) and what that would cost."""
    dataset = curator(request).dataset(account, name)
    listed = building.examples(dataset)
    sql = listed[example if 0 <= example < len(listed) else 0][1]
    if again is not None:
        sql = asked(curator(request).ledger.receipt(name, again, None if account.role == "owner" else account.name)[0])
    given = {**DEFAULTS, "way": way if way in WAYS else "build", "sql": sql, "want-1": "count"}
    first = building.groups(dataset)
    if first and "private" not in first[0].label:
        given["group-1"] = first[0].value
    return _form(request, account, dataset, given)


@router.post("/datasets/{name}/ask")
async def ask(request: Request, account: Someone, name: str, form: Form) -> Response:
    """Explains what the form asks, or asks and pays for it where its price was seen."""
    the = curator(request)
    dataset = await run_in_threadpool(the.dataset, account, name)
    given = {field: str(value) for field, value in form.items()}
    if given.get("step") == "edit":
        with suppress(ParameterError):
            given |= {"sql": building.built(dataset, given), "way": "sql"}
    if given.get("step") != "pay":
        return await run_in_threadpool(_form, request, account, dataset, given)
    try:
        wanted = _wanted(dataset, given)
        before = await run_in_threadpool(_foretold, request, account, dataset, wanted)
        if not before.free and given.get("seen") != before.seen:
            return await run_in_threadpool(_form, request, account, dataset, given, changed=True)
        told = await on_time(the, account, name, wanted.asked, wanted.price, wanted.key(given.get("form", "")))
    except (ParameterError, QueryRefused):
        return await run_in_threadpool(_form, request, account, dataset, given)
    except BudgetExceeded:
        return await run_in_threadpool(_form, request, account, dataset, given, 402, spent=True)
    except EngineFailure as failed:
        return await run_in_threadpool(_form, request, account, dataset, given, 503, failed=str(failed))
    if told.number is not None:
        return RedirectResponse(f"/datasets/{name}/receipts/{told.number}", 303)
    return await run_in_threadpool(_free, request, dataset, wanted, given, told.answer)


@router.post("/datasets/{name}/download")
def download(request: Request, account: Someone, name: str, form: Form) -> Response:
    """An answer that is known already, as a file; never asks anew."""
    the = curator(request)
    wanted = _wanted(the.dataset(account, name), {field: str(value) for field, value in form.items()})
    known = the.known(account, name, wanted.asked, wanted.price)
    if known is None:
        raise Refused(404)
    return telling.as_file(known, "json" if form.get("kind") == "json" else "csv", name)


def _free(request: Request, dataset: Dataset, wanted: Wanted, given: dict[str, str], answer: str) -> Response:
    """An answer that cost nothing, since it was told before."""
    shown = telling.shown(answer)
    return page(request, "answer.html", dataset=dataset, shown=shown, entry=None, given=given, asked=wanted.sql)


def _form(
    request: Request, account: Account, dataset: Dataset, given: dict[str, str], status: int = 200, **more: Any
) -> Response:
    """The form as it was filled in, with its price, or why it has none."""
    found: Foretold | None = None
    wrong, sql = "", given.get("sql", "")
    try:
        wanted = _wanted(dataset, given)
        sql = wanted.sql
        found = _foretold(request, account, dataset, wanted)
    except (ParameterError, QueryRefused) as refused:
        wrong, status = str(refused), 422
    return page(
        request,
        "ask.html",
        status,
        dataset=dataset,
        standing=_standing(request, account, dataset),
        way=given.get("way") if given.get("way") in WAYS else "build",
        given=given,
        sql=sql,
        wanted=building.wanted(dataset),
        groups=building.groups(dataset),
        operators=building.OPERATORS,
        room=(building.WANTED, building.GROUPS, building.CONDITIONS),
        examples=building.examples(dataset),
        foretold=found,
        wrong=wrong,
        form=given.get("form") or os.urandom(16).hex(),
        **{"changed": False, "spent": False, "failed": "", **more},
    )


def _wanted(dataset: Dataset, given: dict[str, str]) -> Wanted:
    sql = given.get("sql", "") if given.get("way") == "sql" else building.built(dataset, given)
    if not sql.strip() or len(sql) > LONGEST_SQL:
        raise ParameterError("sql", "…" if sql.strip() else "", f"must have 1 to {LONGEST_SQL} letters")
    return Wanted(sql.replace("\r\n", "\n"), price(given))


def _standing(request: Request, account: Account, dataset: Dataset) -> Standing:
    return standing(curator(request), account, dataset)


def _foretold(request: Request, account: Account, dataset: Dataset, wanted: Wanted) -> Foretold:
    return foretold(curator(request), account, _standing(request, account, dataset), wanted)
