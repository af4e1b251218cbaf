"""PATE as a whole: what it learns, what it pays, what it shows, and what one person can change."""

import copy
import math
import pickle
import stat
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.semi_supervised import LabelSpreading
from sklearn.tree import DecisionTreeClassifier
from support import SeededBits

import hubbub as hb
from hubbub.audit import replay
from hubbub.errors import BudgetExceeded, FitFailure, HubbubError, ParameterError, ParameterTypeError, SessionClosed
from hubbub.learning.pate import PATE, Confident, GaussianMax, Interactive, LaplaceMax, Votes
from hubbub.learning.pate import dealing as dealing_module
from hubbub.learning.pate import teachers as teachers_module
from hubbub.learning.pate.networks import Network
from hubbub.learning.pate.seeds import own_chance, seeded
from hubbub.learning.pate.teachers import Lesson

CLASSES = ["low", "middle", "high"]


def data(rows: int = 3000, seed: int = 0) -> tuple[Any, Any]:
    x = np.random.default_rng(seed).uniform(-1, 1, (rows, 2))
    return x, np.array(CLASSES)[np.digitize(x[:, 0] + x[:, 1], [-0.4, 0.4])]


PUBLIC, TRUTH = data(300, seed=1)


def pate(**changed: Any) -> PATE:
    given = {
        "teacher": LogisticRegression(),
        "student": LogisticRegression(),
        "teachers": 30,
        "aggregator": GaussianMax(4),
        "classes": CLASSES,
    }
    return PATE(**(given | changed))


@pytest.mark.parametrize(
    "aggregator",
    [
        GaussianMax(4),
        LaplaceMax(2),
        Confident(15, check_sigma=8, sigma=4),
        Interactive(12, check_sigma=8, sigma=4, rounds=3),
    ],
)
def test_a_student_learns_and_everything_is_paid_before(aggregator: Any) -> None:
    budget = hb.Budget(400, 1e-5)
    model = pate(aggregator=aggregator, budget=budget).fit(*data(), PUBLIC)
    assert np.mean(model.predict(PUBLIC) == TRUTH) > 0.8
    assert set(model.labels_) <= set(CLASSES)
    assert model.loss_ == aggregator.loss(300) == budget.spent
    assert model.predict_proba(PUBLIC[:5]).sum() == pytest.approx(5)
    assert model.answered_.sum() == len(model.labels_) <= 300
    with pytest.raises(BudgetExceeded):
        pate(aggregator=aggregator, budget=hb.Budget(0.1, 1e-6)).fit(*data(), PUBLIC)


def test_nothing_is_taught_before_it_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(Lesson, "votes", lambda *_, **__: seen.append("taught"))
    with pytest.raises(BudgetExceeded):
        pate(budget=hb.Budget(0.1, 1e-6)).fit(*data(60), PUBLIC)
    assert not seen


def test_answers_are_all_that_is_paid_for() -> None:
    model = pate(answers=40).fit(*data(), PUBLIC)
    assert model.answered_.tolist() == [True] * 40 + [False] * 260
    assert model.loss_ == GaussianMax(4).loss(40) == model.for_owner().always
    assert len(model.for_owner().counts) == 40
    assert model.for_owner().epsilon(1e-5) < model.loss_.epsilon(1e-5)
    checked = pate(answers=40, aggregator=Confident(5, check_sigma=8, sigma=4)).fit(*data(), PUBLIC)
    assert len(checked.for_owner().counts) == 300  # how many were asked depends on refusals
    assert checked.for_owner().always == checked.loss_


def test_rows_without_labels_help_a_student_that_wants_them() -> None:
    model = pate(student=LabelSpreading(kernel="knn", max_iter=200), unlabelled="given", answers=60)
    assert np.mean(model.fit(*data(), PUBLIC).predict(PUBLIC) == TRUTH) > 0.8
    assert len(model.student_.transduction_) == 300


class Fragile(ClassifierMixin, BaseEstimator):
    """Fails with private words, or answers what is no class."""

    def __init__(self, kind: str = "fit") -> None:
        self.kind = kind

    def fit(self, rows: Any, labels: Any) -> "Fragile":
        if self.kind == "fit":
            raise ValueError(f"private: {rows} {labels}")
        return self

    def predict(self, rows: Any) -> Any:
        if self.kind == "predict":
            raise ValueError("private")
        return {"text": ["?"] * len(rows), "far": np.full(len(rows), 9), "few": [1], "half": np.full(len(rows), 0.5)}[
            self.kind
        ]


@pytest.mark.parametrize("kind", ["fit", "predict", "text", "far", "few", "half"])
def test_teachers_that_fail_vote_for_the_first_class(kind: str) -> None:
    votes = Lesson.of(Fragile(kind), *data(200), PUBLIC, teachers=5, classes=CLASSES).votes()
    assert (votes.counts == [5, 0, 0]).all()


@pytest.mark.parametrize(
    "table",
    [
        (np.zeros((0, 2)), np.zeros(0, "U3")),
        (np.full((50, 2), math.nan), ["low", "high"] * 25),
        (np.full((50, 2), 1e308), ["low", "high"] * 25),
        ([[math.inf, -math.inf]] * 50, ["low", "no class", None, 3, "high"] * 10),
    ],
)
def test_odd_rows_raise_nothing(table: Any) -> None:
    votes = Lesson.of(RidgeClassifier(), *table, PUBLIC, teachers=5, classes=CLASSES).votes()
    assert (votes.counts.sum(axis=1) == 5).all()


def test_a_teacher_of_one_class_votes_for_it() -> None:
    same = np.zeros((400, 2)), ["middle"] * 400
    votes = Lesson.of(RidgeClassifier(), *same, PUBLIC, teachers=4, classes=CLASSES).votes()
    assert votes.classes[votes.counts.argmax(axis=1)].tolist() == ["middle"] * 300
    assert (votes.counts.max(axis=1) == 4).all()


def with_same_teachers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody stays where they are: the coupling of the proof."""
    monkeypatch.setattr(dealing_module, "uniform_below", lambda many, n, _: np.arange(n) * 7 % many)
    monkeypatch.setattr(teachers_module, "uniform_below", lambda _, n, __: np.arange(n))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("interactive", [False, True])
def test_one_person_moves_one_vote(neighbours: Any, interactive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with_same_teachers(monkeypatch)
    generator = np.random.default_rng(2)
    aggregator: Any = GaussianMax(2, neighbours=neighbours)
    if interactive:
        aggregator = Interactive(4, check_sigma=2, sigma=2, neighbours=neighbours)
    seen = 0.0
    for _ in range(5):
        rows, labels = generator.uniform(-1, 1, (60, 2)), generator.choice(CLASSES, 60)
        other = (rows[:-1], labels[:-1])
        if neighbours == "replace":
            other = (np.vstack([rows[:-1], [[1e300, math.nan]]]), np.append(labels[:-1], "low"))

        def run(table: Any) -> Any:
            model = pate(
                teacher=DecisionTreeClassifier(), student=DecisionTreeClassifier(random_state=1), teachers=6,
                aggregator=aggregator,
            )  # fmt: skip
            return model.fit(*table, PUBLIC[:20]).predict(PUBLIC)

        report = replay(run, (rows, labels), other, claimed=aggregator.loss(20))
        assert report.holds, str(report)
        seen = max(seen, report.apart)
    assert seen == pytest.approx(1)


def test_all_rows_of_a_person_move_one_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, labels = data(90)
    people = np.arange(90) % 30

    def run(kept: Any) -> Any:
        model = pate(teacher=DecisionTreeClassifier(), teachers=10, key="k", aggregator=GaussianMax(2))
        monkeypatch.setattr(teachers_module, "uniform_below", lambda _, n, __: np.arange(n))
        return model.fit(rows[kept], labels[kept], PUBLIC[:20], units=people[kept]).predict(PUBLIC)

    apart = []
    for person in range(3):
        report = replay(run, np.full(90, True), people != person)
        assert report.holds, str(report)
        apart.append(report.apart)
    assert max(apart) == pytest.approx(1)


class Drawing(ClassifierMixin, BaseEstimator):
    """Draws from numpy's shared generator as often as it has rows, and says what comes next."""

    def fit(self, rows: Any, labels: Any) -> "Drawing":
        del labels
        np.random.uniform(size=len(rows))
        self.said_ = np.random.randint(3)
        return self

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), self.said_)


def test_chance_used_by_one_teacher_does_not_move_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with_same_teachers(monkeypatch)
    rows, labels = data(200)
    state = np.random.get_state()
    one = Lesson.of(Drawing(), rows, labels, PUBLIC[:1], teachers=40, classes=CLASSES).votes()
    other = Lesson.of(Drawing(), rows[:-1], labels[:-1], PUBLIC[:1], teachers=40, classes=CLASSES).votes()
    assert np.abs(one.counts - other.counts).sum() <= 2
    assert (one.counts > 0).sum() > 1  # teachers differ in chance
    after = np.random.get_state()
    assert all(np.array_equal(a, b) for a, b in zip(state, after, strict=True))


def test_open_seeds_are_set_and_generators_put_back() -> None:
    import random

    import torch

    assert seeded(DecisionTreeClassifier(), 7).random_state == 7
    assert seeded(DecisionTreeClassifier(random_state=3), 7).random_state == 3
    assert seeded("anything", 7) == "anything"
    kept = random.getstate(), torch.get_rng_state()
    drawn = []
    for _ in range(2):
        with own_chance(5):
            drawn.append((random.random(), float(torch.rand(1)), float(np.random.rand())))
    assert drawn[0] == drawn[1]
    assert random.getstate() == kept[0]
    assert torch.equal(torch.get_rng_state(), kept[1])


def test_torch_teachers_and_students() -> None:
    from torch import nn

    net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3))
    before = copy.deepcopy(net.state_dict())
    able = Network(net, epochs=30, rate=0.03)
    model = pate(teacher=able, student=able, teachers=8, aggregator=GaussianMax(1))
    model.fit(*data(1200), PUBLIC.astype(np.float32))
    assert np.mean(model.predict(PUBLIC) == TRUTH) > 0.7
    assert model.predict_proba(PUBLIC[:4]).shape == (4, 3)
    assert all(bool((before[name] == value).all()) for name, value in net.state_dict().items())
    pictures = np.random.default_rng(0).uniform(size=(60, 1, 4, 4)).astype(np.float32)
    convolution = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3))
    found = pate(teacher=convolution, student=convolution, teachers=4).fit(
        pictures, np.resize(CLASSES, 60), pictures[:9]
    )
    assert set(found.predict(pictures)) <= set(CLASSES)


def test_processes_and_dask_give_the_same_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    with_same_teachers(monkeypatch)
    lesson = Lesson.of(DecisionTreeClassifier(), *data(300), PUBLIC[:20], teachers=20, classes=CLASSES)
    here = lesson.votes()
    assert (lesson.votes(jobs=2).counts == here.counts).all()
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config(backend="dask"),
    ):
        assert (lesson.votes().counts == here.counts).all()


def test_threads_share_no_chance() -> None:
    lesson = Lesson.of(Drawing(), *data(400), PUBLIC[:5], teachers=40, classes=CLASSES)
    here = lesson.votes()
    with parallel_config(backend="threading", n_jobs=4):
        assert all((lesson.votes().counts == here.counts).all() for _ in range(5))


def test_a_worker_that_dies_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: Any) -> Any:
        raise MemoryError("private")

    monkeypatch.setattr(teachers_module, "opinion", die)
    with pytest.raises(FitFailure, match=r"^the teachers could not be trained; what it was charged stays spent.$"):
        Lesson.of(RidgeClassifier(), *data(60), PUBLIC[:5], teachers=4, classes=CLASSES).votes()


def test_a_progress_bar_shows_how_many_teachers_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    Lesson.of(RidgeClassifier(), *data(60), PUBLIC[:5], teachers=4, classes=CLASSES).votes(progress=True)
    assert "teaching" in capsys.readouterr().out


# what is shown


def shown(model: PATE) -> str:
    """Everything that an analyst is given, but the labels."""
    return "\n".join([repr(model), str(model.loss_), model.loss_.to_json(), model.card(title="t", delta=1e-5)])


def test_what_is_shown_of_prices_does_not_depend_on_votes() -> None:
    """M9: near-unanimous and split teachers."""
    rows, labels = data(2000)
    mixed = np.random.default_rng(0).permutation(labels)
    one = pate(aggregator=GaussianMax(0.1), answers=9).fit(rows, labels, PUBLIC)
    other = pate(aggregator=GaussianMax(0.1), answers=9).fit(rows, mixed, PUBLIC)
    assert shown(one) == shown(other)
    hidden = [model.for_owner().epsilon(1e-5) for model in (one, other)]
    assert hidden[0] != hidden[1]
    for model, private in zip((one, other), hidden, strict=True):
        assert all(f"{private:.{digits}g}" not in shown(model) for digits in (3, 4, 6))
        assert "private" in repr(model.for_owner())


def test_a_card_says_what_ran() -> None:
    model = pate(aggregator=Confident(15, check_sigma=8, sigma=4)).fit(*data(), PUBLIC)
    card = model.card(title="Who is low", delta=1e-5)
    low, high = model.loss_.epsilon_interval(1e-5)
    for word in (
        "# Who is low",
        f"{low:.6g} and {high:.6g}",
        "30, LogisticRegression",
        "check_sigma 8.0",
        "labelled: ",
    ):
        assert word in card


def test_copies_of_the_student_carry_no_votes() -> None:
    model = pate().fit(*data(), PUBLIC)
    given = pickle.loads(pickle.dumps(model))
    assert (given.predict(PUBLIC) == model.predict(PUBLIC)).all()
    assert not any(isinstance(value, Votes) for value in vars(given).values())
    with pytest.raises(SessionClosed):
        given.for_owner()
    assert clone(model).get_params().keys() == model.get_params().keys()


# votes in a file


def test_votes_are_kept_for_their_owner_and_labels_drawn_once(tmp_path: Any) -> None:
    path, budget = tmp_path / "votes.npz", hb.Budget(200, 1e-5)
    first = pate(votes=path, budget=budget, aggregator=GaussianMax(8)).fit(*data(), PUBLIC)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(budget.receipts) == 1
    again = pate(votes=path, budget=budget, aggregator=GaussianMax(8)).fit(None, None, PUBLIC)
    assert (again.labels_ == first.labels_).all()
    assert len(budget.receipts) == 1
    assert again.loss_ == first.loss_
    other = pate(votes=path, budget=budget, aggregator=GaussianMax(8), answers=50).fit(None, None, PUBLIC)
    assert [receipt.loss for receipt in budget.receipts] == [first.loss_, other.loss_]
    assert other.for_owner().epsilon(1e-5) > 0
    with pytest.raises(ParameterError, match="other public rows"):
        pate(votes=path).fit(*data(), PUBLIC[:7])
    with pytest.raises(ParameterError, match="other teachers"):
        pate(votes=path, teachers=9).fit(*data(), PUBLIC)


def test_votes_dealt_by_a_key_are_not_read_as_if_dealt_at_random(tmp_path: Any) -> None:
    path, people = tmp_path / "votes.npz", np.arange(3000) // 3
    pate(votes=path, key="k").fit(*data(), PUBLIC, units=people)
    with pytest.raises(ParameterError, match="dealt by a key"):
        pate(votes=path, aggregator=GaussianMax(4, neighbours="replace")).fit(*data(), PUBLIC)


def test_a_crash_between_payment_and_labels_is_paid_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, budget = tmp_path / "votes.npz", hb.Budget(200, 1e-5)
    model = pate(votes=path, budget=budget)
    with monkeypatch.context() as patched:
        patched.setattr(GaussianMax, "labels", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            model.fit(*data(), PUBLIC)
    (entry,) = Votes.load(path).record.values()
    assert entry == {"paid": True, "labels": None}
    model = pate(votes=path, budget=budget).fit(None, None, PUBLIC)
    assert len(budget.receipts) == 2  # somebody may have seen what the first drew
    assert pate(votes=path, budget=budget).fit(None, None, PUBLIC).labels_.tolist() == model.labels_.tolist()
    assert len(budget.receipts) == 2
    (entry,) = Votes.load(path).record.values()
    assert model.labels_.tolist() == np.sort(CLASSES)[entry["labels"]].tolist()
    assert len(entry["labels"]) == 300


def test_files_that_hold_no_votes_are_refused(tmp_path: Any) -> None:
    path = tmp_path / "votes.npz"
    path.write_bytes(b"secret")
    with pytest.raises(ParameterError, match="is not a file of votes") as caught:
        pate(votes=path).fit(*data(), PUBLIC)
    assert "secret" not in str(caught.value)
    votes = Votes(np.array([[1, 1]]), 3, np.array([0, 1]))
    with pytest.raises(ParameterError, match="is not a file of votes"):
        Votes.load(votes.save(path))


def test_votes_show_nothing_and_know_their_gaps() -> None:
    votes = Votes(np.array([[5, 3, 2], [0, 10, 0]]), 10, np.array([0, 1, 2]))
    assert repr(votes) == "<Votes of 10 teachers on 2 public rows: private>"
    assert votes.gaps().tolist() == [2, 10]
    assert votes.agreement().tolist() == [0.5, 1.0]
    assert len(votes) == 2


# refusals

BAD: list[tuple[dict[str, Any], Any, type[HubbubError], str]] = [
    ({"teacher": 3}, None, ParameterTypeError, "teacher"),
    ({"student": None}, None, ParameterTypeError, "student"),
    ({"teachers": 1}, None, ParameterError, "teachers"),
    ({"aggregator": None}, None, ParameterError, "aggregator"),
    ({"classes": None}, None, ParameterError, "classes"),
    ({"classes": ["low"]}, None, ParameterError, "classes"),
    ({"unlabelled": "used"}, None, ParameterError, "unlabelled"),
    ({"progress": 1}, None, ParameterError, "progress"),
    ({"answers": 0}, None, ParameterError, "answers"),
    ({"budget": 3}, None, ParameterTypeError, "budget"),
    ({"key": "k"}, None, ParameterError, "key"),
    (
        {"student": RidgeClassifier(), "aggregator": Interactive(12, check_sigma=8, sigma=40)},
        None,
        ParameterTypeError,
        "predict_proba",
    ),
    ({}, (data(20)[0], data(20)[1][:3], PUBLIC), ParameterError, "one label"),
    ({}, (data(20)[0], None, PUBLIC), ParameterError, "y"),
    ({}, (*data(20), PUBLIC[:, :1]), ParameterError, "public"),
    ({}, (np.zeros(20), data(20)[1], PUBLIC), ParameterError, "table"),
    ({}, (*data(20), np.zeros((0, 2))), ParameterError, "asked"),
]


@pytest.mark.parametrize(("changed", "given", "kind", "word"), BAD)
def test_bad_input_is_refused_before_anything_is_spent(changed: Any, given: Any, kind: Any, word: str) -> None:
    budget = hb.Budget(400, 1e-5)
    with pytest.raises(kind, match=word):
        pate(**({"budget": budget} | changed)).fit(*(given or (*data(20), PUBLIC)))
    assert not budget.receipts


def test_students_are_asked_for_what_they_can_say() -> None:
    model = pate(student=RidgeClassifier()).fit(*data(), PUBLIC)
    with pytest.raises(ParameterTypeError, match="predict_proba"):
        model.predict_proba(PUBLIC)
    with pytest.raises(ParameterError, match="public ones"):
        model.predict(PUBLIC[:, :1])
    refused = pate(aggregator=Confident(1000, check_sigma=0.1, sigma=1))
    with pytest.raises(FitFailure, match="no public row was given a label"):
        refused.fit(*data(), PUBLIC)
    constant = pate(student=LogisticRegression(), answers=1).fit(*data(), PUBLIC, bits=SeededBits(3))
    assert len(set(constant.predict(PUBLIC))) == 1
