"""A curator on the loopback for browser tests and screenshots: a village, and a data set whose names mean harm."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from curator.village import listening, residents
from fastapi import FastAPI

from hubbub.curator.app import create
from hubbub.curator.config import read
from hubbub.curator.guarding import Log
from hubbub.curator.service import Curator

HARM = '"><img src=x onerror=alert(1)><script>alert(2)</script>'
CONFIG = """
[server]
requests_per_minute = 1000000
SERVER

[datasets.village]
source = "village.parquet"
title = "Village survey"
description = "Every resident of a made-up village: age, ward, vote on the dam, and where they shop."
unit = "person"
epsilon = 8.0
delta = 1e-5
caps = { epsilon = 1.0, delta = 1e-6 }

[datasets.village.columns]
age = [0, 120]
ward = ["north", "south", "west"]
vote = ["yes", "no"]
shop = "key"
"""
ODD = """
[datasets.odd]
source = "village.parquet"
title = '''HARM'''
description = '''HARM'''
unit = "person"
epsilon = 100.0

[datasets.odd.columns]
ward = ["north", '''HARM''']
""".replace("HARM", HARM)


@dataclass
class Site:
    """A running server, and a token for each role."""

    address: str
    curator: Curator
    owner: str
    analyst: str


def application(folder: Path, server: str = "answer_every = 0.02", odd: str = ODD) -> FastAPI:
    """The village's curator, pages and all, not listening yet."""
    residents().to_parquet(folder / "village.parquet")
    (folder / "curator.toml").write_text(CONFIG.replace("SERVER", server) + odd)
    return create(Curator(read(folder / "curator.toml")), Log(io.StringIO()))


@contextmanager
def running(folder: Path, odd: str = ODD) -> Iterator[Site]:
    """The same, listening, with an owner and an analyst who may ask every data set."""
    app = application(folder, odd=odd)
    curator: Curator = app.state.curator
    tokens = curator.accounts.add("ada", "owner"), curator.accounts.add("bob", "analyst")
    for name in curator.datasets:
        curator.grant("bob", name)
    with listening(app) as address:
        yield Site(address, curator, *tokens)
