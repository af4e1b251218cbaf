"""Losses: what ran, as a frozen value, and what it costs under every definition of privacy.

A loss always carries its neighbour relation: "add-remove" (one person's data added or removed) or "replace" (one
person's data changed). Every ``epsilon`` and ``delta`` is an upper bound on the true cost; infinity is an answer,
nan never is.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, get_args

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.numeric.rational import Number, count, float_up, rational, smaller_reading
from hubbub.privacy import accountant, renyi
from hubbub.privacy.pairs import Floats, Pair

MOST_TIMES = 10**15
"""The largest number of repetitions that is priced."""

Neighbours = Literal["add-remove", "replace"]
Scheme = Literal["poisson", "without-replacement"]


def check_neighbours(neighbours: Neighbours) -> Neighbours:
    """The relation itself; anything but the two is refused."""
    if neighbours not in get_args(Neighbours):
        raise ParameterError("neighbours", neighbours, 'must be "add-remove" or "replace"')
    return neighbours


def check_delta(value: Number) -> Fraction:
    """delta as an exact rational in [0, 1)."""
    exact = rational("delta", value)
    if not 0 <= exact < 1:
        raise ParameterError("delta", value, "must lie in [0, 1)", "0.0 asks for pure privacy")
    return exact


def check_epsilon(value: Number) -> Fraction:
    """epsilon as an exact rational >= 0."""
    exact = rational("epsilon", value)
    if exact < 0:
        raise ParameterError("epsilon", value, "must be >= 0")
    return exact


def gap_below(bound: float, epsilon: Number) -> float:
    """How far epsilon lies below a bound, rounded up, whichever way both are read; 0 from the bound on."""
    decimal = rational("epsilon", bound)
    if check_epsilon(epsilon) >= decimal:
        return 0.0
    return max(0.0, float_up(max(Fraction(bound), decimal) - smaller_reading("epsilon", epsilon)))


def nudged_up(value: float) -> float:
    """A float a few units in the last place above, to cover the rounding of a short formula."""
    return value + abs(value) * 2.0**-48 + 5e-324


class Curve(Protocol):
    """Bounds on a whole privacy profile."""

    def epsilon_interval(self, delta: float) -> tuple[float, float]:
        """(lower, upper) on the epsilon at this delta."""

    def delta_interval(self, epsilon: float) -> tuple[float, float]:
        """(lower, upper) on the delta at this epsilon."""


class Loss(ABC):
    """What a release costs, under a stated neighbour relation. Losses add up: ``a + b``, ``a * 1000``."""

    neighbours: Neighbours
    tag: ClassVar[str]
    """The name under which this kind of loss is written to JSON."""

    # what subclasses know about themselves

    def _pair(self) -> Pair | None:
        """A dominating pair, or None where only Renyi divergences are known."""
        return None

    def _attained(self) -> bool:
        """Whether some mechanism of this loss is as telling as its pair, however often repeated: else no lower ends."""
        return True

    def _repeated(self, times: int) -> Curve | None:  # noqa: ARG002
        """The profile of so many of these and nothing else, where it is known better than from the pair."""
        return None

    def _pure(self) -> Fraction | None:
        """The exact epsilon at delta 0, or None where there is none."""
        return None

    def _basic(self) -> tuple[Fraction, Fraction] | None:
        """An exact (epsilon, delta) that basic composition may add up, or None where there is none."""
        pure = self._pure()
        return None if pure is None else (pure, Fraction(0))

    @abstractmethod
    def renyi(self, order: Number) -> float:
        """An upper bound on the Renyi divergence of this order (> 1) between neighbours; infinity if there is none."""

    @abstractmethod
    def _fields(self) -> dict[str, Any]:
        """What JSON needs to hold, the relation aside."""

    # pricing

    def _parts(self) -> tuple[tuple[Loss, int], ...]:
        return ((self, 1),)

    def _pairs(self) -> accountant.Parts | None:
        """All parts as pairs, Gaussians joined into one (their mu add up in squares); None if some part has none."""
        squares, pairs = Fraction(0), []
        for part, n in self._parts():
            mu = getattr(part, "mu", None)
            pair = part._pair()
            if mu is not None:
                squares += n * max(Fraction(mu), rational("mu", mu)) ** 2
            elif pair is None:
                return None
            else:
                pairs.append((pair, n))
        if squares:
            from hubbub.privacy.pairs import GaussianPair

            pairs.append((GaussianPair(nudged_up(math.sqrt(float(squares)))), 1))
        return tuple(pairs)

    def epsilon(self, delta: Number = 0.0) -> float:
        """A certified upper bound on the epsilon at this delta; infinity where there is none."""
        return self.epsilon_interval(delta)[1]

    def epsilon_interval(self, delta: Number) -> tuple[float, float]:
        """(lower, upper): the exact epsilon of the stated law at this delta lies between the two.

        Where only Renyi divergences are known, the lower end is 0.
        """
        check_delta(delta)
        exact = smaller_reading("delta", delta)
        basic = self._basic_total()
        ceiling = math.inf if basic is None or check_delta(delta) < basic[1] else float_up(basic[0])
        if not exact:
            return (0.0 if math.isinf(ceiling) else ceiling, ceiling)
        curve = self._bounds()
        low, high = curve.epsilon_interval(float(exact)) if curve else (0.0, math.inf)
        if math.isinf(high) or high - low > 0.01 * high:  # where nothing better is known, a Renyi price may do
            high = min(high, nudged_up(renyi.best_epsilon(self.renyi, float(exact))))
        return low, min(high, ceiling)

    def delta(self, epsilon: Number) -> float:
        """A certified upper bound on the delta at this epsilon."""
        exact = check_epsilon(epsilon)
        basic = self._basic_total()
        ceiling = float_up(basic[1]) if basic is not None and exact >= basic[0] else 1.0
        if not ceiling:
            return 0.0
        at = float(smaller_reading("epsilon", epsilon))
        curve = self._bounds()
        low, high = curve.delta_interval(at) if curve else (0.0, 1.0)
        if high - low > 0.1 * high:
            high = min(high, nudged_up(renyi.best_delta(self.renyi, at)))
        return min(high, ceiling)

    def _bounds(self) -> Curve | None:
        """The profile of the whole: its only part's own, or the accountant's; None where Renyi prices are all."""
        parts = self._parts()
        own = parts[0][0]._repeated(parts[0][1]) if len(parts) == 1 else None
        pairs = None if own else self._pairs()
        return own or (None if pairs is None else _Accounted(pairs, all(part._attained() for part, _ in parts)))

    def _basic_total(self) -> tuple[Fraction, Fraction] | None:
        """The sums of all parts' epsilons and deltas (C1)."""
        epsilon, delta = Fraction(0), Fraction(0)
        for part, n in self._parts():
            basic = part._basic()
            if basic is None:
                return None
            epsilon, delta = epsilon + n * basic[0], delta + n * basic[1]
        return epsilon, delta

    def distribution(self, points: int = 1000) -> tuple[Floats, Floats, float]:
        """The privacy-loss distribution, to look at: losses, their probabilities, and the probability of infinity.

        Of one loss, single losses are exact, and others are gathered in so many cells, each at its middle. Of a
        composition, it is a numerical approximation on about so many cells, of the forward direction: price with
        ``epsilon`` and ``delta``, which are certified. Where no mechanism has one fixed law, it is that of the
        dominating pair.
        """
        from hubbub.privacy.distribution import gathered

        pairs = self._pairs()
        if pairs is None:
            raise ParameterTypeError("loss", self, "has no loss distribution", "only its Renyi divergences are known")
        return gathered(pairs, count("points", points, least=2))

    # algebra

    def __add__(self, other: Loss) -> Loss:
        return compose((self, other)) if isinstance(other, Loss) else NotImplemented

    def __mul__(self, times: int) -> Loss:
        repeated = count("count", times)
        if repeated > MOST_TIMES:
            raise ParameterError("count", times, f"must be at most {MOST_TIMES}")
        return self if repeated == 1 else Composed(tuple((part, n * repeated) for part, n in self._parts()))

    __rmul__ = __mul__

    def group(self, size: int) -> Loss:
        """The loss for ``size`` people at once (C5)."""
        people = count("size", size)
        if people == 1:
            return self
        return compose(part._group(people) * n for part, n in self._parts())

    def _group(self, size: int) -> Loss:  # noqa: ARG002
        """This part's loss for several people at once."""
        raise ParameterTypeError("loss", self, "has no group price", "price the group's own loss instead")

    def to_replace(self) -> Loss:
        """This add-remove loss under replace-one: one person out and another in, two steps. There is no way back."""
        if self.neighbours != "add-remove":
            raise ParameterError("neighbours", self.neighbours, "is already replace")
        return compose(part._replaced() * n for part, n in self._parts())

    def _replaced(self) -> Loss:
        """Two steps of group privacy, relabelled."""
        return Loss.from_dict(self._group(2).to_dict() | {"neighbours": "replace"})

    def subsample(self, rate: Number, scheme: Scheme = "poisson") -> Loss:
        """The loss when each record takes part with probability ``rate`` only, drawn afresh and kept secret (C6)."""
        from hubbub.privacy.sampling import Subsampled

        return Subsampled(self, rate, scheme)

    # readings

    def tradeoff(self, false_positive_rate: Number) -> float:
        """A certified lower bound on any test's false negatives, at this rate of false positives (D6)."""
        alpha = rational("false_positive_rate", false_positive_rate)
        if not 0 <= alpha <= 1:
            raise ParameterError("false_positive_rate", false_positive_rate, "must lie between 0 and 1")
        rate = float(alpha)
        top = self.epsilon(1e-9)
        steps = [top * k / 8 for k in range(1, 9)] if math.isfinite(top) else []
        basic = self._basic_total()
        best = 0.0
        for epsilon in [0.0, *steps, *([float_up(basic[0])] if basic is not None else [])]:
            delta = self.delta(epsilon)
            grown = math.exp(min(epsilon, 700.0))
            best = max(best, 1 - delta - grown * rate, (1 - delta - rate) / grown)
        return max(0.0, best - 1e-12)

    def true_positive_rate(self, false_positive_rate: Number) -> float:
        """The most true positives any membership test can have at this rate of false positives."""
        return 1 - self.tradeoff(false_positive_rate)

    def advantage(self) -> float:
        """The most that true positives can exceed false positives: the total variation between neighbours."""
        return self.delta(0)

    def posterior(self, prior: Number, delta: Number = 0.0) -> tuple[float, float]:
        """What belief in one of two neighbouring worlds can become, (low, high), from a prior belief (D5).

        With delta > 0 the bounds may fail for an output of probability about delta.
        """
        belief = float(rational("prior", prior))
        if not 0 <= belief <= 1:
            raise ParameterError("prior", prior, "must lie between 0 and 1")
        factor = math.exp(-self.epsilon(delta))
        if belief in (0.0, 1.0):
            return belief, belief
        low, high = belief * factor / (belief * factor + (1 - belief)), belief / (belief + (1 - belief) * factor)
        return max(0.0, -nudged_up(-low)), min(1.0, nudged_up(high))

    def utility_factor(self) -> float:
        """No expected utility of non-negative pay-offs changes by more than this factor (D7): e**epsilon."""
        price = self.epsilon()
        return nudged_up(math.exp(price)) if price < 700 else math.inf

    # JSON

    def to_dict(self) -> dict[str, Any]:
        """The loss as plain data."""
        return {"loss": self.tag, **self._fields(), "neighbours": self.neighbours}

    def to_json(self) -> str:
        """The loss as text; ``Loss.from_json`` reads it back."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Loss:
        """The loss a text stands for. Kinds are looked up in a table of tags; nothing is imported by name."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError) as wrong:
            raise ParameterTypeError("text", type(text).__name__, "must be JSON written by to_json()") from wrong
        return Loss.from_dict(data)

    @staticmethod
    def from_dict(data: Any) -> Loss:
        """The loss that plain data stand for."""
        from hubbub.privacy.kinds import read

        return read(data)


@dataclass(frozen=True)
class _Accounted:
    """The accountant's curve; its lower ends count only where the pairs are attained."""

    pairs: accountant.Parts
    attained: bool

    def epsilon_interval(self, delta: float) -> tuple[float, float]:
        low, high = accountant.epsilon_interval(self.pairs, delta)
        return low if self.attained else 0.0, high

    def delta_interval(self, epsilon: float) -> tuple[float, float]:
        low, high = accountant.delta_interval(self.pairs, epsilon)
        return low if self.attained else 0.0, high


@dataclass(frozen=True)
class Composed(Loss):
    """Several losses together, each with how often it occurs, adaptively chosen or not.

    Claim: the price of the whole is at most what the accountant computes from the parts' dominating pairs.
    Proof: ZDW22, Theorem 10 (dominating pairs compose, adaptively); Renyi divergences and pure epsilons add (M17,
        DMNS06).
    Assumes: every part's own claim; parts chosen as a function of earlier outputs must be of these kinds.
    """

    parts: tuple[tuple[Loss, int], ...]
    tag: ClassVar[str] = "composed"

    def __post_init__(self) -> None:
        merged: dict[Loss, int] = {}
        for loss, n in self.parts:
            for part, m in loss._parts():
                merged[part] = merged.get(part, 0) + m * count("count", n)
        if not merged:
            raise ParameterError("losses", [], "must hold at least one loss")
        if len({part.neighbours for part in merged}) > 1:
            raise ParameterError(
                "neighbours",
                sorted({p.neighbours for p in merged}),
                "cannot be mixed",
                "convert with to_replace() first",
            )
        ordered = tuple(sorted(merged.items(), key=lambda item: item[0].to_json()))
        object.__setattr__(self, "parts", ordered)

    @property
    def neighbours(self) -> Neighbours:  # type: ignore[override]
        return self.parts[0][0].neighbours

    def __repr__(self) -> str:
        return " + ".join(f"{part!r} * {n}" if n > 1 else repr(part) for part, n in self.parts)

    def _parts(self) -> tuple[tuple[Loss, int], ...]:
        return self.parts

    def renyi(self, order: Number) -> float:
        return math.fsum(n * part.renyi(order) for part, n in self.parts)

    def _fields(self) -> dict[str, Any]:
        return {"parts": [[part.to_dict(), n] for part, n in self.parts]}


def compose(losses: Iterable[Loss]) -> Loss:
    """All losses together; one alone is itself.

    >>> from hubbub.privacy import PureDP
    >>> compose([PureDP(0.1)] * 10).epsilon()
    1.0
    """
    every = tuple(losses)
    relations = {loss.neighbours for loss in every}
    if len(relations) > 1:
        raise ParameterError("neighbours", sorted(relations), "cannot be mixed", "convert with to_replace() first")
    costly = tuple((loss, 1) for loss in every if loss._parts())
    if not costly and every:
        return every[0]
    composed = Composed(costly)
    part, n = composed.parts[0]
    return part if len(composed.parts) == 1 and n == 1 else composed
