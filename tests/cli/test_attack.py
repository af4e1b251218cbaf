import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hubbub.cli.app import app

QUICK = {
    "reconstruct": ("--people", "120"),
    "difference": ("--people", "30"),
    "membership": ("--people", "40", "--attributes", "200"),
}


def run(*options: str):
    return CliRunner().invoke(app, ["attack", *options])


def rows(*options: str) -> dict[str, dict]:
    result = run(*options, "--json")
    assert result.exit_code == 0, result.output
    listed = json.loads(result.stdout)["rows"]
    return {row.get("answers", row.get("published")): row for row in listed}


@pytest.mark.parametrize("method", ["least-squares", "lp"])
def test_reconstruction_of_everything_but_hubbub(method: str) -> None:
    told = rows("reconstruct", "--people", "120", "--method", method, "--epsilon", "1", "--epsilon", "1000")
    for name in ("exact", "rounded to 5s", "below 5 withheld"):
        assert told[name]["right"] == 1
        assert told[name]["wrong"] == 0
    assert told["hubbub, epsilon = 1 in all"]["right"] < 0.8  # 120 coins: less than once in 1e10
    assert told["hubbub, epsilon = 1000 in all"]["right"] > 0.9
    assert told["hubbub, epsilon = 1 in all"]["spread"] > 300 > told["hubbub, epsilon = 1000 in all"]["spread"]


def test_exhaustive_reconstruction_has_its_bound() -> None:
    told = rows("reconstruct", "--method", "exhaustive", "--people", "9")
    assert (told["exact"]["bound"], told["rounded to 5s"]["bound"]) == (0, 8)
    assert told["rounded to 5s"]["wrong"] <= 8
    assert told["hubbub, epsilon = 1 in all"]["bound"] is None
    assert told["below 5 withheld"]["answered"] == 0  # four ones in all: there is nothing to attack
    assert "right" not in told["below 5 withheld"]
    assert "below 5 withheld" in run("reconstruct", "--method", "exhaustive", "--people", "9").stdout


def test_differencing_everybody() -> None:
    told = rows("difference", "--people", "40", "--epsilon", "0.1", "--repeats", "1")
    for name in ("exact", "below 5 withheld", "rounded to 5s"):
        assert told[name]["certain"] == 1
    noisy = told["hubbub, epsilon = 0.1"]
    assert noisy["certain"] == 0
    assert noisy["right"] < 0.95
    assert noisy["ceiling"] == pytest.approx(0.525, abs=1e-3)
    again = rows("difference", "--people", "20", "--epsilon", "5", "--repeats", "20")
    assert again["hubbub, epsilon = 5, 20 times"]["right"] == 1


def test_membership_by_means() -> None:
    told = rows("membership", "--people", "50", "--attributes", "2000", "--epsilon", "0.5")
    assert told["exact means"]["auc"] > 0.99
    assert told["exact means"]["found"]["0.01"] > 0.9
    assert told["exact means"]["expected"] > 0.99
    assert 0.2 < told["hubbub, epsilon = 0.5"]["auc"] < 0.8


def test_membership_by_a_model() -> None:
    told = rows("membership", "--against", "model", "--people", "40", "--shadows", "4", "--attributes", "20")
    assert all(row["auc"] > 0.55 for row in told.values())
    assert len(told) == 2


@pytest.mark.parametrize("attack", QUICK)
def test_tables_and_pictures(attack: str, tmp_path: Path) -> None:
    picture = tmp_path / "attack.png"
    result = run(attack, *QUICK[attack], "--plot", str(picture))
    assert result.exit_code == 0, result.output
    assert "hubbub, epsilon = 1" in result.stdout
    assert "uess" in result.stdout or "coin" in result.stdout
    assert str(picture) in "".join(result.stdout.split("\n"))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("reconstruct", "--method", "magic"), "method='magic' must be one of"),
        (("reconstruct", "--people", "1"), "people=1 must be >= 2"),
        (("reconstruct", "--method", "exhaustive", "--people", "30"), "people=30 must be at most 24"),
        (("reconstruct", "--questions", "0.5"), "questions=0.5 must lie in [1, 1000]"),
        (("reconstruct", "--people", "100000"), "people=100000 are too many"),
        (("reconstruct", "--share", "2"), "share=2.0 must lie in [0, 1]"),
        (("reconstruct", "--people", "20", "--epsilon", "-1"), "epsilon=-1.0 must be > 0"),
        (("difference", "--people", "1"), "people=1 must be >= 2"),
        (("difference", "--people", "9999"), "people=9999 must be at most 5000"),
        (("difference", "--below", "0"), "below=0 must be >= 1"),
        (("difference", "--repeats", "0"), "repeats=0 must be >= 1"),
        (("difference", "--people", "5", "--epsilon", "0"), "epsilon=0.0 must be > 0"),
        (("membership", "--against", "gossip"), "against='gossip' must be one of"),
        (("membership", "--people", "1"), "people=1 must be >= 2"),
        (("membership", "--attributes", "0"), "attributes=0 must be >= 1"),
        (("membership", "--attributes", "1000000"), "attributes=1000000 are too many"),
        (("membership", "--delta", "0"), "delta=0.0 must lie strictly between"),
        (("membership", "--epsilon", "nan"), "epsilon='nan' must be finite"),
        (("membership", "--against", "model", "--shadows", "5"), "shadows=5 must be even"),
    ],
)
def test_bad_options_end_in_a_sentence_and_nothing_is_written(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    result = run(*options, "--plot", str(tmp_path / "attack.png"))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("attack", QUICK)
def test_a_place_that_cannot_hold_the_picture_is_refused_first(attack: str, tmp_path: Path) -> None:
    result = run(attack, "--plot", str(tmp_path / "attack.pdf"))
    assert result.exit_code == 2
    assert "must end in .png, .svg or .html" in result.stderr


def test_without_altair_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    result = run("difference", "--people", "5", "--plot", str(tmp_path / "attack.png"))
    assert result.exit_code == 2
    assert "pip install 'hubbub[plots]'" in result.stderr
    assert run("difference", "--people", "5").exit_code == 0
