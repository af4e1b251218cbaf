"""Kills the HTTP server itself at random moments, forked anew from a warm parent; clients retry by their keys."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import uvicorn
from crash.checks import Found, Promises, check

from hubbub.curator import Ledger
from hubbub.curator.app import create
from hubbub.curator.config import read
from hubbub.curator.guarding import Log
from hubbub.curator.service import Curator

PRICE = 0.01


@dataclass
class Tally:
    """What was seen of the servers."""

    kills: int = 0
    resumed: int = 0
    promises: Promises = field(default_factory=Promises)
    found: Found | None = None


def kill_servers(config: Path, kills: int, seed: int) -> Tally:
    """Starts and kills servers; every answer that came must be stored under one charge, the same ever after."""
    chance, tally = random.Random(seed), Tally()
    url = read(config).server.ledger
    curator = Curator(read(config))
    token = curator.accounts.add("ann", "analyst")
    curator.grant("ann", "village")
    curator.close()
    tally.promises.opened.add("village")
    number, waiting = 0, ""
    span = 2 * _time_to_answer(config, token)
    while tally.kills < kills:
        server, address = _forked(config)
        try:
            ends = time.monotonic() + chance.uniform(0, span)
            while time.monotonic() < ends:
                again = waiting
                waiting = waiting or f"question-{number:06}"
                number += not again
                body = _asked(address, token, waiting, max(0.02, ends - time.monotonic()))
                if body is None:  # no answer yet: the next server is asked under the same key
                    break
                entry = ("village", "ann", waiting)
                before = tally.promises.answered.get(entry, body)
                assert before == body, "two answers under one key"
                tally.promises.answered[entry] = body
                tally.resumed += bool(again)
                waiting = ""
        finally:
            os.kill(server, signal.SIGKILL)
            os.waitpid(server, 0)
            tally.kills += 1
    ledger = Ledger(url)
    for e in ledger.entries("village"):
        tally.promises.charged["village", e.analyst, e.key] = e.digest
    stored = {("village", e.analyst, e.key): ledger.answer_of(e) for e in ledger.entries("village")}
    ledger.close()
    for key, body in tally.promises.answered.items():
        told = stored[key]
        assert told is not None
        assert _values(told) == body, "another answer than was told"
        tally.promises.answered[key] = told
    tally.found = check(url, tally.promises, resume=True, each=PRICE)
    return tally


def _time_to_answer(config: Path, token: str) -> float:
    """How long a new server takes until its first answer, undisturbed."""
    began = time.monotonic()
    server, address = _forked(config)
    assert _asked(address, token, "question-999999", 60) is not None
    taken = time.monotonic() - began
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    return taken


def _asked(address: str, token: str, key: str, patience: float) -> str | None:
    """The values of the answer, or None if none came in time."""
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
    sql = f"SELECT count(*) AS n FROM village WHERE age >= {int(key[9:]) / 2**20}"
    try:
        got = httpx.post(
            f"{address}/v1/datasets/village/query",
            json={"sql": sql, "epsilon": PRICE},
            headers=headers,
            timeout=patience,
        )
    except httpx.TransportError:
        return None
    assert got.status_code in (200, 503), got.text
    return _values(got.text.split('"answer":', 1)[1]) if got.status_code == 200 else None


def _values(answer: str) -> str:
    """The part of an answer's JSON that tells what was released."""
    return answer.split('"keys"', 1)[0].replace(" ", "")


def _forked(config: Path) -> tuple[int, str]:
    """A server in a process of its own; it shares nothing with the parent but code."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    child = os.fork()
    if child == 0:
        try:
            with Path(os.devnull).open("w") as nowhere:
                app = create(Curator(read(config)), Log(nowhere))
                uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False)).run([listening])
        finally:
            os._exit(1)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.close()
    return child, address
