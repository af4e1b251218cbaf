"""What every mechanism is: a frozen value with public parameters, a ``release`` that takes private ones, and a loss."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.privacy.loss import Loss
from hubbub.randomness.bits import SECURE, Bits

Watcher = Callable[["Mechanism", Any, Callable[[], Any], bool], Any]
"""Is shown a mechanism, what it is to release, how, and whether that is charged; returns what is released."""

watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
"""Who watches releases in this context: a replay audit, or nobody."""

strays: list[Callable[[], object]] = []
"""Called at releases that nobody watches, in another thread than the one watched: a replay cannot follow them."""


def watched(mechanism: Mechanism, value: Any, run: Callable[[], Any], charged: bool = True) -> Any:
    """What ``run`` gives, or what the watcher makes of it. Releases inside a release are not shown again."""
    watching = watcher.get()
    if watching is None:
        for notice in strays:
            notice()
        return run()
    token = watcher.set(_inside)
    try:
        return watching(mechanism, value, run, charged)
    finally:
        watcher.reset(token)


def _inside(mechanism: Mechanism, value: Any, run: Callable[[], Any], charged: bool) -> Any:  # noqa: ARG001
    return run()


class Mechanism(ABC):
    """A randomised algorithm with public parameters. What goes into ``release`` is private, what comes out is not."""

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """What one release costs."""

    def release(self, value: Any, bits: Bits = SECURE) -> Any:
        """A private answer. ``bits`` is for tests and audits; leave it alone otherwise."""
        with np.errstate(all="ignore"):  # what numpy might say of a private value stays unsaid
            return watched(self, value, lambda: self._release(value, bits))

    @abstractmethod
    def _release(self, value: Any, bits: Bits) -> Any:
        """The answer itself."""

    def apart(self, value: Any, neighbour: Any) -> float:
        """How far apart two inputs are, as a share of what one person may change by this mechanism's parameters.

        At most 1 for neighbours if the parameters are true; infinity where the inputs cannot be neighbours at all.
        """
        return 0.0 if _same(value, neighbour) else math.inf

    def _fill(self, **fields: object) -> None:
        """Sets the fields of a frozen value, once, from its constructor."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def map(self, function: Callable[[Any], Any]) -> Mapped:
        """The same mechanism with a function applied to what it releases. Costs nothing more.

        >>> from hubbub.mechanisms import Laplace
        >>> at_least_zero = Laplace(1, epsilon=1.0).map(lambda n: max(0, n))
        >>> at_least_zero.release(0) >= 0, at_least_zero.loss == Laplace(1, epsilon=1.0).loss
        (True, True)
        """
        return Mapped(self, function)


@dataclass(frozen=True)
class Mapped(Mechanism):
    """A mechanism followed by a function of its output alone.

    Claim: the loss is that of the mechanism, whatever the function.
    Proof: DMNS06 post-processing: an event of the image is an event of the released value.
    Assumes: the function sees nothing private but the released value.
    """

    mechanism: Mechanism
    function: Callable[[Any], Any]

    @property
    def loss(self) -> Loss:
        return self.mechanism.loss

    def release(self, value: Any, bits: Bits = SECURE) -> Any:
        """The function of what the mechanism releases."""
        return self.function(self.mechanism.release(value, bits))

    def _release(self, value: Any, bits: Bits) -> Any:
        return self.release(value, bits)


def _same(value: Any, other: Any) -> bool:
    try:
        return bool(np.array_equal(value, other))
    except (TypeError, ValueError):
        return bool(value == other)
