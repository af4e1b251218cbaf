import json

import pytest
from typer.testing import CliRunner

from hubbub.cli.app import app

RUN = ["account", "--rate", "0.01", "--steps", "1000"]


def run(*options: str):
    return CliRunner().invoke(app, [*RUN, *options])


def test_a_training_run_by_every_method() -> None:
    answer = json.loads(run("--noise", "1", "--json").output)
    low, high = answer["epsilon"]
    assert low <= 1.8282 <= high
    assert high < answer["Renyi"] < answer["advanced composition"] < answer["basic composition"]
    text = run("--noise", "1").output
    assert "certified" in text
    assert "at least 1.82" in text


def test_calibration_and_replace() -> None:
    answer = json.loads(run("--calibrate", "2", "--json").output)
    assert answer["epsilon"][1] <= 2
    assert answer["noise_multiplier"] == pytest.approx(0.96, abs=0.02)
    replaced = json.loads(run("--noise", "1", "--replace", "--json").output)
    assert replaced["epsilon"][1] == pytest.approx(2.8434, abs=0.01)


@pytest.mark.parametrize(
    "options", [(), ("--noise", "1", "--calibrate", "1"), ("--noise", "-1"), ("--noise", "1", "--delta", "2")]
)
def test_bad_options_end_in_a_sentence(options: tuple[str, ...]) -> None:
    result = run(*options)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
