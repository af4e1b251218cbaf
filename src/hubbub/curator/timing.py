"""When answers leave: on public marks of time, so that how long a question took says little of the rows it read."""

from __future__ import annotations

import asyncio
import time

from starlette.concurrency import run_in_threadpool

from hubbub.curator.accounts import Account
from hubbub.curator.service import Curator, Price, Told
from hubbub.errors import BudgetExceeded, KeyReused, ParameterError, QueryRefused, UnknownDataset
from hubbub.queries.questions import Asked

BEFORE = (BudgetExceeded, KeyReused, ParameterError, QueryRefused, UnknownDataset)
"""Refusals before any row is read. Whatever else goes wrong may have come after, and waits."""


async def on_time(
    the: Curator, account: Account, dataset: str, asked: Asked, price: Price, key: str | None = None
) -> Told:
    """The answer to a question. What was computed from rows just now, failures too, waits for the next mark."""
    came = time.monotonic()
    try:
        told = await run_in_threadpool(the.ask, account, dataset, asked, price, key)
    except BEFORE:
        raise
    except Exception:
        await asyncio.sleep(until_bucket(came, the.config.server.answer_every))
        raise
    if told.computed:
        await asyncio.sleep(until_bucket(came, the.config.server.answer_every))
    return told


def until_bucket(came: float, every: float, now: float | None = None) -> float:
    """Seconds until the next multiple of ``every`` after a request came.

    >>> round(until_bucket(10.0, 0.5, now=10.6), 3)
    0.4
    """
    gone = (time.monotonic() if now is None else now) - came
    return (int(gone / every) + 1) * every - gone
