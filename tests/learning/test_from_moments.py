"""LinearRegression, StandardScaler, PCA and GaussianNB alike: what they promise whatever the rows hold."""

import math
import random
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator
from support import SeededBits

import hubbub as hb
from hubbub.audit import audit, replay
from hubbub.learning import PCA, GaussianNB, LinearRegression, StandardScaler

RELATIONS = ["add-remove", "replace"]
BOUNDS: Any = ([-1, 0, 10], [1, 5, 20])
FORMS: dict[str, Any] = {
    "regression": lambda **o: LinearRegression(bounds=BOUNDS, target_bounds=(-3, 3), **o),
    "two targets": lambda **o: LinearRegression(bounds=BOUNDS, target_bounds=([-3, 0], 3), **o),
    "scaler": lambda **o: StandardScaler(bounds=BOUNDS, **o),
    "components": lambda **o: PCA(2, bounds=BOUNDS, **o),
    "bayes": lambda **o: GaussianNB(bounds=BOUNDS, classes=[0, 1, 2], **o),
}
PRICES: list[dict[str, Any]] = [{"epsilon": 1.0}, {"epsilon": 0.7, "delta": 1e-5}]
VALUES = [0.0, 1.0, -1.0, 3.0, 15.0, 20.0, 1e9, -1e300, math.nan, math.inf, -math.inf]


def learnt(model: Any) -> dict[str, Any]:
    """Everything a fit leaves behind that a reader can see."""
    return {k: v for k, v in vars(model).items() if k.endswith("_") and k != "loss_"}


def fit(form: str, rows: list[list[float]], **options: Any) -> Any:
    """Each row is three features, then a target or label, and another."""
    table = np.array(rows, dtype=float).reshape(-1, 5)
    y = table[:, 3:] if form == "two targets" else table[:, 3]
    return FORMS[form](**options).fit(table[:, :3], y)


def pair(generator: random.Random, neighbours: str) -> tuple[list[list[float]], list[list[float]]]:
    def row() -> list[float]:
        return [*(generator.choice(VALUES) for _ in range(3)), generator.choice([0, 1, 2, 7, math.nan]), 1.0]

    rest = [row() for _ in range(generator.choice([0, 1, 5, 40]))]
    return ([*rest, row()], [*rest, row()]) if neighbours == "replace" else ([*rest, row()], rest)


def check(form: str, neighbours: str, pairs: int) -> None:
    generator = random.Random(f"{form} {neighbours}")
    farthest = 0.0
    for i in range(pairs):
        price = PRICES[i % 2]
        one, other = pair(generator, neighbours)
        claimed = fit(form, one, neighbours=neighbours, **price).loss_
        assert claimed.epsilon(price.get("delta", 0)) <= price["epsilon"]
        found = replay(
            lambda rows, price=price: learnt(fit(form, rows, neighbours=neighbours, **price)),
            one,
            other,
            claimed=claimed,
        )
        assert found.holds, str(found)
        assert found.releases == 1
        farthest = max(farthest, found.apart)
    assert farthest > 0.3


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("form", FORMS)
def test_a_fit_holds_under_replay(form: str, neighbours: str) -> None:
    check(form, neighbours, 20)


@pytest.mark.long
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("form", FORMS)
def test_a_fit_holds_under_many_replays(form: str, neighbours: str) -> None:
    check(form, neighbours, 200)


TABLES: dict[str, list[list[float]]] = {
    "none": [],
    "one": [[0, 1, 12, 0, 1]],
    "far": [[1e9, -1e9, 1e9, 1, 1e9]] * 7,
    "holes": [[math.nan, math.inf, -math.inf, 2, math.nan]] * 9,
    "constant": [[0.5, 2, 12, 1, 1]] * 300,
    "many": np.random.default_rng(3).uniform(-1, 20, (400, 5)).round().tolist(),
}


@pytest.mark.parametrize("price", PRICES, ids=["pure", "approximate"])
@pytest.mark.parametrize("form", FORMS)
def test_shapes_are_the_same_whatever_the_rows_hold(form: str, price: dict[str, Any]) -> None:
    shapes = []
    for rows in TABLES.values():
        for neighbours in RELATIONS:
            found = learnt(fit(form, rows, neighbours=neighbours, **price))
            assert all(np.isfinite(v).all() for v in found.values())
            shapes.append({k: np.shape(v) for k, v in found.items()})
    assert all(shape == shapes[0] for shape in shapes)


@pytest.mark.parametrize("form", FORMS)
def test_what_lies_beyond_bounds_counts_as_the_bound(form: str) -> None:
    inside = [[1, 5, 20, 2, 3], [-1, 0, 10, 0, 0], [0, 0, 10, 0, 0]] * 5
    beyond = [[1e9, math.inf, 1e300, 2, 1e9], [-1e9, -5, -math.inf, 0, -1e9], [math.nan, math.nan, 0, 0, math.nan]] * 5
    models = []
    for rows in (inside, beyond):
        table = np.array(rows, dtype=float)
        y = table[:, 3:] if form == "two targets" else table[:, 3]
        models.append(learnt(FORMS[form](epsilon=1.0).fit(table[:, :3], y, bits=SeededBits(1))))
    for name, value in models[0].items():
        np.testing.assert_array_equal(value, models[1][name])


@pytest.mark.parametrize("form", FORMS)
def test_a_refused_budget_touches_no_row(form: str) -> None:
    class Untouched(np.ndarray[Any, Any]):
        """Rows that complain when they are used in arithmetic."""

        def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("a row was used")

    budget = hb.Budget(epsilon=0.5)
    model = FORMS[form](epsilon=1.0, budget=budget)
    model._rows = lambda rows, first: rows  # noqa: ARG005 - as they are
    rows = np.zeros((4, 3)).view(Untouched)
    with pytest.raises(hb.BudgetExceeded):
        model.fit(rows, np.zeros((4, 2)) if form == "two targets" else np.zeros(4))
    assert not hasattr(model, "loss_")
    assert budget.spent.epsilon() == 0
    paid = hb.Budget(epsilon=1.5)
    fit(form, TABLES["many"], epsilon=1.0, budget=paid)
    assert paid.spent.epsilon() == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bounds": None}, "bounds=None must be given"),
        ({"bounds": (1, 0)}, "must be finite, low < high"),
        ({"epsilon": -1}, "epsilon=-1"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"delta": 2}, "delta=2"),
        ({"neighbours": "friends"}, "neighbours='friends'"),
        ({"classes": None}, "classes=None must be declared"),
        ({"target_bounds": None}, "target_bounds=None must be given"),
        ({"n_components": 4}, "n_components=4 must be at most"),
        ({"n_components": 0}, "n_components=0"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_errors_come_before_any_spend(form: str, options: dict[str, Any], words: str) -> None:
    budget = hb.Budget(epsilon=5)
    model = FORMS[form](budget=budget)
    if not set(options) <= set(model.get_params()):
        return
    model.set_params(**options)
    with pytest.raises(hb.errors.ParameterError) as caught:
        model.fit(np.zeros((3, 3)), np.zeros((3, 2)) if form == "two targets" else np.zeros(3))
    assert words in str(caught.value)
    assert budget.spent.epsilon() == 0


AUDITED: dict[str, Any] = {
    "regression": lambda m: [m.coef_[0], m.intercept_, m.count_],
    "scaler": lambda m: [m.mean_[0], m.scale_[0]],
    "components": lambda m: [*m.components_[0], m.n_samples_],
    "bayes": lambda m: [*m.class_count_, *m.theta_[:, 0]],
}


@pytest.mark.parametrize("price", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-2}], ids=["pure", "approximate"])
@pytest.mark.parametrize("form", AUDITED)
def test_an_audit_does_not_refute_a_fit(form: str, price: dict[str, Any]) -> None:
    rest = [[0.0, 2, 12, 0, 1]] * 2
    report = audit(
        lambda rows: [float(v) for v in AUDITED[form](fit(form, rows, **price))],
        [*rest, [1.0, 5, 20, 2, 3]],
        rest,
        samples=600,
        claimed=hb.ApproxDP(price["epsilon"], price["delta"]) if "delta" in price else price["epsilon"],
        delta=price.get("delta", 0.0),
    )
    assert report.holds


EXCEPTIONS = {
    "check_estimators_empty_data_messages": "that a table is empty is private, so no error tells",
    "check_supervised_y_no_nan": "a nan in y is clamped by the public rule, so no error tells",
}


class Repeatable:
    """Mixed in before an estimator: fits draw the same bits each time, as scikit-learn's comparisons expect."""

    def fit(self, X: Any, y: Any = None) -> Any:  # noqa: N803
        return super().fit(X, y, bits=SeededBits(7))  # type: ignore[misc]


class RepeatableRegression(Repeatable, LinearRegression):
    pass


class RepeatableScaler(Repeatable, StandardScaler):
    pass


class RepeatablePCA(Repeatable, PCA):
    pass


class RepeatableNB(Repeatable, GaussianNB):
    pass


@pytest.mark.parametrize(
    "model",
    [
        RepeatableRegression(bounds=(-10, 10), target_bounds=(-100, 100), epsilon=1e4),
        RepeatableScaler(bounds=(-10, 10), epsilon=1e4),
        RepeatablePCA(1, bounds=(-10, 10), epsilon=1e4),
        RepeatableNB(bounds=(-10, 10), classes="public", epsilon=1e4),
    ],
    ids=lambda m: type(m).__name__,
)
def test_scikit_learn_agrees_that_it_is_an_estimator(model: Any) -> None:
    found = check_estimator(model, expected_failed_checks=EXCEPTIONS, on_fail=None, on_skip=None)
    failed = {r["check_name"]: repr(r["exception"]) for r in found if r["status"] == "failed"}
    assert not failed
