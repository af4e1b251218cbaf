"""Reads the public collections of pictures that the recipes are tried on. None of it is kept or sent anywhere."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

HELD_BACK = 10_000
"""Training pictures to choose settings by, so that the test set is not looked at."""


class Pictures(NamedTuple):
    """Pictures (n, channels, size, size) with values 0 to 1 and their classes: to learn from, and to be judged by."""

    x: Tensor
    y: Tensor
    judged_x: Tensor
    judged_y: Tensor

    def holding_back(self, rows: int = HELD_BACK) -> Pictures:
        """Others to be judged by: some that would be learned from."""
        return Pictures(self.x[:-rows], self.y[:-rows], self.x[-rows:], self.y[-rows:])

    def first(self, rows: int | None) -> Pictures:
        """Only some of them, to try things out."""
        return self if rows is None else Pictures(*(v[:rows] for v in self))


def idx(path: Path) -> Tensor:
    """A gzipped array of bytes in the format of MNIST: 0, 0, 8, dimensions, each size in four bytes, values."""
    raw = gzip.decompress(path.read_bytes())
    start = 4 + 4 * raw[3]
    shape = np.frombuffer(raw[4:start], ">u4").astype(int)
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=start).reshape(shape).copy())


def mnist(folder: Path) -> Pictures:
    """MNIST or Fashion-MNIST: 60,000 and 10,000 of 28 * 28."""
    x, judged_x = (idx(folder / f"{name}-images-idx3-ubyte.gz")[:, None] / 255 for name in ("train", "t10k"))
    y, judged_y = (idx(folder / f"{name}-labels-idx1-ubyte.gz").long() for name in ("train", "t10k"))
    return Pictures(x, y, judged_x, judged_y)


def cifar(folder: Path) -> Pictures:
    """The JPEG copy of CIFAR-10: 50,000 and 10,000 of 32 * 32, in three colours and in an order of no meaning."""
    return Pictures(*_jpegs(folder / "cifar10_train_jpegs.npz"), *_jpegs(folder / "cifar10_test_jpegs.npz"))


def _jpegs(path: Path) -> tuple[Tensor, Tensor]:
    from PIL import Image

    with np.load(path) as file:
        data, offsets, labels = file["jpeg"].tobytes(), file["offsets"], file["labels"].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(labels))
    pixels = np.stack(
        [np.asarray(Image.open(io.BytesIO(data[offsets[i] : offsets[i + 1]])).convert("RGB")) for i in order]
    )
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous() / 255, torch.from_numpy(labels[order])
