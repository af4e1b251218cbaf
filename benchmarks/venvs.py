"""A venv for each peer of peers-queries.txt, and programs run in them, one JSON line for each result."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).parent / "peers-queries.txt"


def sections() -> dict[str, list[str]]:
    """The requirements of each peer."""
    found: dict[str, list[str]] = {}
    for line in LIST.read_text().splitlines():
        if line.startswith("["):
            found[line.strip("[]")] = needed = []
        elif line and not line.startswith("#"):
            needed += line.split()
    return found


def python(peer: str) -> Path | None:
    """The interpreter of a peer's venv, if it was made; of this one, if the name is empty."""
    if not peer:
        return Path(sys.executable)
    folder = ROOT / f".venv-peers-{peer}"
    return folder / "bin" / "python" if (folder / "installed").exists() else None


def make(peer: str, requirements: list[str]) -> bool:
    """Makes a peer's venv; whether it is there."""
    folder = ROOT / f".venv-peers-{peer}"
    if (folder / "installed").exists():
        return True
    here = str(folder / "bin" / "python")
    pip = [here, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", str(folder)], [*pip, *requirements]):
        if subprocess.run(command, check=False, cwd=ROOT).returncode:
            return False
    (folder / "installed").touch()
    return True


def run(peer: str, program: str, *arguments: object, limit: float) -> Iterator[dict[str, Any]]:
    """What a program prints in a peer's venv, a JSON line each, with the most memory it held; or why there is nothing.

    It gets a session of its own, so that what it starts (Java) is counted and ended with it.
    """
    interpreter = python(peer)
    if interpreter is None:
        yield {"missing": "not installed"}
        return
    command = [str(interpreter), program, *map(str, arguments)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(command, stdout=out, stderr=complaints, start_new_session=True)
        most, end, why = 0, time.monotonic() + limit, ""
        while process.poll() is None:
            most = max(most, _held(process.pid))
            if time.monotonic() > end:
                why = f"over {limit:.0f} s"
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            time.sleep(0.1)
        out.seek(0)
        complaints.seek(0)
        found = [json.loads(line) for line in out if line.startswith('{"')]
        said = complaints.read().strip().splitlines()
    for row in found:
        yield {**row, "memory": most}
    if process.returncode or not found:
        yield {"missing": why or (said[-1][:200] if said else "no answer")}


def _held(session: int) -> int:
    """The memory, in bytes, of all processes of a session (0 where there is no /proc)."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[3]) == session:
            total += int(fields[21]) * resource.getpagesize()
    return total


if __name__ == "__main__":
    for name, requirements in sections().items():
        if not make(name, requirements):
            print(f"{name} could not be installed: {' '.join(requirements)}", file=sys.stderr)
