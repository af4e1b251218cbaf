"""The same sums by compiled code: ``torch.compile`` of the passes forward and back, and of what is made of them.

On a GPU all of it is one recorded graph of kernels, so that Python takes no time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from hubbub.errors import ParameterTypeError
from hubbub.learning.sgd.clipping import Clipped, Losses, factors_of, flattened, precision_of, unquoted
from hubbub.learning.sgd.plan import Clipping
from hubbub.learning.sgd.recording import Recorder, Unit, Used, merged

WARM_UPS = 3


class Compiled:
    """``clipped`` for parts of one shape, compiled.

    A zero is added to every recorded layer's output; the gradients of those zeros are the gradients of the outputs.
    """

    def __init__(self, recorder: Recorder, losses: Losses, clipping: Clipping, views: int) -> None:
        self.recorder, self.losses, self.clipping, self.views = recorder, losses, clipping, views
        self._order: list[Unit] = []
        self._outputs: list[Tensor] = []
        self._seen: list[Tensor] = []
        self._zeros: list[Tensor] = []
        self._tracing = False
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
        norm = torch.tensor(clip, device=device)
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
        self._order = [call.unit for call in calls]
        self._outputs = [
            torch.zeros((), dtype=kind, device=tensors[0].device).expand(shape).requires_grad_()
            for shape, kind in (call.outputs[0] for call in calls)
        ]

    # what is compiled

    def _tap(self, layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:  # noqa: ARG002
        if not self._tracing:
            return None
        place = len(self._seen)
        self._seen.append(inputs[0].detach())  # else zeros would be made for its gradient
        return output + self._zeros[place]

    def _with_zeros(self, zeros: list[Tensor], tensors: tuple[Any, ...]) -> tuple[Tensor, list[Tensor]]:
        self._zeros, self._seen, self._tracing = zeros, [], True
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
        for unit, x, g in zip(self._order, inputs, gradients, strict=True):
            names = tuple(n for n in ("weight", "bias") if n in unit.parameters)
            assert unit.rule is not None
            made.append(([unit.parameters[n] for n in names], unit.rule(unit.layer, x, g, names, self.views)))
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
