"""The mechanisms behind linear models: certified minimisers, exact prices, audits, and what a wrong constant does."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import SeededBits

import hubbub as hb
from hubbub.audit import audit
from hubbub.errors import FitFailure, ParameterError
from hubbub.learning import minimising
from hubbub.learning.descending import NoisyDescent
from hubbub.learning.exponential import ExponentialMinimiser
from hubbub.learning.losses import Huber, HuberHinge, Logistic, PointLoss
from hubbub.learning.minimising import gradient, inexact, minimiser
from hubbub.learning.objective import ObjectivePerturbation
from hubbub.learning.output import OutputPerturbation
from hubbub.learning.rows import Encoding

LOSSES = [Logistic(), HuberHinge(0.2), Huber(0.3)]


def table(n: int, width: int, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    rows = Encoding.of((-1, 1), width - 1)(generator.uniform(-2, 2, (n, width - 1)))
    return rows, generator.choice([-1.0, 1.0], n)


def true_gradient(loss: PointLoss, rows: Any, labels: Any, w: Any) -> list[mpmath.mpf]:
    total = [mpmath.mpf(0)] * len(w)
    for x, y in zip(rows, labels, strict=True):
        score = sum(mpmath.mpf(a) * mpmath.mpf(b) for a, b in zip(x, w, strict=True))
        if isinstance(loss, Logistic):
            slope = -y / (1 + mpmath.exp(y * score))
        elif isinstance(loss, HuberHinge):
            slope = -y * min(max((1 + mpmath.mpf(loss.width) - y * score) / (2 * mpmath.mpf(loss.width)), 0), 1)
        else:
            slope = min(max(score - y, -mpmath.mpf(loss.width)), mpmath.mpf(loss.width))
        total = [t + slope * mpmath.mpf(a) for t, a in zip(total, x, strict=True)]
    return total


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(LOSSES), st.integers(0, 40), st.integers(2, 9), st.integers(0, 10**6), st.floats(-3, 3))
def test_gradients_are_right_within_their_error(loss: PointLoss, n: int, width: int, seed: int, size: float) -> None:
    rows, labels = table(n, width, seed)
    w = np.random.default_rng(seed + 1).normal(size=width) * 10.0**size
    found, each = gradient(loss, rows, labels, w)
    with mpmath.workdps(40):
        off = mpmath.sqrt(
            sum((mpmath.mpf(a) - b) ** 2 for a, b in zip(found, true_gradient(loss, rows, labels, w), strict=True))
        )
    assert off <= n * each


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(LOSSES), st.integers(0, 60), st.integers(0, 10**6), st.floats(-3, 2), st.floats(-2, 3))
def test_minimisers_have_the_gradient_they_certify(
    loss: PointLoss, n: int, seed: int, light: float, far: float
) -> None:
    rows, labels = table(n, 4, seed)
    weight, term = 10.0**light, np.random.default_rng(seed).normal(size=4) * 10.0**far
    w = minimiser(loss, rows, labels, weight, term)
    with mpmath.workdps(40):
        slope = [
            g + mpmath.mpf(weight) * mpmath.mpf(a) + mpmath.mpf(b)
            for g, a, b in zip(true_gradient(loss, rows, labels, w), w, term, strict=True)
        ]
        assert mpmath.sqrt(sum(s**2 for s in slope)) <= inexact(loss)


def test_one_that_is_not_found_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimising, "ROUNDS", 1)
    with pytest.raises(FitFailure):
        minimiser(Logistic(), *table(50, 3), 0.1, np.ones(3))


def test_nothing_is_a_minimiser_without_its_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimising, "ROUNDS", 20)
    monkeypatch.setattr(minimising, "_length", lambda *_: math.inf)
    with pytest.raises(FitFailure):
        minimiser(Logistic(), *table(50, 3), 0.1, np.ones(3))


def made(kind: str, loss: PointLoss, epsilon: float, neighbours: Any, many: int = 1) -> Any:
    shared: dict[str, Any] = {"epsilon": epsilon, "width": 1, "neighbours": neighbours, "labelings": many}
    match kind:
        case "objective":
            return ObjectivePerturbation(loss, delta=1e-4, **shared)
        case "pure objective":
            return ObjectivePerturbation(loss, **shared)
        case "output":
            return OutputPerturbation(loss, delta=1e-4, weight=1, **shared)
        case "pure output":
            return OutputPerturbation(loss, weight=1, **shared)
        case "descent":
            return NoisyDescent(loss, delta=1e-4, steps=2, **shared)
    return ExponentialMinimiser(loss, radius=1, **shared)


KINDS = ["objective", "pure objective", "output", "pure output", "descent", "exponential"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("loss", [Logistic(), Huber(0.3)])
def test_audited_on_one_row(kind: str, neighbours: Any, loss: PointLoss) -> None:
    one = (np.ones((1, 1)), np.ones((1, 1)))
    other = (np.ones((1, 1)), -np.ones((1, 1))) if neighbours == "replace" else (np.ones((0, 1)), np.ones((0, 1)))
    mechanism = made(kind, loss, 2.0, neighbours)
    assert mechanism.apart(one, other) == 1
    report = audit(
        lambda value: float(mechanism.release(value)[0, 0]), one, other, samples=1000, claimed=mechanism.loss
    )
    assert report.holds, str(report)


def test_the_notes_constant_is_too_small_where_one_is_replaced() -> None:
    """Their sensitivity G R under replacement: the exact ratio of probabilities then exceeds e**epsilon."""
    loss, radius = Huber(0.5), 0.5
    mechanism = ExponentialMinimiser(loss, epsilon=1.0, width=1, radius=radius, neighbours="replace")
    rows, labels = np.ones((300, 1)), np.ones(300)
    scores = [mechanism.scores(rows, np.append(labels[1:], y)) for y in (1.0, -1.0)]

    def worst(reach: float) -> float:
        laws = [np.exp((s - s.max()) / (2 * reach)) for s in scores]
        logs = [np.log(law) - np.log(law.sum()) for law in laws]
        return float(np.max(np.abs(logs[0] - logs[1])))

    assert worst(2 * loss.slope * radius) <= 1.0 < 1.5 < worst(loss.slope * radius)
    assert worst(float(mechanism._choice.sensitivity)) <= 1.0
    assert max(abs(scores[0] - scores[1])) == pytest.approx(2 * loss.slope * radius)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_relative_to_nought_move_by_slope_times_radius(loss: PointLoss) -> None:
    mechanism = ExponentialMinimiser(loss, epsilon=1.0, width=2, radius=5)
    generator = np.random.default_rng(1)
    for _ in range(50):
        row = generator.normal(size=2)
        row /= np.linalg.norm(row)
        moved = mechanism.scores(row[None], generator.choice([-1.0, 1.0], 1))
        assert np.abs(moved).max() <= loss.slope * 5 * (1 + 1e-12)
        assert np.abs(moved).max() <= mechanism._choice.sensitivity


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("many", [1, 3])
def test_the_whole_is_priced_as_proved(neighbours: Any, many: int) -> None:
    """The bound of the proof, with numbers of this mechanism, is at most delta, and not far below it."""
    people = 1 if neighbours == "add-remove" else 2
    for epsilon in (0.1, 1.0, 8.0):
        shared: dict[str, Any] = {"epsilon": epsilon, "width": 4, "labelings": many, "neighbours": neighbours}
        m = ObjectivePerturbation(Logistic(), delta=1e-5, **shared)
        left = epsilon - many * math.log1p(0.25 / m.weight)
        mu = math.sqrt(many * ((people / m.spread) ** 2 + m._hiding.mu**2))
        bound = (2 ** (many * people) - 1) * hb.GaussianDP(mu).delta(left) + hb.GaussianDP(m._hiding.mu).delta(left)
        assert 0.99e-5 < bound <= 1e-5
        pure = ObjectivePerturbation(Logistic(), **shared)
        spent = many * (people / pure.spread + math.log1p(0.25 / pure.weight) + pure._hiding.epsilon)
        assert 0.999 * epsilon < spent <= epsilon * (1 + 1e-12)
        assert pure.loss == hb.PureDP(epsilon, neighbours=neighbours)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_minimisers_of_neighbours_are_as_near_as_output_perturbation_says(neighbours: Any) -> None:
    people = 1 if neighbours == "add-remove" else 2
    generator = np.random.default_rng(7)
    nearest = 0.0
    for trial in range(60):
        rows, labels = table(int(generator.integers(1, 4)), 3, trial)
        weight = 10.0 ** generator.uniform(-2, 1)
        other = (rows[1:], labels[1:])
        if people == 2:
            other = (np.vstack([rows[1:], -rows[:1]]), labels)
        apart = np.linalg.norm(
            minimiser(Logistic(), rows, labels, weight, np.zeros(3))
            - minimiser(Logistic(), *other, weight, np.zeros(3))
        )
        assert apart <= people / weight + 2 * inexact(Logistic()) / weight
        nearest = max(nearest, apart * weight / people)
    assert nearest > 0.3


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_several_labelings_move_no_farther_than_their_noise_is_for(neighbours: Any, delta: float) -> None:
    generator, norm = np.random.default_rng(8), 2 if delta else 1
    mechanism = OutputPerturbation(
        Huber(0.5), epsilon=1, delta=delta, width=3, labelings=3, weight=0.05, neighbours=neighbours
    )
    farthest = 0.0
    for trial in range(30):
        rows, _ = table(int(generator.integers(1, 4)), 3, trial)
        labels = generator.choice([-1.0, 1.0], (len(rows), 3))
        other = (rows[1:], labels[1:]) if neighbours == "add-remove" else (np.vstack([rows[1:], -rows[:1]]), labels)
        one, two = (
            np.concatenate([minimiser(Huber(0.5), x, y[:, k], 0.05, np.zeros(3)) for k in range(3)])
            for x, y in ((rows, labels), other)
        )
        farthest = max(farthest, float(np.linalg.norm(one - two, norm)))
    assert 0.1 * float(mechanism.noise.sensitivity) < farthest <= float(mechanism.noise.sensitivity)


def test_descents_parts_add_up_to_its_price() -> None:
    for steps in (1, 40):
        m = NoisyDescent(Logistic(), epsilon=1, delta=1e-6, width=5, steps=steps)
        assert m._counting.mu**2 + steps * m._stepping.mu**2 <= m.mu**2
        assert m._counting.mu**2 + steps * m._stepping.mu**2 > 0.999 * m.mu**2
        assert m.loss.epsilon(1e-6) <= 1
    with pytest.raises(ParameterError, match="width"):
        NoisyDescent(Logistic(), epsilon=1, delta=1e-6, width=2**15 + 1)


def test_tables_that_are_no_neighbours_are_seen() -> None:
    m = made("objective", Logistic(), 1.0, "add-remove")
    long = (np.full((1, 1), 1.5), np.ones((1, 1)))
    one = (np.ones((1, 1)), np.ones((1, 1)))
    two = (np.ones((2, 1)), np.array([[1.0], [-1.0]]))
    none = (np.ones((0, 1)), np.ones((0, 1)))
    assert m.apart(one, one) == 0
    assert m.apart(two, none) == m.apart(long, none) == m.apart(one, (np.ones((1, 1)), -np.ones((1, 1)))) == math.inf
    assert made("pure objective", Logistic(), 1.0, "replace").apart(one, none) == math.inf


def test_a_term_is_drawn_fine_enough() -> None:
    m = ObjectivePerturbation(Logistic(), epsilon=1, delta=1e-6, width=2)
    draws = np.array([m._term(SeededBits(s)) for s in range(400)]).ravel()
    assert abs(draws.std() / m.spread - 1) < 0.15
    assert Fraction(draws[0]).denominator >= 2**40
    with pytest.raises(ParameterError, match="too small"):
        ObjectivePerturbation(Logistic(), epsilon=1e-9, delta=1e-9, width=2)


class Steep(Huber):
    """An honest loss of great slope."""

    slope = 1e5

    def derivative(self, scores: Any, labels: Any) -> Any:
        return np.clip(scores - labels, -1e5, 1e5)


def test_steep_losses_are_minimised_on_many_rows_too() -> None:
    loss = Steep(0.5)
    assert inexact(loss) > 1e7 * gradient(loss, np.zeros((1, 1)), np.zeros(1), np.zeros(1))[1]
    assert np.isfinite(minimiser(loss, np.zeros((5000, 1)), np.zeros(5000), 100.0, np.ones(1))).all()


@pytest.mark.parametrize("bound", ["slope", "curvature", "rounding"])
@pytest.mark.parametrize("kind", KINDS)
def test_losses_that_declare_no_numbers_are_refused(bound: str, kind: str) -> None:
    for wrong in (math.nan, math.inf, -1.0):
        broken = type("Broken", (Huber,), {bound: wrong})(0.5)
        with pytest.raises(ParameterError, match="loss"):
            made(kind, broken, 1.0, "add-remove")


def test_light_regularisers_and_too_many_classes_are_refused() -> None:
    for kind in (ObjectivePerturbation, OutputPerturbation):
        with pytest.raises(ParameterError, match="regularisation"):
            kind(Logistic(), epsilon=40, delta=1e-6, width=1, weight=1e-5)
    with pytest.raises(ParameterError, match="classes"):
        ObjectivePerturbation(Logistic(), epsilon=1, delta=1e-6, width=1, labelings=201)
    with pytest.raises(ParameterError, match="radius"):
        ExponentialMinimiser(Logistic(), epsilon=1, width=1, radius=1e-9)
