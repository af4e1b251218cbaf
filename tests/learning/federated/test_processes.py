"""Server, nodes and apps as processes of their own, over loopback: a client is killed, one sends NaN, the server dies.

Flower 1.41 speaks HTTP between them; its gRPC interfaces are internal by now.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BIN = Path(sys.executable).parent
PATIENCE = 120.0
"""Seconds for anything to happen, on a machine that is busy."""
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "toy"
version = "1.0.0"
description = "a toy"
license = "Apache-2.0"
dependencies = []
[tool.hatch.build.targets.wheel]
packages = ["."]
[tool.flwr.app]
publisher = "hubbub"
[tool.flwr.app.components]
serverapp = "toy.server:app"
clientapp = "toy.client:app"
"""
SERVER = """
import os, signal, time
from pathlib import Path
import numpy as np
from flwr.app import Array, ArrayRecord
from flwr.serverapp import ServerApp
from hubbub.learning.federated import Central, CentralPlan

FOLDER = Path(os.environ["TOY"])
app = ServerApp()

class Dying(Central):
    def combined(self, vectors, length):
        if self.rounds == 2:
            (FOLDER / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)  # counted, nothing released
        return super().combined(vectors, length)

class Waiting:  # for the living, as long as that takes, and not for the dead
    def __init__(self, grid):
        self.grid = grid

    def get_node_ids(self):
        return self.grid.get_node_ids()

    def send_and_receive(self, messages, *, timeout=None):
        waiting, found = set(self.grid.push_messages(messages)), []
        asked = len(waiting)
        while len(found) < min(asked, 2 if (FOLDER / "killed").exists() else 3):
            new = list(self.grid.pull_messages(waiting))
            waiting -= {reply.metadata.reply_to_message_id for reply in new}
            found += [reply for reply in new if reply.has_content()]
            time.sleep(0.1)
        return found

@app.main()
def main(grid, context):
    plan = CentralPlan(rounds=3, rate=1.0, noise=1e-6, cohort=3.0)
    strategy = Dying(plan, journal=FOLDER / "journal", connected=2 if (FOLDER / "journal").exists() else 3)
    found = strategy.start(Waiting(grid), ArrayRecord({"w": Array(np.zeros(4))}))
    np.save(FOLDER / "found.npy", found.arrays["w"].numpy())
"""
CLIENT = """
import os, time
from pathlib import Path
import numpy as np
from flwr.app import Array, ArrayRecord, Message, RecordDict
from flwr.clientapp import ClientApp

FOLDER = Path(os.environ["TOY"])
app = ClientApp()

@app.train()
def train(message, context):
    number, round_ = context.node_config["number"], message.content["config"]["round"]
    if number == 2 and round_ == 2:
        (FOLDER / "dying").touch()
        time.sleep(600)
    change = np.nan if number == 1 else np.array([0.5, 0, 0, 0])
    trained = message.content["arrays"]["w"].numpy() + change
    return Message(RecordDict({"arrays": ArrayRecord({"w": Array(trained)})}), reply_to=message)
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def waited(condition: Callable[[], Any], what: str, log: Path | None = None) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what}: {log.read_text()[-3000:] if log and log.exists() else ''}"
        time.sleep(0.1)


def answers(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Federation:
    """A SuperLink and three SuperNodes, each in a process group of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.project = folder, folder / "project"
        (self.project / "toy").mkdir(parents=True)
        for name, text in (("pyproject.toml", PROJECT), ("toy/__init__.py", ""), ("toy/server.py", SERVER),
                           ("toy/client.py", CLIENT)):  # fmt: skip
            (self.project / name).write_text(text)
        link, *nodes = free_ports(4)
        self.environment = os.environ | {
            "FLWR_HOME": str(folder), "FLWR_TELEMETRY_ENABLED": "0", "TOY": str(folder), "OMP_NUM_THREADS": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        address = f"127.0.0.1:{link}"
        (folder / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{address}"\ninsecure = true\n'
        )
        self.link = self.run("flower-superlink", "--port", link, "--disable-runtime-dependency-installation")
        waited(lambda: answers(link), "no server", self.log(self.link))
        self.nodes = [
            self.run("flower-supernode", "--superlink", address, "--port", port, "--node-config", f"number={k}")
            for k, port in enumerate(nodes)
        ]

    def run(self, program: str, *options: Any) -> subprocess.Popen[bytes]:
        number = len(list(self.folder.glob("*.log")))
        with (self.folder / f"{number}.log").open("wb") as log:
            command = [str(BIN / program), "--insecure", *map(str, options)]
            process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, start_new_session=True)
        process.log = self.folder / f"{number}.log"  # type: ignore[attr-defined]
        return process

    def log(self, process: Any) -> Path:
        found: Path = process.log
        return found

    def submit(self) -> None:
        command = [str(BIN / "flwr"), "run", str(self.project), "here"]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def rounds(self) -> int:
        journal = self.folder / "journal"
        return int(json.loads(journal.read_text())["rounds"]) if journal.exists() else 0


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends one process and whatever it started in its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Federation]:
    made = Federation(tmp_path)
    try:
        yield made
    finally:
        for process in (made.link, *made.nodes):
            process.terminate()  # lets it end what it started in other groups
        for process in (made.link, *made.nodes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            end(process)


def test_killed_clients_nan_and_a_server_that_dies(federation: Federation, tmp_path: Path) -> None:
    log = federation.log(federation.link)
    federation.submit()
    waited(lambda: (tmp_path / "dying").exists(), "no second round", log)
    end(federation.nodes[2])
    with np.load(tmp_path / "journal.model") as kept:
        assert np.allclose(kept["array:w"], [1 / 3, 0, 0, 0], atol=1e-4)  # two of three; NaN is nothing
    (tmp_path / "killed").touch()
    waited(lambda: (tmp_path / "died").exists(), "no death", log)
    assert federation.rounds() == 2
    federation.submit()
    waited(lambda: (tmp_path / "found.npy").exists(), "no end", log)
    assert federation.rounds() == 3
    assert np.allclose(np.load(tmp_path / "found.npy"), [0.5, 0, 0, 0], atol=1e-4)
