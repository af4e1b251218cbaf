"""Sums of clipped gradients in one pass are those of a loop over examples, for every layer; and no example is more."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning.sgd.toys import cross_entropies, flat, models, one_by_one
from torch import Tensor, nn

from hubbub.learning.sgd.clipping import DOUBLE, REDUCED, SINGLE, clipped, precision_of
from hubbub.learning.sgd.compiled import Compiled
from hubbub.learning.sgd.recording import Recorder

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")
NAMES = list(models())
CLIP = 0.3


def parts(recorder: Recorder, total: Tensor) -> list[Tensor]:
    """One flat sum as one for each parameter."""
    return [
        part.view_as(p)
        for part, p in zip(total.split([p.numel() for p in recorder.trainable]), recorder.trainable, strict=True)
    ]


def agree(got: list[Tensor], wanted: list[Tensor], tolerance: float) -> bool:
    scale = max(float(w.abs().max()) for w in wanted)
    return all(float((g - w).abs().max()) <= tolerance * scale for g, w in zip(got, wanted, strict=True))


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize("clipping", ["flat", "automatic"])
@pytest.mark.parametrize("name", NAMES)
def test_as_one_by_one(name: str, clipping: Any, views: int) -> None:
    model, x = models()[name]
    y = torch.arange(len(x)) % 5
    for kind, precision, tolerance in ((torch.float64, DOUBLE, 1e-10), (torch.float32, SINGLE, 1e-3)):
        model = model.to(kind)
        x = x.to(kind) if x.is_floating_point() else x
        for clip in (CLIP, 100.0):
            recorder = Recorder(model)
            got = clipped(recorder, cross_entropies, (x, y), clip=clip, clipping=clipping, views=views)
            wanted = one_by_one(model, cross_entropies, (x, y), clip * (1 - precision.slack), clipping, views)
            assert agree(parts(recorder, got.sum), wanted, tolerance), (kind, clip)
            assert bool(got.good)
            assert all(p.grad is None for p in model.parameters())
            within = len(x) // views if clip == 100.0 else 0
            assert int(got.within) == within or clip == CLIP


@settings(max_examples=25)
@given(
    taking=st.lists(st.booleans(), min_size=6, max_size=6),
    name=st.sampled_from(["images", "attention, tied", "gru", "own parameters", "tokens", "called twice"]),
)
def test_examples_that_only_fill_a_batch_add_nothing(taking: list[bool], name: str) -> None:
    model, x = models()[name]
    model = model.double()
    x = x.double() if x.is_floating_point() else x
    y = torch.arange(6) % 5
    recorder, take = Recorder(model), torch.tensor(taking)
    got = clipped(recorder, cross_entropies, (x, y), clip=CLIP, clipping="flat", taking=take)
    wanted = one_by_one(model, cross_entropies, (x, y), CLIP * (1 - DOUBLE.slack), taking=taking)
    assert agree(parts(recorder, got.sum), wanted, 1e-10)
    assert int(got.within) <= sum(taking)


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", NAMES)
def test_no_example_is_longer_than_the_clip_norm(name: str, kind: torch.dtype) -> None:
    model, x = models()[name]
    model = model.to(kind)
    x = 30 * x.to(kind) if x.is_floating_point() else x
    recorder = Recorder(model)
    for i in range(3):
        got = clipped(recorder, cross_entropies, (x[i : i + 1], torch.tensor([i])), clip=0.01, clipping="flat")
        length = float(got.sum.double().norm())
        assert 0.009 < length <= 0.01 or length == 0


def test_precision_follows_the_types() -> None:
    kinds = [torch.zeros(1, dtype=k) for k in (torch.float64, torch.float32, torch.bfloat16)]
    assert [precision_of(kinds[: i + 1]) for i in range(3)] == [DOUBLE, SINGLE, REDUCED]


@pytest.mark.parametrize("shrunk", [1e-23, 3e-23, 1e-22])
@pytest.mark.parametrize("places", [1, 2])
def test_squares_that_vanish_are_still_clipped(places: int, shrunk: float) -> None:
    model = nn.Linear(2, 2, bias=False)
    x = torch.full((1, places, 2), 8e18)
    recorder = Recorder(model)
    got = clipped(recorder, lambda m, x: m(x).sum((1, 2)) * shrunk, (x,), clip=1e-5, clipping="flat")
    assert float(got.sum.double().norm()) <= 1e-5


@pytest.mark.parametrize("whole", [True, False])
def test_one_example_less_in_half_precision(whole: bool) -> None:
    torch.manual_seed(0)
    layer = nn.Linear(64, 64) if whole else nn.LayerNorm(4096)
    model = nn.Sequential(layer).bfloat16()
    x = torch.randn(256, layer.weight.shape[-1]).abs().bfloat16()
    recorder = Recorder(model)

    def total(x: Tensor) -> Tensor:
        return clipped(recorder, lambda m, x: m(x).float().sum(1), (x,), clip=1.0, clipping="flat").sum

    assert float((total(x) - total(x[1:])).double().norm()) <= 1


def small() -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    return flat(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.GroupNorm(2, 4), width=64), torch.randn(4, 1, 6, 6), torch.arange(4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # its compiler uses what it says not to use
def test_compiled_sums_are_the_same() -> None:
    model, x, y = small()
    recorder = Recorder(model)
    compiled = Compiled(recorder, cross_entropies, "flat", 1)
    taking = torch.tensor([True, True, False, True])
    for clip in (CLIP, 100.0):
        got = compiled.clipped((x, y), clip=clip, taking=taking)
        wanted = clipped(recorder, cross_entropies, (x, y), clip=clip, clipping="flat", taking=taking)
        assert agree([got.sum], [wanted.sum], 1e-4)
        assert int(got.within) == int(wanted.within)
        assert bool(got.good)
    bad = x.clone()
    bad[1] = torch.inf
    assert not bool(compiled.clipped((bad, y), clip=CLIP).good)


class Normalised(nn.Module):
    """Words normalised in every way, one of them twice, one with a frozen scale."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 5)
        self.layer, self.square, self.groups = nn.LayerNorm(8), nn.RMSNorm(8), nn.GroupNorm(3, 3)
        self.instance, self.frozen = nn.InstanceNorm1d(3, affine=True), nn.LayerNorm((3, 8))
        self.frozen.weight.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer(torch.tanh(self.layer(self.first(x))))
        out: Tensor = self.last(self.frozen(self.instance(self.groups(self.square(x).tanh()).tanh()))).mean(1)
        return out


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch", "ignore::FutureWarning:torch")  # of its own uses
@pytest.mark.parametrize("views", [1, 2])
def test_compiled_normalisations_are_the_same(views: int) -> None:
    torch.manual_seed(3)
    model, x, y = Normalised(), torch.randn(6, 3, 6), torch.arange(6) % 5
    recorder = Recorder(model)
    got = Compiled(recorder, cross_entropies, "flat", views).clipped((x, y), clip=CLIP)
    wanted = clipped(recorder, cross_entropies, (x, y), clip=CLIP, clipping="flat", views=views)
    assert agree([got.sum], [wanted.sum], 1e-4)
    assert float(wanted.sum.norm()) > 0


# hostile examples

HOSTILE = [torch.nan, torch.inf, -torch.inf, 1e30, -1e18, 1e-40]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("name", [n for n in NAMES if models()[n][1].is_floating_point()])
def test_one_example_moves_the_sum_by_the_clip_norm_at_most(name: str, value: float) -> None:
    model, x = models()[name]
    y = torch.arange(len(x)) % 5
    recorder = Recorder(model)
    bad = x.clone()
    bad[2] = value
    got = clipped(recorder, cross_entropies, (bad, y), clip=CLIP, clipping="flat").sum
    others = torch.arange(len(x)) != 2
    alone = clipped(recorder, cross_entropies, (x[others], y[others]), clip=CLIP, clipping="flat").sum
    assert bool(got.isfinite().all())
    assert float((got - alone).double().norm()) <= CLIP * (1 + 1e-5)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, 1e38])
def test_losses_that_are_no_numbers_are_left_out(value: float) -> None:
    model, x = models()["several layers"]
    scale = torch.ones(len(x))
    scale[3] = value
    recorder = Recorder(model)
    got = clipped(recorder, lambda m, x, s: m(x)[:, 0] * s, (x, scale), clip=CLIP, clipping="automatic").sum
    others = torch.arange(len(x)) != 3
    alone = clipped(recorder, lambda m, x: m(x)[:, 0], (x[others],), clip=CLIP, clipping="automatic").sum
    assert float((got - alone).double().norm()) <= CLIP * (1 + 1e-5)
