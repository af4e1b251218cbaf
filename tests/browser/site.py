"""A small curator on the loopback for browser tests and screenshots: accounts, surveys and the pages, nothing else."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from hubbub.curator import Accounts, web
from hubbub.curator.surveys import Surveys


@dataclass
class LittleCurator:
    """What the pages need of a curator."""

    url: str
    accounts: Accounts
    surveys: Surveys

    def close(self) -> None:
        self.accounts.close()
        self.surveys.close()


@dataclass
class Site:
    """A running server, and a token for each role."""

    address: str
    curator: LittleCurator
    owner: str
    analyst: str


def application(folder: Path) -> FastAPI:
    url = f"sqlite:///{folder / 'ledger.db'}"
    app = FastAPI(docs_url=None, redoc_url=None)
    app.state.curator = LittleCurator(url, Accounts(url), Surveys(url))
    web.mount(app)
    return app


@contextmanager
def running(folder: Path) -> Iterator[Site]:
    app = application(folder)
    curator: LittleCurator = app.state.curator
    tokens = curator.accounts.add("ada", "owner"), curator.accounts.add("bob", "analyst")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < until, "the server did not start"
        time.sleep(0.02)
    try:
        yield Site(f"http://127.0.0.1:{port}", curator, *tokens)
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        curator.close()
        if hasattr(app.state, "sessions"):
            app.state.sessions.close()
