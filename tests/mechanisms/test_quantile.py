import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from hubbub.errors import DataTypeError, ParameterError


def misses(data: list[int], q: Fraction, points: range) -> np.ndarray:
    """Every candidate's rank error straight from the definition of the score."""
    found = []
    for v in points:
        below, at_or_below = sum(x < v for x in data), sum(x <= v for x in data)
        found.append(float(max(0, below - q * len(data), q * len(data) - at_or_below)))
    return np.array(found)


def flipped(gaps: np.ndarray) -> np.ndarray:
    """Permute-and-flip straight from its definition: of all that pass, each is the first in the order equally often."""
    chances, law = np.exp(-(gaps - gaps.min())), np.zeros(len(gaps))
    for passed in product([False, True], repeat=len(gaps)):
        if any(passed):
            mask = np.array(passed)
            law[mask] += np.prod(np.where(mask, chances, 1 - chances)) / mask.sum()
    return law


def clamped(data: list[int], low: int, high: int) -> list[int]:
    return [min(max(x, low), high) for x in data]


SHARES = [0, 0.25, 0.5, Fraction(1, 3), 1 / 3, 0.9, 1]


@given(st.lists(st.integers(-2, 8), max_size=7), st.sampled_from(SHARES))
def test_the_law_on_few_points_is_the_definition(data: list[int], q: float) -> None:
    m = hb.Quantile(q, bounds=(0, 6), epsilon=1)
    exact = Fraction(str(q))
    rate = 1 / (2 * float(max(exact, 1 - exact)))
    support, law = m.distribution(data)
    assert support.tolist() == list(range(7))
    assert law == pytest.approx(flipped(rate * misses(clamped(data, 0, 6), exact, range(7))))


@given(st.lists(st.integers(-120, 320), max_size=9), st.sampled_from(SHARES))
def test_the_law_on_many_points_is_the_definition(data: list[int], q: float) -> None:
    """Above a median, points from 0 up weigh 1/distance in doubling steps; below it, those from 0 down."""
    points = range(-100, 301)
    m = hb.Quantile(q, bounds=(-100, 300), epsilon=1)
    exact = Fraction(str(q))
    rate = 1 / (2 * float(max(exact, 1 - exact)))
    up = [64 >> max(0, (v // 4).bit_length() - 1) for v in range(301)]  # four points in the first of 64 parts
    down = [64 >> max(0, v.bit_length() - 1) for v in range(101)]
    if 2 * exact > 1:
        weights = [sum(up) // 301] * 100 + up
    elif 2 * exact < 1:
        weights = [*reversed(down), *[sum(down) // 101] * 300]
    else:
        weights = [1] * 401
    expected = np.array(weights) * np.exp(-rate * misses(clamped(data, -100, 300), exact, points))
    support, law = m.distribution(data)
    assert support.tolist() == list(points)
    assert law == pytest.approx(expected / expected.sum())
    assert m.candidates == sum(weights)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("q", [0, 0.3, 0.5, 1 / 3, 1])
def test_every_pair_of_small_neighbours(q: float, neighbours: str) -> None:
    m = hb.Quantile(q, bounds=(0, 3), epsilon=1, neighbours=neighbours)
    worst = 0.0
    for n in range(4):
        for data in combinations_with_replacement(range(4), n):
            _, p = m.distribution(list(data))
            if neighbours == "add-remove":
                others = [[*data, x] for x in range(4)]
            else:
                others = [[*data[:i], x, *data[i + 1 :]] for i in range(n) for x in range(4)]
            for other in others:
                _, r = m.distribution(other)
                worst = max(worst, np.abs(np.log(p / r)).max())
    assert worst <= 1 + 1e-12
    assert worst > 0.4  # the score's sensitivity is not wildly overstated


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("q", [0, 0.3, 0.5, 0.9, 1])
@pytest.mark.parametrize("bounds", [(0, 300), (-300, 0), (-150, 150), (-900, -600)])
def test_neighbours_on_many_points(q: float, neighbours: str, bounds: tuple[int, int]) -> None:
    """Whatever the public weights, and with records at the edges of their blocks."""
    low, high = bounds
    m = hb.Quantile(q, bounds=bounds, epsilon=1, neighbours=neighbours)
    places = sorted({low, low + 1, (low + high) // 2, max(low, min(4, high)), high - 1, high})
    laws = {data: m.distribution(list(data))[1] for n in range(4) for data in combinations_with_replacement(places, n)}
    worst = 0.0
    for data, p in laws.items():
        if neighbours == "add-remove":
            others = [tuple(sorted([*data, x])) for x in places] if len(data) < 3 else []
        else:
            others = [tuple(sorted([*data[:i], x, *data[i + 1 :]])) for i in range(len(data)) for x in places]
        for other in others:
            worst = max(worst, np.abs(np.log(p / laws[other])).max())
    assert worst <= 1 + 1e-12
    assert worst > 0.4


def test_an_empty_range_beyond_the_tail_draws_few_answers() -> None:
    """Data of a small part of the range: even weights would answer from beyond it almost always."""
    data = np.random.default_rng(3).lognormal(-2, 1, 10_000)
    high = [hb.Quantile(0.99, bounds=(0.0, 100.0), epsilon=0.1).release(data) for _ in range(40)]
    low = [hb.Quantile(0.01, bounds=(-100.0, 0.0), epsilon=0.1).release(-data) for _ in range(40)]
    for values in (high, [-v for v in low]):
        assert sum(v > data.max() for v in values) < 20


def test_long_denominators_do_not_overflow() -> None:
    """1/3 as a float has the denominator 10**16; counts times that leave 64 bits from a few hundred records on."""
    m = hb.Quantile(1 / 3, bounds=(0, 20), epsilon=1.0)
    for n in (900, 1383, 2768, 5000):
        _, p = m.distribution([10] * n)
        _, q = m.distribution([10] * n + [0])
        assert np.abs(np.log(p[p > 1e-12] / q[p > 1e-12])).max() <= 1 + 1e-9
        assert abs(m.release([10] * n) - 10) <= 1


@pytest.mark.parametrize("q", [0.25, 0.5, 0.9])
def test_accuracy(q: float) -> None:
    data = np.random.default_rng(1).lognormal(size=10_000)
    m = hb.Quantile(q, bounds=(0.0, 100.0), epsilon=1.0)
    ranks = [abs(np.mean(data <= m.release(data)) - q) for _ in range(20)]
    assert np.median(ranks) < 0.001


def test_outputs_lie_on_the_public_grid() -> None:
    m = hb.Quantile(0.5, bounds=(0.0, 100.0), epsilon=0.5)
    assert math.frexp(m.spacing)[0] == 0.5
    for data in ([], [0.1], [math.nan, math.inf, -math.inf], [1e-300] * 9, np.full(5, 1 / 3, np.float32)):
        x = m.release(data)
        assert 0 <= x <= 100
        assert x / m.spacing == round(x / m.spacing)


def test_nan_counts_as_zero_then_clamped() -> None:
    assert hb.Quantile(0.5, bounds=(-10, 10), epsilon=100).release([math.nan] * 50) == 0
    assert hb.Quantile(0.5, bounds=(5, 10), epsilon=100).release([math.nan] * 50) == 5


def test_spacing_that_does_not_divide_the_range() -> None:
    support, law = hb.Quantile(0.5, bounds=(0.0, 1.0), epsilon=1, spacing=0.3).distribution([0.95, 0.2])
    assert support == pytest.approx([0, 0.3, 0.6, 0.9])
    assert law.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "bad",
    [
        {"quantile": 1.5},
        {"quantile": "half"},
        {"bounds": (1, 1)},
        {"bounds": (2, 1)},
        {"bounds": 5},
        {"bounds": (0, math.inf)},
        {"bounds": (2**63, 2**63 + 10)},
        {"bounds": (-9e18, 9e18)},
        {"bounds": (0.0, 1e-200)},
        {"epsilon": 0},
        {"spacing": 0},
        {"spacing": 1e-30},
        {"neighbours": "both"},
    ],
)
def test_bad_parameters(bad: dict) -> None:
    good = {"quantile": 0.5, "bounds": (0.0, 1.0), "epsilon": 1}
    with pytest.raises(ParameterError):
        hb.Quantile(**good | bad)


@pytest.mark.parametrize("bad", [None, 5, ["a"], [[1]], np.zeros((2, 2)), [None]])
def test_bad_data(bad: object) -> None:
    with pytest.raises(DataTypeError):
        hb.Quantile(0.5, bounds=(0, 1), epsilon=1).release(bad)


def test_too_fine_to_list() -> None:
    with pytest.raises(ParameterError, match="too many to list"):
        hb.Quantile(0.5, bounds=(0.0, 1.0), epsilon=1).distribution([0.5])
