"""Every shipped mechanism with neighbouring inputs: the cells that contract tests and exact price tests run over.

A cell's inputs differ by what the mechanism's sensitivity allows, in the direction that costs most and in a milder one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import hubbub as hb


@dataclass(frozen=True)
class Cell:
    name: str
    mechanism: Any
    value: Any
    neighbour: Any


def cells() -> list[Cell]:
    made: list[Cell] = []

    def add(name: str, mechanism: Any, value: Any, *neighbours: Any) -> None:
        made.extend(Cell(f"{name} {i}", mechanism, value, n) for i, n in enumerate(neighbours))

    for epsilon in (0.1, 0.3, 1, 4.5):
        add(f"laplace int eps={epsilon}", hb.Laplace(1, epsilon=epsilon), 0, 1, -1)
        add(f"laplace float eps={epsilon}", hb.Laplace(1.0, epsilon=epsilon), 0.0, 1.0, -1.0, 0.123)
        add(f"exponential eps={epsilon}", hb.Exponential(1, epsilon=epsilon), [3, 5, 5, 0], [2, 6, 4, 1], [4, 4, 4, 0])
        add(
            f"exponential monotone eps={epsilon}",
            hb.Exponential(1, epsilon=epsilon, monotone=True),
            [3, 5, 5, 0],
            [4, 5, 5, 0],
            [4, 5, 6, 1],
        )
        for noise in ("exponential", "gumbel", "laplace"):
            add(
                f"noisy max {noise} eps={epsilon}",
                hb.NoisyMax(1, epsilon=epsilon, noise=noise),
                [3, 5, 5, 0],
                [2, 6, 4, 1],
                [4, 4, 4, 0],
                [4, 6, 6, 1],
            )
            add(
                f"noisy max {noise} monotone eps={epsilon}",
                hb.NoisyMax(1, epsilon=epsilon, noise=noise, monotone=True),
                [3, 5, 5, 0],
                [4, 5, 5, 0],
                [4, 5, 6, 1],
            )
        add(f"response eps={epsilon}", hb.RandomizedResponse(epsilon=epsilon), 0, 1)
        add(f"response 5-ary eps={epsilon}", hb.RandomizedResponse(epsilon=epsilon, categories=5), 0, 1, 4)
        add(
            f"above threshold eps={epsilon}",
            hb.AboveThreshold(1, threshold=2, epsilon=epsilon),
            [0, 1, 2, 1],
            [1, 2, 3, 2],
            [-1, 0, 1, 0],
            [1, 0, 1, 2],
        )
        add(
            f"above threshold monotone eps={epsilon}",
            hb.AboveThreshold(1, threshold=2, epsilon=epsilon, monotone=True),
            [0, 1, 2, 1],
            [1, 2, 3, 2],
            [1, 1, 2, 2],
        )
        add(f"top-k eps={epsilon}", hb.TopK(1, k=2, epsilon=epsilon), [3, 5, 5, 0], [2, 6, 4, 1], [4, 4, 4, 1])
        add(
            f"quantile eps={epsilon}",
            hb.Quantile(0.5, bounds=(0, 10), epsilon=epsilon),
            [2, 3, 3, 8],
            [2, 3, 3],
            [2, 3, 3, 8, 9],
            [2, 3, 3, 3, 8],
        )
        add(
            f"quantile third eps={epsilon}",
            hb.Quantile(1 / 3, bounds=(0, 10), epsilon=epsilon),
            [2, 3, 3, 8],
            [3, 3, 8],
            [2, 3, 3, 8, 0],
            [2, 3, 3, 8, 10],
        )
        add(
            f"quantile replace eps={epsilon}",
            hb.Quantile(0.9, bounds=(0.0, 1.0), epsilon=epsilon, spacing=0.125, neighbours="replace"),
            [0.2, 0.3, 0.9],
            [0.2, 0.3, 0.0],
            [1.0, 0.3, 0.9],
        )
    add(
        "quantile of many points, eps=1.0",
        hb.Quantile(0.9, bounds=(-40, 260), epsilon=1.0),
        [2, 3, 3, 8, 200],
        [2, 3, 3, 8],
        [2, 3, 3, 8, 200, -7],
    )
    add("laplace int wide", hb.Laplace(7, epsilon=0.5), 100, 107, 93, 103)
    add("laplace by scale", hb.Laplace(2, scale=3.5), 0, 2)
    add("laplace float odd", hb.Laplace(0.1, epsilon=0.7), 5.0, 5.1, 4.95)
    add("noisy max float laplace", hb.NoisyMax(0.3, epsilon=1, noise="laplace"), [0.1, 0.2], [0.4, -0.1], [0.13, 0.21])
    add("above threshold float", hb.AboveThreshold(0.5, threshold=1.0, epsilon=1), [0.2, 0.9], [0.7, 1.4], [0.0, 0.4])
    add("response gamma", hb.RandomizedResponse(gamma=0.25), 0, 1)
    for epsilon, delta in ((0.1, 1e-6), (1, 1e-6), (3, 1e-3)):
        add(f"truncated int {epsilon}", hb.TruncatedLaplace(1, epsilon=epsilon, delta=delta), 0, 1, -1)
        add(f"truncated int wide {epsilon}", hb.TruncatedLaplace(5, epsilon=epsilon, delta=delta), 0, 5, -3)
        add(f"truncated float {epsilon}", hb.TruncatedLaplace(1.0, epsilon=epsilon, delta=delta), 0.0, 1.0, -0.4)
        add(f"gaussian int {epsilon}", hb.Gaussian(1, epsilon=epsilon, delta=delta), 0, 1, -1)
        add(f"gaussian float {epsilon}", hb.Gaussian(1.0, epsilon=epsilon, delta=delta), 0.0, 1.0, -1.0, 0.5)
        add(f"discrete gaussian {epsilon}", hb.DiscreteGaussian(1, epsilon=epsilon, delta=delta), 0, 1, -1)
        single = hb.DiscreteGaussian(3, epsilon=epsilon, delta=delta, max_length=1)
        add(f"discrete gaussian single {epsilon}", single, 0, 3, -3, 2)
    add("gaussian by sigma", hb.Gaussian(3, sigma=1.5), 0, 3)
    add("gaussian small sigma", hb.Gaussian(1, sigma=0.3), 0, 1)
    add("gaussian classical", hb.Gaussian.classical(1, epsilon=0.5, delta=1e-5), 0, 1)
    add("mapped", hb.Laplace(1, epsilon=1).map(lambda n: max(n, 0)), 0, 1)
    return made
