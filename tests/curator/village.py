"""A made-up village behind a curator, served over real HTTP, for tests."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import uvicorn

from hubbub.curator.app import create
from hubbub.curator.config import read
from hubbub.curator.guarding import Log
from hubbub.curator.service import Curator

COLUMNS = 'age = [0, 120]\nward = ["north", "south", "west"]\nvote = ["yes", "no"]\nshop = "key"\n'


def residents(n: int = 600) -> pd.DataFrame:
    """People, their ages, wards, votes and shops."""
    draw = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "person": np.arange(n),
            "age": draw.integers(0, 100, n),
            "ward": draw.choice(["north", "south", "west"], n),
            "vote": draw.choice(["yes", "no"], n),
            "shop": draw.choice(["baker", "smith"], n),
        }
    )


def configured(folder: Path, frame: pd.DataFrame | None = None, *, server: str = "", dataset: str = "") -> Path:
    """A configuration in a folder, with the village's rows beside it."""
    (residents() if frame is None else frame).to_parquet(folder / "village.parquet")
    text = f"[server]\nrequests_per_minute = 1000000\nanswer_every = 0.02\n{server}\n[datasets.village]\n"
    text += f'source = "village.parquet"\nunit = "person"\nepsilon = 4.0\ndelta = 1e-5\n{dataset}\n'
    path = folder / "curator.toml"
    path.write_text(text + f"[datasets.village.columns]\n{COLUMNS}")
    return path


class Served:
    """A curator with an owner and an analyst, and where it listens."""

    def __init__(self, curator: Curator, address: str) -> None:
        self.curator, self.address = curator, address
        self.owner = curator.accounts.add("olga", "owner")
        self.analyst = curator.accounts.add("ann", "analyst")
        for name in curator.datasets:
            curator.grant("ann", name)


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """An application under uvicorn on a free port of the loopback."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", access_log=False, server_header=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)


@contextmanager
def served(path: Path, log: Log | None = None) -> Iterator[Served]:
    """The curator of a configuration, listening."""
    curator = Curator(read(path))
    with listening(create(curator, log)) as address:
        yield Served(curator, address)
