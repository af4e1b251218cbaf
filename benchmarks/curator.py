"""How many requests a curator answers: explanations, stored answers and fresh counts of a million rows.

For one to eight server processes, on SQLite and PostgreSQL, with sixteen connections at once; median and 99th
percentile. The share of the ledger is measured inside one process, by the clock around every call of it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import psycopg
from report import write
from serving import analyst, free_port, serving

from hubbub.curator.accounts import Account
from hubbub.curator.config import read
from hubbub.curator.ledger import Ledger
from hubbub.curator.service import Curator, Price
from hubbub.queries.questions import Asked

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import services

CONNECTIONS = 16
STORED = {"sql": "SELECT count(*) AS n FROM t", "epsilon": 1.0}


def config(folder: Path, ledger: str, port: int) -> Path:
    text = f'[server]\nledger = "{ledger}"\nport = {port}\nanswer_every = 0.001\nrequests_per_minute = 100000000\n'
    text += '[datasets.t]\nsource = "t.parquet"\nunit = "person"\nepsilon = 1000000.0\n'
    path = folder / "curator.toml"
    path.write_text(text + "[datasets.t.columns]\nage = [0, 100]\n")
    return path


async def load(address: str, token: str, kind: str, requests: int, salt: int) -> tuple[list[float], float]:
    """Requests of one kind over all connections; the latency of each, and how long all took."""
    numbers, taken = iter(range(requests)), []
    path = "explain" if kind == "explain" else "query"

    async def connection() -> None:
        async with httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=300) as c:
            for i in numbers:
                fresh = {"sql": f"SELECT count(*) AS n FROM t WHERE age >= {salt + i / 2**20}", "epsilon": 1.0}
                began = time.perf_counter()
                got = await c.post(f"/v1/datasets/t/{path}", json=STORED if kind == "stored" else fresh)
                taken.append(time.perf_counter() - began)
                assert got.status_code == 200, got.text

    began = time.perf_counter()
    await asyncio.gather(*(connection() for _ in range(CONNECTIONS)))
    return taken, time.perf_counter() - began


@contextmanager
def ledgers(folder: Path) -> Iterator[dict[str, str]]:
    """A ledger in SQLite, and one in a PostgreSQL cluster of its own."""
    with services.postgres() as where:
        login = {"host": where["host"], "port": where["port"], "user": where["user"]}
        with psycopg.connect(**login, dbname="postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE ledger")
        remote = f"postgresql+psycopg://{login['user']}@{login['host']}:{login['port']}/ledger"
        yield {"SQLite": f"sqlite:///{folder / 'ledger.db'}", "PostgreSQL": remote}


def ledger_share(folder: Path, ledger: str) -> float:
    """The part of a fresh question's time that passes inside the ledger, without HTTP."""
    curator = Curator(read(config(folder, ledger, free_port())))
    token = curator.accounts.add(f"alone{time.time_ns()}", "analyst")
    account = curator.accounts.of_token(token)
    assert isinstance(account, Account)
    curator.grant(account.name, "t")
    inside = 0.0
    for name in ("charge", "store_answer", "answered", "find"):
        real = getattr(Ledger, name)

        def timed(*arguments: Any, _real: Any = real, **options: Any) -> Any:
            nonlocal inside
            began = time.perf_counter()
            try:
                return _real(*arguments, **options)
            finally:
                inside += time.perf_counter() - began

        setattr(Ledger, name, timed)
    began = time.perf_counter()
    for i in range(30):
        asked = Asked(sql=f"SELECT count(*) AS n FROM t WHERE age >= {90 + i / 2**20}")
        curator.ask(account, "t", asked, Price(epsilon=1.0))
    share = inside / (time.perf_counter() - began)
    curator.close()
    return share


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| ledger | workers | request | a second | p50 ms | p99 ms |", "|---|---|---|---|---|---|"]
    for r in rows:
        if "request" in r:
            figures = f"{r['rate']:.0f} | {1e3 * r['p50']:.0f} | {1e3 * r['p99']:.0f}"
            lines.append(f"| {r['ledger']} | {r['workers']} | {r['request']} | {figures} |")
    shares = ", ".join(f"{r['ledger']} {r['ledger_share']:.1%}" for r in rows if "ledger_share" in r)
    return "\n".join([*lines, "", f"Share of a fresh count's time inside the ledger (no HTTP): {shares}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4, 8])
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    draw, n = np.random.default_rng(1), options.rows
    people = pd.DataFrame({"person": draw.integers(0, n // 5, n), "age": draw.integers(0, 100, n)})
    people.to_parquet(folder / "t.parquet")
    rows: list[dict[str, Any]] = []
    with ledgers(folder) as both:
        for name, ledger in both.items():
            for workers in options.workers:
                port = free_port()
                with serving(config(folder, ledger, port), port, workers) as address:
                    token = analyst(ledger, ["t"])
                    for kind in ("explain", "stored", "fresh"):
                        asyncio.run(load(address, token, kind, CONNECTIONS * workers, 60 + workers))
                        requests = options.requests if kind != "fresh" else options.requests // 4
                        taken, whole = asyncio.run(load(address, token, kind, requests, workers))
                        p50, p99 = np.quantile(taken, [0.5, 0.99])
                        found = {"rate": requests / whole, "p50": float(p50), "p99": float(p99)}
                        rows.append({"ledger": name, "workers": workers, "request": kind, **found})
            rows.append({"ledger": name, "ledger_share": ledger_share(folder, ledger)})
            print(table(rows), flush=True)
    write("curator", rows, table(rows))


if __name__ == "__main__":
    main()
