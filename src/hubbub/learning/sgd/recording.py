"""Recording one pass of a model: what goes into each trainable layer, and the gradient of what comes out.

Parameters take no part in the backward pass, so nothing but recorded layers can reach them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from hubbub.errors import ParameterError
from hubbub.learning.sgd.layers import Rule, refuse, rule_of
from hubbub.learning.sgd.recurrent import RECURRENT, unrolled
from hubbub.learning.sgd.uses import Kept, Matrix, Use

Used = tuple[list[nn.Parameter], Use]
"""A use, and whose: the parameters in the order of its names."""
OUTPUT_PLACES = 1 << 24
"""Numbers of per-example gradients made at a time where a layer has no rule."""


class _Anchored(torch.autograd.Function):
    """A copy that takes part in the backward pass although nothing before it does."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, anchor: Tensor) -> Tensor:  # noqa: ARG004
        return y.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[None, None]:  # noqa: ARG004
        return None, None


@dataclass
class Unit:
    """A layer that owns trainable parameters: with a rule, unrolled in time, or to be differentiated as a whole."""

    name: str
    layer: nn.Module
    parameters: dict[str, nn.Parameter]
    rule: Rule | None


@dataclass
class Call:
    """One call of a unit: its inputs, and gradients of its outputs as they arrive."""

    unit: Unit
    inputs: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    gradients: list[Tensor | None] = field(default_factory=list)
    outputs: list[tuple[torch.Size, torch.dtype]] = field(default_factory=list)
    rename: dict[str, str] = field(default_factory=dict)
    """Names a rule uses for the parameters of a part of the layer."""


def units_of(model: nn.Module) -> list[Unit]:
    """The layers that will be recorded; each trainable parameter belongs to at least one."""
    found: list[Unit] = []

    def walk(name: str, layer: nn.Module) -> None:
        refuse(layer)
        own = {n: p for n, p in layer.named_parameters(recurse=False) if p.requires_grad}
        rule = rule_of(layer)
        if own and (rule is not None or type(layer) in RECURRENT):
            found.append(Unit(name, layer, own, rule))
        elif own:
            for inner in layer.modules():
                refuse(inner)
            every = {n: p for n, p in layer.named_parameters(remove_duplicate=False) if p.requires_grad}
            found.append(Unit(name, layer, every, None))
        else:
            for child, inner in layer.named_children():
                walk(f"{name}.{child}" if name else child, inner)

    walk("", model)
    return found


class Recorder:
    """Records passes over ``examples`` examples of ``views`` views each."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.units = units_of(model)
        self.trainable = [p for p in model.parameters() if p.requires_grad]
        if not self.trainable:
            raise ParameterError("model", type(model).__name__, "has no trainable parameter")
        self.calls: list[Call] = []
        self.examples = self.views = 1
        self._recording = False

    @contextmanager
    def recording(self, examples: int, views: int = 1) -> Iterator[None]:
        """Records what the model does inside the block."""
        self.calls, self.examples, self.views = [], examples, views
        handles, swapped = [], []
        self.model.requires_grad_(False)
        self._anchor = torch.zeros((), requires_grad=True)
        self._recording = True
        try:
            for unit in self.units:
                if type(unit.layer) in RECURRENT:
                    unit.layer.forward = unrolled(unit.layer, self, unit)
                    swapped.append(unit.layer)
                else:
                    handles.append(unit.layer.register_forward_hook(self._hook(unit), with_kwargs=True))
            yield
        finally:
            self._recording = False
            for handle in handles:
                handle.remove()
            for layer in swapped:
                del layer.forward
            for parameter in self.trainable:
                parameter.requires_grad_(True)

    def _hook(self, unit: Unit) -> Any:
        def hook(layer: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any], output: Any) -> Any:  # noqa: ARG001
            return self.tapped(Call(unit, inputs, options), output) if self._recording else None

        return hook

    def tapped(self, call: Call, output: Any) -> Any:
        """The output, whose gradients the call will hear of."""
        if not torch.is_grad_enabled():
            return output
        call.inputs, call.options = tree_map(
            lambda v: v.detach() if isinstance(v, Tensor) else v, (call.inputs, call.options)
        )
        for value in tree_flatten((call.inputs, call.options))[0]:
            if isinstance(value, Tensor) and call.unit.rule and value.shape[:1] != (self.examples * self.views,):
                raise ParameterError(
                    call.unit.name, "its input", "must have the examples as its first dimension", "use batch_first"
                )
        for value in tree_flatten(output)[0]:
            if isinstance(value, Tensor) and value.shape[:1] != (self.examples * self.views,):
                raise ParameterError(
                    call.unit.name, "its output", "must have one row for each example", "use batch_first"
                )
        self.calls.append(call)

        def tap(value: Any) -> Any:
            if not isinstance(value, Tensor) or not value.is_floating_point():
                call.gradients.append(None)
                return value
            place = len(call.gradients)
            call.gradients.append(None)
            call.outputs.append((value.shape, value.dtype))
            heard = value if value.requires_grad else _Anchored.apply(value, self._anchor.to(value.device))

            def hear(gradient: Tensor) -> None:
                call.gradients[place] = gradient.detach()

            heard.register_hook(hear)
            return heard

        return tree_map(tap, output)

    # after the backward pass

    def uses(self) -> list[Used]:
        """All uses of the calls that were recorded, which are forgotten."""
        made = [(call, self._use(call)) for call in self.calls if any(g is not None for g in call.gradients)]
        self.calls = []
        return merged([([call.unit.parameters[call.rename.get(n, n)] for n in use.names], use) for call, use in made])

    def _use(self, call: Call) -> Use:
        unit = call.unit
        if unit.rule is None:
            return Kept(self._by_example(call))
        names = tuple(n for n in ("weight", "bias") if call.rename.get(n, n) in unit.parameters)
        gradient = call.gradients[0]
        assert gradient is not None
        return unit.rule(unit.layer, call.inputs[0], gradient, names, self.views)

    def _by_example(self, call: Call) -> dict[str, Tensor]:
        """Gradients of each example by automatic differentiation of the whole layer, one example at a time."""
        unit, total = call.unit, self.examples * self.views
        leaves, spec = tree_flatten((call.inputs, call.options))
        batched = [isinstance(v, Tensor) and v.dim() > 0 and len(v) == total for v in leaves]
        arrived = [g for g in call.gradients if g is not None]
        places = [i for i, g in enumerate(call.gradients) if g is not None]
        fixed = dict(unit.layer.named_buffers()) | {
            n: p.detach() for n, p in unit.layer.named_parameters() if n not in unit.parameters
        }

        def one(values: list[Tensor], gradients: list[Tensor]) -> dict[str, Tensor]:
            given = iter(values)
            inputs, options = tree_unflatten(
                [next(given)[None] if b else v for b, v in zip(batched, leaves, strict=True)], spec
            )

            def run(parameters: dict[str, Tensor]) -> list[Tensor]:
                output = torch.func.functional_call(unit.layer, parameters | fixed, inputs, options)
                flat = tree_flatten(output)[0]
                return [flat[i] for i in places]

            pull = torch.func.vjp(run, {n: p.detach() for n, p in unit.parameters.items()})[1]
            found: dict[str, Tensor] = pull([g[None] for g in gradients])[0]
            return found

        size = sum(p.numel() for p in unit.parameters.values())
        each = torch.func.vmap(one, chunk_size=max(1, OUTPUT_PLACES // size))
        with sdpa_kernel(SDPBackend.MATH):  # the others know no batch of batches
            found = each([v for b, v in zip(batched, leaves, strict=True) if b], arrived)
        return {n: g.unflatten(0, (-1, self.views)).sum(1) for n, g in found.items()}


def merged(made: list[Used]) -> list[Used]:
    """Uses with the parameters in the order of each one's names; those of the same parameters made one."""
    by_owner: dict[tuple[int, ...], list[Used]] = {}
    times: dict[int, int] = {}
    for owned, use in made:
        owners = tuple(id(parameter) for parameter in owned)
        if owners not in by_owner:
            for owner in owners:
                times[owner] = times.get(owner, 0) + 1
        by_owner.setdefault(owners, []).append((owned, use))
    found, shared = [], []
    for owners, same in by_owner.items():
        alone = all(times[owner] == 1 for owner in owners)
        if alone and len(same) == 1:
            found.append((same[0][0], same[0][1].settled()))
        elif alone and all(isinstance(use, Matrix) for _, use in same):
            x, g = (torch.cat([getattr(use, n) for _, use in same], 1) for n in ("x", "g"))
            found.append((same[0][0], Matrix(x, g, same[0][1].names).settled()))
        else:
            shared += same
    return found + _summed(shared)


def _summed(shared: list[Used]) -> list[Used]:
    """Uses of parameters that several kinds of layers share: gradients of each example, added up."""
    owners: dict[int, nn.Parameter] = {}
    sums: dict[int, Tensor] = {}
    for owned, use in shared:
        each = use.each()
        for parameter, name in zip(owned, use.names, strict=True):
            key = id(parameter)
            owners[key] = parameter
            sums[key] = sums[key] + each[name] if key in sums else each[name]
    return [([owners[key]], Kept({"gradient": total})) for key, total in sums.items()]
