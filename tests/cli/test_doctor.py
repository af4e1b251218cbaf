"""``hubbub doctor``: what is there, what is not, and what to type; and what scripts read elsewhere."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import hubbub as hb
from hubbub.cli import installation
from hubbub.cli.app import app

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.output


def without(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    find = installation.find_spec
    monkeypatch.setattr(installation, "find_spec", lambda name: None if name in missing else find(name))


def test_all_is_well_where_everything_is_installed() -> None:
    code, output = run("doctor")
    assert code == 0, output
    assert output.splitlines()[0] == f"hubbub {hb.__version__}"
    assert all(line.startswith("ok") for line in output.splitlines()[1:])
    found = json.loads(run("doctor", "--json")[1])
    assert [check["name"] for check in found["checks"]][:5] == ["python", "numpy", "scipy", "cryptography", "noise"]
    assert all(check["well"] for check in found["checks"])


def test_what_is_absent_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "torch", "altair")
    code, output = run("doctor")
    assert code == 0
    assert re.search(r"absent +torch +deep learning: torch missing +-> +pip install 'hubbub\[torch\]'", output)
    assert "pip install 'hubbub[plots]'" in output
    assert run("doctor", "--need", "torch")[0] == 1
    assert run("doctor", "--need", "learn")[0] == 0
    without(monkeypatch, "sklearn")
    assert run("doctor", "--need", "learn")[0] == 1


def test_java_is_looked_for_where_spark_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation.shutil, "which", lambda _: None)
    assert "java is missing" in run("doctor")[1]


@pytest.mark.parametrize("drawn", [0, 1000])
def test_a_core_that_is_not_well_fails(monkeypatch: pytest.MonkeyPatch, drawn: int) -> None:
    monkeypatch.setattr(hb.Laplace, "release", lambda *_: drawn)
    code, output = run("doctor")
    assert code == 1
    assert re.search(r"WRONG +noise", output)


def test_a_missing_core_package_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(installation, "import_module", missing)
    code, output = run("doctor")
    assert code == 1
    assert re.search(r"WRONG +scipy +missing +-> +pip install hubbub", output)


def test_failing_random_numbers_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> int:
        raise OSError

    monkeypatch.setattr(hb.Laplace, "release", broken)
    assert run("doctor")[0] == 1


def test_an_old_python_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "OLDEST", (99, 0))
    code, output = run("doctor")
    assert code == 1
    assert "install Python 99.0 or later" in output


def test_what_is_no_extra_is_refused() -> None:
    code, output = run("doctor", "--need", "magic")
    assert code == 2
    assert "need='magic' is no extra" in output


def test_every_extra_is_looked_at() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(installation.EXTRAS) == set(installation.FOR) == set(extras) - {"all", "docs", "test"}


def test_an_explanation_for_scripts(tmp_path: Path) -> None:
    pd.DataFrame({"age": [1, 2, 3]}).to_csv(tmp_path / "t.csv", index=False)
    words = ["explain", str(tmp_path / "t.csv"), "SELECT count(*) AS n FROM t", "--epsilon", "0.5"]
    code, output = run(*words, "--column", "age=0:9", "--json")
    assert code == 0
    told = json.loads(output)
    assert told["epsilon"] == pytest.approx(0.5)
    assert "n" in told["errors"]
