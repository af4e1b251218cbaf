"""Several workers: one model, one noise, the sum of all records."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from learning.sgd import working
from learning.sgd.toys import cross_entropies, line, one_by_one, points

import hubbub as hb


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("workers")
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, working.__file__, str(folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(root), str(Path(hb.__file__).parents[1])])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (folder / "1.json").exists(), done.stderr
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


def test_noise_is_added_once(found: list[dict[str, Any]]) -> None:
    assert abs(found[0]["loud"]["share"] - 1) < 0.01
    assert found[0]["loud"] == found[1]["loud"]


def test_all_workers_have_one_model(found: list[dict[str, Any]]) -> None:
    """That of one worker with all records, begun as the first did."""
    assert found[0]["quiet"] == found[1]["quiet"]
    model, (x, y) = line(), points(8)
    for some in (slice(0, 8), slice(3, 8)):
        sums = one_by_one(model, cross_entropies, (x[some], y[some]), 0.2)
        with torch.no_grad():
            for p, s in zip(model.parameters(), sums, strict=True):
                p -= 0.5 * s / 16
    assert torch.allclose(torch.tensor(found[0]["quiet"]), torch.cat([model.weight.flatten(), model.bias]), atol=1e-4)


def test_samples_that_workers_cannot_draw_alone_are_refused(found: list[dict[str, Any]]) -> None:
    assert all(each["refused"] for each in found)
