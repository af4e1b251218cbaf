"""D9: total variation is no measure of privacy. The leak, by listing every output and by simulation."""

import math
from itertools import product

import numpy as np
import pytest

from hubbub.attacks import AdditiveCounterexample
from hubbub.errors import ParameterError


def law(rule: str, rows: tuple[int, ...], delta: float) -> dict[tuple, float]:
    """Every output and its probability."""
    blank = (None,) * len(rows)
    if rule == "everything":
        return {rows: delta, blank: 1 - delta}
    outputs = {}
    for shown in product((True, False), repeat=len(rows)):
        output = tuple(row if seen else None for row, seen in zip(rows, shown, strict=True))
        outputs[output] = math.prod(delta if seen else 1 - delta for seen in shown)
    return outputs


@pytest.mark.parametrize("rule", ["everything", "each row"])
@pytest.mark.parametrize("delta", [0.1, 0.25])
def test_the_leak_is_what_listing_every_output_says(rule: str, delta: float) -> None:
    rows, neighbour = (1, 2, 3, 4), (1, 2, 9, 4)
    leak = AdditiveCounterexample(rule, people=4, delta=delta)
    here, there = law(rule, rows, delta), law(rule, neighbour, delta)
    every = here.keys() | there.keys()
    distance = sum(abs(here.get(y, 0) - there.get(y, 0)) for y in every) / 2
    assert leak.total_variation == pytest.approx(distance) == pytest.approx(delta)
    for factor in (1, 10, 1e9):  # no epsilon helps: the excess over any multiple is still delta
        assert sum(max(0, p - factor * there.get(y, 0)) for y, p in here.items()) == pytest.approx(delta)
    published = {y: sum(row is not None for row in y) for y in here}
    assert leak.any_row == pytest.approx(sum(p for y, p in here.items() if published[y]))
    assert leak.expected_rows == pytest.approx(sum(p * published[y] for y, p in here.items()))


@pytest.mark.parametrize("rule", ["everything", "each row"])
@pytest.mark.parametrize("delta", [1 / 1000, 1 / 2000])
def test_the_leak_is_what_simulation_says(rule: str, delta: float) -> None:
    leak, runs = AdditiveCounterexample(rule, people=1000, delta=delta), 200_000
    some, rows = leak.simulate(runs, seed=1)
    assert abs(some - leak.any_row) < 6 * math.sqrt(leak.any_row * (1 - leak.any_row) / runs)
    spread = 1000 * math.sqrt(delta) if rule == "everything" else math.sqrt(1000 * delta)
    assert abs(rows - leak.expected_rows) < 6 * spread / math.sqrt(runs)


def test_at_delta_one_over_n_somebody_is_published_mostly() -> None:
    assert AdditiveCounterexample("each row", 10**6, 1e-6).any_row == pytest.approx(1 - math.exp(-1), abs=1e-6)
    assert AdditiveCounterexample("each row", 10**6, 0.5e-6).any_row == pytest.approx(0.3935, abs=1e-4)  # not 1/2
    assert AdditiveCounterexample("everything", 10**6, 1e-6).any_row == 1e-6
    assert AdditiveCounterexample("each row", 10, 1).any_row == 1


def test_releases_publish_rows_or_blanks() -> None:
    rows = np.arange(100)
    everything = AdditiveCounterexample("everything", 100, 0.5)
    assert {tuple(everything.release(rows, seed)) for seed in range(20)} == {tuple(range(100)), (None,) * 100}
    some = AdditiveCounterexample("each row", 100, 0.3).release(rows, seed=1)
    assert all(seen in (None, row) for row, seen in enumerate(some))
    assert 10 < sum(seen is not None for seen in some) < 50


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("all", 5, 0.1), "rule"), (("each row", 0, 0.1), "people"), (("each row", 5, 1.1), "delta")],
)
def test_bad_parameters_are_refused(arguments: tuple, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        AdditiveCounterexample(*arguments)
