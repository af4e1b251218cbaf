"""White-box audits of federated training: canary clients in the data or not, seen through every released sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.learning.federated.central import Central
from hubbub.learning.federated.plan import CentralPlan
from hubbub.learning.federated.rotation import Floats
from hubbub.numeric.rational import rational
from hubbub.privacy.loss import Loss
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.choice import Bernoulli


class WhiteBox:
    """A whole training under a plan, as the most powerful attacker sees it: for ``hubbub.audit``.

    Canary clients are trained in lanes side by side, each with an update of its own coordinate, twice the clip norm
    long. What is told of each is the logarithm of the likelihood ratio of all its released coordinates.

    Claim: ``loss``, that of the plan, for each canary.
    Proof: updates of canaries lie in different coordinates, whose noise is independent: lanes are independent trainings
        of one client each.
    Assumes: poisson cohorts and flat clipping.
    """

    def __init__(self, plan: CentralPlan, *, lanes: int = 1000, bits: Bits = SECURE) -> None:
        if plan.sampling != "poisson" or plan.clipping != "flat":
            raise ParameterError("plan", plan, "must have poisson cohorts and flat clipping for this audit")
        self.plan, self.lanes, self._bits = plan, lanes, bits
        self._waiting: dict[bool, list[float]] = {True: [], False: []}

    def __repr__(self) -> str:
        return f"WhiteBox({self.plan!r})"

    @property
    def loss(self) -> Loss:
        """What is claimed of one client."""
        return self.plan.loss

    def release(self, present: bool) -> float:
        """What a training tells of a client that is in it, or not."""
        waiting = self._waiting[present]
        if not waiting:
            waiting += self.scores(np.full(self.lanes, present)).tolist()
        return waiting.pop()

    def scores(self, included: NDArray[np.bool_]) -> Floats:
        """What one training tells of canary clients of which these take part; higher means in."""
        plan, length = self.plan, len(included)
        options: dict[str, Any] = {"bits": self._bits}
        strategy = Central(plan, **options)
        members, coin = np.flatnonzero(included), Bernoulli(rational("rate", plan.rate))
        found = np.zeros(length)
        for _ in range(plan.rounds):
            drawn = members[coin.sample(len(members), self._bits)] if len(members) else members
            vectors = []
            for place in drawn:
                vectors.append(np.zeros(length))
                vectors[-1][place] = 2 * plan.clip
            seen = strategy.combined(vectors, length) * (plan.cohort / plan.clip)
            found += _ratio(seen, plan.rate, plan.noise)
        return found


def _ratio(seen: Floats, rate: float, noise: float) -> Floats:
    """ln of (1 - q) + q N(1, s)/N(0, s) at what was seen, in units of the clip norm."""
    exponent = (2 * seen - 1) / (2 * noise**2)
    if rate >= 1:
        return exponent
    return np.asarray(np.logaddexp(np.log1p(-rate), np.log(rate) + exponent))
