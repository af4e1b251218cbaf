"""Data sets as pages: the list with budget gauges, and all that is publicly known of one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from hubbub.curator.accounts import Account
from hubbub.curator.shown import described
from hubbub.curator.web.layout import curator, page, somebody, trails
from hubbub.curator.web.standings import standing

router = APIRouter(include_in_schema=False)

Someone = Annotated[Account, Depends(somebody)]


@router.get("/datasets")
def listed(request: Request, account: Someone) -> Response:
    """The data sets somebody may see, with what is left of each."""
    the = curator(request)
    return page(request, "datasets.html", standings=[standing(the, account, d) for d in the.visible(account)])


@router.get("/datasets/{name}")
def one(request: Request, account: Someone, name: str) -> Response:
    """All that is publicly known of a data set, and how its budget came to stand as it does."""
    the = curator(request)
    dataset = the.dataset(account, name)
    with trails(request).of(the.ledger, dataset) as trail:
        chart, dates = trail.chart(None if account.role == "owner" else account.name), trail.dates
    return page(
        request,
        "dataset.html",
        dataset=dataset,
        standing=standing(the, account, dataset),
        columns={column: described(c) for column, c in dataset.schema.columns.items()},
        chart=chart,
        dates=dates,
    )
