import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

settings.register_profile("hubbub", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("mutants", settings.get_profile("hubbub"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("hubbub")

GATED = {"privacy", "numeric"}
"""Rooms whose every branch their own tests must take."""


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
