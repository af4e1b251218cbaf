"""White-box audits of real steps: near the claim, never above it; broken trainings are caught."""

import numpy as np
import pytest
import torch
from support import SeededBits

from hubbub.audit import audit, one_run
from hubbub.learning.sgd import Plan, WhiteBox
from hubbub.learning.sgd import run as running

PLANS = {
    "one step of all": Plan(steps=1, rate=1.0, noise=1.0, batch=1.0),
    "sampled": Plan(steps=20, rate=0.1, noise=1.0, batch=1.0),
    "many quiet steps": Plan(steps=60, rate=0.2, noise=3.0, batch=1.0, clip=0.3),
    "long clip": Plan(steps=10, rate=0.5, noise=2.0, batch=4.0, clip=3.0),
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("name", PLANS)
def test_audits_come_near_the_claim_and_never_above(name: str) -> None:
    report = audit(
        WhiteBox(PLANS[name], lanes=20_000, bits=SeededBits(1)),
        True,
        False,
        samples=100_000,
        delta=1e-2,
        confidence=0.99,
    )
    assert report.holds
    assert 0.7 < report.epsilon_lower / report.claimed <= 1


@pytest.mark.long
@pytest.mark.parametrize("name", PLANS)
def test_long_audits_reach_four_fifths_of_the_claim(name: str) -> None:
    report = audit(WhiteBox(PLANS[name], lanes=50_000), True, False, samples=2_000_000, delta=1e-2, confidence=0.99)
    assert report.holds
    assert 0.8 < report.epsilon_lower / report.claimed <= 1


def test_one_run_holds() -> None:
    plan = PLANS["one step of all"]
    included = np.unpackbits(SeededBits(2).words(500).view(np.uint8)).astype(bool)
    found = one_run(WhiteBox(plan, bits=SeededBits(3)).scores(included), included, delta=1e-3, method="gaussian")
    assert 0.4 * plan.loss.epsilon(1e-3) < found.epsilon_lower <= plan.loss.epsilon(1e-3)


def test_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = running.noisy
    monkeypatch.setattr(running, "noisy", lambda total, stddev, bits: real(total, 0.8 * stddev, bits))
    box = WhiteBox(PLANS["one step of all"], lanes=20_000, bits=SeededBits(4))
    assert not audit(box, True, False, samples=200_000, delta=1e-2, confidence=0.99).holds


def test_unclipped_gradients_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = running.clipped
    monkeypatch.setattr(running, "clipped", lambda *a, clip, **o: real(*a, clip=3 * clip, **o))
    box = WhiteBox(PLANS["sampled"], lanes=20_000, bits=SeededBits(5))
    assert not audit(box, True, False, samples=100_000, delta=1e-2, confidence=0.99).holds
