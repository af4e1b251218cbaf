"""Private k-means: sensitivities by brute force, replays on neighbours, hostile rows, prices, and what it finds."""

import math
import random
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import check_estimator

import hubbub as hb
from hubbub.audit import audit, replay
from hubbub.audit.replay import recording
from hubbub.errors import BudgetExceeded, ParameterError, ParameterTypeError
from hubbub.learning import KMeans, summing
from hubbub.learning.clustering import Merging, PlainLloyd
from hubbub.learning.coresets import coreset
from hubbub.learning.summing import ONE, Allowance, Grid, gathered, nearest, steps_for

RELATIONS = ["add-remove", "replace"]
METHODS: list[dict[str, Any]] = [{"method": "lloyd", "rounds": 2}, {"delta": 1e-3}, {"delta": 0}]
HOSTILE = [0.0, 1.0, -1.0, 0.3, 1e9, -1e300, math.inf, -math.inf, math.nan, 5e-324]


class Seeded:
    """Bits that repeat themselves."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)

    def words(self, count: int) -> Any:
        return np.array([self.random.getrandbits(64) for _ in range(count)], np.uint64)

    def word(self) -> int:
        return self.random.getrandbits(64)


class SeededKMeans(KMeans):
    """As scikit-learn's checks want estimators: the same each time."""

    def fit(self, X: Any, y: object = None) -> Self:  # type: ignore[override]  # noqa: N803
        return super().fit(X, y, bits=Seeded())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = False
        return tags


def blobs(centres: Any, each: int, spread: float) -> Any:
    return np.vstack([np.random.default_rng(5).normal(c, spread, (each, len(c))) for c in centres])


table = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from(HOSTILE) | st.floats(-2, 2), min_size=width, max_size=width), min_size=2, max_size=6
    )
)


@settings(max_examples=150, deadline=None)
@given(rows=table, norm=st.sampled_from([1, 2]), count=st.sampled_from([ONE // 2, ONE]), squares=st.booleans(),
       reach=st.sampled_from([1.0, 1e3, 1e9]), bounds=st.sampled_from([(-1, 1), (0, 1), (-1e-3, 5)]))  # fmt: skip
def test_one_row_moves_a_step_by_what_is_paid_for(
    rows: Any, norm: int, count: int, squares: bool, reach: float, bounds: Any
) -> None:
    grid = Grid.of(bounds, len(rows[0]))
    points = grid(rows)
    centres = grid.within(np.array([points[0] + 7, points[-1] / 3, points[1]]))
    weight = ONE if squares else 0

    def statistic(table: Any) -> Any:
        own = nearest(table, centres)
        return gathered(table, own, centres, np.full(3, reach), norm=norm, count=count, squares=weight)

    def apart(one: Any, other: Any, relation: Any) -> float:
        allowance = Allowance(1.0, 1e-6 if norm == 2 else 0.0, relation)
        return allowance.moments(0.5, count=count, squares=weight).apart(statistic(one), statistic(other))

    assert apart(points, points[1:], "add-remove") <= 1
    assert apart(points[:1], points[:0], "add-remove") <= 1
    assert apart(points[1:], points[:-1], "replace") <= 1
    assert np.array_equal(statistic(points), statistic(points[::-1]))


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("count", [ONE // 2, ONE])
def test_the_sensitivities_are_reached(norm: int, count: int) -> None:
    """So that a smaller one would fail the test above: opposite rows of one cluster, or of two."""
    points, centres = np.array([[9.0, 0.0], [-9.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 5.0]])
    one = gathered(points[:1], np.array([0]), centres, np.array([9.0, 9.0]), norm=norm, count=count)
    same = gathered(points[1:], np.array([0]), centres, np.array([9.0, 9.0]), norm=norm, count=count)
    other = gathered(
        points[1:] + np.array([0.0, 5.0]), np.array([1]), centres, np.array([9.0, 9.0]), norm=norm, count=count
    )
    delta = 1e-6 if norm == 2 else 0.0
    removed = Allowance(1, delta, "add-remove").moments(1.0, count=count).apart(one, 0 * one)
    replaced = Allowance(1, delta, "replace").moments(1.0, count=count)
    assert 0.999 < removed <= 1
    assert 0.999 < max(replaced.apart(one, same), replaced.apart(one, other)) <= 1


@settings(max_examples=100, deadline=None)
@given(rows=table, relation=st.sampled_from(RELATIONS))
def test_one_row_moves_the_notes_sums_by_2_in_the_l1_ball(rows: Any, relation: Any) -> None:
    grid = Grid.of((-1, 2), len(rows[0]))
    seen = []
    for one in (rows, [*rows[1:], rows[1]] if relation == "replace" else rows[1:]):
        with recording() as calls:
            PlainLloyd(1.0, 1, relation).centres(grid(np.array(one)), grid, 2, Seeded())
        seen.append(calls)
    for first, second in zip(*seen, strict=True):
        assert first.mechanism.apart(first.value, second.value) <= 1


def test_the_notes_noise_is_that_of_the_notes() -> None:
    grid = Grid.of((0, 1), 4)
    radius = 4 * ONE
    for relation, moved in (("replace", 2), ("add-remove", 1)):
        counting, summing = PlainLloyd(3.0, 5, relation).mechanisms(grid)
        assert counting.scale == pytest.approx(moved * 10 / 3.0)
        assert summing.scale / radius == pytest.approx(moved * 10 / 3.0)


def test_a_row_between_two_centres_counts_once() -> None:
    assert nearest(np.array([[0.0]]), np.array([[1.0], [-1.0]])).tolist() == [0]


@settings(deadline=None)
@given(st.integers(1, 5000))
def test_squared_distances_are_exact(features: int) -> None:
    assert 4 * features * steps_for(features) ** 2 <= 2**53


def test_where_a_row_goes_does_not_depend_on_other_rows() -> None:
    """Ties everywhere, and tables of every length: rounding by position would show."""
    grid, generator = Grid.of((0, 1), 7), np.random.default_rng(0)
    points = grid(generator.integers(0, 3, (3000, 7)) / 2)
    centres = grid(generator.integers(0, 3, (40, 7)) / 2 + 1e-3)
    whole = nearest(points, centres)
    for start in (1, 2, 3, 17, 1000, 2999):
        assert np.array_equal(nearest(points[start:], centres), whole[start:])


def run(relation: str, options: dict[str, Any], width: int, clusters: int = 2) -> Any:
    def fitted(rows: Any) -> Any:
        model = KMeans(clusters, epsilon=2.0, bounds=(-1, 2), neighbours=relation, **options)
        model.fit(np.array(rows, float).reshape(-1, width), bits=Seeded(3))
        return model.cluster_centers_

    return fitted


def check_replays(relation: str, options: dict[str, Any], pairs: int) -> None:
    generator = random.Random(f"{relation} {options}")
    for i in range(pairs):
        width = [1, 2, 5, 8][i % 4]
        rows = [[generator.choice([*HOSTILE, generator.uniform(-2, 3)]) for _ in range(width)] for _ in range(25)]
        first = rows[: generator.randrange(2, 26)]
        second = [*first[:-1], rows[generator.randrange(25)]] if relation == "replace" else first[:-1]
        price = KMeans(2, epsilon=2.0, neighbours=relation, **options)._method().loss
        found = replay(run(relation, options, width), first, second, claimed=price)
        assert found.holds, (options, str(found))
        assert found.releases >= 4


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("options", METHODS, ids=str)
def test_fits_hold_under_replay(relation: str, options: dict[str, Any]) -> None:
    check_replays(relation, options, 6)


@pytest.mark.long
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("options", METHODS, ids=str)
def test_fits_hold_under_many_replays(relation: str, options: dict[str, Any]) -> None:
    check_replays(relation, options, 200)


def test_a_replay_finds_a_row_that_is_not_paid_for() -> None:
    model = run("add-remove", {"delta": 1e-3}, 2)
    rows = np.random.default_rng(1).uniform(-1, 2, (30, 2))
    assert not replay(model, rows, rows[:-2]).holds


@pytest.mark.parametrize("options", METHODS, ids=str)
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_releases_cost_what_was_asked(relation: Any, options: dict[str, Any]) -> None:
    for width in (2, 5, 9):
        model = KMeans(3, epsilon=0.7, bounds=(0, 1), neighbours=relation, **options)
        with recording() as calls:
            model.fit(np.random.default_rng(0).random((3000, width)), bits=Seeded())
        delta = 0.0 if options.get("method") == "lloyd" else options["delta"]
        total = hb.compose([call.mechanism.loss for call in calls])
        assert total.neighbours == model.loss_.neighbours == relation
        assert total.epsilon(delta) <= model.loss_.epsilon(delta) * (1 + 1e-9)
        assert model.loss_.epsilon(delta) <= 0.7
        assert total.epsilon(delta) == pytest.approx(0.7, rel=1e-3)


@pytest.mark.parametrize("options", METHODS, ids=str)
@pytest.mark.parametrize(
    "rows",
    [
        np.empty((0, 2)),
        np.full((1, 2), np.nan),
        np.full((50, 2), np.inf),
        np.full((50, 2), 1e9),
        np.zeros((500, 2)),
        np.array([[1e308, -1e308], [0, 0]] * 20),
    ],
    ids=["empty", "nan", "inf", "far", "constant", "huge"],
)
def test_hostile_rows_keep_the_shapes(rows: Any, options: dict[str, Any]) -> None:
    model = KMeans(4, epsilon=1.0, bounds=(-1, [1, 3]), **options).fit(rows)
    assert model.cluster_centers_.shape == (4, 2)
    assert np.isfinite(model.cluster_centers_).all()
    assert (model.cluster_centers_ >= -1).all()
    assert (model.cluster_centers_ <= [1, 3]).all()
    if len(rows):
        assert model.predict(rows).shape == (len(rows),)
        assert model.transform(rows).shape == (len(rows), 4)


@pytest.mark.parametrize("options", METHODS, ids=str)
def test_values_count_as_the_nearest_allowed_ones(options: dict[str, Any]) -> None:
    wild = np.array([[5.0, -9e9], [math.nan, math.inf], [0.5, -math.inf]] * 9)
    tame = np.array([[1.0, 0.2], [0.0, 1.0], [0.5, 0.2]] * 9)
    found = [KMeans(2, epsilon=1, bounds=([0, 0.2], 1), **options).fit(x, bits=Seeded(1)) for x in (wild, tame)]
    assert np.array_equal(found[0].cluster_centers_, found[1].cluster_centers_)


def check_audit(relation: Any, options: dict[str, Any], samples: int) -> None:
    def release(rows: Any) -> list[float]:
        model = KMeans(1, epsilon=1.0, bounds=(0, 1), neighbours=relation, **options)
        return [float(v) for v in model.fit(np.array(rows).reshape(-1, 1)).cluster_centers_[0]]

    price = KMeans(1, epsilon=1.0, neighbours=relation, **options)._method().loss
    other = [0.0, 0.0] if relation == "replace" else [0.0]
    assert audit(release, [0.0, 1.0], other, samples=samples, claimed=price, delta=1e-3).holds


@pytest.mark.parametrize("relation", RELATIONS)
def test_an_audit_of_tiny_plain_fits_refutes_nothing(relation: Any) -> None:
    check_audit(relation, METHODS[0], 500)


@pytest.mark.long
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("options", METHODS, ids=str)
def test_an_audit_of_many_tiny_fits_refutes_nothing(relation: Any, options: dict[str, Any]) -> None:
    check_audit(relation, options, 3000)


def test_an_audit_refutes_a_step_with_too_little_noise() -> None:
    one = gathered(np.array([[9.0]]), np.array([0]), np.zeros((1, 1)), np.array([9.0]), norm=1)
    true, wrong = (Allowance(e, 0.0, "add-remove").moments(1.0) for e in (1.0, 4.0))
    assert audit(true, one, 0 * one, samples=3000).holds
    assert not audit(wrong.release, one, 0 * one, samples=3000, claimed=1.0).holds


BAD: list[tuple[dict[str, Any], Any]] = [
    ({"n_clusters": 0}, "n_clusters"),
    ({"n_clusters": 2.5}, "n_clusters"),
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": -1, "method": "lloyd"}, "epsilon"),
    ({"delta": 1}, "delta"),
    ({"bounds": None}, "bounds"),
    ({"bounds": (1, 0)}, "bounds"),
    ({"bounds": ([0, 0, 0], 1)}, "bounds"),
    ({"method": "fast"}, "method"),
    ({"method": "lloyd", "rounds": 0}, "rounds"),
    ({"rounds": 3}, "rounds"),
    ({"neighbours": "both"}, "neighbours"),
]


@pytest.mark.parametrize(("options", "named"), BAD, ids=str)
def test_bad_parameters_are_named_before_anything_is_spent(options: dict[str, Any], named: str) -> None:
    budget = hb.Budget(epsilon=10)
    with pytest.raises((ParameterError, ParameterTypeError), match=f"^{named}="), recording() as calls:
        KMeans(**({"epsilon": 1.0, "bounds": (0, 1), "budget": budget} | options)).fit(np.zeros((5, 2)))
    assert not budget.receipts
    assert not calls


def test_the_budget_pays_first_and_may_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = hb.Budget(epsilon=1, delta=1e-6)
    model = KMeans(2, epsilon=1.0, delta=1e-6, bounds=(0, 1), budget=budget)
    model.fit(np.zeros((5, 2)))
    assert [r.loss for r in budget.receipts] == [model.loss_]
    monkeypatch.setattr(Merging, "centres", lambda *_: pytest.fail("a row was used"))
    monkeypatch.setattr(Grid, "__call__", lambda *_: pytest.fail("a row was touched"))
    with pytest.raises(BudgetExceeded), recording() as calls:
        KMeans(2, epsilon=1.0, delta=1e-6, bounds=(0, 1), budget=budget).fit(np.zeros((5, 2)))
    assert not calls
    with pytest.raises(ParameterTypeError, match="budget"):
        KMeans(2, epsilon=1.0, bounds=(0, 1), budget=3).fit(np.zeros((5, 2)))


def test_sums_of_a_chunk_are_exact_and_those_of_all_rows_fit() -> None:
    assert summing.CHUNK * ONE < 2**53
    assert 10**12 * ONE < 2**63


def test_next_to_no_noise_breaks_nothing() -> None:
    for delta in (0.0, 1e-6):
        found = KMeans(2, epsilon=1e30, delta=delta, bounds=(0, 1)).fit(np.array([[0.1], [0.9]] * 50))
        assert np.isfinite(found.cluster_centers_).all()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("width", [2, 4, 10])
def test_blobs_are_found(width: int, delta: float, relation: Any) -> None:
    centres = np.random.default_rng(2).permutation(np.linspace(-30, 30, 4 * width)).reshape(4, width)
    rows = blobs(centres, 3000, 0.5)
    model = KMeans(4, epsilon=8, delta=delta, bounds=(-40, 40), neighbours=relation).fit(rows, bits=Seeded(1))
    best = ((rows - np.repeat(centres, 3000, axis=0)) ** 2).sum()
    assert -model.score(rows) < 1.5 * best
    assert len(set(model.predict(centres).tolist())) == 4
    assert model.transform(centres).min(axis=1).max() < 1


def test_the_plain_method_moves_towards_the_rows() -> None:
    rows = blobs([[-0.9, -0.9], [0.9, 0.9]], 20_000, 0.02)
    model = KMeans(2, epsilon=20, bounds=(-1, 1), method="lloyd", rounds=8).fit(rows, bits=Seeded(4))
    assert -model.score(rows) < 0.05 * (rows**2).sum()


def test_a_coreset_weighs_about_as_much_as_the_rows() -> None:
    points = Grid.of((0, 1), 2)(np.random.default_rng(0).random((20_000, 2)))
    found = coreset(points, np.full(2, float(ONE)), 20_000, 10, Allowance(4, 1e-6, "add-remove"), 1.0, Seeded())
    assert len(found.points) > 100
    assert found.weights.sum() == pytest.approx(20_000, rel=0.15)


def test_nothing_private_is_kept() -> None:
    model = KMeans(2, epsilon=1, bounds=(0, 1)).fit(np.zeros((9, 2)))
    assert not {"labels_", "inertia_", "n_iter_"} & set(vars(model))


EXPECTED = {"check_estimators_empty_data_messages": "an empty table is a table; that it is empty is private"}


def test_scikit_learn_agrees() -> None:
    model = SeededKMeans(3, epsilon=50.0, delta=1e-3, bounds=(-10, 10))
    seen = check_estimator(model, expected_failed_checks=EXPECTED, on_fail=None, on_skip=None)
    assert {c["check_name"]: repr(c["exception"])[:200] for c in seen if c["status"] == "failed"} == {}
    assert {c["check_name"] for c in seen if c["status"] == "xfail"} == set(EXPECTED)
