"""fit and predict for torch models, for people who want no loop of their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer

from hubbub.errors import ParameterError
from hubbub.learning.sgd.clipping import Losses
from hubbub.learning.sgd.plan import Clipping, Plan, Sampling
from hubbub.learning.sgd.run import Run
from hubbub.numeric.rational import Number
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import Loss, Neighbours

AT_ONCE = 4096
"""Rows predicted at a time."""


def cross_entropy(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """One loss for each example of a classifier."""
    return functional.cross_entropy(model(x), y, reduction="none")


class Trainer:
    """Trains a classifier privately: ``Trainer(model, …).fit(X, y).predict(X_new)``.

    ``rows`` is a public number of records, exact or nearly; ``batch`` over ``rows`` is the chance of a record to take
    part in a step. ``optimizer`` makes one from the parameters; by default SGD with momentum and learning rate ``lr``.
    ``loss_`` is what ``fit`` cost, ``plan_`` how.

    Claim: the fitted model has ``plan_.loss``, whose epsilon at ``delta`` is at most ``epsilon``.
    Proof: that of ``Plan.calibrated`` and of ``Run``.
    Assumes: what they assume.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        epsilon: Number,
        delta: Number,
        rows: int,
        batch: float = 512,
        epochs: float = 20,
        lr: float = 0.5,
        clip: float = 1.0,
        clipping: Clipping = "flat",
        sampling: Sampling = "poisson",
        neighbours: Neighbours = "add-remove",
        losses: Losses = cross_entropy,
        optimizer: Callable[[Any], Optimizer] | None = None,
        average: float | None = None,
        part: int | None = None,
        budget: Budget | None = None,
        progress: bool = False,
    ) -> None:
        self.model = model
        self.epsilon, self.delta, self.rows, self.batch, self.epochs, self.lr = epsilon, delta, rows, batch, epochs, lr
        self.clip, self.clipping, self.sampling, self.neighbours = clip, clipping, sampling, neighbours
        self.losses, self.optimizer, self.average, self.part = losses, optimizer, average, part
        self.budget, self.progress = budget, progress
        self.plan_ = Plan.calibrated(
            epsilon=epsilon, delta=delta, rows=rows, batch=batch, epochs=epochs,
            clip=clip, clipping=clipping, sampling=sampling, neighbours=neighbours,
        )  # fmt: skip
        self.loss_: Loss

    def get_params(self, deep: bool = False) -> dict[str, Any]:  # noqa: ARG002
        """The settings that numbers and words can tell, and what kind of model it is."""
        told = [
            n for n in inspect.signature(type(self)).parameters if n not in ("model", "losses", "optimizer", "progress")
        ]
        kind = f"{type(self.model).__name__} of {sum(p.numel() for p in self.model.parameters())} parameters"
        return {name: getattr(self, name) for name in told} | {"trained": kind}

    def fit(self, X: Any, y: Any) -> Trainer:  # noqa: N803 - scikit-learn's names
        """Trains on these private rows, once."""
        if hasattr(self, "loss_"):
            raise ParameterError("fit", "again", "was paid for once", "make another Trainer")
        made = self.optimizer or (lambda parameters: torch.optim.SGD(parameters, lr=self.lr, momentum=0.9))
        trainable = [p for p in self.model.parameters() if p.requires_grad]
        run = Run(
            self.model, made(trainable), self.plan_, self.losses,
            part=self.part, average=self.average, budget=self.budget,
        )  # fmt: skip
        self.loss_ = self.plan_.loss
        self.model.train()
        with _progress(self.plan_.steps if self.progress else 0) as tell:
            for batch in run.batches((_tensor(X), _tensor(y))):
                run.step(batch)
                tell(run, self.delta)
        if self.average is not None:
            self.model.load_state_dict(run.averaged, strict=False)
        return self

    def predict_scores(self, X: Any) -> Tensor:  # noqa: N803
        """What the model says of each row."""
        rows = _tensor(X)
        device = next(self.model.parameters()).device
        self.model.eval()
        with torch.no_grad():
            return torch.cat([self.model(rows[i : i + AT_ONCE].to(device)) for i in range(0, len(rows), AT_ONCE)])

    def predict(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """The class of each row."""
        found: NDArray[np.int64] = self.predict_scores(X).argmax(1).cpu().numpy()
        return found


def _tensor(values: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values
    array = np.asarray(values)
    return torch.from_numpy(array.astype(np.float32) if array.dtype == np.float64 else array)


@contextmanager
def _progress(steps: int) -> Iterator[Callable[[Run, Number], None]]:
    """A bar with the price so far, where a terminal can show one."""
    if not steps:
        yield lambda *_: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(TextColumn("epsilon {task.fields[price]:.3f}"), BarColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task("training", total=steps, price=0.0)
        every = max(1, steps // 100)

        def tell(run: Run, delta: Number) -> None:
            if run.steps % every == 0 or run.steps == steps:
                bar.update(task, completed=run.steps, price=run.epsilon(delta))

        yield tell
