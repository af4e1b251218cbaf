"""Loss of power: what was promised is on disk, torn writes and lost renames notwithstanding. See also make crash."""

from pathlib import Path

import pytest
from crash.power import lose_power


@pytest.mark.parametrize("seed", range(2))
def test_no_promise_is_lost_with_the_power(memory: Path, seed: int) -> None:
    assert lose_power(memory, 50, seed) >= 50


@pytest.mark.parametrize("seed", range(2))
def test_nor_where_syncs_fail_and_servers_are_killed_as_well(memory: Path, seed: int) -> None:
    assert lose_power(memory, 50, seed, failing=True) >= 50
