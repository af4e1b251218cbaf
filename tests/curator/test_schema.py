"""Schemathesis reads the published schema and tries to break the server by it: all checks, and stateful links."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from curator.village import configured, served

from hubbub.curator.guarding import Log

CONFIG = '[checks]\npositive_data_acceptance = { expected-statuses = ["2XX", 401, 402, 403, 404, 409, 422] }\n'
"""A text is not always SQL, nor is there always budget: these refusals of well-formed requests are right ones."""


@pytest.mark.parametrize("role", ["owner", "analyst"])
@pytest.mark.parametrize("examples", [12, pytest.param(1000, marks=pytest.mark.long)])
def test_no_server_error_and_no_break_of_the_schema(tmp_path: Path, role: str, examples: int) -> None:
    path = configured(tmp_path)
    path.write_text(path.read_text().replace("epsilon = 4.0", "epsilon = 1000.0"))
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    log = io.StringIO()
    with served(path, Log(log)) as village:
        token = getattr(village, role)
        command = [str(Path(sys.executable).parent / "schemathesis"), "--config-file", str(config), "run"]
        command += [f"{village.address}/v1/openapi.json", "--header", f"Authorization: Bearer {token}"]
        command += ["--checks", "all", "--max-examples", str(examples), "--no-color", "--generation-deterministic"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "Stateful" in done.stdout
    assert '"event": "failure"' not in log.getvalue()
    assert '"status": 503' not in log.getvalue()
