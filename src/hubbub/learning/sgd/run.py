"""Training under a plan: a step that clips, adds noise and moves the model, batches that fit it, and what was spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from hubbub.errors import ParameterError, SessionClosed
from hubbub.learning.sgd.apart import check_apart, check_augment
from hubbub.learning.sgd.batches import Batch, batches
from hubbub.learning.sgd.clipping import Clipped, Losses, clipped, flattened, unquoted
from hubbub.learning.sgd.compiled import Compiled
from hubbub.learning.sgd.journal import Journal
from hubbub.learning.sgd.noise import noisy
from hubbub.learning.sgd.plan import Plan
from hubbub.learning.sgd.recording import Recorder
from hubbub.numeric.rational import Number, count
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import Loss
from hubbub.randomness.bits import SECURE, Bits

TARGET, LEARNING_RATE = 0.5, 0.2
"""Adaptive clipping: the share of gradients to be left whole, and how fast the norm follows (ATMR21)."""

Augment = Callable[..., tuple[Any, ...]]
"""augment(*tensors): the tensors with several rows of each example, one after the other, in place of one."""


class Run:
    """A private training: ``for batch in run.batches(data): run.step(batch)``, and whatever else a loop wants to do.

    ``losses(model, *tensors)`` returns one loss for each example. ``part`` is how many examples are in memory at a
    time; ``views`` how many views of each record are seen, whose gradients are averaged before they are clipped:
    ``augment(*tensors)`` makes them, one after the other, drawing by torch's own generator; without it, the second
    dimension of what is given holds them, or else each record is repeated, for ``losses`` to change at random;
    ``average`` keeps a running mean of the parameters with this decay. ``budget`` is charged for the whole plan before
    anything is read, unless the journal says that it was. ``journal`` is a file that remembers steps across crashes.
    ``compiled`` compiles the passes, for parts of one shape (``batches(…, full=True)``).

    Claim: the sequence of models after each step has loss ``plan.spent(steps)``, under ``plan.neighbours``.
    Proof: gradients reach a parameter only through ``clipped``, whose sum moves by at most the clip norm with one
        record; the noise of the whole sum is drawn once (``noisy``), and all that follows is post-processing.
        Steps are counted before they run.
    Assumes: what ``clipped``, ``draws`` and ``noisy`` assume; nothing but models leaves the process (losses of
        examples, sizes of batches and gradients are private); the model was not made from the private records; each
        batch is taken once, as it comes; of several workers, each is given records of its own.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        plan: Plan,
        losses: Losses,
        *,
        part: int | None = None,
        views: int = 1,
        augment: Augment | None = None,
        average: float | None = None,
        budget: Budget | None = None,
        journal: str | Path | None = None,
        compiled: bool = False,
        bits: Bits = SECURE,
    ) -> None:
        self.model, self.optimizer, self.plan, self.losses = model, optimizer, plan, losses
        self.part = None if part is None else count("part", part)
        self.views, self.augment = count("views", views), augment
        self.clip = plan.clip
        self._recorder, self._bits = Recorder(model), bits
        self._plainly = partial(clipped, self._recorder, losses, clipping=plan.clipping, views=self.views)
        self._clipped: Callable[..., Clipped] = self._plainly
        if compiled:
            self._clipped = Compiled(self._recorder, losses, plan.clipping, self.views).clipped
        self._check_optimizer()
        self._workers = torch.distributed.get_world_size() if _distributed() else 1
        if self._workers > 1 and plan.sampling != "poisson":
            raise ParameterError("sampling", plan.sampling, "cannot be drawn by several workers", 'use "poisson"')
        self._averaged = None if average is None else _Average(model, average)
        self._apart = False
        self._journal = Journal(_own(Path(journal)), plan) if journal is not None else None
        self.steps = self._journal.steps if self._journal else 0
        if budget is not None and not (self._journal and self._journal.paid):
            budget.spend(plan.loss, note=f"training of {type(model).__name__}")
            if self._journal:
                self._journal.paid = True
        if self._workers > 1:
            for value in model.state_dict().values():
                torch.distributed.broadcast(value, 0)
            counted = torch.tensor(self.steps, device=self._recorder.trainable[0].device)
            torch.distributed.all_reduce(counted, torch.distributed.ReduceOp.MAX)
            self.steps = int(counted)

    def _check_optimizer(self) -> None:
        moved = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        strangers = moved - {id(p) for p in self._recorder.trainable}
        if strangers:
            raise ParameterError("optimizer", f"{len(strangers)} parameters", "must all be trainable ones of the model")

    # what was spent

    @property
    def loss(self) -> Loss:
        """What the steps so far cost."""
        return self.plan.spent(self.steps)

    def epsilon(self, delta: Number) -> float:
        """What the steps so far cost, at this delta."""
        return self.loss.epsilon(delta)

    # steps

    def batches(self, data: Any, *, workers: int = 0, full: bool = False) -> Iterator[Batch]:
        """A batch for each step that is left. ``full`` makes all parts of one size, for compiled models.

        Shuffled batches begin with a new pass, so what was left of one is counted as taken.
        """
        if full and self.part is None:
            raise ParameterError("part", None, "must be given for full parts")
        if self.plan.sampling == "shuffled":
            self._end_pass()
        left = self.plan.steps - self.steps
        return batches(self.plan, data, left, part=self.part, full=full, workers=workers, bits=self._bits)

    def _end_pass(self) -> None:
        """Counts the rest of a pass that was begun: fresh batches begin a fresh one, with all records in it."""
        self.steps = min(self.plan.steps, self.steps + -self.steps % self.plan.steps_a_pass)
        if self._journal and self.steps:
            self._journal.reserve(self.steps)

    def step(self, batch: Batch) -> None:
        """One step: the clipped gradients of the batch, noise, and the optimiser. Empty batches step too."""
        if self.steps >= self.plan.steps:
            raise SessionClosed(
                f"All {self.plan.steps} steps of the plan are taken; make a plan with more and pay for it."
            )
        batch.take(self.plan)
        self._count()
        found = self._summed(batch, self._clipped)
        if self._workers > 1 and not bool(found.good):
            found = self._summed(batch, self._plainly)
        released = self._released(found)
        if self._workers == 1 and not bool(found.good):  # looked at late, so that a GPU need not wait for Python
            found = self._summed(batch, self._plainly)
            released = self._released(found)
        self._move(released, found.within)

    def _summed(self, batch: Batch, clipped: Callable[..., Clipped]) -> Clipped:
        """The parts of a batch together. In ``within``, half of every example is already taken off."""
        device = self._recorder.trainable[0].device
        total: Clipped | None = None
        for fetch in batch.parts:
            tensors, taking = fetch()
            tensors = tuple(v.to(device) if isinstance(v, Tensor) else v for v in tensors)
            tensors = self._viewed(tensors)
            self._check_apart(tensors)
            found = clipped(tensors, clip=self.clip, taking=None if taking is None else taking.to(device))
            rows = len(tensors[0]) // self.views if taking is None else taking.sum()
            within = found.within - rows / 2
            if total is None:
                total = Clipped(found.sum.clone() if len(batch.parts) > 1 else found.sum, within, found.good)
            else:
                total.sum += found.sum
                total = Clipped(total.sum, total.within + within, total.good & found.good)
        if total is None:
            zeros = flattened(self._recorder, [], torch.zeros(0))
            total = Clipped(zeros, zeros.new_zeros(()), zeros.new_ones(()) > 0)
        return total

    def _viewed(self, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
        """All views of all records, one after the other."""
        if self.augment is not None:
            if not self._apart:
                check_augment(self.augment, tensors, self.views)
            with unquoted("augment"):
                return self.augment(*tensors)
        if self.views == 1:
            return tensors
        return tuple(
            v
            if not isinstance(v, Tensor)
            else v.flatten(0, 1)
            if v.shape[1:2] == (self.views,)
            else v.repeat_interleave(self.views, 0)
            for v in tensors
        )

    def _count(self) -> None:
        if self._journal:
            self._journal.reserve(self.steps + 1)
        self.steps += 1

    def _check_apart(self, tensors: tuple[Any, ...]) -> None:
        if not self._apart:
            check_apart(self.model, self.losses, tensors)
            self._apart = True

    def _released(self, found: Clipped) -> Tensor:
        """The sum of all workers with its noise, over the constant."""
        if self._workers > 1:
            torch.distributed.all_reduce(found.sum)
        return self._noisy(found.sum, self.plan.gradient_noise * self.clip).div_(self.plan.batch)

    def _move(self, released: Tensor, within: Tensor) -> None:
        trainable = self._recorder.trainable
        for parameter, part in zip(trainable, released.split([p.numel() for p in trainable]), strict=True):
            parameter.grad = part.view(parameter.shape).to(parameter.dtype)
        if self.plan.clipping == "adaptive":
            self._adapt(within)
        self.optimizer.step()
        if self._averaged is not None:
            self._averaged.update()

    def _noisy(self, total: Tensor, stddev: float) -> Tensor:
        """The sum of all workers with noise, drawn by the first."""
        if self._workers == 1:
            return noisy(total, stddev, self._bits)
        released = noisy(total, stddev, self._bits) if torch.distributed.get_rank() == 0 else total
        torch.distributed.broadcast(released, 0)
        return released

    def _adapt(self, within: Tensor) -> None:
        """Moves the clip norm towards the target quantile, by a noisy share."""
        above = within.detach().double().reshape(1)
        if self._workers > 1:
            torch.distributed.all_reduce(above)
        share = float(self._noisy(above, self.plan.count_noise)) / self.plan.batch + 0.5
        self.clip *= math.exp(-LEARNING_RATE * (min(1.0, max(0.0, share)) - TARGET))

    @property
    def averaged(self) -> dict[str, Tensor]:
        """The running mean of the parameters, to be loaded with ``load_state_dict(…, strict=False)``."""
        if self._averaged is None:
            raise ParameterError("average", None, "must be given to keep a mean")
        return self._averaged.parameters

    # saving

    def state_dict(self) -> dict[str, Any]:
        """All that a later process needs to go on."""
        return {
            "plan": self.plan.to_dict(),
            "steps": self.steps,
            "clip": self.clip,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "average": None if self._averaged is None else (self._averaged.steps, self._averaged.parameters),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where another run of the same plan was saved. Steps that were started later stay counted."""
        if Plan.from_dict(state["plan"]) != self.plan:
            raise ParameterError("plan", self.plan, "is not the plan of the saved run", "one run has one plan")
        self.steps = max(self.steps, int(state["steps"]))
        self.clip = float(state["clip"])
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self._averaged is not None and state["average"] is not None:
            self._averaged.steps, parameters = state["average"]
            self._averaged.parameters = {name: value.clone() for name, value in parameters.items()}


class _Average:
    """A running mean of parameters, warm from the first step on."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        if not 0 < decay < 1:
            raise ParameterError("average", decay, "must lie between 0 and 1", "0.999 is common")
        self.model, self.decay, self.steps = model, decay, 0
        self.parameters = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}

    @torch.no_grad()
    def update(self) -> None:
        """Takes in the parameters as they are."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        for name, parameter in self.model.named_parameters():
            if name in self.parameters:
                self.parameters[name].lerp_(parameter, 1 - decay)


def _own(path: Path) -> Path:
    """The journal of this worker: the first's has the name that was given."""
    rank = torch.distributed.get_rank() if _distributed() else 0
    return path.with_name(f"{path.name}.{rank}") if rank else path


def _distributed() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()
