"""Descent as in the notes: the averaged point keeps Theorem 12's bound, and noise costs what was said."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import SeededBits

from hubbub.audit import replay
from hubbub.errors import ParameterError
from hubbub.learning.descents import clipped, descend, descend_privately, descend_stochastically, projected

ROWS = np.random.default_rng(0).normal(size=(400, 3))
TARGETS = np.sign(ROWS @ [1.0, -1.0, 0.5])
SCALED = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True) * TARGETS[:, None]


def gradients(w: Any, rows: Any) -> Any:
    """Of the hinge loss of each row, which has slope 1."""
    return np.where((rows @ w < 1)[:, None], -rows, 0.0)


def risk(w: Any) -> float:
    return float(np.maximum(0, 1 - SCALED @ w).mean())


def best(radius: float) -> float:
    path = descend(lambda w: gradients(w, SCALED).mean(axis=0), np.zeros(3), steps=2000, size=0.05, radius=radius)
    return min(risk(w) for w in path[::50])


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 300), st.floats(0.5, 5))
def test_theorem_12_holds_for_the_average(steps: int, radius: float) -> None:
    size = 2 * radius / math.sqrt(steps)
    path = descend(lambda w: gradients(w, SCALED).mean(axis=0), np.zeros(3), steps=steps, size=size, radius=radius)
    assert risk(path.mean(axis=0)) <= best(radius) + 2 * radius / math.sqrt(steps)


def test_one_row_a_step_gets_there_too() -> None:
    path = descend_stochastically(gradients, SCALED, np.zeros(3), steps=4000, size=0.05, radius=5, bits=SeededBits(0))
    assert risk(path.mean(axis=0)) < best(5) + 0.1


def test_noisy_descent_learns_and_tells_its_price() -> None:
    path, loss = descend_privately(
        gradients, SCALED, np.zeros(3), steps=50, size=0.5, radius=5, clip=1, epsilon=2, delta=1e-5, bits=SeededBits(0)
    )
    assert loss.neighbours == "replace"
    assert 1.99 < loss.epsilon(1e-5) <= 2
    assert risk(path.mean(axis=0)) < best(5) + 0.25
    for wrong in (SCALED[:0], np.zeros((2**20 + 1, 1))):
        with pytest.raises(ParameterError, match="rows"):
            descend_privately(gradients, wrong, [0.0], steps=1, size=1, radius=1, clip=1, epsilon=1, delta=1e-5)
    most = clipped(np.full((2**20, 1), math.pi), 3.0)
    assert math.fsum(most[:, 0]) == most.sum()


@pytest.mark.parametrize("pairs", [20, pytest.param(200, marks=pytest.mark.long)])
def test_replayed_on_neighbours(pairs: int) -> None:
    generator = np.random.default_rng(1)
    for _ in range(pairs):
        other = SCALED.copy()
        other[0] = [[1e300, 0, 0], [math.nan, 1, 1], [-math.inf, 0, 0], [0, 0, 0]][generator.integers(4)]

        def run(rows: Any) -> Any:
            with np.errstate(all="ignore"):
                return descend_privately(
                    gradients, rows, np.zeros(3), steps=4, size=0.5, radius=5, clip=1, epsilon=2, delta=1e-5
                )[0]

        report = replay(run, SCALED, other)
        assert report.holds, str(report)


@given(st.lists(st.lists(st.floats(), min_size=2, max_size=2), min_size=1, max_size=6), st.floats(1e-3, 1e3))
def test_clipped_gradients_are_no_longer_and_add_up_exactly(rows: list[list[float]], longest: float) -> None:
    found = clipped(np.array(rows), longest)
    assert (np.linalg.norm(found, axis=1) <= longest).all()
    assert [math.fsum(c) for c in found.T] == found.sum(axis=0).tolist()


def test_projection() -> None:
    assert projected(np.array([3.0, 4.0]), 10).tolist() == [3, 4]
    assert np.allclose(projected(np.array([3.0, 4.0]), 1), [0.6, 0.8])


@pytest.mark.long
def test_excess_risk_falls_with_rows_as_foretold() -> None:
    """The worst excess risk of noisy descent on a linear loss, over lengths of the mean row: an exponent near -1."""
    generator, sizes, worst = np.random.default_rng(4), [1000, 4000, 16000], []
    steps, d = 100, 8
    for n in sizes:
        cells = []
        for mean in np.array([4, 8, 16]) * d**0.5 / n:
            found = []
            for seed in range(6):
                way = generator.normal(size=d)
                rows = mean * way / np.linalg.norm(way) + 0.5 * np.where(np.arange(n) % 2, 1, -1)[:, None] / d**0.5
                path, _ = descend_privately(
                    lambda _, z: -z,
                    rows,
                    np.zeros(d),
                    steps=steps,
                    size=1 / (steps**0.5 * max(mean, (steps * d) ** 0.5 * 4 / n)),
                    radius=1,
                    clip=1,
                    epsilon=1,
                    delta=1e-6,
                    bits=SeededBits(seed),
                )
                centre = rows.mean(axis=0)
                found.append(np.linalg.norm(centre) - path[steps // 2 :].mean(axis=0) @ centre)
            cells.append(np.mean(found))
        worst.append(max(cells))
    exponent = np.polyfit(np.log(sizes), np.log(worst), 1)[0]
    assert -1.3 < exponent < -0.7, (exponent, worst)
