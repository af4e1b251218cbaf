"""The curator's web page: server-rendered, little script, no other host."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from hubbub.curator.web import asking, attack, datasets, history, home, meaning, owners, reports, signing, surveys
from hubbub.curator.web.attempts import Attempts
from hubbub.curator.web.layout import HERE, Link, refusal
from hubbub.curator.web.refusals import Refused, SignInNeeded
from hubbub.curator.web.trails import Trails

LINKS = (
    Link("/datasets", "Data sets", "What can be asked, and what is left of each budget.", "signed in"),
    Link("/owner", "Owner", "Accounts, who may ask what and how much, and whether the ledger adds up.", "owner"),
    Link(
        "/surveys",
        "Surveys",
        "People's own devices randomise their answers before they are sent: nobody need be trusted.",
        "owner",
    ),
    Link(
        "/attack",
        "Attack",
        "Everybody's secret from a few hundred counts, live: against exact, withheld, rounded and private answers.",
    ),
    Link(
        "/meaning",
        "What does ε mean?",
        "Beliefs, tests and errors, with sliders: what a privacy budget buys and costs.",
    ),
)

ROUTERS = tuple(
    module.router for module in (home, signing, datasets, asking, history, owners, attack, meaning, surveys, reports)
)


class Files(StaticFiles):
    """Files a browser may keep, if it asks each time whether they are still current."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        response.headers["Cache-Control"] = "no-cache"
        return response


def mount(app: FastAPI) -> None:
    """Adds the pages and their static files to a server."""
    app.state.links = LINKS
    app.state.attempts = Attempts()
    app.state.trails = Trails()
    for router in ROUTERS:
        app.include_router(router)
    app.mount("/static", Files(directory=HERE / "static"), name="static")
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(SignInNeeded, _sign_in)


def _refused(request: Request, refused: Exception) -> Response:
    return refusal(request, refused.status if isinstance(refused, Refused) else 400)


def _sign_in(_: Request, needed: Exception) -> Response:
    to = needed.path if isinstance(needed, SignInNeeded) else "/"
    return RedirectResponse(f"/sign-in?to={quote(to)}", 303)
