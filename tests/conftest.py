import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

settings.register_profile("hubbub", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("mutants", settings.get_profile("hubbub"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("hubbub")

GATED = {"privacy", "numeric", "test_ledger.py", "test_limits.py", "test_mark.py"}
"""Rooms, and tests of the ledger, whose every branch their own tests must take."""


DEAR = ("spark",)
"""Tests with one of these in their names share an engine that takes long to start, so one worker runs them all."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests one by one to whichever worker is free, but those that share a dear engine together.

    The mark xdist_group would say so, but pytest-xdist 3.8 writes it where pytest 9.2 does not look.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            name = nodeid.rpartition("::")[2].partition("[")[0]
            return next((dear for dear in DEAR if dear in name), nodeid)

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Only the gated rooms' own tests count for coverage, and only they, unless marked, pay for its measurement."""
    if GATED & set(Path(item.path).parts) and not item.get_closest_marker("untraced"):
        return (yield)
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)
