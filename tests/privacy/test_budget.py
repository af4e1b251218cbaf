import copy
import json
import pickle
import threading
import time
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hubbub as hb
from hubbub.errors import ParameterError
from hubbub.privacy import NoLoss
from hubbub.privacy.budget import Filter


def test_ten_tenths_fit_exactly_and_nothing_more() -> None:
    budget = hb.Budget(epsilon=1.0)
    for k in range(10):
        assert budget.spend(hb.PureDP(0.1), note=f"question {k}").number == k + 1
    assert budget.remaining == 0
    with pytest.raises(hb.BudgetExceeded) as refusal:
        budget.spend(hb.PureDP(1e-9))
    assert refusal.value.requested == hb.PureDP(1e-9)
    assert refusal.value.spent == hb.PureDP(0.1) * 10
    assert refusal.value.limit == (1.0, 0.0)
    assert refusal.value.remaining == 0
    assert budget.spent == hb.PureDP(0.1) * 10
    assert [r.note for r in budget.receipts][:2] == ["question 0", "question 1"]
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


def test_a_refusal_spends_nothing() -> None:
    budget = hb.Budget(epsilon=1.0, delta=1e-6)
    budget.spend(hb.PureDP(0.9))
    before = budget.remaining
    with pytest.raises(hb.BudgetExceeded):
        budget.spend(hb.PureDP(0.9))
    assert budget.remaining == before
    assert budget.spent == hb.PureDP(0.9)


def test_a_gaussian_needs_delta() -> None:
    with pytest.raises(hb.BudgetExceeded):
        hb.Budget(epsilon=100).spend(hb.GaussianDP(0.1))
    hb.Budget(epsilon=1, delta=1e-6).spend(hb.GaussianDP(0.05))


@settings(max_examples=40)
@given(
    st.floats(0.2, 5),
    st.sampled_from([1e-9, 1e-6, 1e-3]),
    st.lists(
        st.one_of(
            st.builds(hb.PureDP, st.floats(0.01, 1)),
            st.builds(hb.GaussianDP, st.floats(0.01, 1)),
            st.builds(hb.ZCDP, st.floats(1e-4, 0.1)),
            st.builds(hb.ApproxDP, st.floats(0.01, 0.5), st.floats(1e-12, 1e-8)),
        ),
        min_size=1,
        max_size=30,
    ),
)
def test_whatever_is_accepted_fits(epsilon: float, delta: float, asked: list[hb.Loss]) -> None:
    budget = hb.Budget(epsilon=epsilon, delta=delta)
    before = 0.0
    for loss in asked:
        try:
            budget.spend(loss)
        except hb.BudgetExceeded:
            continue
        assert budget.odometer() >= before
        before = budget.odometer()
    low, _ = budget.spent.epsilon_interval(delta)
    assert low <= epsilon * (1 + 1e-9)
    assert budget.odometer() <= epsilon + 1e-12


def test_many_small_gaussians_fit_where_their_sum_would_not() -> None:
    budget = hb.Budget(epsilon=1, delta=1e-6)
    for _ in range(300):  # one hundred by the sum of epsilons alone
        budget.spend(hb.PureDP(0.01))
    with pytest.raises(hb.BudgetExceeded):
        budget.spend(hb.GaussianDP(0.2))


@pytest.mark.parametrize("before", [[], [hb.PureDP(0.3)], [hb.GaussianDP(0.1)] * 3, [hb.ApproxDP(0.2, 1e-9)]], ids=repr)
def test_what_remains_is_accepted(before: list[hb.Loss]) -> None:
    budget = hb.Budget(epsilon=2, delta=1e-6)
    for loss in before:
        budget.spend(loss)
    left = budget.remaining
    assert left > 0
    budget.spend(hb.PureDP(left))
    with pytest.raises(hb.BudgetExceeded):
        budget.spend(hb.PureDP(0.01 + budget.remaining))


def test_relations_and_types() -> None:
    budget = hb.Budget(epsilon=1, neighbours="replace")
    with pytest.raises(ParameterError, match="not the budget's"):
        budget.spend(hb.PureDP(0.1))
    budget.spend(hb.PureDP(0.1).to_replace())
    for bad in (0.1, None, hb.Laplace(1, epsilon=1)):
        with pytest.raises(ParameterError):
            budget.spend(bad)
    with pytest.raises(ParameterError, match="nothing is free"):
        budget.spend(NoLoss("replace"))
    for bad in ({"epsilon": 0}, {"epsilon": 1, "delta": 1}, {"epsilon": 1, "neighbours": "x"}):
        with pytest.raises(ParameterError):
            hb.Budget(**bad)
    assert "1 spends" in repr(budget)


def test_each_filter_has_half_of_delta() -> None:
    """Sums of deltas, and Renyi divergences: whichever is used up last, the other's half is not there for it."""
    for loss, fits in (
        (hb.ApproxDP(0.01, 6e-7), False),
        (hb.ApproxDP(0.01, 1e-7) * 6, False),
        (hb.ApproxDP(0.01, 1e-7) * 5, True),
    ):
        budget = hb.Budget(epsilon=1, delta=1e-6)
        budget.spend(hb.PureDP(0.01))
        if fits:
            budget.spend(loss)
        else:
            with pytest.raises(hb.BudgetExceeded):
                budget.spend(loss)
    for epsilon in (0.5, 2.0):
        budget, rho = hb.Budget(epsilon=epsilon, delta=1e-6), 0.0
        with suppress(hb.BudgetExceeded):
            for _ in range(10**5):
                budget.spend(hb.ZCDP(epsilon**2 / 1e5))
                rho += epsilon**2 / 1e5
        assert 0 < hb.ZCDP(rho).epsilon(1e-6 / 2) <= epsilon


@pytest.mark.parametrize("rho", [1e-6, 1e-4, 1e-3, 2e-3, 4e-3])
def test_the_odometer_shares_delta_among_its_levels(rho: float) -> None:
    budget = hb.Budget(epsilon=1, delta=1e-6)
    assert budget.odometer() == 0
    budget.spend(hb.ZCDP(rho))
    assert hb.ZCDP(rho).epsilon(1e-6 / 32 / 2) <= budget.odometer() <= 1


@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)])
def test_a_filter_is_kept_and_found_again(delta: Fraction) -> None:
    kept = Filter(Fraction(1), delta)
    for loss in (hb.PureDP(0.1), hb.PureDP(0.3)):
        kept.add(loss)
    found = Filter.of_state(json.loads(json.dumps(kept.state())))
    assert found.state() == kept.state()
    assert found.capacity == kept.capacity
    assert found.left() == kept.left()
    assert found.accepts(hb.PureDP(0.6))
    assert not found.accepts(hb.PureDP(0.601)) or delta


def test_a_kept_filter_keeps_its_order() -> None:
    """Sums at one order are held against that order's capacity, whatever order a later version would choose."""
    kept = Filter(Fraction(1), Fraction(1, 10**6))
    kept.order = 2 * kept.order
    found = Filter.of_state(kept.state())
    assert found.order == kept.order
    assert 0 < found.capacity != kept.capacity
    assert hb.RenyiDP([found.order], [found.capacity]).epsilon(0.5e-6) <= 1 + 1e-12
    assert hb.RenyiDP([found.order], [found.capacity * 1.001]).epsilon(0.5e-6) > 1


def test_one_question_may_take_the_whole_budget() -> None:
    """Chosen before anything was released, a first spend is priced by itself; afterwards nothing fits, however
    small."""
    for loss in (hb.Gaussian(1, epsilon=1.0, delta=1e-6).loss, hb.ApproxDP(0.5, 1e-6)):
        budget = hb.Budget(epsilon=1.0, delta=1e-6)
        budget.spend(loss)
        assert budget.remaining == 0
        assert budget.odometer() == 1
        for more in (hb.PureDP(1e-9), hb.ZCDP(1e-15), hb.ApproxDP(1e-9, 1e-12)):
            with pytest.raises(hb.BudgetExceeded):
                budget.spend(more)
    for loss in (hb.Gaussian(1, epsilon=1.001, delta=1e-6).loss, hb.ApproxDP(0.5, 1.1e-6)):
        with pytest.raises(hb.BudgetExceeded):
            hb.Budget(epsilon=1.0, delta=1e-6).spend(loss)
    budget = hb.Budget(epsilon=1.0, delta=1e-6)
    budget.spend(hb.PureDP(1e-6))
    with pytest.raises(hb.BudgetExceeded):
        budget.spend(hb.Gaussian(1, epsilon=0.999, delta=1e-6).loss, delta=1e-6)


def test_a_gaussian_is_summed_by_its_price_at_a_delta() -> None:
    """Two questions at epsilon 1/4 leave half of the sum; without a delta to price them at, they would leave nothing
    of it."""
    loss = hb.Gaussian(1, epsilon=0.25, delta=1e-7).loss
    priced, unpriced = hb.Budget(epsilon=1.0, delta=1e-6), hb.Budget(epsilon=1.0, delta=1e-6)
    for _ in range(2):
        priced.spend(loss, delta=1e-7)
        unpriced.spend(loss)
    assert priced.remaining == pytest.approx(0.5, abs=1e-6)
    assert priced.remaining <= 1 - 2 * loss.epsilon(1e-7)
    assert unpriced.remaining < 0.48


def test_the_odometer_covers_what_ran() -> None:
    budget = hb.Budget(epsilon=1)
    for k in range(1, 33):
        budget.spend(hb.PureDP(Fraction(1, 32)))
        assert budget.odometer() == k / 32


def test_a_slow_check_lets_nobody_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    accepts = Filter.accepts

    def slowly(self: Filter, loss: hb.Loss, at: Fraction) -> bool:
        answer = accepts(self, loss, at)
        time.sleep(0.01)
        return answer

    monkeypatch.setattr(Filter, "accepts", slowly)
    race()


def test_racing_spenders_never_overspend() -> None:
    race()


def race() -> None:
    budget = hb.Budget(epsilon=1)
    accepted: list[int] = []

    def spend() -> None:
        for _ in range(20):
            try:
                accepted.append(budget.spend(hb.PureDP(0.1)).number)
            except hb.BudgetExceeded:
                return

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(accepted) == list(range(1, 11))


def test_a_refusal_says_whether_it_is_delta_that_lacks() -> None:
    budget = hb.Budget(epsilon=10, delta=1e-6)
    budget.spend(hb.ApproxDP(0.1, 2e-7))
    with pytest.raises(hb.BudgetExceeded, match=r"needs delta=4e-07, and 3e-07 is left .* more than half"):
        budget.spend(hb.ApproxDP(0.1, 4e-7))
    with pytest.raises(hb.BudgetExceeded, match="of epsilon=10 is left"):
        budget.spend(hb.PureDP(11))
    with pytest.raises(hb.BudgetExceeded, match="of epsilon=10 is left"):
        budget.spend(hb.ApproxDP(11, 4e-7))
    with pytest.raises(hb.BudgetExceeded, match="needs delta=1e-06, and the budget has none") as refusal:
        hb.Budget(epsilon=10).spend(hb.Gaussian(1, sigma=10).loss, delta=1e-6)
    assert pickle.loads(pickle.dumps(refusal.value)).shortage == refusal.value.shortage


def test_a_copy_is_the_same_budget() -> None:
    budget = hb.Budget(1.0)
    copy.deepcopy(budget).spend(hb.PureDP(0.75))
    copy.copy([budget])[0].spend(hb.PureDP(0.25))
    assert copy.copy(budget) is budget
    assert budget.remaining == 0
