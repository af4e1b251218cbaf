"""The real engines tests run on: a PostgreSQL cluster of their own, and a local Spark."""

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def postgres_binaries() -> Path:
    """Where initdb and pg_ctl are; `make test` installs them with apt-get where it may."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "/nowhere")]
    assert found[-1].exists(), "PostgreSQL is missing: apt-get install postgresql"
    return found[-1].parent


@contextmanager
def postgres() -> Iterator[dict[str, Any]]:
    """A throw-away cluster on a free port of the loopback; the arguments that connect to it."""
    binaries, folder = postgres_binaries(), Path(tempfile.mkdtemp(prefix="hubbub-postgres-"))
    owner = "postgres" if os.getuid() == 0 else getpass.getuser()
    switch = ["runuser", "-u", owner, "--"] if os.getuid() == 0 else []  # the server refuses to run as root
    if switch:
        shutil.chown(folder, owner)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]

    def run(*command: str) -> None:
        subprocess.run([*switch, *command], check=True, capture_output=True, cwd=folder)

    run(str(binaries / "initdb"), "-D", str(folder / "data"), "-A", "trust", "-U", "hubbub", "--no-sync", "-E", "UTF8")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=300"
    log = str(folder / "log")
    run(str(binaries / "pg_ctl"), "-D", str(folder / "data"), "-o", options, "-l", log, "-w", "start")
    try:
        yield {"host": "127.0.0.1", "port": port, "user": "hubbub", "database": "postgres"}
    finally:
        run(str(binaries / "pg_ctl"), "-D", str(folder / "data"), "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def spark() -> Iterator[Any]:
    """A local Spark session on two threads, with several partitions."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="hubbub-spark-")
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.warehouse.dir", folder)
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)
