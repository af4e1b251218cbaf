"""DP-SGD against plain SGD and Opacus: examples a second and peak memory, on a GPU or on this machine's cores.

Models: a small CNN (26 k parameters), WideResNet-16-4 with group normalisation, a transformer of 6 layers; on a CPU
the CNN and an MLP. One step of each mode on one batch of random data, with noise and optimiser, without loaders.
Ratios, not seconds, are what carries over to other machines.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from report import write
from torch import Tensor, nn
from torch.nn import functional


class SmallCNN(nn.Module):
    """Two convolutions and two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 16, 8, 2, padding=3), nn.Conv2d(16, 32, 4, 2)
        self.hidden, self.last = nn.Linear(512, 32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(torch.tanh(self.first(x)), 2, 1)
        x = functional.max_pool2d(torch.tanh(self.second(x)), 2, 1)
        out: Tensor = self.last(torch.tanh(self.hidden(x.flatten(1))))
        return out


class Block(nn.Module):
    """Of a residual network: normalised before convolved."""

    def __init__(self, inside: int, out: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(16, inside), nn.Conv2d(inside, out, 3, stride, 1)
        self.norm2, self.conv2 = nn.GroupNorm(16, out), nn.Conv2d(out, out, 3, 1, 1)
        self.shortcut = nn.Conv2d(inside, out, 1, stride) if inside != out or stride != 1 else None

    def forward(self, x: Tensor) -> Tensor:
        h = functional.relu(self.norm1(x))
        short = self.shortcut(h) if self.shortcut is not None else x
        out: Tensor = self.conv2(functional.relu(self.norm2(self.conv1(h)))) + short
        return out


class WideResNet(nn.Module):
    """16 layers, 4 times as wide, 32 x 32 inputs."""

    def __init__(self, wide: int = 4, blocks: int = 2) -> None:
        super().__init__()
        widths = [16, 16 * wide, 32 * wide, 64 * wide]
        self.first = nn.Conv2d(3, 16, 3, 1, 1)
        made = [
            Block(widths[g] if b == 0 else widths[g + 1], widths[g + 1], 2 if g and not b else 1)
            for g in range(3)
            for b in range(blocks)
        ]
        self.blocks = nn.Sequential(*made)
        self.norm, self.last = nn.GroupNorm(16, widths[3]), nn.Linear(widths[3], 10)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(functional.relu(self.norm(self.blocks(self.first(x)))).mean((2, 3)))
        return out


class Attention(nn.Module):
    """One layer of a transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, places, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, places, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(n, places, width))
        out: Tensor = x + self.down(functional.gelu(self.up(self.norm2(x))))
        return out


class Transformer(nn.Module):
    """Words and places in, ten classes out."""

    def __init__(self, vocabulary: int = 8192, width: int = 512, layers: int = 6, places: int = 128) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(places, width)
        self.layers = nn.Sequential(*(Attention(width, 8) for _ in range(layers)))
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        at = torch.arange(x.shape[1], device=x.device).expand(x.shape[0], -1)
        out: Tensor = self.last(self.norm(self.layers(self.words(x) + self.places(at))).mean(1))
        return out


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )


MODELS: dict[str, Callable[[], nn.Module]] = {
    "cnn": SmallCNN,
    "wrn": WideResNet,
    "transformer": Transformer,
    "mlp": mlp,
}
BATCHES = {"cuda": {"cnn": 4096, "wrn": 512, "transformer": 256}, "cpu": {"cnn": 256, "mlp": 256}}
PARTS = {"cnn": 2048, "wrn": 256, "transformer": 128}
"""hubbub: examples in memory at a time, where all at once would take more than plain training does."""
OPACUS = {"opacus-hooks": "hooks", "opacus-functorch": "functorch", "opacus-ew": "ew", "opacus-ghost": "ghost"}
MODES = ("plain", "plain-compiled", *OPACUS, "hubbub", "hubbub-compiled")


def inputs(kind: str, size: int, device: str) -> tuple[Tensor, Tensor]:
    labels = torch.randint(0, 10, (size,), device=device)
    if kind == "transformer":
        return torch.randint(0, 8192, (size, 128), device=device), labels
    return torch.randn(size, *((3, 32, 32) if kind == "wrn" else (1, 28, 28)), device=device), labels


def losses(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y, reduction="none")


def stepping(kind: str, mode: str, size: int, device: str, part: int | None) -> Callable[[], None]:
    """A step of this mode, ready to be timed."""
    torch.manual_seed(0)
    model = MODELS[kind]().to(device)
    x, y = inputs(kind, size, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if mode.startswith("plain"):
        run: Any = torch.compile(model) if mode.endswith("compiled") else model

        def plain() -> None:
            optimizer.zero_grad(set_to_none=True)
            functional.cross_entropy(run(x), y).backward()
            optimizer.step()

        return plain
    if mode.startswith("hubbub"):
        from hubbub.learning.sgd.batches import Batch
        from hubbub.learning.sgd.plan import Plan
        from hubbub.learning.sgd.run import Run

        plan = Plan(steps=10**6, rate=0.25, noise=1.0, batch=size, clip=1.0)
        private = Run(model, optimizer, plan, losses, compiled=mode.endswith("compiled"))
        some = part or PARTS.get(kind, size)
        cut = [slice(i, i + some) for i in range(0, size, some)]
        parts = [lambda s=s: ((x[s], y[s]), None) for s in cut]  # type: ignore[misc]
        return lambda: private.step(Batch(parts))
    return opacus_step(model, optimizer, x, y, OPACUS[mode])


def opacus_step(model: Any, optimizer: Any, x: Tensor, y: Tensor, mode: str) -> Callable[[], None]:
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    size, criterion = len(x), nn.CrossEntropyLoss()
    loader = DataLoader(TensorDataset(torch.zeros(4 * size, 1), torch.zeros(4 * size)), batch_size=size)
    options: dict[str, Any] = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "poisson_sampling": False}
    engine = PrivacyEngine()
    if mode == "ghost":
        model, optimizer, criterion, _ = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            criterion=criterion,
            grad_sample_mode="ghost",
            **options,
        )
    else:
        model, optimizer, _ = engine.make_private(
            module=model, optimizer=optimizer, data_loader=loader, grad_sample_mode=mode, **options
        )

    def step() -> None:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

    return step


def timed(step: Callable[[], None], device: str, repeats: int) -> tuple[float, float]:
    """The median time of a step, and the most memory it took (GiB; on a GPU only)."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()  # before the first step: graphs take their memory then
    for _ in range(3):
        step()
    if device == "cpu":
        taken = []
        for _ in range(repeats):
            began = time.perf_counter()
            step()
            taken.append(time.perf_counter() - began)
        return sorted(taken)[len(taken) // 2], float("nan")
    torch.cuda.synchronize()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        step()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - began)
    return sorted(taken)[len(taken) // 2], torch.cuda.max_memory_allocated() / 2**30


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| model | mode | examples/s | of plain | of the best Opacus | peak memory of plain |",
        "|---|---|---|---|---|---|",
    ]
    for kind in dict.fromkeys(r["model"] for r in rows):
        of = {r["mode"]: r for r in rows if r["model"] == kind and "rate" in r}
        best = max((r["rate"] for m, r in of.items() if m in OPACUS), default=float("nan"))
        plain = of.get("plain", {"rate": float("nan"), "memory": float("nan")})
        for mode, r in of.items():
            ratios = f"{r['rate'] / plain['rate']:.2f} | {r['rate'] / best:.2f} | {r['memory'] / plain['memory']:.2f}"
            lines.append(f"| {kind} | {mode} | {r['rate']:.0f} | {ratios} |")
        lines += [
            f"| {kind} | {r['mode']} | failed: {r['error']} | | | |"
            for r in rows
            if r["model"] == kind and "error" in r
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--modes", nargs="*", default=MODES)
    parser.add_argument("--part", type=int, help="hubbub: examples in memory at a time")
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    rows: list[dict[str, Any]] = []
    for kind, size in BATCHES[options.device].items():
        for mode in options.modes if not options.models or kind in options.models else ():
            gc.collect()
            if options.device == "cuda":
                torch.cuda.empty_cache()
            try:
                step = stepping(kind, mode, size, options.device, options.part)
                seconds, memory = timed(step, options.device, options.repeats)
                rows.append({"model": kind, "mode": mode, "rate": size / seconds, "memory": memory})
            except Exception as error:
                rows.append({"model": kind, "mode": mode, "error": repr(error)[:200]})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    write("dpsgd", rows, table(rows))


if __name__ == "__main__":
    main()
