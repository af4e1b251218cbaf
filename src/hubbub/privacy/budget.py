"""A budget: a total that adaptively chosen releases may not exceed, kept by filters that are valid for any choice."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from hubbub.errors import BudgetExceeded, ParameterError, ParameterTypeError
from hubbub.numeric.rational import Number, float_down, positive, rational
from hubbub.privacy import renyi
from hubbub.privacy.families import NoLoss
from hubbub.privacy.loss import Loss, Neighbours, check_delta, check_neighbours, compose

LEVELS = 32
"""Filters side by side in the odometer; each gets its share of delta."""


@dataclass(frozen=True)
class Receipt:
    """One spend: its number, what was spent and why."""

    number: int
    loss: Loss
    note: str


class Filter:
    """Accepts losses while the sums of epsilons and deltas fit, or the sum of Renyi divergences at one fixed order.

    Claim: whatever losses an adversary chooses, adaptively, while accepted, the whole is (epsilon, delta)-DP.
    Proof: sums: DMNS06 and RRUV16, Theorem 3.1 (basic filter). Renyi: FZ21, Theorem 4.3 (a filter at an order fixed
        in advance) with CKS20, Proposition 12. Either: a run that ends within one filter is a run of that filter
        alone, since its sums only grow; the events add up, so the two shares of delta (one half each, all of it to
        Renyi at pure sums' zero) suffice. A first loss, chosen before anything was released, may instead take all by
        its own certified price: if only that accepts it, both filters are exceeded for good, and nothing follows.
    Assumes: every accepted loss is true of what then runs.
    """

    def __init__(self, epsilon: Fraction, delta: Fraction) -> None:
        self.epsilon, self.delta = epsilon, delta
        self.sum_epsilon, self.sum_delta = Fraction(0), Fraction(0)
        self.sum_renyi = 0.0
        self.count = 0
        self.order, self.capacity = _best_order(float(epsilon), float(delta) / 2) if delta else (2.0, -1.0)

    def after(self, loss: Loss, at: Fraction = Fraction(0)) -> tuple[Fraction, Fraction, float]:
        """The three sums if this loss were added; infinite where it has no such price.

        A loss with a part that is no pure or approximate one counts in the sums as a whole, by its epsilon at ``at``.
        """
        sum_epsilon: Fraction = self.sum_epsilon
        sum_delta: Fraction = self.sum_delta
        prices = [(part._basic(), n) for part, n in loss._parts()]
        if all(price is not None for price, _ in prices):
            sum_epsilon += sum(n * price[0] for price, n in prices if price)
            sum_delta += sum(n * price[1] for price, n in prices if price)
        else:
            whole = loss.epsilon(float_down(at)) if at else math.inf
            sum_epsilon += rational("epsilon", whole) if whole < math.inf else self.epsilon + 1
            sum_delta += at
        grown = self.sum_renyi + loss.renyi(self.order) if self.delta else math.inf
        return sum_epsilon, sum_delta, grown * (1 + 2.0**-50)

    def accepts(self, loss: Loss, at: Fraction = Fraction(0)) -> bool:
        """Whether this loss still fits."""
        sum_epsilon, sum_delta, grown = self.after(loss, at)
        if (sum_epsilon <= self.epsilon and sum_delta <= self.delta / 2) or grown <= self.capacity:
            return True
        return self.count == 0 and loss.epsilon(float_down(self.delta)) <= float_down(self.epsilon)

    def add(self, loss: Loss, at: Fraction = Fraction(0)) -> None:
        """Counts a loss."""
        self.sum_epsilon, self.sum_delta, self.sum_renyi = self.after(loss, at)
        self.count += 1

    def shortage(self, loss: Loss, at: Fraction = Fraction(0)) -> str:
        """What lacks for a refused loss, if it is delta alone: of a budget's, one half is for sums, one for Renyi.

        >>> from hubbub.privacy import ApproxDP
        >>> Filter(Fraction(1), Fraction(0)).shortage(ApproxDP(0.1, 1e-6))
        'it needs delta=1e-06, and the budget has none; give the budget a delta'
        """
        sum_epsilon, sum_delta, _ = self.after(loss, at)
        if sum_epsilon > self.epsilon or sum_delta <= self.delta / 2:
            return ""
        needed = float(sum_delta - self.sum_delta)
        if not self.delta:
            return f"it needs delta={needed:.3g}, and the budget has none; give the budget a delta"
        left = max(0.0, float_down(self.delta / 2 - self.sum_delta))
        return (
            f"it needs delta={needed:.3g}, and {left:.3g} is left (only a first spend may take more than half of the "
            f"budget's delta={float(self.delta):.3g}); ask with a smaller delta"
        )

    def state(self) -> dict[str, str]:
        """The sums, exactly, for a ledger to keep; with the limits and the order they belong to."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "sum_epsilon": str(self.sum_epsilon),
            "sum_delta": str(self.sum_delta),
            "sum_renyi": self.sum_renyi.hex(),
            "order": self.order.hex(),
            "count": str(self.count),
        }

    @classmethod
    def of_state(cls, state: Mapping[str, str]) -> Filter:
        """The filter whose state was kept; what fits is decided by the order it was begun with.

        >>> kept = Filter(Fraction(1), Fraction(0)).state()
        >>> Filter.of_state(kept).state() == kept
        True
        """
        found = cls(Fraction(state["epsilon"]), Fraction(state["delta"]))
        order = float.fromhex(state["order"])
        if order != found.order and found.delta:
            found.order, found.capacity = order, _capacity(order, float(found.epsilon), float(found.delta) / 2)
        found.sum_epsilon, found.sum_delta = Fraction(state["sum_epsilon"]), Fraction(state["sum_delta"])
        found.sum_renyi, found.count = float.fromhex(state["sum_renyi"]), int(state["count"])
        return found

    def left(self) -> float:
        """The largest pure epsilon that would still fit."""
        sums = float_down(self.epsilon - self.sum_epsilon) if self.sum_delta <= self.delta / 2 else 0.0
        low, high = 0.0, float(self.epsilon)
        room = self.capacity - self.sum_renyi * (1 + 2.0**-50)
        for _ in range(60 if room > 0 else 0):
            middle = (low + high) / 2
            fits = middle == 0 or renyi.of_randomised_response(self.order, middle) <= room
            low, high = (middle, high) if fits else (low, middle)
        return max(0.0, sums, low * (1 - 1e-12))  # so that exactly this much is accepted


def _best_order(epsilon: float, delta: float) -> tuple[float, float]:
    """The order at which the most Gaussian releases fit, and what they may add up to; from public numbers only."""
    order = max(renyi.ORDERS, key=lambda a: (epsilon - renyi.epsilon_at(a, 0.0, delta)) / a)
    return order, _capacity(order, epsilon, delta)


def _capacity(order: float, epsilon: float, delta: float) -> float:
    """What Renyi divergences of an order may add up to, rounded down."""
    room = epsilon - renyi.epsilon_at(order, 0.0, delta)
    return room - abs(room) * 2.0**-48


class Budget:
    """A privacy budget: every ``spend`` is checked against the total before anything happens.

    Thread-safe. Decimals are exact: ten spends of 0.1 fit in 1.0, an eleventh of any size does not.

    >>> from hubbub.privacy import PureDP
    >>> budget = Budget(epsilon=1.0)
    >>> for _ in range(10):
    ...     _ = budget.spend(PureDP(0.1))
    >>> budget.remaining
    0.0
    """

    def __init__(self, epsilon: Number, delta: Number = 0.0, neighbours: Neighbours = "add-remove") -> None:
        self.epsilon, self.delta = float(positive("epsilon", epsilon)), float(check_delta(delta))
        self.neighbours = check_neighbours(neighbours)
        exact, room = rational("epsilon", epsilon), rational("delta", delta)
        self._filter = Filter(exact, room)
        self._levels = [Filter(exact * k / LEVELS, room / LEVELS) for k in range(1, LEVELS + 1)]
        self._receipts: list[Receipt] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        limit = f"epsilon={self.epsilon!r}, delta={self.delta!r}, neighbours={self.neighbours!r}"
        return f"<Budget({limit}): {len(self._receipts)} spends, {self.remaining:.6g} of epsilon left>"

    def __copy__(self, _: object = None) -> Budget:
        """The budget itself: a copy could be spent a second time."""
        return self

    __deepcopy__ = __copy__

    def spend(self, loss: Loss, note: str = "", delta: Number = 0.0) -> Receipt:
        """Takes a loss out of the budget, or raises BudgetExceeded with nothing spent.

        ``delta`` is where the sum of epsilons may price a loss that has no price of its own there, such as a Gaussian.

        Claim: whatever is accepted, adaptively, is together (epsilon, delta)-DP at the budget's pair.
        Proof: as for Filter.
        Assumes: as for Filter.
        """
        at = rational("delta", check_delta(delta))
        if not isinstance(loss, Loss):
            raise ParameterTypeError("loss", type(loss).__name__, "must be a Loss", "spend mechanism.loss")
        if not loss._parts():
            raise ParameterError("loss", loss, "costs nothing", "nothing is free; spend what runs")
        if loss.neighbours != self.neighbours:
            raise ParameterError(
                "neighbours", loss.neighbours, f"is not the budget's {self.neighbours}", "convert with to_replace()"
            )
        with self._lock:
            if not self._filter.accepts(loss, at):
                raise BudgetExceeded(
                    loss,
                    self._spent(),
                    (self.epsilon, self.delta),
                    self._filter.left(),
                    self._filter.shortage(loss, at),
                )
            self._filter.add(loss, at)
            for level in self._levels:
                level.add(loss, at)
            receipt = Receipt(len(self._receipts) + 1, loss, note)
            self._receipts.append(receipt)
            return receipt

    @property
    def spent(self) -> Loss:
        """Everything spent so far, as one loss."""
        with self._lock:
            return self._spent()

    def _spent(self) -> Loss:
        return compose([NoLoss(self.neighbours), *(r.loss for r in self._receipts)])

    @property
    def remaining(self) -> float:
        """The largest pure epsilon that would still be accepted."""
        with self._lock:
            return self._filter.left()

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Every spend, in order."""
        with self._lock:
            return tuple(self._receipts)

    def odometer(self) -> float:
        """An epsilon that bounds, at twice the budget's delta, all that has run so far: valid at every moment at once.

        The lowest of 32 levels whose own filter, with its share of delta, has not been exceeded, or the budget's own
        epsilon: a union bound over the levels, which take one delta together, and the budget, which takes another.
        """
        with self._lock:
            for level in self._levels:
                sums = level.sum_epsilon <= level.epsilon and level.sum_delta <= level.delta / 2
                if sums or level.sum_renyi <= level.capacity:
                    return 0.0 if not self._receipts else float(level.epsilon)
            return self.epsilon
