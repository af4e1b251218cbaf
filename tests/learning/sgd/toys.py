"""Small models of every kind of layer, and what the sum of their clipped gradients is by an example at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hubbub.learning.sgd import Plan
from hubbub.learning.sgd.clipping import AUTOMATIC

torch.set_num_threads(1)

CLASSES = 5


def cross_entropies(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y, reduction="none")


def one_by_one(
    model: nn.Module, losses: Any, tensors: Any, clip: float, clipping: str = "flat", views: int = 1, taking: Any = None
) -> list[Tensor]:
    """For each parameter, the sum of the clipped gradients of examples that are passed through the model alone."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    sums = [torch.zeros_like(p) for p in parameters]
    for k, i in enumerate(range(0, len(tensors[0]), views)):
        if taking is not None and not taking[k]:
            continue
        loss = losses(model, *(v[i : i + views] for v in tensors)).mean()
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        gradients = [torch.zeros_like(p) if g is None else g for g, p in zip(found, parameters, strict=True)]
        length = float(torch.cat([g.double().flatten() for g in gradients]).norm())
        factor = clip / (length + AUTOMATIC) if clipping == "automatic" else min(1.0, clip / max(length, 1e-30))
        for total, g in zip(sums, gradients, strict=True):
            total += factor * g
    return sums


def plan(**changes: Any) -> Plan:
    """A plan of few steps on 64 records."""
    return Plan(**{"steps": 8, "rate": 0.25, "noise": 2.0, "batch": 16.0, "rows": 64} | changes)


def line(**changes: Any) -> nn.Linear:
    """The smallest model: three numbers in, two out."""
    torch.manual_seed(0)
    return nn.Linear(3, 2, **changes)


def points(many: int = 64) -> tuple[Tensor, Tensor]:
    """Records for it, told apart by a line."""
    x = torch.randn(many, 3, generator=torch.Generator().manual_seed(1))
    return x, (x[:, 0] > 0).long()


class Attention(nn.Module):
    """Tokens, normalisations of two kinds, attention by hand, and a head tied to the embedding."""

    def __init__(self, words: int = 20, width: int = 8, bias: bool = False) -> None:
        super().__init__()
        self.words, self.mixed = nn.Embedding(words, width, padding_idx=0), nn.Linear(width, 3 * width)
        self.out, self.norm, self.last = nn.Linear(width, width), nn.LayerNorm(width), nn.RMSNorm(width)
        self.head = nn.Linear(width, words, bias=bias)
        self.head.weight = self.words.weight

    def forward(self, tokens: Tensor) -> Tensor:
        z = self.words(tokens)
        q, k, v = self.mixed(self.norm(z)).chunk(3, -1)
        z = z + self.out(functional.scaled_dot_product_attention(q, k, v))
        return self.head(self.last(z).mean(1))


class Heads(nn.Module):
    """torch's own attention, whose parameters are not in layers of their own."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True, **options), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.attention(x, x, x)[0].mean(1))


class Last(nn.Module):
    """A recurrent layer, and a head on its last output and last state."""

    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.layer = kind(6, 4, batch_first=True, **options)
        self.head = nn.Linear(2 * (8 if options.get("bidirectional") else 4), CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        outputs, state = self.layer(x)
        ways = 2 if self.layer.bidirectional else 1
        last = (state[0] if isinstance(state, tuple) else state)[-ways:].transpose(0, 1).flatten(1)
        return self.head(torch.cat([outputs[:, -1], last], 1))


class Own(nn.Module):
    """Parameters of its own beside a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.layer = nn.Parameter(torch.randn(6, 5)), nn.Linear(5, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(torch.sin(x @ self.weight)).mean(1)


class Twice(nn.Module):
    """A layer that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(6, 6), nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(torch.tanh(self.layer(x)))).mean(1)


class Adapter(nn.Module):
    """A frozen layer with a low-rank one beside it."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down, self.up = nn.Linear(layer.in_features, 2, bias=False), nn.Linear(2, layer.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + self.up(self.down(x))


def flat(*layers: nn.Module, width: int) -> nn.Sequential:
    """Layers, then a head over all of it."""
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, CLASSES))


def models() -> dict[str, tuple[nn.Module, Tensor]]:
    """Models, and six made-up inputs of each."""
    torch.manual_seed(0)
    many = 6
    frozen = flat(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 4), width=12)
    frozen[0].requires_grad_(False)
    frozen[2].bias.requires_grad_(False)
    return {
        "several layers": (
            flat(nn.Flatten(), nn.Linear(12, 7), nn.ReLU(inplace=True), width=7),
            torch.randn(many, 3, 4),
        ),
        "several places": (flat(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 5), width=15), torch.randn(many, 3, 4)),
        "many places": (flat(nn.Linear(2, 2), nn.Tanh(), nn.Conv1d(40, 2, 1), width=4), torch.randn(many, 40, 2)),
        "frozen parts": (frozen, torch.randn(many, 3, 4)),
        "adapters": (flat(Adapter(nn.Linear(4, 3)), nn.Tanh(), width=9), torch.randn(many, 3, 4)),
        "images": (
            flat(
                nn.Conv2d(3, 8, 3, padding=1),
                nn.GroupNorm(2, 8),
                nn.ReLU(inplace=True),
                nn.Conv2d(8, 8, 3, 2, groups=2, bias=False),
                nn.InstanceNorm2d(8, affine=True),
                width=72,
            ),
            torch.randn(many, 3, 8, 8),
        ),
        "wide windows": (
            flat(
                nn.Conv2d(8, 16, (3, 2), padding="same", padding_mode="reflect"),
                nn.Tanh(),
                nn.Conv2d(16, 16, 3, dilation=(1, 2), groups=16),
                width=32,
            ),
            torch.randn(many, 8, 4, 5),
        ),
        "few places": (flat(nn.Conv2d(24, 24, 3), nn.Tanh(), width=24), torch.randn(many, 24, 3, 3)),
        "series": (
            flat(
                nn.Conv1d(3, 8, 3, padding="same", dilation=2, padding_mode="circular"),
                nn.Tanh(),
                nn.Conv1d(8, 4, 2, padding="same"),
                nn.InstanceNorm1d(4, affine=True),
                nn.Conv1d(4, 4, 3, 2),
                width=16,
            ),
            torch.randn(many, 3, 9),
        ),
        "volumes": (
            flat(nn.Conv3d(2, 3, 2, padding=(1, 0, 1), stride=(1, 1, 2)), nn.Tanh(), width=96),
            torch.randn(many, 2, 3, 5, 2),
        ),
        "transposed": (flat(nn.ConvTranspose2d(2, 3, 2), nn.Tanh(), width=48), torch.randn(many, 2, 3, 3)),
        "tokens": (flat(nn.Embedding(9, 3, padding_idx=0), width=12), torch.randint(0, 9, (many, 4))),
        "long texts": (
            flat(nn.Embedding(9, 3, padding_idx=2), nn.Tanh(), nn.Linear(3, 2), width=140),
            torch.randint(0, 9, (many, 70)),
        ),
        "attention, tied": (Attention(), torch.randint(0, 20, (many, 7))),
        "tied but for a bias": (Attention(bias=True), torch.randint(0, 20, (many, 7))),
        "heads": (Heads(), torch.randn(many, 3, 8)),
        "transformer": (
            flat(nn.TransformerEncoderLayer(8, 2, 6, dropout=0.0, batch_first=True), width=24),
            torch.randn(many, 3, 8),
        ),
        "lstm": (Last(nn.LSTM, num_layers=2), torch.randn(many, 4, 6)),
        "lstm both ways": (Last(nn.LSTM, bidirectional=True, bias=False), torch.randn(many, 4, 6)),
        "gru": (Last(nn.GRU, bidirectional=True, num_layers=2), torch.randn(many, 4, 6)),
        "rnn": (Last(nn.RNN, nonlinearity="relu"), torch.randn(many, 4, 6)),
        "own parameters": (Own(), torch.randn(many, 4, 6)),
        "called twice": (Twice(), torch.randn(many, 4, 6)),
    }
