"""The demo: a made-up village, surveyed twice, behind a curator on this machine."""

from __future__ import annotations

import hashlib
import socket
import tempfile
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from hubbub.errors import MissingExtra, ParameterError

if TYPE_CHECKING:
    import pandas as pd
    from uvicorn import Server

RESIDENTS = 3_200
WARDS = ("north", "south", "east", "harbour")
NEWCOMER = "Ada"
PORT = 8800
CONFIG = """# The village of the demo: everything in it is made up.
[server]
ledger = "sqlite:///ledger.db"
port = {port}
answer_every = 0.25
requests_per_minute = 1000

[datasets.survey]
source = "survey.parquet"
title = "Village survey"
description = "Every resident, asked in two years: should the dam be built? Age, ward and income of each."
unit = "person"
max_groups = 2
epsilon = 3.0
delta = 1e-6

[datasets.survey.columns]
year = {{ categories = [2025, 2026], nullable = false }}
ward = ["north", "south", "east", "harbour"]
age = [0, 100]
income = {{ low = 0, high = 100000, step = 100 }}
dam = ["for", "against"]
trade = "key"
"""


def survey() -> pd.DataFrame:
    """Two waves of a made-up survey. Between them one person moves in: Ada."""
    import pandas as pd

    trades = ("fisher", "baker", "teacher", "smith", "nurse", "farmer", "clerk", "sailor")
    rows = []
    for year in (2025, 2026):
        for i in range(RESIDENTS):
            ward, age = WARDS[_made_up(i, "ward") % 4], 1 + _made_up(i, "age") % 90 + (year - 2025)
            income = 100 * (_made_up(i, "income") % 300 + 3 * min(age, 60)) if age > 17 else 0
            mind = _made_up(i, "dam") % 100 + 4 * (year - 2025) * (ward != "harbour")
            dam = "for" if mind < (30 if ward == "harbour" else 55) else "against"
            trade = trades[_made_up(i, "trade") % len(trades)] if age > 17 else None
            rows.append((i, year, ward, age, income, dam, trade))
    rows.append((RESIDENTS, 2026, "harbour", 41, 31_400, "for", "glass blower"))  # Ada, and nobody else has her trade
    return pd.DataFrame(rows, columns=["person", "year", "ward", "age", "income", "dam", "trade"])


def _made_up(person: int, what: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{what} {person}".encode()).digest()[:4], "big")


def tell(*, port: int, open_page: bool, folder: Path | None = None, stay: bool = True) -> None:
    """Makes the village, serves it, tells the story, names the page and the tokens, and stays until stopped."""
    try:
        from hubbub.curator.app import create
        from hubbub.curator.config import read
        from hubbub.curator.guarding import Log
        from hubbub.curator.service import Curator
    except ImportError as missing:
        raise MissingExtra("server") from missing
    where = folder or Path(tempfile.mkdtemp(prefix="hubbub-demo-"))
    where.mkdir(parents=True, exist_ok=True)
    if (where / "ledger.db").exists():
        raise ParameterError("folder", str(where), "holds a demo already", "name another, or hubbub serve it")
    rows = survey()
    rows.to_parquet(where / "survey.parquet")
    (where / "curator.toml").write_text(CONFIG.format(port=_free(port)))
    config = read(where / "curator.toml")
    curator = Curator(config)
    owner, analyst = curator.accounts.add("olga", "owner"), curator.accounts.add("ann", "analyst")
    curator.grant("ann", "survey")
    console = Console()
    with (where / "log.jsonl").open("w") as log, _listening(create(curator, Log(log)), config.server.port) as server:
        address = f"http://{config.server.host}:{config.server.port}"
        _story(console, rows, address, analyst)
        console.print(f"\n[bold]The page is at {address}/[/]")
        console.print(f"  as the owner, sign in with    {owner}", soft_wrap=True)
        console.print(f"  as an analyst, sign in with   {analyst}", soft_wrap=True)
        console.print(f'  in Python:  hb.connect("{address}", "{analyst}").table("survey")', soft_wrap=True)
        if open_page:
            webbrowser.open(address)
        console.print(f"  the made-up data and the ledger are in {where}", soft_wrap=True)
        if stay:
            console.print("\nIt runs until you press Ctrl-C.")
            while not server.should_exit:
                time.sleep(0.2)


def _free(port: int) -> int:
    """The port, or if it is taken, any that is not."""
    for wanted in (port, 0):
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            return int(s.getsockname()[1])
    raise ParameterError("port", port, "is taken, and no other is free")


@contextmanager
def _listening(app: object, port: int) -> Iterator[Server]:
    import uvicorn

    server = uvicorn.Server(
        uvicorn.Config(app, port=port, log_level="critical", access_log=False, server_header=False)  # type: ignore[arg-type]
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.02)
    try:
        yield server
    except KeyboardInterrupt:
        pass
    finally:
        server.should_exit = True
        thread.join(10)


def _story(console: Console, rows: pd.DataFrame, address: str, token: str) -> None:
    from hubbub.curator.client import connect

    console.rule("[bold]A village is asked about a dam, two years running. In between, Ada moves in.")
    exact = rows[(rows.ward == "harbour") & (rows.trade == "glass blower")].groupby("year")["dam"].value_counts()
    told = int(exact.get((2026, "for"), 0))
    console.print("\n[bold]1. Exact answers[/]   how many glass blowers of the harbour are for the dam?")
    console.print(f"   2025: 0.  2026: {told}.  One newcomer: [red]Ada is for the dam, and everybody knows.[/]\n")
    console.print("[bold]2. Through a curator[/], asked over HTTP, with one budget for all analysts")
    table = connect(address, token).table("survey")
    asked = "SELECT ward, year, count(*) AS n FROM survey WHERE dam = 'for' GROUP BY ward, year"
    foretold = table.explain(asked, epsilon=0.5)
    console.print(f"   known before it is asked: epsilon 0.5, every count within {foretold.error('n'):.0f} (95 %)")
    answer = table.sql(asked, epsilon=0.5)
    shown = Table("ward", "2025", "2026", "exactly (nobody sees this)")
    half = answer.errors()["n"]
    truth = rows[rows.dam == "for"].groupby(["ward", "year"]).size()
    for ward in WARDS:
        at = [i for i in range(len(answer)) if answer["ward"][i] == ward]
        cells = [f"{answer['n'][i]:.0f} ± {half[i]:.0f}" for i in at]
        shown.add_row(ward, *cells, f"{truth[ward, 2025]} and {truth[ward, 2026]}")
    console.print(shown)
    console.print(
        "   What the village thinks is there; what Ada thinks is lost in the noise:\n"
        "   whoever thought it a toss-up may now be at most [green]62%[/] sure.\n"
        "   The curator has charged epsilon 0.5 of 3; the same question again is free."
    )
