"""The two cookies of the web page, and the form tokens bound to them."""

from __future__ import annotations

import hmac
import os

from fastapi import Request
from starlette.datastructures import FormData
from starlette.responses import Response

from hubbub.curator.web.refusals import Refused

LOOPBACK = {"localhost", "127.0.0.1", "::1"}
SESSION, VISIT = "hubbub-session", "hubbub-visit"
"""Who is signed in, and a visitor's number before that: the sign-in form needs a token too."""
MOST_FIELDS = 200


def secure(request: Request) -> bool:
    """Whether cookies may travel over TLS only: always, except for plain http to the machine itself."""
    return not (request.url.scheme == "http" and request.url.hostname in LOOPBACK)


def read(request: Request, name: str) -> str:
    """A cookie's value, or nothing."""
    return request.cookies.get(_full(request, name), "")


def write(request: Request, response: Response, name: str, value: str) -> None:
    """Gives the browser a cookie for as long as it runs; no script can read it and no other site can send it."""
    secured = secure(request)
    response.set_cookie(_full(request, name), value, path="/", secure=secured, httponly=True, samesite="strict")


def erase(request: Request, response: Response, name: str) -> None:
    """Takes a cookie back."""
    secured = secure(request)
    response.delete_cookie(_full(request, name), path="/", secure=secured, httponly=True, samesite="strict")


def form_token(request: Request) -> str:
    """The token a form on this page must carry; draws a visitor's number where the browser has no cookie yet."""
    key = _key(request)
    if not key:
        key = request.state.visit = os.urandom(32).hex()
    return _token(key)


async def checked_form(request: Request) -> FormData:
    """The fields of a form that this browser was given by us; anything else is refused.

    Claim: a form is accepted only with the token of the cookie it comes with, which other sites can neither read nor
        make.
    Proof: the token is HMAC-SHA-256 under the cookie's 256 random bits; the cookie is HttpOnly and SameSite=Strict.
    Assumes: the browser keeps cookies to their site.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused(403)
    form = await request.form(max_files=0, max_fields=MOST_FIELDS)
    key, sent = _key(request), form.get("form-token")
    if not key or not isinstance(sent, str) or not hmac.compare_digest(_token(key).encode(), _bytes(sent)):
        raise Refused(403)
    return form


def _key(request: Request) -> str:
    visit: str = getattr(request.state, "visit", "")
    return read(request, SESSION) or visit or read(request, VISIT)


def _token(key: str) -> str:
    return hmac.new(_bytes(key), b"form", "sha256").hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _full(request: Request, name: str) -> str:
    """Browsers take a __Host- cookie from this very host over TLS only."""
    return f"__Host-{name}" if secure(request) else name
