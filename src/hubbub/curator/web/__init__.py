"""The curator's web page: server-rendered, little script, no other host."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exception_handlers import request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from hubbub.curator.web import home, meaning, reports, signing, surveys
from hubbub.curator.web.attempts import Attempts
from hubbub.curator.web.headers import SecurityHeaders
from hubbub.curator.web.layout import HERE, Link, page
from hubbub.curator.web.refusals import Refused, SignInNeeded

LINKS = (
    Link(
        "/surveys",
        "Surveys",
        "People's own devices randomise their answers before they are sent: nobody need be trusted.",
        "owner",
    ),
    Link(
        "/meaning",
        "What does ε mean?",
        "Beliefs, tests and errors, with sliders: what a privacy budget buys and costs.",
    ),
)


def mount(app: FastAPI, links: Sequence[Link] = ()) -> None:
    """Adds the pages, their static files and headers to a server; ``links`` come first in the navigation."""
    app.state.links = (*links, *LINKS)
    app.state.attempts = Attempts()
    for module in (home, signing, meaning, surveys, reports):
        app.include_router(module.router)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    app.add_middleware(SecurityHeaders)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(SignInNeeded, _sign_in)
    if app.exception_handlers.get(RequestValidationError) is request_validation_exception_handler:
        app.add_exception_handler(RequestValidationError, _malformed)  # the default repeats what was sent


def _refused(request: Request, refused: Exception) -> Response:
    status = refused.status if isinstance(refused, Refused) else 400
    return page(request, "refused.html", status, sentence=str(refused))


def _malformed(_: Request, __: Exception) -> Response:
    return JSONResponse({"detail": reports.MALFORMED}, 422)


def _sign_in(_: Request, needed: Exception) -> Response:
    to = needed.path if isinstance(needed, SignInNeeded) else "/"
    return RedirectResponse(f"/sign-in?to={quote(to)}", 303)
