"""What a doubter broke, and what holds since."""

from typing import Any

import numpy as np
import pytest
from learning.pate.oracle import gaussian_masses, largest_divergence, outcomes
from learning.pate.test_pate import PUBLIC, data, pate
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hubbub as hb
from hubbub.errors import ParameterTypeError
from hubbub.learning.pate import GaussianMax, Interactive, dealing, teachers
from hubbub.learning.pate.accounting import divergence
from hubbub.learning.pate.dealing import deal
from hubbub.learning.pate.votes import fingerprint


@pytest.mark.parametrize(
    ("votes", "sigma", "order"), [([3, 0], 0.25, 401.0), ([5, 0, 1], 0.15, 8.0), ([2, 1], 0.2, 60.0)]
)
def test_never_below_the_exact_divergence_where_powers_overflow(votes: list[int], sigma: float, order: float) -> None:
    masses = gaussian_masses(sigma, 14)
    exact = largest_divergence(votes, order, lambda v: outcomes(v, masses))
    assert divergence(votes, GaussianMax(sigma), [order])[0] >= exact * (1 - 1e-9)


def test_a_row_without_an_id_moves_nobody_else() -> None:
    whole, gap = np.arange(1000), np.array([*range(1000), np.nan])
    assert (deal(1000, 250, units=whole, key="k") == deal(1001, 250, units=gap, key="k")[:1000]).all()
    assert len(set(deal(4, 250, units=[1, 1.0, True, np.int8(1)], key="k").tolist())) == 1


def test_missing_ids_of_pandas_are_one_person() -> None:
    pandas = pytest.importorskip("pandas")
    assert len(set(deal(4, 250, units=[pandas.NA, None, pandas.NaT, ""], key="k").tolist())) == 1


def same_shuffle(patch: pytest.MonkeyPatch) -> None:
    """Deals rows and seeds the same way on neighbours: the coupling of the proof."""
    patch.setattr(dealing, "uniform_below", lambda many, n, _: np.arange(n) % many)
    patch.setattr(teachers, "uniform_below", lambda _, n, __: np.arange(n))


def test_teachers_that_change_their_rows_in_place_do_not_reach_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    same_shuffle(monkeypatch)
    generator = np.random.default_rng(0)
    rows, public = generator.normal(size=(200, 2)), generator.normal(size=(30, 2))
    labels, far = (rows[:, 0] > 0).astype(int), rows.copy()
    far[0] = 1e6
    model = make_pipeline(StandardScaler(copy=False), LogisticRegression())
    one, other = (
        teachers.Lesson.of(model, x, labels, public, teachers=10, classes=[0, 1], neighbours="replace").votes()
        for x in (rows, far)
    )
    assert np.abs(one.counts - other.counts).sum(axis=1).max() <= 2
    assert one.asked == other.asked == fingerprint(public)


def test_draws_that_were_not_kept_are_paid_again(tmp_path: Any) -> None:
    class Fails(LogisticRegression):
        def fit(self, X: Any, y: Any) -> Any:  # noqa: ARG002, N803
            raise ValueError

    budget = hb.Budget(1000, 1e-5)
    asking = Interactive(-100, check_sigma=30, sigma=30, rounds=2)
    for k in range(3):
        given = data() if not k else (None, None)
        with pytest.raises(ValueError):  # noqa: PT011 - the student's own
            pate(student=Fails(), aggregator=asking, votes=tmp_path / "v.npz", budget=budget).fit(*given, PUBLIC)
    assert len(budget.receipts) == 3


def test_the_owners_price_is_of_the_labels_that_were_drawn() -> None:
    model = pate().fit(*data(), PUBLIC)
    price = model.for_owner().epsilon(1e-5)
    assert model.set_params(answers=1).for_owner().epsilon(1e-5) == price


def test_expected_votes_are_subtracted_exactly() -> None:
    asking = Interactive(0, check_sigma=1, sigma=1, rounds=2)
    far = np.array([[-(2**63), 0]])
    assert (asking.labels([[1000, 0]], expected=far) == 0).all()


def test_teachers_that_leave_say_nothing_and_those_that_cannot_be_copied_are_refused() -> None:
    class Leaves(LogisticRegression):
        def fit(self, X: Any, y: Any) -> Any:  # noqa: ARG002, N803
            raise SystemExit("secret")

    assert (pate(teacher=Leaves()).fit(*data(), PUBLIC).for_owner().votes.counts[:, 1:] == 0).all()

    class Plain:
        def fit(self, x: Any, y: Any) -> Any: ...
        def predict(self, x: Any) -> Any: ...

    with pytest.raises(ParameterTypeError, match="get_params"):
        pate(teacher=Plain()).fit(*data(), PUBLIC)
