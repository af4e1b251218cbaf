import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hubbub as hb
from hubbub.cli import account
from hubbub.cli.app import app
from hubbub.privacy import other_methods

RUN = ["account", "--rate", "0.01", "--steps", "1000"]


def run(*options: str):
    return CliRunner().invoke(app, [*RUN, *options])


def test_a_training_run_by_every_method() -> None:
    answer = json.loads(run("--noise", "1", "--json").output)
    low, high = answer["epsilon"]
    assert 1.8282 < low <= high < 1.8283
    assert high < answer["Renyi"] < answer["advanced composition"] < answer["basic composition"]
    priced = other_methods(hb.SampledGaussian(1, 0.01) * 1000, 1e-5)
    assert priced == {name: answer[name] for name in priced}
    text = run("--noise", "1").output
    assert "certified" in text
    assert "at least 1.82" in text
    assert (
        "at least 0.00053" in run("--noise", "20", "--rate", "0.001", "--steps", "50").output
    )  # digits that say something


def test_calibration_and_replace() -> None:
    answer = json.loads(run("--calibrate", "2", "--json").output)
    assert answer["epsilon"][1] <= 2
    assert answer["noise_multiplier"] == pytest.approx(0.96, abs=0.02)
    replaced = json.loads(run("--noise", "1", "--replace", "--json").output)
    assert replaced["epsilon"][1] == pytest.approx(2.8434, abs=0.01)


def test_calibration_keeps_to_the_relation_asked_for() -> None:
    options = ["--rate", "0.1", "--steps", "10", "--calibrate", "2", "--json"]
    for relation in ([], ["--replace"]):
        answer = json.loads(CliRunner().invoke(app, ["account", *options, *relation]).output)
        assert 1.99 < answer["epsilon"][1] <= 2


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_the_picture_is_written(tmp_path: Path, ending: str) -> None:
    picture = tmp_path / f"run.{ending}"
    result = run("--noise", "1", "--plot", str(picture))
    assert result.exit_code == 0, result.output
    assert str(picture) in "".join(result.output.split("\n"))
    content = picture.read_bytes()
    assert len(content) > 20_000
    assert content.startswith({"png": b"\x89PNG", "svg": b"<svg", "html": b"<!DOCTYPE html>"}[ending])
    if ending != "png":
        for word in (b"Price at every delta", b"repetitions", b"1000 Gaussian steps", b"basic composition"):
            assert word in content


def test_the_picture_shows_the_run() -> None:
    asked = account.planned(0.01, 1000, 1e-6, 1.0, None, "add-remove")
    curve, growth = (part["data"]["values"] for part in account.drawn(asked).to_dict()["hconcat"])
    loss = hb.SampledGaussian(1.0, 0.01) * 1000
    (at,) = (row for row in curve if row["delta"] == 1e-5 and "lower" in row)
    assert (at["lower"], at["epsilon"]) == loss.epsilon_interval(1e-5)
    (end,) = (row for row in growth if row["repetitions"] == 1000 and "lower" in row)
    assert (end["lower"], end["epsilon"]) == loss.epsilon_interval(1e-6)
    counts = sorted({row["repetitions"] for row in growth})
    assert counts[0] == 1
    assert 10 < len(counts) < 20
    once = account.drawn(account.planned(0.5, 1, 1e-6, 1.0, None, "add-remove")).to_dict()
    assert once["title"] == "1 Gaussian step, noise multiplier 1, rate 0.5, add-remove"
    assert "hconcat" not in once
    few = account.drawn(account.planned(0.5, 3, 1e-6, 1.0, None, "replace")).to_dict()["hconcat"][1]["data"]["values"]
    assert {row["repetitions"] for row in few} == {1, 2, 3}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "noise=None must be given"),
        (("--noise", "1", "--calibrate", "1"), "noise=1.0 must be given"),
        (("--noise", "-1"), "noise_multiplier=-1.0 must be > 0"),
        (("--noise", "nan"), "noise_multiplier='nan' must be finite"),
        (("--calibrate", "0"), "epsilon=0.0 must be > 0"),
        (("--calibrate", "1e-9"), "epsilon=1e-09 needs a noise multiplier above"),
        (("--noise", "1", "--delta", "2"), "delta=2.0 must lie strictly between 0 and 1"),
        (("--noise", "1", "--delta", "0"), "delta=0.0 must lie strictly between 0 and 1"),
        (("--noise", "1", "--rate", "0"), "rate=0.0 must lie in (0, 1]"),
        (("--noise", "1", "--rate", "1.1"), "rate=1.1 must lie in (0, 1]"),
        (("--noise", "1", "--steps", "0"), "steps=0 must be >= 1"),
        (("--noise", "1", "--steps", "10000000000000000"), "must be at most"),
    ],
)
def test_bad_options_end_in_a_sentence_and_nothing_is_written(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    result = run(*options, "--plot", str(tmp_path / "run.png"))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["run.pdf", "run", "no/run.png", "folder.svg"])
def test_a_place_that_cannot_hold_the_picture_is_refused_first(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.svg").mkdir()
    result = run("--noise", "1", "--plot", str(tmp_path / name))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "must" in result.stderr
    assert result.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.rglob("*")] == ["folder.svg"]


def test_without_altair_the_extra_is_named_and_nothing_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    result = run("--noise", "1", "--plot", str(tmp_path / "run.png"))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "pip install 'hubbub[plots]'" in result.stderr
    assert run("--noise", "1").exit_code == 0
