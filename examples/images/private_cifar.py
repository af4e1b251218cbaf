"""CIFAR-10 by a small convolutional network on the scattering transform, trained privately; and its open twin.

    python examples/images/private_cifar.py --data DATA [--runs 3] [--epsilon 1 2 3 8] [--device cuda]

DATA holds the folder cifar10_jpeg: a copy of CIFAR-10 that was compressed as JPEG, so numbers are a little below those
for the original. One line of JSON for each run, and one for the mean of all. Every picture is seen with its mirror
image, and the gradients of the two are averaged before they are clipped.
"""

from __future__ import annotations

import torch
from pictures import Pictures, cifar
from scattering import Scattering
from torch import Tensor, nn
from torch.nn import functional
from training import Recipe, arguments, changed, compare, timed

RECIPE = Recipe(batch=8192, epochs=60, step=0.8, average=0.99)
GROUPS = 27
COLOURS = ((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
"""Middle and spread of pixels, by rule of thumb: nothing is measured on the private ones."""


def features(pictures: Tensor, device: torch.device | str, groups: int = GROUPS) -> Tensor:
    """Normalised scattering coefficients (n, 243, 8, 8)."""
    middle, spread = (torch.tensor(v)[:, None, None] for v in COLOURS)
    found = Scattering(pictures.shape[-1], device)((pictures - middle) / spread)
    return torch.cat([functional.group_norm(part, groups) for part in found.split(4096)])


def with_mirrored(pictures: Tensor, device: torch.device | str, groups: int = GROUPS) -> Tensor:
    """The features of pictures and of their mirror images (n, 2, 243, 8, 8)."""
    return torch.stack([features(v, device, groups) for v in (pictures, pictures.flip(-1))], dim=1)


def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Two rows of every example: the picture and its mirror image."""
    return x.flatten(0, 1), y.repeat_interleave(2)


class Network(nn.Module):
    """Two convolutions and a linear layer. Of an example with its mirror image, the mean of both scores."""

    def __init__(self, channels: int = 243, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1),
            nn.Tanh(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, width, 3, padding=1),
            nn.Tanh(),
            nn.Flatten(),
            nn.Linear(width * 16, 10),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Scores of ten classes."""
        if x.dim() == 4:
            return self.layers(x)
        return (self.layers(x[:, 0]) + self.layers(x[:, 1])) / 2


def learn(data: Pictures, recipe: Recipe, *, epsilons: list[float], runs: int, device: str, width: int = 64) -> None:
    """Trains and judges networks, and says how well they do."""
    with timed("scattering"):
        x, judged_x = with_mirrored(data.x, device), with_mirrored(data.judged_x, device)
    learned, judged = (x, data.y.to(device)), (judged_x, data.judged_y.to(device))
    compare(
        lambda: Network(x.shape[2], width), recipe, learned, judged,
        epsilons=epsilons, runs=runs, views=2, augment=both, openly={"epochs": 20}, data_set="cifar10_jpeg",
    )  # fmt: skip


if __name__ == "__main__":
    given = arguments(__doc__, epsilons=[1.0, 2.0, 3.0, 8.0], width=64)
    with timed("decoding"):
        found = cifar(given.data / "cifar10_jpeg").first(given.rows)
    learn(
        found.holding_back() if given.validate else found,
        changed(RECIPE, given),
        epsilons=given.epsilon,
        runs=given.runs,
        device=given.device,
        width=given.width,
    )
