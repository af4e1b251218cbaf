"""Replays: what a pipeline may do between the data and its releases, and what it may not."""

import math
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mechanisms.catalogue import cells

import hubbub as hb
from hubbub.audit import replay
from hubbub.audit.replay import recording
from hubbub.errors import ParameterTypeError


@pytest.mark.parametrize("cell", cells(), ids=lambda c: c.name)
def test_neighbours_of_the_catalogue_are_neighbours(cell: Any) -> None:
    """Every shipped cell is within its own sensitivity, and releases under a replay what it released."""
    found = replay(cell.mechanism.release, cell.value, cell.neighbour, claimed=cell.mechanism.loss)
    assert found.holds, str(found)
    assert found.releases == 1
    assert found.apart <= 1 + 1e-9


def clipped_mean(rows: list[float]) -> dict[str, float]:
    total = hb.Laplace(1.0, epsilon=0.5).release(float(sum(min(max(r, 0.0), 1.0) for r in rows)))
    n = hb.Laplace(1, epsilon=0.5).release(len(rows))
    return {"mean": total / max(1, n), "n": n}


def adaptive(rows: list[float]) -> float:
    """Asks more where the first answer is large: its path depends on released values only."""
    if hb.Laplace(1, epsilon=1.0).release(len(rows)) > 0:
        return hb.Gaussian(1.0, sigma=2.0).release(min(sum(rows), 1.0))
    return 0.0


def searching(rows: list[float]) -> int | None:
    session = hb.AboveThreshold(1, threshold=2, epsilon=1.0).session()
    return next((t for t in range(4) if session.ask(sum(r > t for r in rows))), None)


FINE = [clipped_mean, adaptive, searching]
PAIRS = [([0.5, 1.0, 7.0], [0.5, 1.0]), ([], [1.0]), ([math.nan], []), ([1e300, -1e300], [1e300])]


@pytest.mark.parametrize("pipeline", FINE, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("x", "y"), [([0.5, 1.0, 0.2], [0.5, 1.0]), ([], [1.0])])
def test_private_pipelines_hold(pipeline: Callable[[Any], Any], x: list[float], y: list[float]) -> None:
    for _ in range(20):
        found = replay(pipeline, x, y)
        assert found.holds, str(found)
        assert found.releases >= 1


def unclipped(rows: list[float]) -> float:
    return hb.Laplace(1.0, epsilon=1.0).release(float(sum(rows)))


def peeking(rows: list[float]) -> float:
    return hb.Laplace(1, epsilon=1.0).release(len(rows)) if len(rows) > 2 else 0.0


def scaled_by_data(rows: list[float]) -> float:
    return hb.Laplace(float(max(rows, default=1.0)), epsilon=1.0).release(float(sum(rows)))


def leaking(rows: list[float]) -> tuple[int, int]:
    return hb.Laplace(1, epsilon=1.0).release(len(rows)), len(rows)


def looping(rows: list[float]) -> list[int]:
    return [hb.Laplace(1, epsilon=1.0).release(1) for _ in rows]


def branching(rows: list[float]) -> int:
    if sum(rows) > 2:
        return hb.Laplace(1, epsilon=1.0).release(len(rows))
    return hb.Laplace(1, epsilon=1.0).release(len(rows))


BAD = [
    (unclipped, "farther apart"),
    (peeking, "release less|one release more"),
    (scaled_by_data, "where the first input had"),
    (leaking, "more than what was released"),
    (looping, "release less|one release more"),
    (branching, "where the first input had"),
]


@pytest.mark.parametrize(("pipeline", "words"), BAD, ids=lambda v: getattr(v, "__name__", ""))
def test_leaks_are_found(pipeline: Callable[[Any], Any], words: str) -> None:
    found = replay(pipeline, [0.5, 0.5, 7.125], [0.5, 0.5])
    assert not found.holds
    assert re.search(words, str(found)), str(found)
    assert "7.125" not in str(found), "findings never carry private values"


def failing(rows: list[float]) -> float:
    return hb.Laplace(1, epsilon=1.0).release(len(rows)) / (len(rows) - 2)


def failing_first(rows: list[float]) -> float:
    return hb.Laplace(1, epsilon=1.0).release(len(rows)) / (len(rows) - 3)


def failing_otherwise(rows: list[float]) -> None:
    raise ValueError(f"{len(rows)} rows")


def swallowing(rows: list[float]) -> int:
    """Goes on after whatever stopped it."""
    for _ in rows:
        try:
            hb.Laplace(1, epsilon=1.0).release(1)
        except Exception:
            continue
    return 0


def elsewhere(rows: list[float]) -> bool:
    told: list[int] = []
    thread = threading.Thread(target=lambda: told.append(hb.Laplace(1, epsilon=1.0).release(100 * len(rows))))
    thread.start()
    thread.join()
    return told[0] > 10**6


def searching_as_long_as_the_data(rows: list[float]) -> int | None:
    return hb.AboveThreshold(1, threshold=10**6, epsilon=1.0).release([0] * len(rows))


OUTCOMES = [
    (failing, "an error on one input"),
    (failing_first, "an error on one input"),
    (failing_otherwise, "another error"),
    (swallowing, "a release less"),
    (elsewhere, "another thread"),
    (searching_as_long_as_the_data, "farther apart"),
    (lambda rows: 1 if len(rows) > 2 else 1.0, "more than what was released"),
    (lambda rows: -0.0 if len(rows) > 2 else 0.0, "more than what was released"),
    (lambda rows: [1] if len(rows) > 2 else (1,), "more than what was released"),
    (lambda rows: dict.fromkeys("ab" if len(rows) > 2 else "ba"), "more than what was released"),
    (lambda rows: np.zeros(1, int if len(rows) > 2 else float), "more than what was released"),
    (lambda rows: math.nan if len(rows) > 2 else 0.0, "more than what was released"),
]


@pytest.mark.parametrize(("pipeline", "words"), OUTCOMES)
def test_whatever_an_onlooker_could_tell_apart_is_found(pipeline: Callable[[Any], Any], words: str) -> None:
    found = replay(pipeline, [0.5, 0.5, 7.125], [0.5, 0.5])
    assert not found.holds
    assert re.search(words, str(found)), str(found)
    assert not re.search("rows|division", str(found)), "errors may carry private values"


def test_errors_on_both_inputs_alike_are_the_callers() -> None:
    def broken(_: list[float]) -> None:
        raise KeyError("no such column")

    with pytest.raises(KeyError, match="no such column"):
        replay(broken, [1], [2])
    search = hb.AboveThreshold(1, threshold=2, epsilon=1.0)
    with pytest.raises(ParameterTypeError, match="must be a list under a replay"):
        replay(lambda rows: search.release(r for r in rows), [1], [2])


def test_values_are_kept_as_they_were() -> None:
    def reusing(rows: list[float]) -> list[float]:
        sums = np.array([float(len(rows)), 0.0])
        told = hb.Laplace(1.0, epsilon=1.0).release(sums)
        sums[:] = 99.0
        return [float(t) for t in told]

    assert replay(reusing, [1.0, 2.0], [1.0]).holds
    assert replay(lambda _: {"nan": [math.nan], "told": hb.PureDP(1.0)}, [1], [2]).holds


def test_prices_are_added_up_and_compared() -> None:
    found = replay(clipped_mean, [0.5], [], claimed=hb.PureDP(1.0))
    assert found.holds
    assert found.loss.epsilon() == 1.0
    assert "cost more" in str(replay(clipped_mean, [0.5], [], claimed=hb.PureDP(0.9)))
    assert replay(searching, [3.0], []).loss.epsilon() == 1.0
    assert replay(bool, [1], [2]).loss.epsilon() == 0.0
    assert not replay(bool, [1], [2], claimed=hb.PureDP(1.0)).findings


def test_recordings_see_the_outermost_release_only() -> None:
    with recording() as calls:
        hb.AboveThreshold(1, threshold=2, epsilon=1.0).release([0, 5])
        hb.Laplace(1, epsilon=1.0).map(abs).release(3)
        hb.Laplace(1.0, epsilon=1.0).release(np.zeros(3))
    assert [type(c.mechanism).__name__ for c in calls] == ["AboveThreshold", "Laplace", "Laplace"]
    assert all(c.where.startswith("test_replay.py:") for c in calls)
    hb.Laplace(1, epsilon=1.0).release(3)
    assert len(calls) == 3


def test_a_mechanism_of_ones_own() -> None:
    """Without a notion of distance of its own, a mechanism takes equal inputs only."""

    class Constant(hb.mechanisms.Mechanism):
        @property
        def loss(self) -> hb.Loss:
            return hb.PureDP(1.0)

        def _release(self, value: Any, bits: Any) -> int:  # noqa: ARG002
            return 0

    own = Constant()
    assert replay(own.release, [1, 2], [1, 2]).holds
    assert not replay(own.release, [1, 2], [1]).holds
