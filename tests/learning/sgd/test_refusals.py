"""Models whose examples cannot be kept apart are refused before a private one is read; others are not."""

from typing import Any

import pytest
import torch
from learning.sgd.toys import Heads, Last, cross_entropies, flat, line, models, plan, points
from support import SeededBits
from torch import Tensor, nn
from torch.nn import functional

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.learning.sgd import Batch, Run, suited
from hubbub.learning.sgd.apart import check_apart
from hubbub.learning.sgd.clipping import clipped
from hubbub.learning.sgd.recording import Recorder

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),  # its compiler uses what it says not to use
    pytest.mark.filterwarnings("ignore:Using padding='same'"),
]
IMAGES = torch.randn(4, 3, 6, 6)
SERIES = torch.randn(4, 5, 8)


def trained(model: nn.Module, x: Tensor, losses: Any = cross_entropies, **options: Any) -> Run:
    """The model after one step."""
    run = Run(model, torch.optim.SGD(model.parameters(), 0.1), plan(), losses, bits=SeededBits(0), **options)
    run.step(Batch([lambda: ((x, torch.arange(len(x)) % 2), None)]))
    return run


def with_batch_norm() -> nn.Module:
    return flat(nn.Conv2d(3, 8, 3), nn.Sequential(nn.BatchNorm2d(8), nn.ReLU()), width=128)


class Mixed(nn.Module):
    """What ``mix`` does between two layers."""

    def __init__(self, mix: Any) -> None:
        super().__init__()
        self.first, self.last, self.mix = nn.Linear(3, 4), nn.Linear(4, 2), mix

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.mix(self.first(x)))


class Counting(nn.Module):
    """Remembers the mean of what it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.seen += x.mean(0)  # type: ignore[operator]
        return self.layer(x)


class TimeFirst(nn.Module):
    """Turns examples to the second dimension, as torch's sequence layers do unless told otherwise."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = x.transpose(0, 1)
        y = self.layer(x, x, x)[0] if isinstance(self.layer, nn.MultiheadAttention) else self.layer(x)
        return self.head((y[0] if isinstance(y, tuple) else y).mean(0))


def test_batch_norm_is_refused_and_mended() -> None:
    with pytest.raises(ParameterTypeError, match=r"BatchNorm2d.*suited\(model\)"):
        Recorder(with_batch_norm())
    model = suited(with_batch_norm())
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in model.modules())
    trained(model, IMAGES)
    assert isinstance(suited(nn.BatchNorm1d(6)), nn.GroupNorm)
    assert suited(nn.BatchNorm2d(34, affine=False)).num_groups == 17  # type: ignore[union-attr]
    scaled = nn.BatchNorm2d(4)
    assert suited(scaled).weight is scaled.weight


@pytest.mark.parametrize(
    "layer",
    [
        nn.InstanceNorm2d(3, affine=True, track_running_stats=True),
        nn.BatchNorm2d(3, affine=False),
        nn.SyncBatchNorm(3),
        nn.LazyBatchNorm2d(),
        nn.EmbeddingBag(3, 2),
        nn.Embedding(3, 2, max_norm=1.0),
        nn.Embedding(3, 2, scale_grad_by_freq=True),
    ],
)
def test_refused_layers(layer: nn.Module) -> None:
    for model in (nn.Sequential(nn.Conv2d(3, 3, 1), layer), Wrapped(layer)):
        with pytest.raises(ParameterTypeError):
            Recorder(model)


class Wrapped(nn.Module):
    """A layer inside one that has parameters of its own."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.scale, self.layer = nn.Parameter(torch.ones(())), layer


def test_instance_norm_forgets() -> None:
    model = suited(flat(nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4, affine=True, track_running_stats=True), width=64))
    trained(model, IMAGES)


@pytest.mark.parametrize(
    "mix",
    [
        lambda z: z - z.mean(0),
        lambda z: z - z.mean(0).detach(),
        lambda z: z / z.norm(),
        lambda z: z.flip(0),
        lambda z: torch.cumsum(z, 0),
        lambda z: functional.batch_norm(z, None, None, training=True),
        lambda z: z.softmax(0),
        lambda z: z / len(z),
    ],
)
def test_what_mixes_examples_is_refused(mix: Any) -> None:
    model = Mixed(mix)
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(ParameterError):
        trained(model, points(4)[0])
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize(
    "mix", [torch.relu, lambda z: functional.dropout(z, 0.5), lambda z: z.softmax(1), nn.ReLU6(True)]
)
def test_what_mixes_nothing_is_not(mix: Any) -> None:
    trained(Mixed(mix), points(4)[0])


@pytest.mark.parametrize("name", list(models()))
def test_known_layers_keep_apart(name: str) -> None:
    model, x = models()[name]
    check_apart(model, cross_entropies, (x, torch.zeros(len(x), dtype=torch.long)))


def test_buffers_that_change_are_refused() -> None:
    model = Counting()
    with pytest.raises(ParameterError, match="seen"):
        trained(model, points(4)[0])
    assert not model.seen.any()


@pytest.mark.parametrize("many", [3, 4, 5, 7])
@pytest.mark.parametrize(
    "layer", [nn.MultiheadAttention(8, 2), nn.LSTM(8, 8), nn.Linear(8, 8), nn.TransformerEncoderLayer(8, 2, 4, 0.0)]
)
def test_time_first_is_refused(layer: nn.Module, many: int) -> None:
    """Whatever the number of examples: five is the length of the series, three that of the made-up batch."""
    with pytest.raises(ParameterError):
        trained(TimeFirst(layer), torch.randn(many, 5, 8))
    with pytest.raises(ParameterError):
        trained(TimeFirst(layer), torch.randn(many, 3, 8))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_packed_sequences_and_projections_are_refused(kind: Any) -> None:
    layer = kind(6, 4, batch_first=True)
    recorder = Recorder(layer)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(2, 3, 6), [3, 2], batch_first=True)
    with pytest.raises(ParameterError), recorder.recording(2):
        layer(packed)
    with pytest.raises(ParameterError), Recorder(nn.LSTM(6, 4, proj_size=2, batch_first=True)).recording(2):
        pass
    assert layer(torch.randn(2, 3, 6))[0].shape == (2, 3, 4)


@pytest.mark.parametrize(
    "losses",
    [
        lambda m, x, y: functional.cross_entropy(m(x), y),
        lambda m, x, y: functional.cross_entropy(m(x), y).expand(len(x)),
        lambda m, x, y: functional.cross_entropy(m(x), y, reduction="none") / len(x),
        lambda m, x, y: functional.cross_entropy(m(x), y, reduction="none")[:, None],
        lambda m, x, y: functional.cross_entropy(m(x), y, reduction="none").roll(1),
        lambda m, x, y: functional.cross_entropy(m(x), y).item(),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_averaged_losses_are_refused(losses: Any, compiled: bool) -> None:
    with pytest.raises(ParameterError):
        trained(line(), points(4)[0], losses, compiled=compiled)


def test_refused_without_a_look_at_values() -> None:
    """Secrets in a batch are in no message."""
    with pytest.raises(ParameterError) as refused:
        trained(Mixed(lambda z: z - z.mean(0)), torch.full((4, 3), 8765.4321))
    assert "8765" not in str(refused.value)


def test_refused_models() -> None:
    with pytest.raises(ParameterError, match="no trainable parameter"):
        Recorder(line().requires_grad_(False))
    with pytest.raises(ParameterTypeError):
        trained(Heads(), SERIES, compiled=True)
    with pytest.raises(ParameterTypeError):
        trained(Last(nn.LSTM), torch.randn(4, 3, 6), compiled=True)
    with pytest.raises(ParameterError, match="views"):
        clipped(Recorder(line()), cross_entropies, points(3), clip=1.0, clipping="flat", views=2)


def test_parameters_are_trainable_again_after_a_refusal() -> None:
    model = line()
    with pytest.raises(ParameterError):
        trained(model, points(4)[0], lambda m, x, y: m(x).sum())  # noqa: ARG005
    assert all(p.requires_grad for p in model.parameters())
    assert not model._forward_hooks
