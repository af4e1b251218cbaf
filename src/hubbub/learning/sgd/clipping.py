"""The sum of a batch's gradients, each example's shortened to the clip norm first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from hubbub.errors import ParameterError
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
REDUCED = Precision(2.0**-9, 2.0**-8, 2.0**-9)
"""19-bit products (TF32) and half precision: factors are 11, 8 or 11 bits long and rounded once each."""
BRAIN = Precision(2.0**-7, 2.0**-6, 2.0**-7)


def precision_of(values: list[Tensor]) -> Precision:
    """The precision of sums made of these."""
    kinds = {v.dtype for v in values}
    on_device = any(v.is_cuda for v in values)
    short = torch.get_float32_matmul_precision() != "highest" or (on_device and torch.backends.cuda.matmul.allow_tf32)
    ghost = BRAIN.ghost if short else SINGLE.ghost  # lengths are measured in float32, whatever is multiplied
    if torch.bfloat16 in kinds:
        return replace(BRAIN, ghost=ghost)
    if torch.float16 in kinds:
        return replace(REDUCED, ghost=ghost)
    if kinds == {torch.float64}:
        return DOUBLE
    return replace(REDUCED if short or (on_device and torch.backends.cudnn.allow_tf32) else SINGLE, ghost=ghost)


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
        raise ParameterError("views", views, f"must divide the {total} rows of a batch")
    examples = total // views
    with recorder.recording(examples, views), torch.enable_grad():
        found = losses(recorder.model, *tensors)
    if not isinstance(found, Tensor) or found.shape != (total,):
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ParameterError("losses", shape, "must return one loss for each example", 'use reduction="none"')
    if found.requires_grad:
        found.sum().div(views).backward()
    return summed(recorder, clip, clipping, taking)


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
    kind = sum_kind(recorder.trainable)
    parts = [found[id(p)] if id(p) in found else torch.zeros_like(p) for p in recorder.trainable]
    return torch.cat([part.reshape(-1).to(kind) for part in parts])


def sum_kind(trainable: list[Parameter]) -> torch.dtype:
    """The type in which sums are held until their noise is in: that of the parameters, but never a short one."""
    doubles = all(parameter.dtype == torch.float64 for parameter in trainable)
    return torch.float64 if doubles else torch.float32


def floats(uses: list[Used]) -> list[Tensor]:
    """What will be multiplied."""
    held = [v for _, use in uses for v in (*vars(use).values(), *getattr(use, "gradients", {}).values())]
    return [v for v in held if isinstance(v, Tensor) and v.is_floating_point()]
