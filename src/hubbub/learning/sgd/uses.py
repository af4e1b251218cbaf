"""How a layer used its parameters for a batch: squared lengths of each example's gradient, and weighted sums of them.

A use holds what went into a layer and the gradient of what came out, examples first. From the two, the length of every
example's own gradient follows without that gradient (ghost norms), or with it where that is cheaper; and so does the
sum of all, each multiplied by its own factor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor
from torch.nn import functional

CHUNK, CHUNK_ON_DEVICE = 1 << 25, 1 << 28
"""Numbers unfolded at a time when lengths are computed; a GPU wants more work at once."""
LEAST = 2.0**-100
"""Added to sums of squares, which may have vanished where what they will be multiplied with is huge."""


class Use(ABC):
    """One or several uses of the same parameters by a batch."""

    names: tuple[str, ...]
    """The parameters, as the layer calls them."""

    @abstractmethod
    def squares(self, doubt: float, ghost: float) -> Tensor:
        """For every example, the squared length of its gradient over all these parameters, or a little more.

        Products computed in floating point are off by ``doubt`` times the lengths of what was multiplied, at most;
        where sums of them may cancel, lengths are taken so much longer. Squared lengths made of inner products are off
        by ``ghost`` times the squared lengths, and are taken so much larger.
        """

    @abstractmethod
    def total(self, factors: Tensor) -> dict[str, Tensor]:
        """The sum of all examples' gradients, each times its factor."""

    @abstractmethod
    def each(self) -> dict[str, Tensor]:
        """Every example's gradient."""

    def clean(self, good: Tensor) -> None:  # noqa: B027
        """Forgets what the other examples left, which may be infinite."""

    def settled(self) -> Use:
        """Itself, or what takes less memory."""
        return self


def _precise(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _scaled(one: Tensor, other: Tensor, factors: Tensor) -> tuple[Tensor, Tensor]:
    """Both, the one with fewer numbers times its example's factor, in a type that both have and sums can be kept in.

    Sums over examples rounded to half precision could differ by far more than one example does.
    """
    kind = torch.promote_types(torch.promote_types(one.dtype, other.dtype), torch.float32)
    one, other = one.to(kind), other.to(kind)
    by_example = factors.to(kind)

    def times(v: Tensor) -> Tensor:
        return v * by_example.view(-1, *[1] * (v.dim() - 1))

    return (times(one), other) if one.numel() <= other.numel() else (one, times(other))


def _weighted(factors: Tensor, each: Tensor) -> Tensor:
    flat = _precise(each).reshape(len(each), -1)
    return (factors.to(flat.dtype) @ flat).view(each.shape[1:])


def _square(x: Tensor) -> Tensor:
    """The sum of squares of every example, or a little more."""
    flat = _precise(x).reshape(len(x), -1)
    return torch.linalg.vector_norm(flat, dim=1).square() + LEAST


def _longer(squares: Tensor, doubt: float, *sizes: Tensor, ghost: float = 0.0) -> Tensor:
    """(sqrt(squares + ghost * the product of the sizes, squares) + doubt * that of their roots) ** 2, or more."""
    lengths = torch.stack([size.sqrt() for size in sizes]).prod(0)
    squares = squares.clamp(min=0) + LEAST * torch.stack(sizes).sum(0) + ghost * lengths.square()
    return (squares.sqrt() + doubt * lengths).square()


def _cleaned(x: Tensor, good: Tensor) -> Tensor:
    return torch.where(good.view(-1, *[1] * (x.dim() - 1)), x, torch.zeros((), dtype=x.dtype, device=x.device))


class Kept(Use):
    """Gradients of each example, small enough to keep."""

    def __init__(self, gradients: dict[str, Tensor]) -> None:
        self.names = tuple(gradients)
        self.gradients = gradients

    def squares(self, doubt: float, ghost: float) -> Tensor:  # noqa: ARG002 - what is measured is what will be summed
        return torch.stack([_square(g) for g in self.gradients.values()]).sum(0)

    def total(self, factors: Tensor) -> dict[str, Tensor]:
        return {name: _weighted(factors, g) for name, g in self.gradients.items()}

    def each(self) -> dict[str, Tensor]:
        return self.gradients

    def clean(self, good: Tensor) -> None:
        self.gradients = {name: _cleaned(g, good) for name, g in self.gradients.items()}


class Matrix(Use):
    """y = x W' + b at one or several places of each example: x (examples, places, in), g (examples, places, out)."""

    def __init__(self, x: Tensor, g: Tensor, names: tuple[str, ...]) -> None:
        self.x, self.g, self.names = x, g, names
        self.bias: Tensor | None = None

    def squares(self, doubt: float, ghost: float) -> Tensor:
        found = torch.zeros(len(self.x), dtype=_precise(self.g[:0]).dtype, device=self.g.device)
        places = self.x.shape[1]
        if "weight" in self.names:
            if places == 1:
                found = found + _square(self.x) * _square(self.g)
            else:
                x, g = (torch.bmm(v, v.transpose(1, 2)) for v in (_precise(self.x), _precise(self.g)))
                traces = (v.diagonal(dim1=1, dim2=2).sum(1) for v in (x, g))
                found = found + _longer((x * g).sum((1, 2)), doubt, *traces, ghost=ghost)
        if "bias" in self.names:
            self.bias = _precise(self.g).sum(1)
            found = found + _square(self.bias)
        return found

    def settled(self) -> Use:
        (_, places, width), out = self.x.shape, self.g.shape[2]
        smaller = "weight" in self.names and places > 1 and places * (width + out) > width * out
        return Kept(self.each()) if smaller else self

    def total(self, factors: Tensor) -> dict[str, Tensor]:
        found = {}
        if "weight" in self.names:
            x, g = _scaled(self.x, self.g, factors)
            found["weight"] = g.flatten(0, 1).t() @ x.flatten(0, 1)
        if self.bias is not None:
            found["bias"] = _weighted(factors, self.bias)
        return found

    def each(self) -> dict[str, Tensor]:
        found = {}
        if "weight" in self.names:
            found["weight"] = torch.bmm(_precise(self.g).transpose(1, 2), _precise(self.x))
        if "bias" in self.names:
            found["bias"] = _precise(self.g).sum(1)
        return found

    def clean(self, good: Tensor) -> None:
        self.x, self.g = _cleaned(self.x, good), _cleaned(self.g, good)
        self.bias = None if self.bias is None else _cleaned(self.bias, good)


@dataclass(frozen=True)
class Window:
    """What a convolution reads at one place."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    """Zeros on both sides of each dimension; whatever else is around the input is already there."""
    dilation: tuple[int, ...]
    groups: int

    def unfolded(self, x: Tensor) -> Tensor:
        """(examples, groups, channels of a group * kernel, places), copied from overlapping windows."""
        n, dims = len(x), len(self.kernel)
        x = functional.pad(x, [p for p in reversed(self.padding) for _ in range(2)])
        for i, (size, step, apart) in enumerate(zip(self.kernel, self.stride, self.dilation, strict=True)):
            x = x.unfold(2 + i, (size - 1) * apart + 1, step)[..., ::apart]
        windows = x.permute(0, 1, *range(2 + dims, 2 + 2 * dims), *range(2, 2 + dims))
        return windows.reshape(n, self.groups, -1, prod(x.shape[2 : 2 + dims]))


class Convolution(Use):
    """A convolution in one, two or three dimensions; an example's views lie one after the other."""

    def __init__(self, x: Tensor, g: Tensor, window: Window, names: tuple[str, ...], views: int = 1) -> None:
        self.x, self.g, self.window, self.names, self.views = x, g, window, names, views
        self.places = prod(g.shape[2:]) * views
        self.shape = (g.shape[1], x.shape[1] // window.groups, *window.kernel)
        self.bias: Tensor | None = None

    def _parts(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Unfolded inputs (examples, groups, width, places) and gradients (…, out, places), some at a time."""
        groups, one = self.window.groups, prod(self.window.kernel) * self.x.shape[1] * self.places
        some = self.views * max(1, (CHUNK_ON_DEVICE if self.x.is_cuda else CHUNK) // one)
        for start in range(0, len(self.x), some):
            x = self.window.unfolded(_precise(self.x[start : start + some]))
            g = _precise(self.g[start : start + some]).reshape(len(x), groups, self.g.shape[1] // groups, -1)
            if self.views > 1:  # more places
                x, g = (v.unflatten(0, (-1, self.views)).permute(0, 2, 3, 1, 4).flatten(3) for v in (x, g))
            yield x, g

    def squares(self, doubt: float, ghost: float) -> Tensor:
        found = torch.zeros(len(self.x) // self.views, dtype=_precise(self.g[:0]).dtype, device=self.g.device)
        if "weight" in self.names:
            width, out = prod(self.shape[1:]), self.shape[0] // self.window.groups
            by_products = self.places * (width + out) <= width * out
            squares = torch.cat(
                [self._ghost(x, g) if by_products else _square(g @ x.transpose(2, 3)) for x, g in self._parts()]
            )
            read = self._by_example(_square(self.x)) * prod(self.window.kernel)
            sizes = read, self._by_example(_square(self.g))
            found = found + _longer(squares, doubt, *sizes, ghost=ghost if by_products else 0.0)
        if "bias" in self.names:
            self.bias = self._bias()
            found = found + _square(self.bias)
        return found

    def _ghost(self, x: Tensor, g: Tensor) -> Tensor:
        return ((x.transpose(2, 3) @ x) * (g.transpose(2, 3) @ g)).sum((1, 2, 3))

    def _by_example(self, by_view: Tensor) -> Tensor:
        return by_view.unflatten(0, (-1, self.views)).sum(1)

    def _bias(self) -> Tensor:
        return self._by_example(_precise(self.g).flatten(2).sum(2))

    def settled(self) -> Use:
        small = prod(self.shape) <= 2 * self.places * (self.x.shape[1] + self.g.shape[1])
        ghost = self.places * (prod(self.shape[1:]) + self.shape[0]) <= prod(self.shape)
        return Kept(self.each()) if "weight" in self.names and small and not ghost else self

    def total(self, factors: Tensor) -> dict[str, Tensor]:
        found = {}
        if "weight" in self.names:
            x, g = _scaled(self.x, self.g, factors.repeat_interleave(self.views))
            w = self.window
            found["weight"] = torch.ops.aten.convolution_backward(
                g, x, g.new_empty(1).expand(self.shape), None,
                w.stride, w.padding, w.dilation, False, [0] * len(w.kernel), w.groups, (False, True, False),
            )[1]  # fmt: skip
        if self.bias is not None:
            found["bias"] = _weighted(factors, self.bias)
        return found

    def each(self) -> dict[str, Tensor]:
        found = {}
        if "weight" in self.names:
            found["weight"] = torch.cat([g @ x.transpose(2, 3) for x, g in self._parts()]).view(-1, *self.shape)
        if "bias" in self.names:
            found["bias"] = self._bias()
        return found

    def clean(self, good: Tensor) -> None:
        by_view = good.repeat_interleave(self.views)
        self.x, self.g = _cleaned(self.x, by_view), _cleaned(self.g, by_view)
        self.bias = None if self.bias is None else _cleaned(self.bias, good)


class Lookup(Use):
    """An embedding: tokens (examples, places) and gradients (examples, places, width)."""

    names = ("weight",)

    def __init__(self, tokens: Tensor, g: Tensor, rows: int, padding: int | None) -> None:
        self.tokens, self.rows = tokens, rows
        self.g = g if padding is None else g * (tokens != padding)[..., None]

    def squares(self, doubt: float, ghost: float) -> Tensor:
        (n, places), width = self.tokens.shape, self.g.shape[2]
        g = _precise(self.g)
        if places <= max(width, 64):
            same = self.tokens[:, :, None] == self.tokens[:, None, :]
            products = torch.bmm(g, g.transpose(1, 2))
            size = places * products.diagonal(dim1=1, dim2=2).sum(1)
            return _longer((products * same).sum((1, 2)), doubt, size, ghost=ghost)
        owners = torch.arange(n, device=g.device)[:, None] * self.rows + self.tokens
        found, place = torch.unique(owners, return_inverse=True)
        sums = g.new_zeros(len(found), width).index_add_(0, place.flatten(), g.flatten(0, 1))
        squares = g.new_zeros(n).index_add_(0, found // self.rows, sums.square().sum(1))
        return _longer(squares, doubt, places * _square(g))

    def total(self, factors: Tensor) -> dict[str, Tensor]:
        g = _precise(self.g) * factors[:, None, None].to(_precise(self.g[:0]).dtype)
        found = g.new_zeros(self.rows, g.shape[2])
        return {"weight": found.index_add_(0, self.tokens.flatten(), g.flatten(0, 1))}

    def each(self) -> dict[str, Tensor]:
        g = _precise(self.g)
        found = g.new_zeros(len(g), self.rows, g.shape[2])
        places = self.tokens[..., None].expand(-1, -1, g.shape[2])
        return {"weight": found.scatter_add_(1, places, g)}

    def clean(self, good: Tensor) -> None:
        self.g = _cleaned(self.g, good)
