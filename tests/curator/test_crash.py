"""Kills and races in the small; make crash and make test-long run them in full."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from curator.races import race

CRASH = Path(__file__).parent.parent / "crash" / "run.py"


def test_killed_workers_lose_nothing(url: str) -> None:
    """In a process of its own, which forks: threads of the test run would not survive that."""
    kind = "sqlite" if url.startswith("sqlite") else "postgres"
    command = [sys.executable, str(CRASH), "--database", kind, "--url", url, "--kills", "150", "--server-kills", "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    told = re.search(r"150 kills .* told of (\d+) charges and (\d+) answers: 0 lost, 0 twice", run.stdout)
    assert told is not None
    assert int(told[1]) >= int(told[2]) > 0


def test_of_256_charges_at_once_exactly_ten_fit(url: str) -> None:
    race(url, 2)


@pytest.mark.long
def test_of_256_charges_at_once_exactly_ten_fit_two_hundred_times(url: str) -> None:
    race(url, 200)


def test_killed_servers_lose_nothing(url: str) -> None:
    kind = "sqlite" if url.startswith("sqlite") else "postgres"
    command = [sys.executable, str(CRASH), "--database", kind, "--url", url, "--kills", "0", "--servers", "6"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"6 servers killed .* told of \d+ answers: 0 lost, 0 twice", run.stdout)
