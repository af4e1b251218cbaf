"""What tests on Ray share: no telemetry, workers that find the tree under test, and Ray's own warnings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hubbub

QUIET = [
    pytest.mark.filterwarnings("ignore:Tip. In future versions of Ray:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:subprocess [0-9]+ is still running:ResourceWarning"),
]


def workers() -> Iterator[None]:
    """For a module: Ray is started by the first simulation and ended here."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLWR_TELEMETRY_ENABLED", "0")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(Path(hubbub.__file__).parents[1]))
        yield
    ray.shutdown()
