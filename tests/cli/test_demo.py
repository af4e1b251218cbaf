import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hubbub
from hubbub import plots
from hubbub.cli.app import app
from hubbub.errors import MissingExtra


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_demo_tells_the_story_and_writes_a_picture(tmp_path: Path, ending: str) -> None:
    picture = tmp_path / f"village.{ending}"
    result = CliRunner().invoke(app, ["demo", "--picture", str(picture)])
    assert result.exit_code == 0, result.output
    assert "98 - 97 = 1" in result.output
    assert "62%" in result.output  # e^0.5 / (1 + e^0.5)
    assert picture.stat().st_size > 1000
    if ending == "png":
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_is_refused_before_the_story(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--picture", str(tmp_path / "village.doc")])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "must end in .png, .svg or .html" in result.stderr


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
