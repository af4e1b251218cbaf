"""Views made during training: averaged before they are clipped, and refused where they mix examples."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from hubbub.errors import ParameterError  # noqa: E402
from hubbub.learning.sgd import Plan, Run  # noqa: E402

QUIET = Plan(steps=1, rate=1.0, noise=1e-6, batch=6, clip=0.5)


def losses(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.mse_loss(model(x)[:, 0], y, reduction="none")


def with_negative(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.stack([x, -x], dim=1).flatten(0, 1), y.repeat_interleave(2)


def shifted(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return (x[:, None] + torch.randn(len(x), 2, 1)).flatten(0, 1), y.repeat_interleave(2)


def mixed(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.stack([x, x[torch.randperm(len(x))]], dim=1).flatten(0, 1), y.repeat_interleave(2)


def single(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x, y


def step(augment, rows=6):
    rng = np.random.default_rng(3)
    x, y = (torch.from_numpy(rng.normal(size=size)).float() for size in ((rows, 4), rows))
    model = nn.Linear(4, 1)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    run = Run(model, optimizer, QUIET, losses, views=2, augment=augment)
    for batch in run.batches((x, y)):
        run.step(batch)
    moved = torch.cat([(before[n] - p.detach()).flatten() for n, p in model.named_parameters()])
    model.load_state_dict(before)
    return model, x, y, moved


def test_a_step_moves_by_the_clipped_means_of_views():
    model, x, y, moved = step(with_negative)
    expected = torch.zeros_like(moved)
    for row in range(6):
        mean = losses(model, *with_negative(x[row : row + 1], y[row : row + 1])).mean()
        own = torch.cat([g.flatten() for g in torch.autograd.grad(mean, list(model.parameters()))])
        expected += own * min(1.0, 0.5 / float(own.norm())) / 6
    torch.testing.assert_close(moved, expected, atol=1e-3, rtol=1e-3)


def test_views_may_be_random():
    assert step(shifted)[-1].isfinite().all()


@pytest.mark.parametrize(("augment", "said"), [(mixed, "reach another"), (single, "2 rows of each")])
def test_what_mixes_examples_or_makes_too_few_rows_is_refused(augment, said):
    with pytest.raises(ParameterError, match=said):
        step(augment)
