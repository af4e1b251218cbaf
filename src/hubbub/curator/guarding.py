"""What stands before every request: its size, its rate, a name for it in the log, and headers on the way out."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TextIO

from hubbub.curator.config import Server
from hubbub.errors import HubbubError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_CALLERS = 10_000
"""Callers whose rate is remembered in one process; the one not seen for longest is forgotten first."""
LARGEST_HEADERS = 16_384
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
"""What a browser may do with a page: run and show our own files only, no inline script or style, no other host."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "strict-transport-security": "max-age=31536000",
    "cache-control": "no-store",
}
"""On every answer that does not set its own."""
BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)


class Rates:
    """So many requests a minute for each caller, in this process: a bucket that fills again evenly."""

    def __init__(self, a_minute: int) -> None:
        self._full = float(a_minute)
        self._seen: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def allows(self, caller: str, now: float | None = None) -> bool:
        """Whether one more request of this caller fits.

        >>> rates = Rates(2)
        >>> [rates.allows("a", now=0.0) for _ in range(3)], rates.allows("a", now=30.0)
        ([True, True, False], True)
        """
        at = time.monotonic() if now is None else now
        with self._lock:
            left, before = self._seen.pop(caller, (self._full, at))
            left = min(self._full, left + (at - before) * self._full / 60)
            allowed = left >= 1
            self._seen[caller] = (left - 1 if allowed else left, at)
            if len(self._seen) > MOST_CALLERS:
                self._seen.popitem(last=False)
        return allowed


class Counts:
    """Numbers for Prometheus: requests by route and status, and how long they took. Nothing of any data set's rows."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._within: Counter[float] = Counter()
        self._seconds, self._all = 0.0, 0
        self._lock = threading.Lock()

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts a request that was answered."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._all += 1
            self._seconds += seconds
            for bound in BUCKETS:
                self._within[bound] += seconds <= bound

    def text(self) -> str:
        """In the format Prometheus reads."""
        with self._lock:
            lines = ["# HELP hubbub_requests_total Requests answered.", "# TYPE hubbub_requests_total counter"]
            for (method, route, status), n in sorted(self._requests.items()):
                lines.append(f'hubbub_requests_total{{method="{method}",route="{route}",status="{status}"}} {n}')
            lines += ["# HELP hubbub_request_seconds Time to answer.", "# TYPE hubbub_request_seconds histogram"]
            lines += [f'hubbub_request_seconds_bucket{{le="{b:g}"}} {self._within[b]}' for b in BUCKETS]
            lines.append(f'hubbub_request_seconds_bucket{{le="+Inf"}} {self._all}')
            lines += [f"hubbub_request_seconds_sum {self._seconds:.6f}", f"hubbub_request_seconds_count {self._all}"]
        return "\n".join(lines) + "\n"


class Log:
    """One JSON object a line: when, which route, which status, whose account. No path, body, header or token."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def write(self, **fields: Any) -> None:
        """Writes a line at once."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        print(json.dumps({"at": now, **fields}), file=self._stream or sys.stderr, flush=True)


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: App, server: Server, counts: Counts, log: Log) -> None:
        self._app, self._server, self._counts, self._log = app, server, counts, log
        self._rates = Rates(10 * server.requests_per_minute)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Lets a request through, or says why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, name = time.monotonic(), os.urandom(8).hex()
        status = 500
        as_page = self._server.open_pages and is_page(scope["path"])
        headers = dict(scope["headers"])

        async def out(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {key.lower() for key, _ in message["headers"]}
                extra = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in present]
                message["headers"] = [*message["headers"], *extra, (b"x-request-id", name.encode())]
            await send(message)

        try:
            refusal = self._refused(scope, headers)
            if refusal is not None:
                await say(out, *refusal, as_page=as_page)
            else:
                await self._app(scope, _limited(receive, self._server.largest_request), out)
        except TooLarge:
            words = f"a request may have {self._server.largest_request} bytes."
            await say(out, 413, "too_large", words, as_page=as_page)
        except Exception as problem:  # never with its text: that may hold anything
            self._log.write(event="failure", request=name, kind=type(problem).__name__)
            await say(out, 503, "unavailable", UNAVAILABLE, as_page=as_page)
        finally:
            route = getattr(scope.get("route"), "path", "-")
            seconds = time.monotonic() - began
            self._counts.add(scope["method"] if scope["method"] in METHODS else "-", route, status, seconds)
            account = getattr(scope.get("state", {}).get("account"), "name", None)
            self._log.write(
                event="request", request=name, method=scope["method"][:10], route=route, status=status, account=account
            )

    def _refused(self, scope: Message, headers: dict[bytes, bytes]) -> tuple[int, str, str] | None:
        if sum(len(k) + len(v) for k, v in scope["headers"]) > LARGEST_HEADERS:
            return 413, "too_large", f"the headers of a request may have {LARGEST_HEADERS} bytes."
        size = headers.get(b"content-length", b"0")
        if not size.isdigit() or int(size) > self._server.largest_request:
            return 413, "too_large", f"a request may have {self._server.largest_request} bytes."
        if sum(name == b"authorization" for name, _ in scope["headers"]) > 1:
            return 400, "malformed", "a request has one token."
        place = str((scope.get("client") or ("-",))[0])
        if scope["path"] != "/health" and not self._rates.allows(place):
            return 429, "too_many", f"at most {self._server.requests_per_minute} requests a minute; wait a little."
        return None


METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
UNAVAILABLE = "the curator cannot answer now; ask again, the same key is never charged twice."


class TooLarge(HubbubError):
    """A body grew beyond what was allowed while it was read."""


def _limited(receive: Receive, most: int) -> Receive:
    got = 0

    async def limited() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > most:
            raise TooLarge
        return message

    return limited


PAGE = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Not now · hubbub</title><link rel="stylesheet" href="/static/hubbub.css">
</head>
<body><main class="wide"><h1>Not now</h1><p class="lead">%s</p><p><a href="/">Go to the start page</a></p></main></body>
</html>
"""
"""The barest of pages, for when nothing else may be relied on."""


def is_page(path: str) -> bool:
    """Whether people look at an address, rather than programs.

    >>> [is_page(path) for path in ("/", "/datasets/v1", "/v1/me", "/v1", "/metrics")]
    [True, True, False, False, False]
    """
    return path not in ("/health", "/metrics", "/v1") and not path.startswith("/v1/")


async def say(send: Send, status: int, error: str, message: str, *, as_page: bool = False) -> None:
    """A refusal, as JSON or for people."""
    kind, body = b"application/json", json.dumps({"error": error, "message": message, "fields": {}})
    if as_page:
        kind, body = b"text/html; charset=utf-8", PAGE % (message[:1].upper() + message[1:])
    text = body.encode()
    headers = [(b"content-type", kind), (b"content-length", str(len(text)).encode())]
    if status == 429:
        headers.append((b"retry-after", b"10"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
