"""The guide's code runs as it is printed."""

from pathlib import Path
from typing import Any

import numpy as np
import pages

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "pate.md"


def test_every_block_of_the_guide_runs() -> None:
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    labels = np.where(rows[:, 0] > 0, "yes", "no")
    names: dict[str, Any] = {
        "X": rows[:2000],
        "y": labels[:2000],
        "people": np.arange(2000) // 2,
        "public": rows[2000:],
        "X_new": rows[2000:],
    }
    pages.run(GUIDE, names)
    assert np.mean(names["pate"].predict(rows) == labels) > 0.85
    assert names["pate"].loss_.epsilon(1e-6) <= 3
    assert names["owner"].epsilon(1e-6) < names["pate"].loss_.epsilon(1e-6)
    assert "for these data" in str(names["told"])
