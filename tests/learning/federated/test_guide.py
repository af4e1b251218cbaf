"""The guide's code runs as it is printed."""

from pathlib import Path
from typing import Any

import pages
import pytest
from learning.federated.simulating import QUIET, workers

from hubbub.learning.federated import Central, CentralPlan

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "federated.md"
pytestmark = QUIET
alone = pytest.fixture(autouse=True, scope="module")(workers)


def test_every_block_of_the_guide_runs() -> None:
    (line, first), *others = pages.blocks(GUIDE.read_text())
    names: dict[str, Any] = {"__name__": "__main__"}
    pages.run_block(GUIDE, line, first, names)
    assert 0 < names["strategy"].epsilon(1e-5) <= 8
    assert names["strategy"].rounds == 3
    for line, block in others:
        pages.run_block(GUIDE, line, block, names)
    assert names["report"].holds


def test_cards_tell_what_is_public() -> None:
    from hubbub.learning import card

    text = card(Central(CentralPlan(rounds=3, rate=0.5, noise=1.0, cohort=4.0)), title="Phones")
    for told in ("# Phones", "Central", "add-remove", "rounds: 3", "rate: 0.5", "epsilon between"):
        assert told in text
