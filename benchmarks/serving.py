"""A curator under `hubbub serve` in processes of its own, for the benchmarks of its speed and of its silence."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from hubbub.curator import Accounts


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def serving(config: Path, port: int, workers: int = 1) -> Iterator[str]:
    """The server of a configuration, until the block ends; its address."""
    command = [sys.executable, "-c", "from hubbub.cli import main; main()", "serve", str(config)]
    with (config.parent / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--workers", str(workers)], stderr=log, start_new_session=True)
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(600):
                try:
                    if httpx.get(f"{address}/health", timeout=1).status_code == 200:
                        break
                except httpx.TransportError:
                    time.sleep(0.1)
            yield address
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def analyst(ledger: str, datasets: list[str]) -> str:
    """The token of a new analyst who may ask these data sets."""
    accounts = Accounts(ledger)
    token = accounts.add(f"analyst{time.time_ns()}", "analyst")
    name = accounts.of_token(token)
    assert name is not None
    for dataset in datasets:
        accounts.grant(name.name, dataset)
    accounts.close()
    return token
