"""Central noise: its size and law, clipping, cohorts, clients that misbehave, and that nothing else leaves."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, RecordDict
from learning.federated.toys import Here, adding, app_of, model
from scipy.stats import kstest, norm
from support import FALSE_ALARM, SeededBits

from hubbub import Budget
from hubbub.errors import BudgetExceeded, ParameterError, SessionClosed
from hubbub.learning.federated import Central, CentralPlan, Compressing, Mask, Signs, Top
from hubbub.learning.federated.vectors import RADIUS, clipped

MANY = 100_000


def plan(**changes: Any) -> CentralPlan:
    return CentralPlan(**({"rounds": 1, "rate": 1.0, "noise": 1e-6, "cohort": 4.0} | changes))


def trained(
    stated: CentralPlan, change: Any, nodes: int = 4, length: int = 4, behave: Any = None, **options: Any
) -> Any:
    strategy = Central(stated, bits=SeededBits(1), **options)
    mods = [Compressing(options["compression"])] if "compression" in options else []
    train = change if callable(change) else adding(change)
    result = strategy.start(Here(app_of(train, *mods), nodes, behave), model(length))
    return strategy, result.arrays["w"].numpy()


@pytest.mark.parametrize("changes", [{}, {"clip": 0.01}, {"rate": 0.5}, {"noise": 3.0}, {"cohort": 100.0}])
@pytest.mark.parametrize("nodes", [1, 5])
def test_noise_is_drawn_once_and_has_its_law(nodes: int, changes: dict[str, Any]) -> None:
    """Whoever takes part, however many: the noise of the sum is noise * clip, within 1 %, divided by the cohort."""
    stated = plan(**({"noise": 1.5, "clip": 0.4, "cohort": 7.0} | changes))
    _, got = trained(stated, 0.0, nodes, MANY)
    z = got * stated.cohort / (stated.noise * stated.clip)
    assert abs(z.std() - 1) < 0.01
    assert kstest(z, norm.cdf).pvalue > FALSE_ALARM


def test_noise_of_adaptive_rounds_is_larger_and_the_count_has_its_own() -> None:
    stated = plan(noise=1.5, cohort=30.0, clipping="adaptive")
    strategy, got = trained(stated, 0.0, 4, MANY)
    assert stated.sum_noise > 1.5
    assert abs((got * 30).std() / stated.sum_noise - 1) < 0.01
    many = plan(rounds=400, noise=1.5, cohort=30.0, clipping="adaptive")
    strategy = Central(many, bits=SeededBits(3))
    shares = []
    for _ in range(2000):
        before = strategy.clip
        strategy._adapt([])
        shares.append(-math.log(strategy.clip / before) / 0.2)
    assert abs(np.std(shares) / (many.count_noise / many.cohort) - 1) < 0.1


def test_the_clip_norm_follows_the_median() -> None:
    stated = plan(rounds=60, noise=0.5, cohort=100.0, clip=8.0, clipping="adaptive")
    strategy = Central(stated, bits=SeededBits(4))
    for _ in range(60):
        strategy.combined([np.full(4, 0.005 * i) for i in range(100)], 4)
    assert 0.3 < strategy.clip < 0.7


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e300])
def test_updates_are_clipped_and_divided_by_the_constant(size: float) -> None:
    _, got = trained(plan(cohort=8.0), [3 * size, 4 * size, 0, 0], nodes=2)
    length = min(5 * size, 1.0)
    assert np.allclose(got, 2 * np.array([0.6, 0.8, 0, 0]) * length / 8, atol=1e-6)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_counts_as_zero(odd: float) -> None:
    def train(w: np.ndarray, context: Any) -> np.ndarray:
        return w + (odd if context.node_id == 10 else 0.5)

    _, got = trained(plan(), train, nodes=2)
    assert np.allclose(got, 0.5 / 4, atol=1e-5)


def odd_replies() -> dict[str, Any]:
    def replied(reply: Message, record: Any) -> list[Message]:
        reply.__dict__["_content"] = RecordDict(record)
        return [reply]

    def failed(reply: Message) -> list[Message]:
        reply.__dict__["_content"], reply.__dict__["_error"] = None, Error(1, "private: Ada")
        return [reply]

    def late(reply: Message) -> list[Message]:
        reply.metadata.__dict__["_group_id"] = "0"
        return [reply]

    def forged(reply: Message) -> list[Message]:
        reply.metadata.__dict__["_src_node_id"] = 999
        return [reply]

    return {
        "dropped": lambda _: [],
        "failed": failed,
        "late": late,
        "of nobody asked": forged,
        "empty": lambda reply: replied(reply, {}),
        "other names": lambda reply: replied(reply, {"arrays": ArrayRecord({"v": Array(np.ones(4))})}),
        "other shape": lambda reply: replied(reply, {"arrays": ArrayRecord({"w": Array(np.ones(400))})}),
        "no numbers": lambda reply: replied(reply, {"arrays": ArrayRecord({"w": Array(np.array(["a"] * 4))})}),
        "broken bytes": lambda reply: replied(
            reply, {"arrays": ArrayRecord({"w": Array("float64", (4,), "numpy.ndarray", b"none")})}
        ),
    }


@pytest.mark.parametrize("kind", odd_replies())
def test_a_client_that_misbehaves_counts_as_zero(kind: str) -> None:
    odd = odd_replies()[kind]
    _, got = trained(plan(), 0.5, nodes=3, behave=lambda node, reply: odd(reply) if node == 10 else [reply])
    assert np.allclose(got, 2 * 0.5 / 4, atol=1e-5)  # and nobody takes its place in the denominator


def test_of_two_replies_of_one_client_the_first_counts() -> None:
    def twice(_: int, reply: Message) -> list[Message]:
        again = Message(RecordDict({"arrays": ArrayRecord({"w": Array(np.ones(4))})}), reply_to=reply)
        again.metadata.__dict__.update(reply.metadata.__dict__)
        return [reply, again, reply]

    _, got = trained(plan(), 0.25, nodes=2, behave=twice)
    assert np.allclose(got, 2 * 0.25 / 4, atol=1e-5)

    def changed(node: int, reply: Message) -> list[Message]:
        other = Message(RecordDict({"arrays": ArrayRecord({"w": Array(np.zeros(4))})}), reply_to=reply)
        other.metadata.__dict__.update(reply.metadata.__dict__)
        return [reply, other] if node == 10 else [reply]

    _, got = trained(plan(), 0.25, nodes=2, behave=changed)
    assert np.allclose(got, 2 * 0.25 / 4, atol=1e-5)  # not the last, and not both


def test_one_client_moves_the_sum_by_at_most_the_radius() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 3, 1000):
        for scale in (1e-300, 1e-3, 1.0, 1e10, 1e307):
            steps = clipped(rng.normal(size=size) * scale, 0.7).steps
            assert sum(int(k) ** 2 for k in steps) <= RADIUS**2
    steps = clipped(np.array([1e308, -1e308]), 1e-300).steps
    assert abs(math.sqrt(float(np.dot(steps, steps))) / RADIUS - 1) < 1e-6


def test_rounding_loses_little_and_keeps_whole_updates() -> None:
    vector = np.random.default_rng(1).normal(size=1000) * 1e-3
    whole = clipped(vector, 1.0)
    assert whole.within
    assert np.abs(whole.steps / RADIUS - vector).max() < 2 / RADIUS


# cohorts


def cohorts(stated: CentralPlan, nodes: int, rounds: int) -> list[list[int]]:
    strategy = Central(stated, bits=SeededBits(7))
    found = []
    for k in range(rounds):
        strategy._round = k + 1
        found.append(sorted(strategy._cohort(range(nodes))))
    return found


def test_poisson_cohorts_are_independent_coins() -> None:
    found = cohorts(plan(rate=0.3), 8, 20_000)
    member = np.array([[n in cohort for n in range(8)] for cohort in found], float)
    assert np.abs((member.mean(0) - 0.3) / math.sqrt(0.21 / 20_000)).max() < 6.5
    assert np.abs(np.corrcoef(member.T) - np.eye(8)).max() < 6.5 / math.sqrt(20_000)
    assert np.abs((member[1:] * member[:-1]).mean(0) - 0.09).max() < 0.02


def test_fixed_cohorts_have_their_size_and_all_are_as_likely() -> None:
    stated = plan(sampling="fixed", neighbours="replace", clients=5, cohort=2.0, rate=0.4)
    found = cohorts(stated, 5, 10_000)
    assert {len(c) for c in found} == {2}
    counts = Counter(map(tuple, found))
    assert len(counts) == 10
    assert max(abs(c - 1000) for c in counts.values()) < 6.5 * 30


def test_clients_that_left_are_not_replaced() -> None:
    strategy = Central(
        plan(sampling="fixed", neighbours="replace", clients=4, cohort=2.0, rate=0.5), bits=SeededBits(8)
    )
    strategy._round = 1
    strategy._cohort([1, 2, 3, 4])
    sizes = Counter()
    for k in range(2, 4000):
        strategy._round = k
        sizes[len(set(strategy._cohort([1, 2, 5])))] += 1
    assert set(sizes) == {0, 1, 2}  # the two drawn of 1..4, of whom 3 and 4 left
    assert abs(sizes[2] / sum(sizes.values()) - 1 / 6) < 0.05


def test_empty_cohorts_step_too() -> None:
    strategy, got = trained(plan(rate=1e-9, noise=2.0), 1.0, nodes=3)
    assert strategy.rounds == 1
    assert np.abs(got).min() > 0


# compression


@pytest.mark.parametrize(
    ("compression", "size"), [(Signs(), 125), (Signs(0.5), 63), (Mask(0.1), 400), (Top(0.1), 800), (Top(1.0), 8000)]
)
def test_compressed_updates_and_their_bytes(compression: Any, size: int) -> None:
    change = np.random.default_rng(2).normal(size=1000) * 1e-3
    strategy, got = trained(plan(cohort=1.0), change, nodes=1, length=1000, compression=compression)
    plain, whole = trained(plan(cohort=1.0), change, nodes=1, length=1000)
    assert strategy.received < size + 100
    assert plain.received > 8000
    assert got @ whole > 0
    assert np.linalg.norm(got) < 1 + 1e-4
    if isinstance(compression, Top):
        kept = np.argsort(-np.abs(change))[: int(1000 * compression.share)]
        assert np.allclose(got[kept], change[kept], atol=6e-6)
    if isinstance(compression, Signs):
        assert abs(np.linalg.norm(got) - 1) < 1e-3


@pytest.mark.parametrize("compression", [Signs(0.3), Mask(0.3), Top(0.3)])
@pytest.mark.parametrize("data", [b"", b"\xff" * 7, b"\xff" * 10_000, b"\xff" * 120, b"\xff" * 240, b"\x00" * 240, 5])
def test_bytes_that_nobody_packed_are_bounded(compression: Any, data: Any) -> None:
    def behave(node: int, reply: Message) -> list[Message]:
        if node == 10:
            reply.__dict__["_content"] = RecordDict({"update": ConfigRecord({"update": data})})
        return [reply]

    _, got = trained(plan(cohort=1.0), 0.0 if isinstance(compression, Mask | Top) else 0.1, 2, 100, behave,
                     compression=compression)  # fmt: skip
    assert np.linalg.norm(got) < 2.001


def test_clients_are_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.learning.federated.course.PATIENCE", 0.3)
    with pytest.raises(ParameterError, match="connected=3 clients have not come"):
        trained(plan(), 0.1, nodes=2, connected=3)


# nothing else leaves, and everything is paid


def test_metrics_and_evaluations_of_clients_are_not_passed_on() -> None:
    strategy = Central(plan(rounds=2), bits=SeededBits(1))
    grid = Here(app_of(adding(0.1)), 3)
    result = strategy.start(grid, model())
    assert set(result.train_metrics_clientapp[1]) == {"epsilon", "delta", "round"}
    assert not result.evaluate_metrics_clientapp
    assert [len(a) for a in grid.asked] == [3, 0, 3, 0]


def test_the_budget_pays_for_all_rounds_before_anybody_is_asked() -> None:
    stated = plan(rounds=5, noise=4.0)
    budget = Budget(epsilon=50, delta=1e-5)
    strategy = Central(stated, budget=budget, bits=SeededBits(1))
    strategy.start(Here(app_of(adding(0.1)), 2), model(), 2)
    assert [r.loss for r in budget.receipts] == [stated.loss]
    assert strategy.loss == stated.spent(2)
    grid = Here(app_of(adding(0.1)), 2)
    with pytest.raises(BudgetExceeded):
        Central(stated, budget=Budget(epsilon=0.1, delta=1e-5)).start(grid, model())
    assert not grid.asked


def test_no_round_beyond_the_plan() -> None:
    strategy, _ = trained(plan(), 0.1)
    with pytest.raises(SessionClosed, match="All 1 rounds"):
        strategy.configure_train(2, model(), ConfigRecord(), Here(app_of(adding(0.1)), 2))


def test_server_momentum_and_kinds_of_numbers_are_post_processing() -> None:
    strategy = Central(plan(rounds=2), rate=0.5, momentum=0.5, bits=SeededBits(1))
    arrays = ArrayRecord({"w": Array(np.zeros(2, np.float32)), "steps": Array(np.array([3]))})
    app = app_of(lambda w, _: w + np.float32(0.4))
    result = strategy.start(Here(app, 4), arrays)
    assert result.arrays["w"].numpy().dtype == np.float32
    assert np.allclose(result.arrays["w"].numpy(), 0.5 * (0.4 + 0.6), atol=1e-4)
    assert result.arrays["steps"].numpy().tolist() == [3]
