"""The start page."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from hubbub.curator.web import datasets
from hubbub.curator.web.layout import page, signed_in

router = APIRouter(include_in_schema=False)


@router.get("/")
def home(request: Request) -> Response:
    """What this server is and where its pages are; for whoever is signed in, the data sets."""
    account = signed_in(request)
    return page(request, "home.html") if account is None else datasets.listed(request, account)
