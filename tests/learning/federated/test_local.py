"""Local noise: what leaves a client, what it costs that client, and that nothing else leaves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message, MessageType, RecordDict
from learning.federated.toys import Here, adding, app_of, model
from scipy.stats import kstest, norm
from support import FALSE_ALARM, SeededBits

from hubbub import Budget
from hubbub.errors import ParameterError
from hubbub.learning.federated import Local, LocalNoise, LocalPlan, Signs, Top
from hubbub.learning.federated.compression import Whole
from hubbub.learning.federated.local import Shape

MANY = 60_000


def reports(
    stated: LocalPlan, train: Any, nodes: int = 1, length: int = 4, rounds: int = 1, **options: Any
) -> tuple[Here, Local, Any]:
    shape = {n: options[n] for n in ("mask", "signs", "after") if n in options}
    mod = LocalNoise(stated, bits=SeededBits(1), **options)
    grid = Here(app_of(train, mod), nodes)
    strategy = Local(stated, **shape)
    result = strategy.start(grid, model(length), rounds)
    return grid, strategy, result.arrays["w"].numpy()


def fails(_: np.ndarray, __: Any) -> np.ndarray:
    raise ValueError("Ada is 41")


@pytest.mark.parametrize("train", [adding(0.0), adding(np.nan), adding(np.inf), fails, lambda *_: np.ones(3)])
def test_every_report_has_the_noise_of_the_plan_also_when_the_app_fails(train: Any) -> None:
    stated = LocalPlan(rounds=1, noise=2.5, clip=0.3)
    grid, _, got = reports(stated, train, length=MANY)
    z = got / (2.5 * 0.3)
    assert abs(z.std() - 1) < 0.01
    assert kstest(z, norm.cdf).pvalue > FALSE_ALARM
    assert [list(r.content) for r in grid.replies] == [["update"]]  # no metrics, no errors
    assert not any("Ada" in repr(r) for r in grid.replies)


def test_reports_are_clipped_and_averaged() -> None:
    _, _, got = reports(LocalPlan(rounds=1, noise=1e-6, clip=2.0), adding([30, 40, 0, 0]), nodes=3)
    assert np.allclose(got, [1.2, 1.6, 0, 0], atol=1e-5)


def test_the_price_is_for_any_data_in_place_of_any() -> None:
    """Two vectors of the clip norm are twice as far apart as one is from nothing."""
    stated = LocalPlan(rounds=3, noise=4.0)
    assert stated.spent(1).neighbours == "replace"
    assert stated.spent(1).mu == pytest.approx(0.5)  # type: ignore[attr-defined]
    assert stated.loss == stated.spent(1) * 3


def test_clients_pay_for_their_own_rounds() -> None:
    stated = LocalPlan(rounds=4, noise=4.0)
    grid = Here(app_of(adding(0.1), LocalNoise(stated)), 4)
    strategy = Local(stated, share=0.5)
    strategy.start(grid, model(), 3)
    asked = [node for round_ in grid.asked for node in round_]
    assert sorted(asked.count(n) for n in grid.nodes) == [1, 1, 2, 2]
    for node in grid.nodes:
        assert strategy.loss_of(node) == stated.spent(asked.count(node))
    assert strategy.loss == stated.spent(2)


def test_a_client_answers_no_more_rounds_than_its_plan(tmp_path: Path) -> None:
    stated, longer = LocalPlan(rounds=2, noise=4.0), LocalPlan(rounds=9, noise=4.0)
    for mod in (LocalNoise(stated), LocalNoise(stated, journal=tmp_path / "rounds")):
        grid = Here(app_of(adding(0.1), mod), 1)
        Local(longer).start(grid, model())
        assert [r.has_content() for r in grid.replies] == [True] * 2 + [False] * 7
    fresh = Here(app_of(adding(0.1), LocalNoise(stated, journal=tmp_path / "rounds")), 1)
    Local(longer).start(fresh, model())  # another process: the journal knows
    assert not any(r.has_content() for r in fresh.replies)


def test_one_mod_of_many_simulated_clients_counts_for_each(tmp_path: Path) -> None:
    stated = LocalPlan(rounds=2, noise=4.0)
    mod = LocalNoise(stated, journal=lambda context: tmp_path / str(context.node_id))
    grid = Here(app_of(adding(0.1), mod), 3)
    Local(stated).start(grid, model())
    assert len(grid.replies) == 6
    assert all(r.has_content() for r in grid.replies)


def test_a_clients_budget_pays_before_training() -> None:
    stated = LocalPlan(rounds=2, noise=4.0)
    budget = Budget(epsilon=0.01, delta=1e-5, neighbours="replace")
    seen = []
    grid = Here(app_of(lambda *_: seen.append(1), LocalNoise(stated, budget=budget)), 1)
    Local(stated).start(grid, model(), 1)
    assert not seen
    assert not grid.replies
    enough = Budget(epsilon=50, delta=1e-5, neighbours="replace")
    Local(stated).start(Here(app_of(adding(0.1), LocalNoise(stated, budget=enough)), 1), model())
    assert [r.loss for r in enough.receipts] == [stated.loss]


def test_every_run_of_a_client_without_a_journal_is_paid() -> None:
    stated, budget = LocalPlan(rounds=2, noise=4.0), Budget(epsilon=1e6, delta=1e-5, neighbours="replace")
    app = app_of(adding(0.1), LocalNoise(stated, budget=budget))
    for _ in range(3):
        Local(stated).start(Here(app, 1), model())
    assert [r.loss for r in budget.receipts] == [stated.loss] * 3


def test_no_data_have_no_sign() -> None:
    assert not Shape(1, True, None).part(np.zeros(4), b"").any()


@pytest.mark.parametrize("value", [0.0, 1e-200])
def test_what_an_app_does_to_numpy_loses_no_report(value: float) -> None:
    def train(w: Any, _: Any) -> Any:
        np.seterr(all="raise")
        return w + np.array([1, value, 0, 0])

    with np.errstate():
        grid = Here(app_of(train, LocalNoise(LocalPlan(rounds=1, noise=4.0))), 1)
        Local(LocalPlan(rounds=1, noise=4.0)).start(grid, model(), 1)
    assert [r.has_content() for r in grid.replies] == [True]


def test_an_app_that_leaves_reports_all_the_same() -> None:
    def train(*_: Any) -> Any:
        raise SystemExit(1)

    grid = Here(app_of(train, LocalNoise(LocalPlan(rounds=1, noise=4.0))), 1)
    Local(LocalPlan(rounds=1, noise=4.0)).start(grid, model(), 1)
    assert [r.has_content() for r in grid.replies] == [True]


def test_other_messages_are_refused_before_the_app_sees_them() -> None:
    grid = Here(app_of(adding(0.1), LocalNoise(LocalPlan(rounds=1, noise=1.0))), 1)
    message = Message(RecordDict({"arrays": model()}), 10, MessageType.EVALUATE)
    (reply,) = grid.send_and_receive([message])
    assert reply.has_error()
    assert "private" in reply.error.reason


@pytest.mark.parametrize(
    ("options", "size"),
    [({}, 4000), ({"mask": 0.1}, 400), ({"after": Signs()}, 125), ({"after": Top(0.05)}, 400),
     ({"mask": 0.1, "after": Signs()}, 13), ({"mask": 0.1, "signs": True}, 400)],
)  # fmt: skip
def test_shapes_of_reports_and_their_bytes(options: dict[str, Any], size: int) -> None:
    change = np.random.default_rng(3).normal(size=1000)
    _, strategy, got = reports(LocalPlan(rounds=1, noise=1e-4), adding(change), length=1000, **options)
    assert size <= strategy.received < size + 50
    assert got @ change > 0.5 * min(1, np.count_nonzero(got) / 1000) ** 0.5 * np.linalg.norm(change) * 0.3
    assert np.linalg.norm(got) < 1.01


def test_noise_of_a_masked_report_is_the_same() -> None:
    _, _, got = reports(LocalPlan(rounds=1, noise=2.0), adding(0.0), length=4 * MANY, mask=0.25, signs=False)
    values = got[got != 0]
    assert abs(len(values) / MANY - 1) < 0.001
    assert abs(values.std() / 2.0 - 1) < 0.01


def test_reports_that_are_none_are_left_out() -> None:
    stated = LocalPlan(rounds=1, noise=1e-6)
    strategy = Local(stated)
    bad = [b"", b"\xff" * 16, Whole().pack(np.full(4, np.nan), b""), 3]

    def behave(node: int, reply: Message) -> list[Message]:
        if node > 10:
            reply.content.config_records["update"]["update"] = bad[node - 11]
        return [reply]

    grid = Here(app_of(adding([0.5, 0, 0, 0]), LocalNoise(stated)), 5, behave)
    got = strategy.start(grid, model()).arrays["w"].numpy()
    assert np.allclose(got, [0.5, 0, 0, 0], atol=1e-4)


@pytest.mark.parametrize("options", [{"mask": 0.0}, {"mask": 1.5}])
def test_bad_shapes_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="mask"):
        LocalNoise(LocalPlan(rounds=1, noise=1.0), **options)
