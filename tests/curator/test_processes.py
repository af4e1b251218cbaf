"""Several server processes on one ledger: races cannot overspend, and kill -9 loses no answered charge."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from curator.village import COLUMNS, residents

from hubbub.curator import Accounts, Ledger

FITS = 10


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def configured(folder: Path, url: str, rounds: int) -> Path:
    """As many data sets of the same rows as there are rounds, each with budget for ten questions."""
    residents(50).to_parquet(folder / "village.parquet")
    text = f'[server]\nledger = "{url}"\nport = {free_port()}\nrequests_per_minute = 100000000\nanswer_every = 0.01\n'
    for i in range(rounds):
        text += f'[datasets.v{i}]\nsource = "village.parquet"\nunit = "person"\nepsilon = 1.0\n'
        text += f"[datasets.v{i}.columns]\n{COLUMNS}"
    path = folder / "curator.toml"
    path.write_text(text)
    return path


@contextmanager
def serving(config: Path, workers: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """``hubbub serve`` in processes of their own."""
    port = next(line.split("=")[1].strip() for line in config.read_text().splitlines() if line.startswith("port"))
    command = [sys.executable, "-c", "from hubbub.cli import main; main()", "serve", str(config)]
    log = (config.parent / "log").open("wb")
    process = subprocess.Popen([*command, "--workers", str(workers)], stderr=log, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            assert process.poll() is None, (config.parent / "log").read_text()
            try:
                if httpx.get(address + "/health", timeout=1).status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.1)
        yield address, process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        log.close()


def analyst(url: str, datasets: list[str]) -> str:
    accounts = Accounts(url)
    token = accounts.add("ann", "analyst")
    for name in datasets:
        accounts.grant("ann", name)
    accounts.close()
    return token


async def at_once(address: str, token: str, dataset: str, requests: int) -> list[httpx.Response]:
    limits = httpx.Limits(max_connections=requests)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, limits=limits, timeout=120) as client:
        return await asyncio.gather(
            *(
                client.post(
                    f"/v1/datasets/{dataset}/query",
                    json={"sql": f"SELECT count(*) AS n FROM {dataset} WHERE age > {i / 8}", "epsilon": 0.1},
                    headers={"Idempotency-Key": f"request-{i:04}"},
                )
                for i in range(requests)
            )
        )


@pytest.mark.parametrize("rounds", [2, pytest.param(200, marks=pytest.mark.long)])
def test_a_race_of_256_for_a_budget_of_10_has_10_winners(url: str, tmp_path: Path, rounds: int) -> None:
    names = [f"v{i}" for i in range(rounds)]
    with serving(configured(tmp_path, url, rounds), workers=4) as (address, _):
        token = analyst(url, names)
        ledger = Ledger(url)
        for name in names:
            with ThreadPoolExecutor(1) as pool:  # a browser of other tests may have left a loop running in this thread
                found = pool.submit(asyncio.run, at_once(address, token, name, 256)).result()
            answers = [r for r in found if r.status_code == 200]
            assert sorted({r.status_code for r in found}) == [200, 402]
            assert len(answers) == FITS
            assert sorted(r.json()["entry"] for r in answers) == list(range(1, FITS + 1))
            assert ledger.verify(name) == FITS
            assert ledger.remaining(name) == 0


def test_a_stopped_server_answers_what_it_has_begun(url: str, tmp_path: Path) -> None:
    with serving(configured(tmp_path, url, 1), workers=1) as (address, process):
        token = analyst(url, ["v0"])
        ask = {"sql": "SELECT count(*) AS n FROM v0", "epsilon": 0.1}
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.post(f"{address}/v1/datasets/v0/query", json=ask, headers=headers).status_code == 200
        process.terminate()
        assert process.wait(20) in (0, -signal.SIGTERM)
    assert Ledger(url).verify("v0") == 1
