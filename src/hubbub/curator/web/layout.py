"""The frame of every page: templates, navigation, who is signed in."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jinja2
from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse

from hubbub.curator.accounts import Account
from hubbub.curator.service import Curator
from hubbub.curator.sessions import Sessions
from hubbub.curator.web import cookies, formats
from hubbub.curator.web.refusals import SENTENCES, Refused, SignInNeeded
from hubbub.curator.web.trails import Trails

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Link:
    """An entry of the navigation, and who sees it."""

    path: str
    label: str
    about: str = ""
    who: Literal["anyone", "signed in", "owner"] = "anyone"

    def seen_by(self, account: Account | None) -> bool:
        """Whether this account, or a visitor, sees it."""
        if self.who == "owner":
            return account is not None and account.role == "owner"
        return self.who == "anyone" or account is not None


ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters.update(number=formats.number, share=formats.share, plain=formats.plain, beside=formats.beside)
_opening = threading.Lock()


def curator(request: Request) -> Curator:
    """The curator behind this server."""
    found: Curator = request.app.state.curator
    return found


def trails(request: Request) -> Trails:
    """The server's memory of what was spent when."""
    found: Trails = request.app.state.trails
    return found


def sessions(app: FastAPI) -> Sessions:
    """The server's sessions, opened on first use."""
    with _opening:
        if not hasattr(app.state, "sessions"):
            app.state.sessions = Sessions(app.state.curator.url)
        found: Sessions = app.state.sessions
        return found


def close_sessions(app: FastAPI) -> None:
    """Lets go of the sessions' database, if it was opened."""
    if hasattr(app.state, "sessions"):
        app.state.sessions.close()


def signed_in(request: Request) -> Account | None:
    """Who is signed in, looked up once per request."""
    if not hasattr(request.state, "account"):
        cookie = cookies.read(request, cookies.SESSION)
        request.state.account = sessions(request.app).account(cookie) if cookie else None
        rates = request.app.state.rates
        if request.state.account is not None and not rates.allows(request.state.account.name):
            raise Refused(429)
    account: Account | None = request.state.account
    return account


def somebody(request: Request) -> Account:
    """Whoever is signed in; a visitor is sent to the sign-in page."""
    account = signed_in(request)
    if account is None:
        raise SignInNeeded(request.url.path)
    return account


def owner(request: Request) -> Account:
    """The owner who is signed in; for an analyst there is no such page."""
    account = somebody(request)
    if account.role != "owner":
        raise Refused(404)
    return account


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A template filled in, with navigation; never stored by browsers when it is about somebody or holds a form."""
    account = signed_in(request)
    links = [link for link in request.app.state.links if link.seen_by(account)]
    text = ENVIRONMENT.get_template(template).render(
        account=account, links=links, path=request.url.path, form_token=lambda: cookies.form_token(request), **context
    )
    response = HTMLResponse(text, status_code=status)
    response.headers["Cache-Control"] = "no-store"
    visit = getattr(request.state, "visit", None)
    if visit is not None:
        cookies.write(request, response, cookies.VISIT, visit)
    return response


def refusal(request: Request, status: int, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """The page that says no: its sentence depends on the status alone."""
    found = page(request, "refused.html", status, sentence=SENTENCES.get(status, SENTENCES[400]))
    found.headers.update(headers or {})
    return found
