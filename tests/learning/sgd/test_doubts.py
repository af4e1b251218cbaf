"""Attempts to break the claims of DP-SGD that once succeeded."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from hubbub.errors import FitFailure, ParameterError, SessionClosed  # noqa: E402
from hubbub.learning.sgd import Batch, Plan, Run  # noqa: E402
from hubbub.learning.sgd.apart import check_apart  # noqa: E402
from hubbub.learning.sgd.clipping import clipped  # noqa: E402
from hubbub.learning.sgd.noise import grid_of, noisy  # noqa: E402
from hubbub.learning.sgd.recording import Recorder  # noqa: E402
from hubbub.privacy.budget import Budget  # noqa: E402


def summed(model: nn.Module, losses: Any, *tensors: Any) -> Any:
    return clipped(Recorder(model), losses, tensors, clip=1.0, clipping="flat").sum.double()


def weighed(model: nn.Module, x: Any, g: Any) -> Any:
    return (model(x) * g).flatten(1).sum(1)


@pytest.mark.parametrize("exponent", [8, 10, 11, 12, 14])
def test_gradients_that_nearly_cancel_are_clipped(exponent: int) -> None:
    torch.manual_seed(exponent)
    signs = torch.tensor([1.0, -1.0 - 2.0**-exponent])
    for _ in range(40):
        g = 1e4 * signs[:, None] * torch.randn(64)
        x = torch.randn(64).expand(1, 2, 64)
        assert summed(nn.Linear(64, 64, bias=False), weighed, x, g[None]).norm() <= 1
        tokens = torch.zeros(1, 2, dtype=torch.long)
        assert summed(nn.Embedding(10, 64), weighed, tokens, g[None]).norm() <= 1
        line = torch.randn(64)[None, :, None].expand(1, 64, 4)
        assert summed(nn.Conv1d(64, 64, 3, bias=False), weighed, line, g.t()[None]).norm() <= 1


def test_short_types_do_not_round_sums() -> None:
    model = nn.Linear(16, 16, bias=False).to(torch.bfloat16)
    x = torch.ones(513, 16, dtype=torch.bfloat16)
    sums = [summed(model, lambda m, x: weighed(m, x, 10.0).float(), x[:n]) for n in range(500, 514)]
    assert max((b - a).norm() for a, b in pairwise(sums)) <= 1


class Prompt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.zeros(1, 8))

    def forward(self) -> Any:
        return self.row


class Prompted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.prompt = Prompt()

    def forward(self, x: Any) -> Any:
        return (x * self.prompt()).sum(1)


def test_layers_that_see_no_examples_are_refused() -> None:
    with pytest.raises(ParameterError, match="example"):
        summed(Prompted(), lambda m, x: m(x), torch.ones(6, 8))


def test_losses_that_depend_on_the_size_of_the_batch_are_refused() -> None:
    model = nn.Sequential(nn.Linear(8, 1), nn.Dropout(0.5))
    check_apart(model, lambda m, x: m(x)[:, 0], (torch.ones(5, 8),))
    assert model.training
    with pytest.raises(ParameterError, match="how many"):
        check_apart(model, lambda m, x: m(x)[:, 0] / len(x), (torch.ones(5, 8),))


class Given:
    """Words that were chosen."""

    def __init__(self, words: Any) -> None:
        self._words = words

    def words(self, count: int) -> Any:
        return self._words[:count].copy()

    def word(self) -> int:
        return 1 << 63


def test_noise_is_rounded_rightly_next_to_the_boundary() -> None:
    random, half, step = np.random.default_rng(1), 200, grid_of(1.0)
    words = random.integers(0, 2**64, 2 * half, dtype=np.uint64)
    values, expected = [], []
    with mpmath.workdps(60):
        for i in range(2 * half):
            u, v = ((mpmath.mpf(int(words[k])) + 0.5) / 2**64 for k in (i % half, half + i % half))
            turned = (mpmath.cos if i < half else mpmath.sin)(2 * mpmath.pi * v)
            z = mpmath.sqrt(-2 * mpmath.log(u)) * turned / step
            values.append(float((int(random.integers(-10_000, 10_000)) + 0.5 - z) * step))
            expected.append(int(mpmath.floor(mpmath.mpf(values[-1]) / step + z + 0.5)))
    found = noisy(torch.tensor(values, dtype=torch.float64), 1.0, Given(words)) / step
    assert found.tolist() == expected


def run_of(plan: Plan, **rest: Any) -> Run:
    model = nn.Linear(1, 1, bias=False)
    return Run(model, torch.optim.SGD(model.parameters(), lr=0.0), plan, lambda m, x: m(x)[:, 0], **rest)


def test_a_shuffle_that_begins_anew_is_a_pass() -> None:
    run = run_of(Plan(steps=30, rate=0.1, noise=1, batch=1, rows=10, sampling="shuffled", neighbours="replace"))
    for _ in range(2):
        run.step(next(iter(run.batches(torch.ones(10, 1)))))
    assert run.steps == 11
    assert run.loss.epsilon(1e-5) == run.plan.spent(20).epsilon(1e-5)


def test_a_journal_that_nobody_paid_for_is_charged_once(tmp_path: Path) -> None:
    plan, budget = Plan(steps=100, rate=0.1, noise=2, batch=10), Budget(5, 1e-5)
    for given in (None, budget, budget):
        run_of(plan, journal=tmp_path / "steps", budget=given).step(Batch([]))
    once = Budget(5, 1e-5)
    once.spend(plan.loss)
    assert budget.remaining == once.remaining


def test_a_batch_is_good_for_one_step_of_its_plan() -> None:
    plan = Plan(steps=5, rate=0.5, noise=1, batch=1)
    run, other = run_of(plan), run_of(Plan(steps=5, rate=0.1, noise=1, batch=1))
    batch = next(run.batches(torch.ones(4, 1)))
    with pytest.raises(ParameterError, match="another plan"):
        other.step(batch)
    run.step(batch)
    with pytest.raises(SessionClosed, match="already"):
        run.step(batch)
    assert run.steps == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # its compiler uses what it says not to use
@pytest.mark.parametrize("compiled", [False, True])
def test_errors_do_not_quote_private_labels(compiled: bool) -> None:
    plan, x = Plan(steps=2, rate=1, noise=1, batch=1), torch.ones(3, 4)
    model = nn.Linear(4, 2)

    def losses(m: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(m(x), y, reduction="none")

    run = Run(model, torch.optim.SGD(model.parameters(), 0.1), plan, losses, compiled=compiled)
    with pytest.raises(FitFailure, match="IndexError") as caught:
        run.step(next(run.batches((x, torch.tensor([0, 3712, 1])))))
    assert "3712" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
