"""Canary clients: lower bounds near the claim and never above it; planted bugs are caught."""

from typing import Any

import numpy as np
import pytest
from support import SeededBits

from hubbub.audit import audit
from hubbub.errors import ParameterError
from hubbub.learning.federated import CentralPlan, DistributedPlan, LocalNoise, LocalPlan, WhiteBox, central
from hubbub.learning.federated.distributed import share_of, unwrapped
from hubbub.learning.federated.masking import joined

PLANS = {
    "one round of all": CentralPlan(rounds=1, rate=1.0, noise=1.0, cohort=5.0),
    "sampled": CentralPlan(rounds=10, rate=0.2, noise=1.0, cohort=5.0, clip=0.3),
}


def report(stated: CentralPlan, samples: int = 60_000, seed: int = 1) -> Any:
    box = WhiteBox(stated, lanes=400, bits=SeededBits(seed))
    return audit(box, True, False, samples=samples, delta=1e-2, confidence=0.99)


@pytest.mark.parametrize("name", PLANS)
def test_audits_come_near_the_claim_and_never_above(name: str) -> None:
    found = report(PLANS[name])
    assert found.holds
    assert 0.6 < found.epsilon_lower / found.claimed <= 1


def test_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = central.noisy_sum
    monkeypatch.setattr(central, "noisy_sum", lambda parts, length, noise, bits: real(parts, length, 0.7 * noise, bits))
    assert not report(PLANS["one round of all"]).holds


def test_unclipped_updates_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = central.clipped
    monkeypatch.setattr(central, "clipped", lambda vector, clip: _long(real, vector, clip))
    assert not report(PLANS["one round of all"]).holds


def _long(real: Any, vector: np.ndarray, clip: float) -> Any:
    found = real(vector, clip)
    return type(found)(found.steps * 2, found.within)


def test_local_reports_and_sums_of_shares_hold() -> None:
    """One coordinate, from one end of the clip norm to the other, as an attacker sees it."""
    bits, seed = SeededBits(5), b"public"
    alone = LocalPlan(rounds=1, noise=2.0)
    mod = LocalNoise(alone, bits=bits)

    def report(x: float) -> float:
        data = mod._report(np.array([x]), None, None, seed)  # type: ignore[arg-type]
        return float(mod.shape.packing.unpack(data, 1, seed)[0])

    together = DistributedPlan(rounds=1, noise=2.0, honest=2, clients=2, length=1, neighbours="replace")

    def total(x: float) -> float:
        shares = [share_of(together, np.array([v]), seed, bits) for v in (x, 0.3)]
        return float(unwrapped(together, joined(shares, together.bits), seed)[0])

    for release, stated in ((report, alone), (total, together)):
        found = audit(release, 1.0, -1.0, samples=16_000, claimed=stated.loss, delta=1e-2, confidence=0.99)
        assert found.holds
        assert 0.4 < found.epsilon_lower / found.claimed <= 1


def test_only_plans_it_understands() -> None:
    with pytest.raises(ParameterError, match="poisson"):
        WhiteBox(CentralPlan(rounds=1, rate=1.0, noise=1.0, cohort=99.0, clipping="adaptive"))
