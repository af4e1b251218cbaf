import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hubbub
from hubbub import plots
from hubbub.cli.app import app
from hubbub.cli.village import RESIDENTS, survey
from hubbub.errors import MissingExtra


def test_demo_serves_a_village_and_tells_the_story(tmp_path: Path) -> None:
    folder = tmp_path / "village"
    result = CliRunner().invoke(app, ["demo", "--once", "--folder", str(folder), "--port", "0"])
    assert result.exit_code == 0, result.output
    assert "Ada is for the dam" in result.output
    assert "http://127.0.0.1:" in result.output
    assert result.output.count("hub_") == 3
    assert (folder / "curator.toml").exists()
    again = CliRunner().invoke(app, ["demo", "--once", "--folder", str(folder)])
    assert again.exit_code == 2
    assert "holds a demo already" in again.output
    rows = survey()
    assert len(rows) == 2 * RESIDENTS + 1
    newcomers = set(rows[rows.year == 2026].person) - set(rows[rows.year == 2025].person)
    assert len(newcomers) == 1


def test_version_and_help() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.strip() == hubbub.__version__
    assert "demo" in CliRunner().invoke(app, ["--help"]).output


def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtra, match=r"pip install 'hubbub\[plots\]'"):
        plots.outcome_chances({}, title="", value="")
    code = "import sys; sys.modules['typer'] = None; from hubbub.cli import main; main()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "pip install 'hubbub[cli]'" in run.stderr
    assert "Traceback" not in run.stderr
