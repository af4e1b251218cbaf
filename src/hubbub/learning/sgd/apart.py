"""Does a model keep its examples apart? Tried on made-up ones before a private one is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from hubbub.errors import ParameterError
from hubbub.learning.sgd.clipping import check_losses
from hubbub.learning.sgd.recording import Recorder

EXAMPLES = 3
SIZE_MATTERS = 0.1
"""By what share of the largest number a smaller batch must change others to be noticed: short formats change some."""
SEEDS = 8
"""How often an augmentation that draws is tried."""


def check_apart(model: nn.Module, losses: Any, tensors: tuple[Any, ...]) -> None:
    """Refuses a model in which one example reaches another's loss or layers, or that remembers what it has seen.

    Made-up rows of the shapes and types given are passed through the model twice; the first row differs. Then without
    that row, and without dropout: an example must not see how many others there are. Values of the tensors are not
    read.
    """
    one = [_made_up(v) for v in tensors]
    other = [_changed(v) for v in one]
    before = {n: b.clone() for n, b in model.named_buffers()}
    recorder = Recorder(model)
    seen = [_seen(recorder, losses, rows) for rows in (one, other)]
    for name, buffer in model.named_buffers():
        if not torch.equal(buffer, before[name]):
            with torch.no_grad():
                buffer.copy_(before[name])
            raise ParameterError(
                "model", name, "is a buffer that changes with what the model sees", "suited(model) may help"
            )
    for name, first, second in zip(seen[0][0], seen[0][1], seen[1][1], strict=True):
        if not torch.allclose(first[1:], second[1:], rtol=1e-4, atol=1e-6, equal_nan=True):
            raise ParameterError(
                "model", name, "lets one example reach another", "put examples first, and let no layer mix them"
            )
    _check_size(recorder, losses, one)


def _check_size(recorder: Recorder, losses: Any, rows: list[Any]) -> None:
    modes = {layer: layer.training for layer in recorder.model.modules()}
    fewer = [v[1:] if isinstance(v, Tensor) else v for v in rows]
    try:
        recorder.model.eval()
        all_of, again, rest = (_seen(recorder, losses, v, seed)[1] for v, seed in ((rows, 1), (rows, 2), (fewer, 1)))
    finally:
        for layer, mode in modes.items():
            layer.training = mode
    random = not _alike(all_of, again, 0)
    if not random and not _alike([v[1:] for v in all_of], rest, SIZE_MATTERS):
        raise ParameterError(
            "losses", "of a smaller batch", "must not depend on how many examples there are", "divide by no size"
        )


def _alike(some: list[Tensor], others: list[Tensor], share: float) -> bool:
    return len(some) == len(others) and all(
        bool(((a - b).abs().nan_to_num() <= share * a.abs().nan_to_num().max()).all())
        for a, b in zip(some, others, strict=True)
    )


def check_augment(augment: Any, tensors: tuple[Any, ...], views: int) -> None:
    """Refuses an augmentation in which one made-up example reaches another's rows, or that makes too many or few."""
    name = getattr(augment, "__name__", type(augment).__name__)
    one = [_made_up(v) for v in tensors]
    other = [_changed(v) for v in one]
    for seed in range(SEEDS):
        found = []
        for rows in (one, other):
            with _seeded(rows, seed):
                found.append(augment(*rows))
        for first, second in zip(*found, strict=True):
            if not isinstance(first, Tensor):
                continue
            if len(first) != EXAMPLES * views:
                raise ParameterError("augment", name, f"must return {views} rows of each example", "see views")
            if not torch.equal(first[views:], second[views:]):
                raise ParameterError(
                    "augment",
                    name,
                    "lets one example reach another's rows",
                    "draw by torch's own generator, and mix no examples",
                )


@contextmanager
def _seeded(rows: list[Any], seed: int = 1) -> Iterator[None]:
    """torch's generator starts anew inside, and goes on outside as if nothing had been drawn."""
    with torch.random.fork_rng(devices=[rows[0].device] if rows[0].is_cuda else []):
        torch.manual_seed(seed)
        yield


def _made_up(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    shape = (EXAMPLES, *value.shape[1:])
    if value.is_floating_point():
        generator = torch.Generator().manual_seed(1)
        return torch.randn(shape, generator=generator).to(value)
    return torch.zeros(shape, dtype=value.dtype, device=value.device)


def _changed(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    changed = value.clone()
    changed[0] = changed[0] * -3 + 1 if value.is_floating_point() else 1
    return changed


def _seen(recorder: Recorder, losses: Any, rows: list[Any], seed: int = 1) -> tuple[list[str], list[Tensor]]:
    """The inputs of every recorded layer, and the losses."""
    many = next(len(v) for v in rows if isinstance(v, Tensor))
    with _seeded(rows, seed), torch.enable_grad(), recorder.recording(many):
        found = losses(recorder.model, *rows)
    names, values = [], []
    for call in recorder.calls:
        for value in call.inputs:
            if isinstance(value, Tensor) and value.shape[:1] == (many,):
                names.append(call.unit.name)
                values.append(value.double())
    check_losses(found, many)
    names.append("losses")
    values.append(found.detach().double())
    recorder.calls = []
    return names, values
