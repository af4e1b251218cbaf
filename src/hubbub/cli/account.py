"""``hubbub account``: what a run of private training steps costs, by every method side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hubbub import plots
from hubbub.errors import ParameterError
from hubbub.privacy import Loss, Neighbours, SampledGaussian, noise_for, other_methods


@dataclass(frozen=True)
class Run:
    """A DP-SGD run and the delta at which it is priced."""

    noise: float
    rate: float
    steps: int
    delta: float
    neighbours: Neighbours

    @property
    def step(self) -> Loss:
        """The loss of one step."""
        return SampledGaussian(self.noise, self.rate, neighbours=self.neighbours)

    def __str__(self) -> str:
        steps = "1 Gaussian step" if self.steps == 1 else f"{self.steps} Gaussian steps"
        return f"{steps}, noise multiplier {self.noise:.6g}, rate {self.rate:.6g}, {self.neighbours}"


def planned(
    rate: float, steps: int, delta: float, noise: float | None, epsilon: float | None, neighbours: Neighbours
) -> Run:
    """The run asked for: with the noise given, or the least noise that keeps it within epsilon."""
    if (noise is None) == (epsilon is None):
        raise ParameterError("noise", noise, "must be given if --calibrate is not, and only then")
    if steps < 1:
        raise ParameterError("steps", steps, "must be >= 1")
    if not 0 < delta < 1:
        raise ParameterError("delta", delta, "must lie strictly between 0 and 1", "Gaussian noise needs some")
    if noise is None:
        assert epsilon is not None
        noise = noise_for(epsilon=epsilon, delta=delta, rate=rate, steps=steps, neighbours=neighbours)
    return Run(noise, rate, steps, delta, neighbours)


def report(run: Run, *, as_json: bool, picture: Path | None) -> None:
    """Prints the certified interval and the other methods; writes the picture, if one is wanted, first."""
    loss = run.step * run.steps
    low, high = loss.epsilon_interval(run.delta)
    others = dict(sorted(other_methods(loss, run.delta).items(), key=lambda item: -item[1]))
    if picture:
        plots.save(drawn(run), picture)
    if as_json:
        about = {"noise_multiplier": run.noise, "delta": run.delta, "neighbours": run.neighbours}
        print(json.dumps({**about, "epsilon": [low, high], **others}))
        return
    console = Console()
    console.print(f"{run}, delta {run.delta:g}", soft_wrap=True)
    table = Table("method", "epsilon at most")
    for name, value in others.items():
        table.add_row(name, _digits(value))
    table.add_row("[bold]certified[/]", f"[bold]{_digits(high)}[/]   (and at least {_digits(low)})")
    console.print(table)
    if picture:
        console.print(f"The picture is in [bold]{picture}[/].")


def _digits(epsilon: float) -> str:
    return f"{epsilon:.4f}" if epsilon >= 0.1 else f"{epsilon:.4g}"


def drawn(run: Run) -> plots.AnyChart:
    """The run's price at every delta and, of several steps, how it grew, side by side."""
    curve = plots.privacy_curve(run.step * run.steps)
    if run.steps == 1:
        return curve.properties(title=str(run))
    places = min(run.steps - 1, 15)
    counts = sorted({round(run.steps ** (k / places)) for k in range(places + 1)})
    return plots.side_by_side(curve, plots.composition_growth(run.step, counts, run.delta), title=str(run))
