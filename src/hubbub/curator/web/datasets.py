"""Data sets as pages: the list with budget gauges, and all that is publicly known of one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from hubbub.curator.accounts import Account
from hubbub.curator.shown import described
from hubbub.curator.web.layout import curator, page, somebody
from hubbub.curator.web.standings import over_time, standing

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
    entries = the.ledger.entries(name)
    return page(
        request,
        "dataset.html",
        dataset=dataset,
        standing=standing(the, account, dataset),
        columns={column: described(c) for column, c in dataset.schema.columns.items()},
        chart=over_time(entries, dataset, None if account.role == "owner" else account.name),
        dates=(entries[0].at[:10], entries[-1].at[:10]) if entries else None,
    )
