"""What the recipes share: a private training with its twin that is not private, judged and written down."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hubbub.learning.sgd import Plan, Run

DELTA = 1e-5
PART = 4096
"""Examples in memory at a time."""

Augment = Callable[..., tuple[Tensor, ...]]


@dataclass(frozen=True)
class Recipe:
    """All that is chosen before training. ``step`` multiplies the mean of clipped gradients, in units of the clip norm
    (a learning rate of step / clip); ``average`` is the decay of the mean of all models seen."""

    batch: int
    epochs: float
    step: float
    clip: float = 0.1
    momentum: float = 0.9
    average: float | None = 0.99

    def plan(self, rows: int, epsilon: float) -> Plan:
        """The plan of least noise for this price."""
        batch = min(self.batch, rows)
        return Plan.calibrated(epsilon=epsilon, delta=DELTA, rows=rows, batch=batch, epochs=self.epochs, clip=self.clip)


def linear(width: int) -> nn.Module:
    """A linear model that starts at 0."""
    model = nn.Linear(width, 10)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    return model


def cross_entropies(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """One loss for each example."""
    return functional.cross_entropy(model(x), y, reduction="none")


def trained(
    model: nn.Module,
    recipe: Recipe,
    plan: Plan,
    x: Tensor,
    y: Tensor,
    *,
    views: int = 1,
    augment: Augment | None = None,
) -> float:
    """Trains the model by the plan and returns what it spent; the model ends as the mean that the recipe asks for."""
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.step / recipe.clip, momentum=recipe.momentum)
    run = Run(
        model,
        optimizer,
        plan,
        cross_entropies,
        part=PART // views,
        views=views,
        augment=augment,
        average=recipe.average,
    )
    for batch in run.batches((x, y)):
        run.step(batch)
    if recipe.average is not None:
        model.load_state_dict(run.averaged, strict=False)
    return run.epsilon(DELTA)


def trained_openly(
    model: nn.Module, x: Tensor, y: Tensor, *, epochs: int, batch: int = 512, rate: float = 1e-3, decay: float = 0.0
) -> None:
    """Trains the model without privacy: Adam, at a rate that falls to 0."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay)
    steps = epochs * -(-len(x) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    for _ in range(epochs):
        for rows in torch.randperm(len(x), device=x.device).split(batch):
            optimizer.zero_grad()
            cross_entropies(model, x[rows], y[rows]).mean().backward()
            optimizer.step()
            schedule.step()


@torch.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """The percentage of examples whose class has the largest score."""
    right = [(model(a).argmax(1) == b).sum() for a, b in zip(x.split(PART), y.split(PART), strict=True)]
    return 100 * float(torch.stack(right).sum()) / len(y)


def say(**facts: Any) -> None:
    """One line of JSON."""
    print(json.dumps({k: round(v, 6) if isinstance(v, float) else v for k, v in facts.items()}), flush=True)


def summary(accuracies: list[float], **facts: Any) -> None:
    """One line of JSON on several runs."""
    spread = statistics.stdev(accuracies) if len(accuracies) > 1 else 0.0
    say(summary=True, **facts, runs=len(accuracies), mean=statistics.mean(accuracies), stddev=spread)


def compare(
    make: Callable[[], nn.Module],
    recipe: Recipe,
    learned: tuple[Tensor, Tensor],
    judged: tuple[Tensor, Tensor],
    *,
    epsilons: list[float],
    runs: int,
    views: int = 1,
    augment: Augment | None = None,
    openly: dict[str, Any] | None = None,
    **facts: Any,
) -> None:
    """Trains and judges so many models at every epsilon, and the twin that is not private where ``openly`` says how."""
    x, y = learned
    for epsilon in epsilons:
        plan, found = recipe.plan(len(x), epsilon), []
        for run in range(runs):
            model, start = _fresh(make, run, x), time.perf_counter()
            spent = trained(model, recipe, plan, x, y, views=views, augment=augment)
            found.append(accuracy(model, *judged))
            taken = time.perf_counter() - start
            say(
                **facts, epsilon=epsilon, spent=spent, delta=DELTA, noise=plan.noise, steps=plan.steps, run=run,
                accuracy=found[-1], seconds=taken,
            )  # fmt: skip
        summary(found, **facts, epsilon=epsilon)
    if openly is not None:
        found = []
        for run in range(runs):
            model = _fresh(make, run, x)
            trained_openly(model, x, y, **openly)
            found.append(accuracy(model, *judged))
            say(**facts, epsilon=None, run=run, accuracy=found[-1])
        summary(found, **facts, epsilon=None)


def _fresh(make: Callable[[], nn.Module], run: int, x: Tensor) -> nn.Module:
    torch.manual_seed(run)
    return make().to(x.device)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Says how long something took."""
    start = time.perf_counter()
    yield
    say(what=what, seconds=time.perf_counter() - start)


def arguments(about: str | None, *, epsilons: list[float], **recipe: Any) -> argparse.Namespace:
    """The command line of a recipe: data, runs, epsilons, device; ``recipe`` names the settings that may be changed."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the collections")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epsilon", type=float, nargs="+", default=epsilons)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, help="only so many pictures, to try things out")
    parser.add_argument("--validate", action="store_true", help="judge by held back training pictures, to choose")
    for name, default in recipe.items():
        kind = {"type": str, "nargs": "+"} if isinstance(default, list) else {"type": type(default)}
        parser.add_argument(f"--{name}", default=default, **kind)
    for name, kind in (("batch", int), ("epochs", float), ("step", float), ("clip", float), ("average", float)):
        parser.add_argument(f"--{name}", type=kind, help="instead of the recipe's")
    return parser.parse_args()


def changed(recipe: Recipe, given: argparse.Namespace) -> Recipe:
    """The recipe with what the command line changes."""
    names = ("batch", "epochs", "step", "clip", "average")
    told = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    return Recipe(**{**recipe.__dict__, **told})
