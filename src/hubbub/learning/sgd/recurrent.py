"""LSTM, GRU and plain recurrent layers, unrolled in time: each example's part of their gradients can be told then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hubbub.errors import ParameterError
from hubbub.learning.sgd.layers import RULES

if TYPE_CHECKING:
    from hubbub.learning.sgd.recording import Recorder, Unit

RECURRENT = (nn.LSTM, nn.GRU, nn.RNN)

State = tuple[Tensor, ...]


def unrolled(layer: Any, recorder: Recorder, unit: Unit) -> Callable[..., Any]:
    """A forward of the layer that does the same step by step, heard by the recorder."""
    if not layer.batch_first or layer.proj_size:
        raise ParameterError(unit.name, type(layer).__name__, "must have batch_first=True and no proj_size")

    def product(x: Tensor, kind: str, suffix: str) -> Tensor:
        weight, bias = f"weight_{kind}_{suffix}", f"bias_{kind}_{suffix}" if layer.bias else None
        y = functional.linear(x, getattr(layer, weight), getattr(layer, bias) if bias else None)
        return recorder.tapped(_matrix_call(unit, x, weight, bias), y)

    def forward(x: Any, state: Any = None) -> Any:
        if not isinstance(x, Tensor) or x.dim() != 3:
            raise ParameterError(
                unit.name, "a packed or unbatched sequence", "must be a tensor with examples first", "pad it"
            )
        directions = 2 if layer.bidirectional else 1
        parts = 2 if isinstance(layer, nn.LSTM) else 1
        if state is None:
            zeros = x.new_zeros(layer.num_layers * directions, len(x), layer.hidden_size)
            state = (zeros,) * parts
        elif parts == 1:
            state = (state,)
        last: list[State] = []
        for level in range(layer.num_layers):
            ways = []
            for way in range(directions):
                suffix = f"l{level}" + ("_reverse" if way else "")
                given = product(x, "ih", suffix)
                now: State = tuple(s[level * directions + way] for s in state)
                times = range(x.shape[1])
                outputs: dict[int, Tensor] = {}
                for t in reversed(times) if way else times:
                    now = _next(layer, given[:, t], product(now[0], "hh", suffix), now)
                    outputs[t] = now[0]
                ways.append(torch.stack([outputs[t] for t in times], 1))
                last.append(now)
            x = torch.cat(ways, 2)
            if layer.dropout and level < layer.num_layers - 1:
                x = functional.dropout(x, layer.dropout, layer.training)
        ends = tuple(torch.stack([now[i] for now in last]) for i in range(parts))
        return x, ends if parts == 2 else ends[0]

    return forward


def _matrix_call(unit: Unit, x: Tensor, weight: str, bias: str | None) -> Any:
    from hubbub.learning.sgd.recording import Call, Unit

    part = Unit(unit.name, unit.layer, unit.parameters, RULES[nn.Linear])
    return Call(part, (x,), rename={"weight": weight, "bias": bias or ""})


def _next(layer: Any, given: Tensor, kept: Tensor, now: State) -> State:
    """One step: what the input says, what the state says, and the state."""
    if isinstance(layer, nn.LSTM):
        i, f, g, o = (given + kept).chunk(4, 1)
        cell = f.sigmoid() * now[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * cell.tanh(), cell
    if isinstance(layer, nn.GRU):
        (r, z, n), (hr, hz, hn) = given.chunk(3, 1), kept.chunk(3, 1)
        z = (z + hz).sigmoid()
        return ((1 - z) * (n + (r + hr).sigmoid() * hn).tanh() + z * now[0],)
    total = given + kept
    return (total.relu() if layer.nonlinearity == "relu" else total.tanh(),)
