"""``hubbub account``: what a run of private training steps costs, by every method side by side."""

from __future__ import annotations

import json
import math

from rich.console import Console
from rich.table import Table

from hubbub.privacy import Loss, SampledGaussian, noise_for, renyi, theorems
from hubbub.privacy.loss import Neighbours


def methods(loss: Loss, rate: float, steps: int, delta: float) -> dict[str, float]:
    """Upper bounds on epsilon by other methods, the loosest first."""
    found = {"Renyi": renyi.best_epsilon(loss.renyi, delta)}
    one = SampledGaussian(_noise(loss), 1.0)
    share = delta / (2 * steps * rate)  # half of delta for the steps, half for the composition
    if share < 1:
        single = one.epsilon(share)
        amplified, failure = theorems.subsampling(single, share, rate) if rate < 1 else (single, share)
        found["advanced composition"] = theorems.advanced_composition(amplified, failure, steps, delta / 2)[0]
        found["basic composition"] = steps * amplified
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _noise(loss: Loss) -> float:
    part, _ = loss._parts()[0]
    assert isinstance(part, SampledGaussian)
    return part.noise_multiplier


def report(
    rate: float,
    noise: float | None,
    steps: int,
    delta: float,
    epsilon: float | None,
    neighbours: Neighbours,
    as_json: bool,
) -> None:
    """Prints the certified interval and the other methods, or the least noise for an epsilon first."""
    if noise is None:
        assert epsilon is not None
        noise = noise_for(epsilon=epsilon, delta=delta, rate=rate, steps=steps)
    loss = SampledGaussian(noise, rate, neighbours=neighbours) * steps
    low, high = loss.epsilon_interval(delta)
    others = methods(loss, rate, steps, delta) if neighbours == "add-remove" else {}
    if as_json:
        answer = {"noise_multiplier": noise, "delta": delta, "neighbours": neighbours, "epsilon": [low, high], **others}
        print(json.dumps(answer))
        return
    console = Console()
    console.print(
        f"{steps} Gaussian steps, noise multiplier {noise:.6g}, rate {rate:.6g}, {neighbours}, delta {delta:g}"
    )
    table = Table("method", "epsilon at most")
    for name, value in others.items():
        table.add_row(name, f"{value:.4f}" if math.isfinite(value) else "inf")
    table.add_row("[bold]certified[/]", f"[bold]{high:.4f}[/]   (and at least {low:.4f})")
    console.print(table)
