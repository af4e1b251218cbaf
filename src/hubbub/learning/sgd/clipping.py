"""The sum of a batch's gradients, each example's shortened to the clip norm first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hubbub.errors import FitFailure, HubbubError, ParameterError
from hubbub.learning.sgd.plan import Clipping
from hubbub.learning.sgd.recording import Recorder, Used

Losses = Callable[..., Tensor]
"""losses(model, *tensors): one loss for each example (or view), nothing averaged."""

AUTOMATIC = 0.01
"""What is added to a length before it divides, in automatic clipping (BWZK23)."""


@dataclass(frozen=True)
class Precision:
    """How far products may be off, times the lengths of what is multiplied; and by how much less is clipped for it."""

    doubt: float
    slack: float
    ghost: float
    """How far squared lengths made of inner products may be off, times the squared lengths of what is multiplied."""


DOUBLE = Precision(2.0**-46, 2.0**-40, 2.0**-46)
SINGLE = Precision(2.0**-19, 2.0**-12, 2.0**-19)
REDUCED = Precision(2.0**-7, 2.0**-7, 2.0**-19)
"""Factors cut to 11 bits (TF32, half precision), products and sums in float32. Of cut factors, each off by 2**-10,
inner products are those of gradients within 2**-9 of the lengths: measured lengths are off by 3 * 2**-9, and sums by
2**-9."""
MEDIUM = Precision(2.0**-5, 2.0**-6, 2.0**-19)
"""The same with factors of 8 bits."""


def precision_of(values: list[Tensor]) -> Precision:
    """The precision of sums made of these."""
    kinds = {v.dtype for v in values}
    on_device = any(v.is_cuda for v in values)
    setting = torch.get_float32_matmul_precision()
    if setting == "medium":
        return MEDIUM
    cut = torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32
    if setting != "highest" or (on_device and cut) or kinds & {torch.float16, torch.bfloat16}:
        return REDUCED
    return DOUBLE if kinds == {torch.float64} else SINGLE


@dataclass
class Clipped:
    """The sum of clipped gradients, all parameters in one; how many examples were no longer than the clip norm; and
    whether all lengths were finite (else the sum is none, and must be made again)."""

    sum: Tensor
    within: Tensor
    good: Tensor


def clipped(
    recorder: Recorder,
    losses: Losses,
    tensors: tuple[Any, ...],
    *,
    clip: float,
    clipping: Clipping,
    views: int = 1,
    taking: Tensor | None = None,
) -> Clipped:
    """One pass forward and one back: the sum of all examples' clipped gradients.

    Claim: the sum is one of a vector for each example, no longer than ``clip``; one whose gradient is not finite adds
        nothing. ``taking`` (0 or 1 for each) leaves out examples that only fill the batch.
    Proof: factor times length is at most clip (1 - slack), where the length is that of the example's gradient as it is
        summed, or a bound on it: products of rounded factors differ from those measured by at most doubt times the
        lengths of what is multiplied (Cauchy-Schwarz), which is added to the length. A squared length made of inner
        products may cancel and be off by ghost times the squared lengths, which is added to the square before its root.
    Assumes: an example's loss depends on no other example; the rounding of sums over examples is far below the noise.
    """
    first = next(v for v in tensors if isinstance(v, Tensor))
    total = len(first)
    if total % views:
        raise ParameterError("views", views, "must divide the rows of a batch")
    examples = total // views
    with recorder.recording(examples, views), torch.enable_grad(), unquoted("losses"):
        found = losses(recorder.model, *tensors)
    check_losses(found, total)
    if found.requires_grad:
        found.sum().div(views).backward()
    return summed(recorder, clip, clipping, taking)


def check_losses(found: Any, total: int) -> None:
    """Refuses losses that are not one for each example."""
    if not isinstance(found, Tensor) or found.shape != (total,):
        kind = f"{found.dim()} dimensions" if isinstance(found, Tensor) else type(found).__name__
        raise ParameterError("losses", kind, "must return one loss for each example", 'use reduction="none"')


def factors_of(
    squares: Tensor, norm: Tensor | float, kind: Clipping, slack: float, taking: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """What every example's gradient is multiplied by, how many were short enough, and which were finite."""
    good = squares.isfinite()
    lengths = torch.where(good, squares, 0.0).sqrt()
    most = norm * (1 - slack)
    if kind == "automatic":
        factors = most / (lengths + AUTOMATIC)
    else:
        factors = (most / lengths.clamp(min=1e-30)).clamp(max=1.0)
    take = good if taking is None else good & taking
    return torch.where(take, factors, 0.0), (take & (lengths <= norm)).sum(), good


@contextmanager
def unquoted(what: str) -> Iterator[None]:
    """An error of a user's function on private examples may quote them: it becomes one that does not."""
    try:
        yield
    except (HubbubError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        if type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
            raise  # of the compiler, which sees shapes alone
        raise FitFailure(
            f"{what} failed on private examples with a {type(error).__name__}, whose words may quote them and are not"
            " shown: call it on rows of your own that are like them, odd labels among them, to see why"
        ) from None


def summed(recorder: Recorder, clip: float, clipping: Clipping, taking: Tensor | None) -> Clipped:
    """What was recorded, weighted and summed; examples whose gradients are not finite are left out."""
    uses = recorder.uses()
    precision = precision_of(floats(uses))
    if not uses:
        zeros = flattened(recorder, [], torch.zeros(0))
        return Clipped(zeros, zeros.sum(), zeros.sum() == 0)
    squares = torch.stack([use.squares(precision.doubt, precision.ghost) for _, use in uses]).sum(0)
    factors, within, good = factors_of(squares, clip, clipping, precision.slack, taking)
    if not bool(good.all()):
        for _, use in uses:
            use.clean(good)
    return Clipped(flattened(recorder, uses, factors), within, torch.ones_like(good[:1]).all())


def flattened(recorder: Recorder, uses: list[Used], factors: Tensor) -> Tensor:
    """The sums of weighted gradients of all trainable parameters, one after the other."""
    found = {
        id(parameter): part
        for parameters, use in uses
        for parameter, part in zip(parameters, use.total(factors).values(), strict=True)
    }
    parts = [found[id(p)] if id(p) in found else torch.zeros_like(p) for p in recorder.trainable]
    kind = torch.promote_types(recorder.trainable[0].dtype, torch.float32)
    return torch.cat([part.reshape(-1).to(kind) for part in parts])


def floats(uses: list[Used]) -> list[Tensor]:
    """What will be multiplied."""
    held = [v for _, use in uses for v in (*vars(use).values(), *getattr(use, "gradients", {}).values())]
    return [v for v in held if isinstance(v, Tensor) and v.is_floating_point()]
