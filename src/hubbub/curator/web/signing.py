"""Signing in with a token, and out again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from hubbub.curator.web import cookies
from hubbub.curator.web.layout import curator, page, sessions, signed_in
from hubbub.curator.web.refusals import Refused

router = APIRouter(include_in_schema=False)


@router.get("/sign-in")
def sign_in_page(request: Request, to: str = "/") -> Response:
    """The sign-in form."""
    if signed_in(request) is not None:
        return RedirectResponse(_local(to), 303)
    return page(request, "sign_in.html", to=_local(to), failed=False)


@router.post("/sign-in")
def sign_in(request: Request, form: Annotated[FormData, Depends(cookies.checked_form)]) -> Response:
    """Opens a session for the account whose token was pasted; says the same of every other text."""
    attempts, place = request.app.state.attempts, request.client.host if request.client else ""
    if not attempts.allowed(place):
        raise Refused(429)
    to = _local(str(form.get("to", "/")))
    account = curator(request).accounts.of_token(str(form.get("token", "")).strip())
    cookie = sessions(request.app).start(account) if account is not None else None
    if cookie is None:
        attempts.failed(place)
        return page(request, "sign_in.html", 401, to=to, failed=True)
    response = RedirectResponse(to, 303)
    before = cookies.read(request, cookies.SESSION)
    if before:
        sessions(request.app).end(before)
    cookies.write(request, response, cookies.SESSION, cookie)
    cookies.erase(request, response, cookies.VISIT)
    return response


@router.post("/sign-out")
def sign_out(request: Request, _: Annotated[FormData, Depends(cookies.checked_form)]) -> Response:
    """Ends the session, here and in the database."""
    sessions(request.app).end(cookies.read(request, cookies.SESSION))
    response = RedirectResponse("/", 303)
    cookies.erase(request, response, cookies.SESSION)
    return response


def _local(path: str) -> str:
    """A path on this server; anything that might lead elsewhere becomes the start page."""
    plain = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if plain and path.isascii() else "/"
