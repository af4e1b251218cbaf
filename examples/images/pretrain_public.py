"""Pretrain in public, fine-tune in private: CIFAR-10 by a linear head on a network that has seen ImageNet.

    python examples/images/pretrain_public.py --data DATA [--network efficientnet_lite0] [--epsilon 1 2] [--device cuda]

DATA holds the folders cifar10_jpeg and pretrained (weights as plain arrays). Pictures are enlarged and put through the
fixed network once; the head is trained on what comes out, privately and, as its twin, without privacy. One line of JSON
for each run, and one for the mean of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from pictures import Pictures, cifar
from torch import Tensor
from torch.nn import functional
from training import Recipe, arguments, changed, compare, linear, timed

RECIPE = Recipe(batch=8192, epochs=40, step=0.8)
SIZE = 160
"""Pictures are enlarged to this."""

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Family:
    """How a published network reads pictures: pixels less ``middle`` over ``spread``; ``lopsided`` padding adds what is
    missing at the right and below first, as TensorFlow does."""

    middle: tuple[float, float, float]
    spread: tuple[float, float, float]
    lopsided: bool
    tiny: float
    """What is added to variances."""


FAMILIES = {
    "mobilenet_v2": Family((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), lopsided=False, tiny=1e-5),
    "efficientnet_lite0": Family((127 / 255,) * 3, (128 / 255,) * 3, lopsided=True, tiny=1e-3),
}
STRIDES = {
    "mobilenet_v2": [1, 2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1],
    "efficientnet_lite0": [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1],
}
"""Of each block's depthwise convolution; that of the first layer is 2."""


@dataclass(frozen=True)
class Layer:
    """A convolution with its normalisation folded in, and whether values are cut to 0 … 6 after it."""

    weight: Tensor
    bias: Tensor
    stride: int
    cut: bool
    lopsided: bool

    def __call__(self, x: Tensor) -> Tensor:
        """What comes out."""
        kernel, groups = self.weight.shape[-1], x.shape[1] // self.weight.shape[1]
        if self.lopsided:
            missing = max(0, (-(-x.shape[-1] // self.stride) - 1) * self.stride + kernel - x.shape[-1])
            x = functional.pad(x, (missing // 2, missing - missing // 2) * 2)
            padding = 0
        else:
            padding = kernel // 2
        y = functional.conv2d(x, self.weight, self.bias, self.stride, padding, groups=groups)
        return y.clamp(0, 6) if self.cut else y


class Backbone:
    """A published network without its head: pictures (n, 3, size, size) to features (n, 1280).

    A first layer, blocks that widen, filter every channel by itself and narrow again (added to their input where shapes
    agree), and a last layer, averaged over places.
    """

    def __init__(self, name: str, weights: Weights) -> None:
        self.family, self.weights = FAMILIES[name], weights
        first, self.blocks, last = {"mobilenet_v2": self._mobile, "efficientnet_lite0": self._efficient}[name](
            STRIDES[name]
        )
        self.first, self.last = first, last

    def _layer(self, convolution: str, norm: str, stride: int = 1, *, cut: bool = True) -> Layer:
        w = self.weights
        factor = w[f"{norm}.weight"] / (w[f"{norm}.running_var"] + self.family.tiny).sqrt()
        bias = w[f"{norm}.bias"] - w[f"{norm}.running_mean"] * factor
        return Layer(w[f"{convolution}.weight"] * factor[:, None, None, None], bias, stride, cut, self.family.lopsided)

    def _mobile(self, strides: list[int]) -> tuple[Layer, list[list[Layer]], Layer]:
        blocks = []
        for i, stride in enumerate(strides, 1):
            name, wide = f"features.{i}.conv", 1 if i > 1 else 0
            block = [self._layer(f"{name}.0.0", f"{name}.0.1")] if wide else []
            block.append(self._layer(f"{name}.{wide}.0", f"{name}.{wide}.1", stride))
            block.append(self._layer(f"{name}.{wide + 1}", f"{name}.{wide + 2}", cut=False))
            blocks.append(block)
        last = len(strides) + 1
        return (
            self._layer("features.0.0", "features.0.1", 2),
            blocks,
            self._layer(f"features.{last}.0", f"features.{last}.1"),
        )

    def _efficient(self, strides: list[int]) -> tuple[Layer, list[list[Layer]], Layer]:
        blocks = []
        for i, stride in enumerate(strides):
            name = f"_blocks.{i}"
            block = [self._layer(f"{name}._expand_conv", f"{name}._bn0")] if i else []
            block.append(self._layer(f"{name}._depthwise_conv", f"{name}._bn1", stride))
            block.append(self._layer(f"{name}._project_conv", f"{name}._bn2", cut=False))
            blocks.append(block)
        return self._layer("_conv_stem", "_bn0", 2), blocks, self._layer("_conv_head", "_bn1")

    @torch.no_grad()
    def __call__(self, pictures: Tensor, size: int = SIZE) -> Tensor:
        """The features, made of some pictures at a time."""
        device = self.first.weight.device
        some = 500 if device.type == "cuda" else 10
        return torch.cat([self._of(part.to(device), size) for part in pictures.split(some)])

    def _of(self, pictures: Tensor, size: int) -> Tensor:
        middle, spread = (
            torch.tensor(v, device=pictures.device)[:, None, None] for v in (self.family.middle, self.family.spread)
        )
        large = functional.interpolate(pictures, (size, size), mode="bicubic", align_corners=False).clamp(0, 1)
        x = self.first((large - middle) / spread)
        for block in self.blocks:
            y = x
            for layer in block:
                y = layer(y)
            x = x + y if x.shape == y.shape else y
        return self.last(x).mean((2, 3))


def loaded(name: str, folder: Path, device: str) -> Backbone:
    """A network from its arrays."""
    with np.load(folder / f"{name}_imagenet.npz") as file:
        weights = {k: torch.from_numpy(file[k]).to(device) for k in file.files}
    return Backbone(name, weights)


def features(pictures: Tensor, backbone: Backbone, size: int) -> Tensor:
    """What the network says of every picture, and of its mirror image, brought to mean 0 and variance 1 by itself."""
    found = backbone(pictures, size) + backbone(pictures.flip(-1), size)
    return functional.layer_norm(found, found.shape[1:])


def learn(
    data: Pictures, backbone: Backbone, recipe: Recipe, *, size: int, epsilons: list[float], runs: int, network: str
) -> None:
    """Trains and judges heads, and says how well they do."""
    with timed("features"):
        x, judged_x = features(data.x, backbone, size), features(data.judged_x, backbone, size)
    learned, judged = (x, data.y.to(x.device)), (judged_x, data.judged_y.to(x.device))
    compare(
        lambda: linear(x.shape[1]), recipe, learned, judged,
        epsilons=epsilons, runs=runs, openly={"epochs": 20}, data_set="cifar10_jpeg", network=network, size=size,
    )  # fmt: skip


if __name__ == "__main__":
    given = arguments(__doc__, epsilons=[1.0, 2.0], network="efficientnet_lite0", size=SIZE)
    with timed("decoding"):
        found = cifar(given.data / "cifar10_jpeg").first(given.rows)
    learn(
        found.holding_back() if given.validate else found,
        loaded(given.network, given.data / "pretrained", given.device),
        changed(RECIPE, given),
        size=given.size,
        epsilons=given.epsilon,
        runs=given.runs,
        network=given.network,
    )
