"""hubbub audit: a table, JSON, and an exit code that says whether all claims hold."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hubbub.audit.catalogue import cells
from hubbub.cli import app, audits


def test_the_whole_catalogue_holds() -> None:
    result = CliRunner().invoke(app.app, ["audit", "--samples", "300", "--json"])
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert len(found) == len(list(cells()))
    assert all(row["holds"] and row["epsilon_lower"] <= row["claimed"] for row in found)


def test_a_table_of_some() -> None:
    result = CliRunner().invoke(app.app, ["audit", "--samples", "2000", "--only", "gaussian, int"])
    assert result.exit_code == 0
    assert "mu" in result.stdout
    assert "Laplace" not in result.stdout


def test_a_refuted_claim_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    class Told:
        """Releases what it is given, and claims a lot."""

        loss = next(iter(cells())).mechanism.loss

        def release(self, value: int) -> int:
            return value

    told = next(iter(cells()))
    monkeypatch.setattr(audits, "cells", lambda: [type(told)("told", 1.0, Told(), 0, 1, sharp=True)])
    result = CliRunner().invoke(app.app, ["audit", "--samples", "300"])
    assert result.exit_code == 1
    assert "REFUTED" in result.stdout


def test_bad_samples_are_refused_with_a_sentence() -> None:
    result = CliRunner().invoke(app.app, ["audit", "--samples", "3"])
    assert result.exit_code == 2
    assert "samples" in result.output


def test_nothing_to_audit_is_refused() -> None:
    result = CliRunner().invoke(app.app, ["audit", "--only", "no such thing"])
    assert result.exit_code == 2
    assert "only='no such thing' is in no mechanism's name" in result.stderr
    assert CliRunner().invoke(app.app, ["audit", "--jobs", "0"]).exit_code == 2


def test_processes_and_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "audit.png"
    options = ["--samples", "300", "--only", "Laplace", "--jobs", "2", "--plot", str(picture)]
    result = CliRunner().invoke(app.app, ["audit", *options])
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "picture is in" in result.stdout
    refused = CliRunner().invoke(app.app, ["audit", "--plot", str(tmp_path / "audit.pdf")])
    assert refused.exit_code == 2
    assert "must end in" in refused.stderr
