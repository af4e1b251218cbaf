"""History and receipts as pages: what was charged, for what, and the answer again."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from hubbub.curator.accounts import Account
from hubbub.curator.shown import asked
from hubbub.curator.web import telling
from hubbub.curator.web.layout import curator, page, somebody
from hubbub.curator.web.refusals import Refused

router = APIRouter(include_in_schema=False)
LINES = 25
"""On a page."""

Someone = Annotated[Account, Depends(somebody)]
Number = Annotated[int, Path(ge=1, le=2**31)]


@router.get("/datasets/{name}/history")
def history(
    request: Request, account: Someone, name: str, before: Annotated[int | None, Query(ge=1, le=2**31)] = None
) -> Response:
    """Somebody's charges, newest first; an owner sees everybody's."""
    the = curator(request)
    dataset = the.dataset(account, name)
    entries = the.ledger.entries(name, _whose(account), before=before, limit=LINES + 1)[::-1]
    lines = [(e, asked(e), e.loss.epsilon(float(Fraction(e.delta)))) for e in entries[:LINES]]
    older = entries[LINES - 1].number if len(entries) > LINES else None
    return page(request, "history.html", dataset=dataset, lines=lines, older=older, newest=before is None)


@router.get("/datasets/{name}/receipts/{number}")
def receipt(request: Request, account: Someone, name: str, number: Number) -> Response:
    """One charge with its answer."""
    the = curator(request)
    dataset = the.dataset(account, name)
    entry, answer = the.ledger.receipt(name, number, _whose(account))
    epsilon = entry.loss.epsilon(float(Fraction(entry.delta)))
    return page(
        request,
        "answer.html",
        dataset=dataset,
        shown=None if answer is None else telling.shown(answer),
        entry=entry,
        asked=asked(entry),
        in_sql="sql" in json.loads(entry.question),
        epsilon=epsilon,
        delta=float(Fraction(entry.delta)),
        factor=math.exp(min(epsilon, 700)),
    )


@router.get("/datasets/{name}/receipts/{number}/answer.{kind}")
def download(request: Request, account: Someone, name: str, number: Number, kind: str) -> Response:
    """Its answer as a file."""
    the = curator(request)
    the.dataset(account, name)
    _, answer = the.ledger.receipt(name, number, _whose(account))
    if answer is None or kind not in ("csv", "json"):
        raise Refused(404)
    return telling.as_file(answer, kind, f"{name}-{number}")


def _whose(account: Account) -> str | None:
    return None if account.role == "owner" else account.name
