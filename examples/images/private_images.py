"""MNIST and Fashion-MNIST by linear models on the scattering transform, trained privately.

    python examples/images/private_images.py --data DATA [--runs 3] [--epsilon 3] [--device cuda]

DATA holds the folders mnist and fashion_mnist with the usual idx files, gzipped. One line of JSON for each run, and one
for the mean of all. Nothing is learned from the pictures but what the plan pays for: wavelets are fixed, and every
picture's features are normalised by themselves.
"""

from __future__ import annotations

import torch
from pictures import Pictures, mnist
from scattering import Scattering
from torch import Tensor
from torch.nn import functional
from training import Recipe, arguments, changed, compare, linear, timed

RECIPES = {
    "mnist": Recipe(batch=8192, epochs=40, step=1.2, average=0.99),
    "fashion_mnist": Recipe(batch=8192, epochs=40, step=1.6, average=0.95),
}
"""Chosen by 10,000 held back training pictures, at epsilon 3. Where data are private themselves, choosing costs too."""
GROUPS = {"mnist": 9, "fashion_mnist": 9}
"""Groups of channels, each brought to mean 0 and variance 1 in every picture alone."""


def features(pictures: Tensor, groups: int, device: torch.device | str) -> Tensor:
    """Normalised scattering coefficients of every picture, in one row."""
    found = Scattering(pictures.shape[-1], device)(pictures)
    return torch.cat([functional.group_norm(part, groups) for part in found.split(4096)]).flatten(1)


def learn(
    data: Pictures, recipe: Recipe, *, groups: int, epsilons: list[float], runs: int, device: str, **facts: str
) -> None:
    """Trains and judges linear models, and says how well they do."""
    with timed("scattering"):
        x, judged_x = features(data.x, groups, device), features(data.judged_x, groups, device)
    learned, judged = (x, data.y.to(device)), (judged_x, data.judged_y.to(device))
    compare(
        lambda: linear(x.shape[1]), recipe, learned, judged,
        epsilons=epsilons, runs=runs, openly={"epochs": 20}, **facts,
    )  # fmt: skip


if __name__ == "__main__":
    given = arguments(__doc__, epsilons=[3.0], sets=list(RECIPES))
    for name in given.sets:
        found = mnist(given.data / name).first(given.rows)
        learn(
            found.holding_back() if given.validate else found,
            changed(RECIPES[name], given),
            groups=GROUPS[name],
            epsilons=given.epsilon,
            runs=given.runs,
            device=given.device,
            data_set=name,
        )
