"""Which layers are known, and what each makes of its inputs and of the gradient of its output; which are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hubbub.errors import ParameterTypeError
from hubbub.learning.sgd.uses import Convolution, Kept, Lookup, Matrix, Use, Window

Rule = Callable[[Any, Tensor, Tensor, tuple[str, ...], int], Use]
"""Of a layer, its input, the gradient of its output, the names of its trainable parameters, an example's views."""


def _places(x: Tensor, views: int) -> Tensor:
    """(examples, places, width): whatever lies between the first and the last dimension, and all views, are places."""
    return x.reshape(len(x) // views, -1, x.shape[-1])


def _linear(layer: nn.Linear, x: Tensor, g: Tensor, names: tuple[str, ...], views: int) -> Use:  # noqa: ARG001
    return Matrix(_places(x, views), _places(g, views), names)


def _convolution(layer: Any, x: Tensor, g: Tensor, names: tuple[str, ...], views: int) -> Use:
    around, dims = layer._reversed_padding_repeated_twice, len(layer.kernel_size)
    sides = [tuple(around[2 * i : 2 * i + 2]) for i in reversed(range(dims))]
    if layer.padding_mode == "zeros" and all(a == b for a, b in sides):
        padding = tuple(a for a, _ in sides)
    else:
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        x, padding = functional.pad(x, around, mode=mode), (0,) * dims
    window = Window(layer.kernel_size, layer.stride, padding, layer.dilation, layer.groups)
    return Convolution(x, g, window, names, views)


def _embedding(layer: nn.Embedding, x: Tensor, g: Tensor, names: tuple[str, ...], views: int) -> Use:  # noqa: ARG001
    tokens = x.reshape(len(x) // views, -1)
    return Lookup(tokens, g.reshape(*tokens.shape, -1), layer.num_embeddings, layer.padding_idx)


@dataclass(frozen=True)
class Normalisation:
    """The rule of a normalisation followed by a scale and a shift: of the last dimensions, or one of each channel."""

    normalised: Callable[[Any, Tensor], Tensor]
    by_channel: bool = False

    def __call__(self, layer: Any, x: Tensor, g: Tensor, names: tuple[str, ...], views: int) -> Use:
        """Gradients of each example, which are small."""
        found = {"weight": lambda: g * self._of(layer, x), "bias": lambda: g}
        return Kept({name: self._summed(layer, found[name](), views) for name in names})

    def with_own(self, layer: Any, x: Tensor, own: dict[str, Tensor], kind: torch.dtype, views: int) -> Tensor:
        """The layer's output if each example had a scale and a shift of its own, larger than the layer's by ``own``.

        The gradients of ``own`` (examples, …) are those of the examples.
        """
        y = self._of(layer, x)
        for name, by in (("weight", torch.mul), ("bias", torch.add)):
            values = getattr(layer, name, None)
            if values is not None:
                each = values.expand(len(x), *values.shape)
                if name in own:
                    each = each + own[name].repeat_interleave(views, 0)
                y = by(y, self._spread(each, x.dim()))
        return y.to(kind)

    def _of(self, layer: Any, x: Tensor) -> Tensor:
        return self.normalised(layer, x if x.dtype == torch.float64 else x.float())

    def _spread(self, each: Tensor, dims: int) -> Tensor:
        """One value for each place: (rows, …) with dimensions of size 1 where the layer has no dimension."""
        at = each.dim() if self.by_channel else 1
        return each[(slice(None),) * at + (None,) * (dims - each.dim())]

    def _summed(self, layer: Any, product: Tensor, views: int) -> Tensor:
        if self.by_channel:
            return product.reshape(len(product) // views, views, product.shape[1], -1).sum((1, 3))
        return product.reshape(len(product) // views, -1, *layer.normalized_shape).sum(1)


RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: _linear,
    nn.modules.linear.NonDynamicallyQuantizableLinear: _linear,
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
    nn.Conv3d: _convolution,
    nn.Embedding: _embedding,
    nn.LayerNorm: Normalisation(lambda layer, x: functional.layer_norm(x, layer.normalized_shape, eps=layer.eps)),
    nn.RMSNorm: Normalisation(lambda layer, x: functional.rms_norm(x, layer.normalized_shape, eps=layer.eps)),
    nn.GroupNorm: Normalisation(lambda layer, x: functional.group_norm(x, layer.num_groups, eps=layer.eps), True),
    **dict.fromkeys(
        (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
        Normalisation(lambda layer, x: functional.instance_norm(x, eps=layer.eps), True),
    ),
}
"""By the very class: a subclass may do anything, and is differentiated example by example."""


def rule_of(layer: nn.Module) -> Rule | None:
    """The rule for a layer, where there is one; a layer that mixes examples is refused."""
    refuse(layer)
    return RULES.get(type(layer))


def refuse(layer: nn.Module) -> None:
    """Says no to layers that mix examples or remember them, and what to use instead."""
    name = type(layer).__name__
    by_instance = isinstance(layer, nn.modules.instancenorm._InstanceNorm)
    if isinstance(layer, nn.modules.batchnorm._BatchNorm) and not by_instance:
        raise ParameterTypeError(
            "model",
            name,
            "mixes the examples of a batch, so none can be clipped",
            "suited(model) puts GroupNorm in its place",
        )
    if isinstance(layer, nn.modules.instancenorm._InstanceNorm) and layer.track_running_stats:
        raise ParameterTypeError(
            "model", name, "remembers statistics of private examples", "suited(model) lets it forget them"
        )
    if isinstance(layer, nn.Embedding) and (layer.max_norm is not None or layer.scale_grad_by_freq):
        raise ParameterTypeError("model", name, "must have no max_norm and no scale_grad_by_freq, which mix examples")
    if isinstance(layer, nn.EmbeddingBag):
        raise ParameterTypeError("model", name, "does not keep examples apart", "use Embedding and a sum")


def suited(model: nn.Module) -> nn.Module:
    """The same model with every layer that cannot be trained privately replaced by one that can, in place.

    BatchNorm becomes GroupNorm of at most 32 groups (with the scale and shift it has), and InstanceNorm forgets its
    statistics.

    >>> suited(nn.Sequential(nn.Conv2d(3, 48, 3), nn.BatchNorm2d(48)))[1].num_groups
    24
    """
    for name, layer in list(model.named_children()):
        setattr(model, name, suited(layer))
    if isinstance(model, nn.modules.instancenorm._InstanceNorm):
        if model.track_running_stats:
            model.track_running_stats = False
            model.running_mean = model.running_var = model.num_batches_tracked = None
    elif isinstance(model, nn.modules.batchnorm._BatchNorm):
        return _group_norm(model)
    return model


def _group_norm(layer: nn.modules.batchnorm._BatchNorm) -> nn.GroupNorm:
    channels = layer.num_features
    groups = max(g for g in range(1, 33) if channels % g == 0)
    made = nn.GroupNorm(groups, channels, eps=layer.eps, affine=layer.affine)
    if layer.affine:
        made.weight, made.bias = layer.weight, layer.bias
    return made
