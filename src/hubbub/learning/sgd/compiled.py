"""The same sums by compiled code: ``torch.compile`` of the passes forward and back, and of what is made of them.

On a GPU all of it is one recorded graph of kernels, so that Python takes no time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from hubbub.errors import ParameterTypeError
from hubbub.learning.sgd.clipping import Clipped, Losses, factors_of, flattened, precision_of, unquoted
from hubbub.learning.sgd.layers import Normalisation
from hubbub.learning.sgd.plan import Clipping
from hubbub.learning.sgd.recording import Recorder, Unit, Used, merged
from hubbub.learning.sgd.uses import Kept, Use

WARM_UPS = 3


class Compiled:
    """``clipped`` for parts of one shape, compiled.

    A zero is added to every recorded layer's output; the gradients of those zeros are the gradients of the outputs.
    Where normalisations scale and shift, each example gets zeros of its own added to the scale and the shift, and
    their gradients are the example's: neither what went in nor the gradient of what came out is kept.
    """

    def __init__(self, recorder: Recorder, losses: Losses, clipping: Clipping, views: int) -> None:
        self.recorder, self.losses, self.clipping, self.views = recorder, losses, clipping, views
        self._order: list[tuple[Unit, tuple[str, ...]]] = []
        """The calls, each with the names of the parameters that have zeros of their own (none: the output has one)."""
        self._outputs: list[Tensor] = []
        self._seen: list[Tensor] = []
        self._zeros: list[Tensor] = []
        self._calls, self._tracing = 0, False
        self._graph: _Graph | None = None
        self._forward = torch.compile(self._with_zeros, dynamic=False)
        self._finish = torch.compile(self._sums, dynamic=False)
        for unit in recorder.units:
            if unit.rule is None:
                raise ParameterTypeError("model", unit.name, "has no rule to compile", "leave out compiled=True")
            unit.layer.register_forward_hook(self._tap)

    def clipped(self, tensors: tuple[Any, ...], *, clip: float, taking: Tensor | None = None) -> Clipped:
        """What ``clipping.clipped`` returns, but for lengths that are not finite."""
        rows, device = len(tensors[0]) // self.views, tensors[0].device
        take = torch.ones(rows, dtype=torch.bool, device=device) if taking is None else taking
        norm = torch.full((), clip, device=device)  # filled there: nothing is waited for
        with unquoted("losses"):
            if not self._outputs:
                self._look(tensors)
            if device.type != "cuda":
                return self._run(tensors, take, norm)
            if self._graph is None:
                self._graph = _Graph(self, (*tensors, take, norm))
            return self._graph.replay((*tensors, take, norm))

    def _run(self, tensors: tuple[Any, ...], take: Tensor, norm: Tensor) -> Clipped:
        self.recorder.model.requires_grad_(False)
        try:
            found, inputs = self._forward(self._outputs, tensors)
            gradients = list(torch.autograd.grad(found.sum().div(self.views), self._outputs))
        finally:
            self._tracing = False
            for parameter in self.recorder.trainable:
                parameter.requires_grad_(True)
        precision = precision_of([*inputs, *gradients])
        with torch.no_grad():
            return Clipped(
                *self._finish(inputs, gradients, take, norm, (precision.doubt, precision.slack, precision.ghost))
            )

    def _look(self, tensors: tuple[Any, ...]) -> None:
        """Learns from an uncompiled pass in which order layers are called, and the shapes of their outputs."""
        with self.recorder.recording(len(tensors[0]) // self.views, self.views), torch.enable_grad():
            self.losses(self.recorder.model, *tensors)
        calls, self.recorder.calls = self.recorder.calls, []
        device, rows = tensors[0].device, len(tensors[0]) // self.views

        def zeros(shape: tuple[int, ...], kind: torch.dtype) -> Tensor:
            return torch.zeros((), dtype=kind, device=device).expand(shape).requires_grad_()

        for call in calls:
            shape, kind = call.outputs[0]
            own = tuple(call.unit.parameters) if isinstance(call.unit.rule, Normalisation) else ()
            self._order.append((call.unit, own))
            if own:
                kind = torch.promote_types(kind, torch.float32)
                self._outputs += [zeros((rows, *call.unit.parameters[name].shape), kind) for name in own]
            else:
                self._outputs.append(zeros(shape, kind))

    # what is compiled

    def _tap(self, layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        if not self._tracing:
            return None
        unit, own = self._order[self._calls]
        self._calls += 1
        if own:
            assert isinstance(unit.rule, Normalisation)
            zeros = {name: self._zeros.pop(0) for name in own}
            return unit.rule.with_own(layer, inputs[0], zeros, output.dtype, self.views)
        self._seen.append(inputs[0].detach())  # else zeros would be made for its gradient
        return output + self._zeros.pop(0)

    def _with_zeros(self, zeros: list[Tensor], tensors: tuple[Any, ...]) -> tuple[Tensor, list[Tensor]]:
        self._zeros, self._seen, self._calls, self._tracing = list(zeros), [], 0, True
        found = self.losses(self.recorder.model, *tensors)
        self._tracing = False
        return found, self._seen

    def _sums(
        self,
        inputs: list[Tensor],
        gradients: list[Tensor],
        take: Tensor,
        norm: Tensor,
        precision: tuple[float, float, float],
    ) -> tuple[Tensor, Tensor, Tensor]:
        made: list[Used] = []
        given, left = iter(inputs), iter(gradients)
        for unit, own in self._order:
            names = own or tuple(n for n in ("weight", "bias") if n in unit.parameters)
            assert unit.rule is not None
            if own:
                use: Use = Kept({name: next(left) for name in own})
            else:
                use = unit.rule(unit.layer, next(given), next(left), names, self.views)
            made.append(([unit.parameters[n] for n in names], use))
        uses = merged(made)
        squares = torch.stack([use.squares(precision[0], precision[2]) for _, use in uses]).sum(0)
        factors, within, good = factors_of(squares, norm, self.clipping, precision[1], take)
        return flattened(self.recorder, uses, factors), within, good.all()


class _Graph:
    """The kernels of one run, recorded once and replayed on what is copied into its inputs."""

    def __init__(self, compiled: Compiled, inputs: tuple[Any, ...]) -> None:
        self.inputs = tuple(v.clone() if isinstance(v, Tensor) else v for v in inputs)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                compiled._run(self.inputs[:-2], *self.inputs[-2:])
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.output = compiled._run(self.inputs[:-2], *self.inputs[-2:])

    def replay(self, inputs: tuple[Any, ...]) -> Clipped:
        """The result for these inputs: good until the next replay."""
        for own, given in zip(self.inputs, inputs, strict=True):
            if isinstance(own, Tensor):
                if own.shape != given.shape:
                    raise ParameterTypeError(
                        "part", "of another size", "cannot be compiled", "use batches(…, full=True)"
                    )
                own.copy_(given)
        self.graph.replay()
        return self.output
