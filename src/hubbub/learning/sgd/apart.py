"""Does a model keep its examples apart? Tried on made-up ones before a private one is read."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from hubbub.errors import ParameterError
from hubbub.learning.sgd.recording import Recorder, Unit

EXAMPLES = 3


def check_apart(model: nn.Module, losses: Any, tensors: tuple[Any, ...], units: list[Unit]) -> None:
    """Refuses a model in which one example reaches another's loss or layers, or that remembers what it has seen.

    Made-up rows of the shapes and types given are passed through the model twice; the first row differs. Then without
    that row, and with no dropout: a loss divided by the size of the batch changes. Values of the tensors are not read.
    """
    del units
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
    _check_size(model, losses, one)


def _check_size(model: nn.Module, losses: Any, rows: list[Any]) -> None:
    modes = {layer: layer.training for layer in model.modules()}
    fewer = [v[1:] if isinstance(v, Tensor) else v for v in rows]
    devices = [rows[0].device] if rows[0].is_cuda else []
    found = []
    try:
        model.eval()
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            for seed, given in ((1, rows), (2, rows), (1, fewer)):
                torch.manual_seed(seed)
                found.append(losses(model, *given))
    finally:
        for layer, mode in modes.items():
            layer.training = mode
    if not all(isinstance(v, Tensor) and v.dim() == 1 for v in found) or not torch.equal(found[0], found[1]):
        return  # no losses of examples, or random ones
    if not torch.allclose(found[0][1:], found[2], rtol=1e-4, atol=1e-6, equal_nan=True):
        raise ParameterError(
            "losses", "one for each example", "must not depend on how many examples there are", "divide by nothing"
        )


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


def _seen(recorder: Recorder, losses: Any, rows: list[Any]) -> tuple[list[str], list[Tensor]]:
    """The inputs of every recorded layer, and the losses."""
    devices = [rows[0].device] if rows[0].is_cuda else []
    with torch.random.fork_rng(devices=devices), torch.enable_grad():
        torch.manual_seed(1)
        with recorder.recording(EXAMPLES):
            found = losses(recorder.model, *rows)
    names, values = [], []
    for call in recorder.calls:
        for value in call.inputs:
            if isinstance(value, Tensor) and value.shape[:1] == (EXAMPLES,):
                names.append(call.unit.name)
                values.append(value.double())
    if isinstance(found, Tensor) and found.shape == (EXAMPLES,):
        names.append("losses")
        values.append(found.detach().double())
    recorder.calls = []
    return names, values
