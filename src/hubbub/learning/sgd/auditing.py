"""White-box audits of private training: a canary in the data or not, seen through every released gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import SGD

from hubbub.errors import ParameterError
from hubbub.learning.sgd.batches import Batch, draws
from hubbub.learning.sgd.plan import Plan
from hubbub.learning.sgd.run import Run
from hubbub.privacy.loss import Loss
from hubbub.randomness.bits import SECURE, Bits


class Bank(nn.Module):
    """One weight for each canary: the loss of canary i is minus its own weight, and its gradient touches that alone."""

    def __init__(self, canaries: int, reach: float) -> None:
        super().__init__()
        self.weights = nn.Embedding(canaries, 1)
        self.reach = reach

    def forward(self, which: Tensor) -> Tensor:
        """The loss of each of these canaries."""
        return -self.reach * self.weights(which)[:, 0]


def bank_losses(model: nn.Module, which: Tensor) -> Tensor:
    """One loss for each canary."""
    found: Tensor = model(which)
    return found


class WhiteBox:
    """A whole training under a plan, as the most powerful attacker sees it: for ``hubbub.audit``.

    Canaries are trained in lanes side by side; what is told of each is the logarithm of the likelihood ratio of all its
    released gradients, the best statistic there is. So ``audit(WhiteBox(plan), True, False)`` should come near the
    claim and must not exceed it; ``scores`` of canaries included by fair coins are what ``one_run`` wants.

    Claim: ``loss``, that of the plan, for each canary.
    Proof: gradients of canaries lie in different coordinates, whose noise is independent: lanes are independent
        trainings of one record each.
    Assumes: poisson sampling.
    """

    def __init__(self, plan: Plan, *, lanes: int = 10_000, bits: Bits = SECURE) -> None:
        if plan.sampling != "poisson":
            raise ParameterError("sampling", plan.sampling, 'must be "poisson" for this audit')
        self.plan, self.lanes, self._bits = plan, lanes, bits
        self._waiting: dict[bool, list[float]] = {True: [], False: []}

    def __repr__(self) -> str:
        return f"WhiteBox({self.plan!r})"

    @property
    def loss(self) -> Loss:
        """What is claimed of one record."""
        return self.plan.loss

    def release(self, present: bool) -> float:
        """What a training tells of a canary that is in its data, or not."""
        waiting = self._waiting[present]
        if not waiting:
            waiting += self.scores(np.full(self.lanes, present)).tolist()
        return waiting.pop()

    def scores(self, included: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What one training tells of canaries of which these are in the data; higher means in."""
        plan, model = self.plan, Bank(len(included), 2 * self.plan.clip)
        run = Run(model, SGD(model.parameters(), lr=0.0), plan, bank_losses, bits=self._bits)
        found = np.zeros(len(included))
        members = np.flatnonzero(included)
        drawn = draws(plan, max(1, len(members)), self._bits)
        for _ in range(plan.steps):
            which = torch.from_numpy(members[next(drawn)] if len(members) else members)
            run.step(Batch([_fetch(which)] if len(which) else []))
            gradient = model.weights.weight.grad
            assert gradient is not None
            seen = -gradient[:, 0].double().numpy() * (plan.batch / plan.clip)
            found += ratio(seen, plan.rate, plan.gradient_noise)
        return found


def ratio(seen: NDArray[np.float64], rate: float, noise: float) -> NDArray[np.float64]:
    """ln of (1 - q) + q N(1, s)/N(0, s) at what was seen, in units of the clip norm."""
    exponent = (2 * seen - 1) / (2 * noise**2)
    if rate >= 1:
        return exponent
    return np.logaddexp(math.log1p(-rate), math.log(rate) + exponent)


def _fetch(which: Tensor) -> Any:
    return lambda: ((which,), None)
