"""A server that ends at any moment and starts again: rounds are never undercounted, and training goes on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learning.federated.toys import Here, adding, app_of, model
from support import SeededBits

from hubbub import Budget
from hubbub.errors import ParameterError, SessionClosed
from hubbub.learning.federated import Central, CentralPlan
from hubbub.learning.federated.course import Course

PLAN = CentralPlan(rounds=6, rate=1.0, noise=1e-3, cohort=2.0, clip=1.0, clipping="adaptive")


def start(path: Path, rounds: int | None = None, **options: Any) -> tuple[Central, np.ndarray]:
    strategy = Central(PLAN, journal=path, bits=SeededBits(1), **options)
    result = strategy.start(Here(app_of(adding([0.1, 0, 0, 0])), 2), model(), rounds)
    return strategy, result.arrays["w"].numpy()


def test_a_restart_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first, early = start(tmp_path / "j", 4, momentum=0.5)
    second, late = start(tmp_path / "j", momentum=0.5)
    whole, at_once = start(tmp_path / "k", momentum=0.5)
    assert (first.rounds, second.rounds, whole.rounds) == (4, 6, 6)
    assert early[0] < late[0]
    assert np.allclose(late, at_once, atol=0.05)
    assert second.loss == PLAN.loss
    assert second.clip != PLAN.clip
    third, same = start(tmp_path / "j")
    assert np.array_equal(same, late)
    assert third.rounds == 6


@pytest.mark.parametrize("where", ["_cohort", "_released", "_keep", "combined"])
def test_a_crash_counts_the_round_it_was_in(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(tmp_path / "j", 2)

    def crash(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Course if where == "_keep" else Central, where, crash)
        with pytest.raises(KeyboardInterrupt):
            start(tmp_path / "j")
    strategy, _ = start(tmp_path / "j", 1)
    assert strategy.rounds == 4
    assert strategy.loss == PLAN.spent(4)


def test_the_round_is_on_disk_before_anybody_is_asked(tmp_path: Path) -> None:
    counted = []

    class Watching(Here):
        def send_and_receive(self, messages: Any, **options: Any) -> Any:
            messages = list(messages)
            if messages:
                counted.append(Central(PLAN, journal=tmp_path / "j").rounds)
            return super().send_and_receive(messages, **options)

    Central(PLAN, journal=tmp_path / "j").start(Watching(app_of(adding(0.1)), 2), model(), 3)
    assert counted == [1, 2, 3]


def test_a_budget_is_charged_once_over_restarts(tmp_path: Path) -> None:
    budget = Budget(epsilon=1e9, delta=1e-5)
    start(tmp_path / "j", 2, budget=budget)
    start(tmp_path / "j", 2, budget=budget)
    assert len(budget.receipts) == 1
    assert budget.receipts[0].loss == PLAN.loss


def test_a_journal_of_another_plan_or_of_none_is_refused(tmp_path: Path) -> None:
    start(tmp_path / "j", 1)
    other = CentralPlan(rounds=7, rate=1.0, noise=1e-3, cohort=2.0)
    with pytest.raises(ParameterError, match="another plan"):
        Central(other, journal=tmp_path / "j")
    (tmp_path / "k").write_text("{")
    with pytest.raises(ParameterError, match="not a journal"):
        Central(PLAN, journal=tmp_path / "k")


def test_two_servers_of_one_journal_do_not_both_count(tmp_path: Path) -> None:
    strategies = [Central(PLAN, journal=tmp_path / "j", bits=SeededBits(1)) for _ in range(2)]
    strategies[0].start(Here(app_of(adding([0.1, 0, 0, 0])), 2), model(), 5)
    with pytest.raises(SessionClosed, match="meanwhile"):
        strategies[1].start(Here(app_of(adding([0.1, 0, 0, 0])), 2), model(), 1)
    assert Central(PLAN, journal=tmp_path / "j").rounds == 5


def test_rounds_that_nobody_paid_for_are_charged_later(tmp_path: Path) -> None:
    start(tmp_path / "j", 1)
    budget = Budget(epsilon=1e9, delta=1e-5)
    start(tmp_path / "j", 1, budget=budget)
    start(tmp_path / "j", budget=budget)
    assert [r.loss for r in budget.receipts] == [PLAN.loss]


def test_a_model_without_its_journal_is_not_taken_up(tmp_path: Path) -> None:
    start(tmp_path / "j")
    (tmp_path / "j").unlink()
    seen = []
    other = CentralPlan(rounds=1, rate=1.0, noise=1e3, cohort=2.0)
    strategy = Central(other, journal=tmp_path / "j", bits=SeededBits(1))
    strategy.start(
        Here(app_of(adding([0.1, 0, 0, 0])), 2), model(), evaluate_fn=lambda _, a: seen.append(a["w"].numpy())
    )
    assert np.array_equal(seen[0], np.zeros(4))
