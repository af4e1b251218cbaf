"""Totals of rows: exact, in any order, and never farther apart for neighbours than is said."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.learning.moments import CHUNK, STEPS, TOP, WHOLE, Moments, Weights, means, quietest
from hubbub.mechanisms import Gaussian, Laplace

KINDS = {
    "columns": Weights(64, 64, 45),
    "steep columns": Weights(3, 1, 5),
    "components": Weights(64, 64, 32, 64),
    "regression": Weights(30, 30, 15, 30, 64, 64),
    "steep regression": Weights(1, 1, 9, 2, 3, 5),
}
HOSTILE = st.sampled_from([-1.0, 1.0, 0.0, 0.5, -0.4268, 1e9, -1e300, float("nan"), float("inf"), 1e-9]) | st.floats(
    -1, 1
)


def made(kind: str, neighbours: Any, sizes: tuple[int, ...], classes: int = 1) -> Moments:
    width = len(sizes) + ("regression" in kind)
    return Moments((-1.0,) * width, (1.0,) * width, sizes, KINDS[kind], neighbours, classes)


def apart(one: list[int], other: list[int], norm: int) -> int:
    """The distance; squared in the 2-norm."""
    return sum(abs(a - b) ** norm for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_neighbours_are_no_farther_apart_than_said(kind: str, neighbours: Any, classes: int, data: Any) -> None:
    sizes = data.draw(st.lists(st.sampled_from([WHOLE, WHOLE, 1, 3]), min_size=1, max_size=4))
    plan = made(kind, neighbours, tuple(sizes), classes)
    row = st.lists(HOSTILE, min_size=len(plan.low), max_size=len(plan.low))
    rest, one, other = data.draw(st.lists(row, max_size=3)), data.draw(row), data.draw(row)
    of = [data.draw(st.integers(-1, classes - 1)) for _ in range(len(rest) + 2)] if classes > 1 else None
    tables = [[*rest, one], [*rest, other] if neighbours == "replace" else rest]
    groups = [None, None] if of is None else [np.array(of[:-1]), np.array([*of[:-2], of[-1]][: len(tables[1])])]
    totals = [
        plan.totals(np.array(t, dtype=float).reshape(-1, len(plan.low)), g) for t, g in zip(tables, groups, strict=True)
    ]
    assert apart(*totals, 1) <= plan.sensitivity(1)
    assert apart(*totals, 2) <= plan.sensitivity(2) ** 2


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("kind", ["columns", "components", "regression"])
@pytest.mark.parametrize("features", [1, 2, 3, 4])
def test_and_some_neighbours_are_as_far_apart(kind: str, neighbours: Any, features: int) -> None:
    plan = made(kind, neighbours, (WHOLE,) * features)
    corners = [np.array([c]) for c in product((-1.0, 1.0), repeat=len(plan.low))]
    none = np.zeros((0, len(plan.low)))
    others = [none] if neighbours == "add-remove" else corners
    most = max(apart(plan.totals(corners[-1]), plan.totals(o), 2) for o in others)
    assert (plan.sensitivity(2) - 1) ** 2 < most <= plan.sensitivity(2) ** 2
    if neighbours == "add-remove":
        assert apart(plan.totals(corners[-1]), plan.totals(none), 1) == plan.sensitivity(1)


def test_the_bound_under_replacement_is_near_what_a_fine_search_finds() -> None:
    line = np.linspace(-1, 1, 41)
    for kind in ("columns", "steep columns"):
        plan = made(kind, "replace", (WHOLE,))
        totals = [plan.totals(np.array([[x]])) for x in line]
        for norm, loose in ((1, 1.02), (2, 1.35)):
            most = max(apart(a, b, norm) for a in totals for b in totals) ** (1 / norm)
            assert most <= plan.sensitivity(norm) <= most * loose


def test_a_square_that_is_too_loud_is_paid_for() -> None:
    """The other side: without the bulge the 2-norm would be claimed too small."""
    plan = made("steep columns", "replace", (WHOLE,))
    here, there = (plan.totals(np.array([[x]])) for x in (1.0, 0.0))
    flat = Moments((-1.0,), (1.0,), (WHOLE,), Weights(3, 1, 0), "replace").sensitivity(2)
    assert apart(here, there, 2) > flat**2


def test_totals_are_exact_in_any_order_and_number() -> None:
    generator = np.random.default_rng(1)
    rows = generator.uniform(-1.5, 1.5, (2 * CHUNK + 17, 3))
    plan = made("regression", "add-remove", (WHOLE, 5))
    found = plan.totals(rows)
    assert found == plan.totals(rows[generator.permutation(len(rows))])
    x = [[int(v) for v in row] for row in plan.encoded(rows)]
    w = plan.weights
    assert found[0] == w.count * TOP**2 * len(rows)
    assert found[2] == w.linear * TOP * sum(r[1] for r in x)
    assert found[4] == w.square * sum(2 * r[1] ** 2 - (5 * STEPS) ** 2 for r in x)
    assert found[5] == w.cross * sum(r[0] * r[1] for r in x)
    assert found[6] == w.target * TOP * sum(r[2] for r in x)
    assert found[8] == w.product * sum(r[1] * r[2] for r in x)
    heavy = plan.totals(np.ones((4 * CHUNK, 3)))
    assert heavy[5] == w.cross * 4 * CHUNK * TOP * 5 * STEPS
    assert heavy[5] * 10**9 > 2**63  # a billion rows would overflow 64 bits; these are Python's integers
    assert all(type(v) is int for v in heavy)


def test_what_is_read_is_what_was_added_up() -> None:
    rows = np.random.default_rng(2).uniform(-1, 1, (500, 4))
    for neighbours in ("add-remove", "replace"):
        plan = made("regression", neighbours, (WHOLE, 3, 7))
        (found,) = plan.read(plan.totals(rows), len(rows))
        assert found.count == 500
        np.testing.assert_allclose(found.sums, rows[:, :3].sum(axis=0), atol=1e-3)
        np.testing.assert_allclose(found.products, rows[:, :3].T @ rows[:, :3], atol=1e-3)
        np.testing.assert_allclose(found.target_products[:, 0], rows[:, :3].T @ rows[:, 3], atol=1e-3)


def test_noise_is_as_told() -> None:
    plan, mechanism = quietest(
        lambda _: made("regression", "add-remove", (WHOLE, 4)), epsilon=1.0, delta=1e-5, neighbours="add-remove"
    )
    zero = plan.totals(np.zeros((0, 3)))
    drawn = [plan.read(mechanism.release(zero), 0)[0] for _ in range(2000)]
    told = plan.noise(mechanism)
    for name in ("count", "sums", "products", "target_sums", "target_products"):
        seen = np.std([getattr(d, name) for d in drawn], axis=0)
        np.testing.assert_allclose(seen, getattr(told, name), rtol=0.15)


def test_less_noise_is_chosen_and_the_price_is_the_one_asked() -> None:
    def plan(_: int) -> Moments:
        return made("components", "add-remove", (WHOLE,) * 12)

    _, gaussian = quietest(plan, epsilon=1.0, delta=1e-6, neighbours="add-remove")
    _, laplace = quietest(plan, epsilon=1.0, delta=0, neighbours="add-remove")
    _, few = quietest(lambda _: made("columns", "replace", (WHOLE,)), epsilon=1.0, delta=1e-12, neighbours="replace")
    assert isinstance(gaussian, Gaussian)
    assert isinstance(laplace, Laplace)
    assert isinstance(few, Laplace)
    assert 1 - 1e-6 < gaussian.loss.epsilon(1e-6) <= 1
    assert laplace.loss.epsilon() == 1
    assert few.loss.neighbours == "replace"


def test_means_of_nothing_but_noise_are_the_middle() -> None:
    plan, mechanism = quietest(
        lambda _: made("columns", "add-remove", (WHOLE,)), epsilon=Fraction(1, 1000), delta=0, neighbours="add-remove"
    )
    (totals,) = plan.read([0, plan.weights.linear * TOP**2 * 50, 0], 0)
    count, centre, _ = means(totals, plan.noise(mechanism))
    assert count == 1
    assert abs(centre[0]) < 1e-3
