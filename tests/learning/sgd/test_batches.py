"""Batches: drawn as the plan says, empty samples too; parts, workers and filled parts hold the same."""

from typing import Any

import numpy as np
import pytest
import torch
from learning.sgd.toys import plan
from scipy.stats import binom, chi2
from support import FALSE_ALARM, SeededBits

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.learning.sgd.batches import batches, draws
from hubbub.learning.sgd.plan import Plan

ROWS, STEPS = 12, 6000


def stated(sampling: str) -> Plan:
    if sampling == "poisson":
        return plan(rows=None, rate=0.25, batch=3.0)
    if sampling == "truncated":
        return plan(rows=ROWS, rate=0.25, batch=3.0, sampling=sampling, cap=ROWS)
    return plan(rows=ROWS, rate=0.25, batch=3.0, sampling=sampling, neighbours="replace")


def taken(sampling: str, seed: int = 0) -> Any:
    """Who took part, (steps, rows)."""
    drawn = draws(stated(sampling), ROWS, SeededBits(seed))
    found = np.zeros((STEPS, ROWS), int)
    for row in found:
        chosen = next(drawn)
        assert len(set(chosen.tolist())) == len(chosen)
        row[chosen] = 1
    return found


@pytest.mark.parametrize("sampling", ["poisson", "truncated", "fixed", "shuffled"])
def test_how_often_each_takes_part(sampling: str) -> None:
    counts = taken(sampling).sum(0)
    if sampling == "shuffled":
        assert set(counts) == {STEPS // 4}
    else:
        assert all(binom.cdf(c, STEPS, 0.25) > FALSE_ALARM for c in counts)
        assert all(binom.sf(c, STEPS, 0.25) > FALSE_ALARM for c in counts)


@pytest.mark.parametrize(
    ("sampling", "together"),
    [("poisson", 1 / 16), ("truncated", 1 / 16), ("fixed", 3 * 2 / (12 * 11)), ("shuffled", 3 * 2 / (12 * 11))],
)
def test_how_often_two_take_part_together(sampling: str, together: float) -> None:
    found = taken(sampling)
    pairs = (found.T @ found)[np.triu_indices(ROWS, 1)]
    deviation = (STEPS * together * (1 - together)) ** 0.5
    assert np.abs(pairs - STEPS * together).max() < 6.5 * deviation


@pytest.mark.parametrize("sampling", ["poisson", "truncated", "fixed"])
def test_steps_do_not_know_of_each_other(sampling: str) -> None:
    found = taken(sampling)
    again = (found[1:] & found[:-1]).sum(0)
    assert np.abs(again - STEPS / 16).max() < 6.5 * (STEPS * 15 / 256) ** 0.5


def test_sizes() -> None:
    sizes = taken("poisson").sum(1)
    expected = STEPS * binom.pmf(np.arange(9), ROWS, 0.25)
    observed = np.bincount(sizes, minlength=13)[:9]
    assert chi2.sf(((observed - expected) ** 2 / expected).sum(), 8) > FALSE_ALARM
    assert observed[0] > 0
    assert set(taken("fixed").sum(1)) == set(taken("shuffled").sum(1)) == {3}


def test_a_pass_holds_everybody_once() -> None:
    found = taken("shuffled").reshape(-1, 4, ROWS)
    assert (found.sum(1) == 1).all()
    odd = plan(rows=11, rate=3 / 11, batch=3.0, sampling="shuffled", neighbours="replace")
    drawn = draws(odd, 11, SeededBits(0))
    assert len(np.unique(np.concatenate([next(drawn) for _ in range(odd.steps_a_pass)]))) == 9


def test_a_cap_cuts_without_favour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plan, "_check_truncated", lambda _: None)  # no plan would cut so often
    drawn = draws(plan(rows=ROWS, rate=0.5, sampling="truncated", cap=4), ROWS, SeededBits(0))
    found = [next(drawn) for _ in range(3000)]
    assert max(len(rows) for rows in found) == 4
    counts = np.bincount(np.concatenate(found), minlength=ROWS)
    assert np.abs(counts / counts.mean() - 1).max() < 0.15


def test_other_rows_than_the_plans_are_refused() -> None:
    for sampling, rows in (("fixed", 11), ("shuffled", 13), ("truncated", 13)):
        with pytest.raises(ParameterError):
            next(draws(stated(sampling), rows))
    next(draws(stated("truncated"), 5))
    next(draws(stated("poisson"), 5000))


# parts

DATA = (torch.arange(40.0)[:, None], torch.arange(40))
DRAWN = plan(rows=40, rate=0.2, batch=8.0)


class Pairs:
    """The same as a dataset that is read row by row; remembers nothing, so that workers may read it."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, i: int) -> Any:
        return DATA[0][i], DATA[1][i]


def steps(data: Any, plan: Plan = DRAWN, many: int = 30, **options: Any) -> list[list[int]]:
    """Who counts in each step, whatever the parts."""
    found: list[list[int]] = []
    for batch in batches(plan, data, many, bits=SeededBits(9), **options):
        found.append([])
        for fetch in batch.parts:
            (x, y), taking = fetch()
            assert torch.equal(x[:, 0], y.float())
            found[-1] += (y if taking is None else y[taking]).tolist()
    return found


@pytest.mark.parametrize("rate", [0.2, 0.01])
def test_parts_and_workers_hold_the_same(rate: float) -> None:
    drawn = plan(rows=40, rate=rate, batch=40 * rate)
    wanted = steps(DATA, drawn)
    assert len(wanted) == 30
    assert ([] in wanted) == (rate == 0.01)
    for options in ({"part": 3}, {"part": 3, "full": True}, {"part": 1}):
        assert steps(DATA, drawn, **options) == wanted
        assert steps(Pairs(), drawn, **options) == wanted


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("rate", [0.2, 0.01])
def test_workers_read_the_same(rate: float) -> None:
    drawn = plan(rows=40, rate=rate, batch=40 * rate)
    assert steps(Pairs(), drawn, part=3, workers=1) == steps(DATA, drawn)
    assert steps(Pairs(), drawn, part=3, full=True, workers=1) == steps(DATA, drawn)


def test_full_parts_have_one_size() -> None:
    for batch in batches(DRAWN, DATA, 30, part=3, full=True, bits=SeededBits(0)):
        for fetch in batch.parts:
            (x, y), taking = fetch()
            assert len(x) == len(y) == 3
            assert taking is None or 0 < int(taking.sum()) < 3


def test_one_tensor_is_data_too() -> None:
    batch = next(batches(plan(rate=1.0), DATA[0], 1))
    assert torch.equal(batch.parts[0]()[0][0], DATA[0])


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ((torch.zeros(3), torch.zeros(4)), ParameterError),
        (torch.zeros(0, 2), ParameterError),
        (iter([1]), ParameterTypeError),
    ],
)
def test_refused_data(data: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        next(batches(DRAWN, data, 1))
