"""The story notebooks run from top to bottom, hold no outputs, and are listed."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def run(path: Path) -> None:
    """Every cell of code in order, in one namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(path):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name}, {cell['id']}", "exec"), names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_from_top_to_bottom(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_hold_no_outputs_and_are_well_formed(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    assert 6 <= len(book["cells"]) <= 12
    assert book["cells"][0]["cell_type"] == "markdown"
    for cell in book["cells"]:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", cell["id"])
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])


def test_the_table_lists_exactly_the_notebooks():
    listed = re.findall(r"^\| \[(\w+\.ipynb)\]\((\w+\.ipynb)\) \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert all(name == link for name, link in listed)
    assert sorted(name for name, _ in listed) == [path.name for path in NOTEBOOKS]
