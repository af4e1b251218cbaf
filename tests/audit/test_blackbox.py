"""Audits: sound on every mechanism shipped, sharp on Laplace and Gaussian, and not fooled by broken ones."""

import math
from typing import Any

import numpy as np
import pytest
from audit.broken import Broken, broken
from mechanisms.catalogue import cells
from scipy.stats import binom

import hubbub as hb
from hubbub.audit import audit, worst_pair
from hubbub.audit.bounds import at_least, at_most, epsilon_from_guesses
from hubbub.audit.refuting import Guessing
from hubbub.audit.testers import Counted, granularity, kind
from hubbub.errors import ParameterError, ParameterTypeError

CELLS = cells()


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (500, 1000), (999, 1000), (7, 10**6)])
@pytest.mark.parametrize("failure", [0.05, 1e-6])
def test_binomial_bounds_are_exact(hits: int, trials: int, failure: float) -> None:
    """At the bound, so many hits or more (fewer) have exactly the stated chance."""
    low, high = at_least(hits, trials, failure), at_most(hits, trials, failure)
    assert 0 <= low <= hits / trials <= high <= 1
    if hits:
        assert binom.sf(hits - 1, trials, low) == pytest.approx(failure, rel=1e-4)
    if hits < trials:
        assert binom.cdf(hits, trials, high) == pytest.approx(failure, rel=1e-4)


def test_guesses_are_refuted_no_more_often_than_stated() -> None:
    """Randomised response attains the bound: over its law of correct guesses, false alarms have at most the chance."""
    epsilon, guesses, failure = 1.0, 500, 0.01
    chance = 1 / (1 + math.exp(-epsilon))
    alarms = [epsilon_from_guesses(v, guesses, failure) > epsilon for v in range(guesses + 1)]
    assert float(binom.pmf(np.arange(guesses + 1), guesses, chance)[alarms].sum()) <= failure


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: c.name)
def test_no_shipped_mechanism_is_refuted(cell: Any) -> None:
    """False alarms have probability at most 1e-6 for each."""
    report = audit(cell.mechanism, cell.value, cell.neighbour, samples=600)
    assert report.holds, str(report)
    assert report.epsilon_lower <= report.claimed
    assert report.samples == 1200


SHARP = [
    *((hb.Laplace(1, epsilon=e), 0, 1) for e in (1, 3, 6)),
    *((hb.Laplace(1.0, epsilon=e), 0.0, 1.0) for e in (1, 3, 6)),
    (hb.RandomizedResponse(epsilon=2), 0, 1),
    (hb.Gaussian(1.0, epsilon=3, delta=1e-5), 0.0, 1.0),
    (hb.Gaussian(1, epsilon=8, delta=1e-5), 0, 1),
]


@pytest.mark.parametrize(("mechanism", "x", "neighbour"), SHARP, ids=lambda v: repr(v)[:40])
def test_audits_are_sharp(mechanism: Any, x: Any, neighbour: Any) -> None:
    """No noise is wasted, and the audit sees it: 0.95 of the claim at a million releases , 0.75 at these."""
    report = audit(mechanism, x, neighbour, samples=40_000)
    assert report.holds
    assert report.power >= 0.75, str(report)


@pytest.mark.parametrize("bug", broken(), ids=lambda b: b.name)
def test_broken_mechanisms_are_caught(bug: Broken) -> None:
    report = audit(bug.release, bug.x, bug.neighbour, samples=bug.samples, claimed=bug.claimed, delta=bug.delta)
    assert not report.holds, str(report)
    assert report.event


def test_the_worst_pair_is_found() -> None:
    """A sum that clips records to 3 but claims sensitivity 1 is refuted only between records that differ by more."""

    def total(rows: list[float]) -> float:
        return hb.Laplace(1, epsilon=1.0).release(int(sum(min(r, 3) for r in rows)))

    x, y, report = worst_pair(total, [0, 1, 50], size=1, samples=5000, claimed=1.0)
    assert abs(sum(min(r, 3) for r in x) - sum(min(r, 3) for r in y)) == 3
    assert not report.holds
    assert report.confidence > 1 - 1e-6  # a round of the search may have been an audit too
    *_, fine = worst_pair(
        lambda rows: hb.Laplace(3, epsilon=1.0).release(int(sum(min(r, 3) for r in rows))),
        [0, 50],
        size=1,
        samples=2000,
        claimed=1.0,
    )
    assert fine.holds


def test_outputs_of_every_shape() -> None:
    noise = hb.Laplace(1, epsilon=1.0)
    shapes = [
        lambda v: {"count": noise.release(v), "kind": 1},
        lambda v: [noise.release(v), 0],
        lambda v: np.array([noise.release(v), 0.5]),
        lambda v: str(noise.release(v)),
        lambda v: noise.release(v) if noise.release(0) > -50 else None,
    ]
    for release in shapes:
        report = audit(release, 0, 1, samples=3000, claimed=2.0)
        assert report.holds
        assert report.epsilon_lower > 0.3, str(report)


@pytest.mark.parametrize("odd", ["text", [1, 2, 3], {"a": 1}, {1}, None, math.nan, 10**400, b"x", 1j, ()], ids=repr)
def test_rare_outputs_of_another_shape_break_nothing(odd: Any) -> None:
    """A twentieth of the outputs is something else: in some stages of an audit it is not seen at all."""
    noise, coin = hb.Laplace(1, epsilon=1.0), hb.RandomizedResponse(epsilon=3)
    shapes = (lambda v: v, lambda v: [v], lambda v: {"a": v})
    for shape in shapes:
        report = audit(
            lambda v, s=shape: odd if coin.release(0) else s(noise.release(v)), 0, 1, samples=150, claimed=1.0
        )
        assert report.holds
    assert not audit(lambda v: v if v else odd, 0, 1, samples=300, claimed=1.0).holds


def test_errors_are_outputs() -> None:
    assert not audit(lambda v: 1 / v, 0, 1, samples=300, claimed=1.0).holds
    with pytest.raises(ZeroDivisionError):
        audit(lambda v: v / 0, 0, 1, samples=300, claimed=1.0)
    assert audit(lambda _: "nothing to see", 0, 1, samples=300, claimed=1.0).epsilon_lower == 0
    nothing = Guessing().count(Counted("the output", str), ["a"], np.array([True]), 0.1)
    assert (nothing.bound, nothing.words) == (0, "nothing that tells the inputs apart")


def test_reports_speak() -> None:
    report = audit(hb.Laplace(1, epsilon=1.0), 0, 1, samples=3000)
    assert "claimed epsilon 1 holds" in str(report)
    assert report.to_dict()["holds"] is True
    refuted = audit(lambda v: v, 0, 1, samples=3000, claimed=1.0)
    assert "REFUTED" in str(refuted)
    assert refuted.plot().to_dict()["title"]


def test_refusals() -> None:
    with pytest.raises(ParameterTypeError, match="claimed"):
        audit(lambda v: v, 0, 1)
    with pytest.raises(ParameterTypeError, match="must have a release, or be a function"):
        audit(5, 0, 1, claimed=1.0)
    with pytest.raises(ParameterError, match="samples"):
        audit(hb.Laplace(1, epsilon=1.0), 0, 1, samples=10)
    with pytest.raises(ParameterError, match="confidence"):
        audit(hb.Laplace(1, epsilon=1.0), 0, 1, confidence=1)
    with pytest.raises(ParameterError, match="pairs"):
        worst_pair(len, list(range(100)), size=4, claimed=1.0)


def test_features() -> None:
    assert granularity(0.5) != granularity(0.5 + 2**-52)
    assert granularity([1.0, 2.0]) == granularity(np.array([1.0, 2.0]))
    assert granularity(math.nan) == "nan"
    assert kind({"a": 1}) != kind({"b": 1})
    assert kind(1) != kind(1.0)
