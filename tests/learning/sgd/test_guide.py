"""The guide's code runs as it is printed."""

import re
from pathlib import Path
from typing import Any

import torch

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "deep-learning.md"


def test_every_block_of_the_guide_runs() -> None:
    torch.set_num_threads(1)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    assert names["run"].epsilon(1e-5) <= 3
    assert names["report"].holds
