"""The start page."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from hubbub.curator.web.layout import page

router = APIRouter(include_in_schema=False)


@router.get("/")
def home(request: Request) -> Response:
    """What this server is, and where its pages are."""
    return page(request, "home.html")
