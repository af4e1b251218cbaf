"""The web application: the API, the pages, and how every kind of error is told."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from hubbub import __version__
from hubbub.curator import api, guarding, web
from hubbub.curator.config import read
from hubbub.curator.service import Curator
from hubbub.curator.web import layout
from hubbub.errors import (
    BudgetExceeded,
    EngineFailure,
    HubbubError,
    KeyReused,
    NotOwner,
    NotSignedIn,
    ParameterError,
    QueryRefused,
    ReportRefused,
    TooManyRequests,
    UnknownDataset,
    UnknownEntry,
    UnknownSurvey,
)

CONFIG = "HUBBUB_CONFIG"
"""The environment variable by which worker processes find the configuration."""
STATUS: dict[type[HubbubError], tuple[int, str]] = {
    NotSignedIn: (401, "not_signed_in"),
    BudgetExceeded: (402, "budget_exceeded"),
    NotOwner: (403, "not_owner"),
    UnknownDataset: (404, "unknown"),
    UnknownEntry: (404, "unknown"),
    UnknownSurvey: (404, "unknown"),
    KeyReused: (409, "key_reused"),
    TooManyRequests: (429, "too_many"),
    QueryRefused: (422, "query_refused"),
    ParameterError: (422, "parameter"),
    EngineFailure: (503, "engine_failure"),
}
REPORTS = {"malformed": 422, "closed": 409, "invitation": 403}
"""By why a survey's report was not counted."""


def create(curator: Curator, log: guarding.Log | None = None) -> FastAPI:
    """The application in front of a curator."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        curator.close()
        layout.close_sessions(app)

    app = FastAPI(
        title="hubbub curator",
        version=__version__,
        description="Private answers about personal data, under one budget. Errors are constant sentences.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        lifespan=lifespan,
    )
    app.state.curator = curator
    app.state.rates = guarding.Rates(curator.config.server.requests_per_minute)
    counts = guarding.Counts()
    app.include_router(api.router)

    @app.get("/health", include_in_schema=False)
    def health() -> dict[str, str]:
        """That the process lives."""
        return {"status": "ok"}

    @app.get("/metrics", include_in_schema=False)
    def metrics(_: api.Owner) -> PlainTextResponse:
        """For Prometheus, with an owner's token."""
        return PlainTextResponse(counts.text(), media_type="text/plain; version=0.0.4")

    if curator.config.server.open_pages:
        web.mount(app)
    app.add_exception_handler(HubbubError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _plain)
    app.add_middleware(guarding.Guard, server=curator.config.server, counts=counts, log=log or guarding.Log())
    return app


def from_environment() -> FastAPI:
    """The application of the configuration that ``hubbub serve`` was given; for worker processes."""
    return create(Curator(read(os.environ[CONFIG])))


def problem(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status and body of an error: its class decides, and public facts; nothing that rows could change."""
    if isinstance(error, ReportRefused):
        return REPORTS[error.reason], {"error": "report_refused", "message": str(error), "fields": {}}
    for kind in type(error).__mro__:
        if kind in STATUS:
            status, name = STATUS[kind]
            return status, {"error": name, "message": str(error), "fields": _fields(error)}
    return 503, {"error": "unavailable", "message": guarding.UNAVAILABLE, "fields": {}}


def _fields(error: Exception) -> dict[str, Any]:
    match error:
        case BudgetExceeded():
            return {"epsilon": error.limit[0], "delta": error.limit[1], "remaining": error.remaining}
        case QueryRefused():
            return {"what": error.what, "remedy": error.remedy}
        case ParameterError():
            value = error.value if isinstance(error.value, int | str | None) else repr(error.value)
            return {
                "name": error.name,
                "value": value,
                "requirement": error.requirement,
                "remedy": error.remedy,
            }
        case _:
            return {}


async def _refused(request: Request, error: Exception) -> Response:
    status, body = problem(error)
    if _as_page(request):
        return layout.refusal(request, status)
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "10"}}.get(status)
    return JSONResponse(body, status, headers)


async def _malformed(request: Request, error: Exception) -> Response:
    """What the schema does not allow: where, and why; never what was sent. An address of no page is no page."""
    assert isinstance(error, RequestValidationError)
    if _as_page(request):
        return layout.refusal(request, 404)
    found = [{"where": ".".join(map(str, e["loc"])), "what": e["msg"]} for e in error.errors()]
    unread = any(e["type"] == "json_invalid" for e in error.errors())
    first = f"{found[0]['where']}: {found[0]['what']}" if found else "it cannot be read"
    body = {"error": "malformed", "message": f"the request is not as the schema says: {first}.", "fields": {}}
    return JSONResponse({**body, "fields": {"problems": found}}, 400 if unread else 422)


async def _plain(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_allowed(request))
    words = {404: "there is nothing at this address.", 405: "this address does not take that method."}
    if _as_page(request):
        return layout.refusal(request, error.status_code, headers)
    name = {404: "unknown", 405: "method"}.get(error.status_code, "malformed")
    message = words.get(error.status_code, "the request cannot be read.")
    return JSONResponse({"error": name, "message": message, "fields": {}}, error.status_code, headers)


def _as_page(request: Request) -> bool:
    """Whether people, not programs, are answered."""
    return bool(request.app.state.curator.config.server.open_pages) and guarding.is_page(request.url.path)


def _allowed(request: Request) -> list[str]:
    """The methods an address takes, over all routes that lie there."""
    found: set[str] = set()
    for method in guarding.METHODS:
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] == Match.FULL for route in request.app.router.routes):
            found.add(method)
    return sorted(found - {"HEAD"})
