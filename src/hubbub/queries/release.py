"""Noise on the engine's exact integers, and the answer made of it. Nothing private passes beyond this point."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.quantile import Counted
from hubbub.numeric.rational import rational
from hubbub.queries.answers import Answer, Column, Receipt
from hubbub.queries.engine import Exact, sortable
from hubbub.queries.kinds import Listed, Secret, Time, Truth, Whole
from hubbub.queries.noise import spread
from hubbub.queries.plan import Choice, Noisy, Plan, candidates, whole_prices
from hubbub.queries.query import Output, Query


def release(plan: Plan, exact: Exact, receipt: Receipt) -> Answer:
    """The private answer: keys selected, noise added, choices made, and then what the question shows of them."""
    shown = exact.keys
    if plan.keys is not None:
        assert exact.people is not None
        people = dict(zip(exact.keys, exact.people.tolist(), strict=True))
        shown = sorted(plan.keys.release(people), key=sortable)
        exact = exact.only(shown)
    sums = [_noised(n, s) for n, s in zip(plan.noisy, exact.sums, strict=True)]
    chosen = {
        c.aggregate.text: _array([_choose(c, found) for found in values])
        for c, values in zip(plan.choices, exact.values, strict=True)
    }
    keys = {name: _array([key[k] for key in shown]) for k, (name, _) in enumerate(plan.query.keys)}
    return answer(plan, keys, sums, chosen, receipt)


def _noised(noisy: Noisy, sums: NDArray[Any]) -> NDArray[Any]:
    """Sums with noise, as floats (counts beyond 2**53 lose their last digits after the noise, not before)."""
    if noisy.mechanism is None:
        return np.asarray(sums, dtype=float)
    flat = sums.ravel()
    if noisy.fineness > 1:  # as Python integers: a product of 64-bit ones could wrap around
        flat = flat.astype(object) * noisy.fineness
    released = noisy.mechanism.release([int(v) for v in flat] if flat.dtype == object else flat)
    return np.asarray(released, dtype=float).reshape(sums.shape) / noisy.fineness


def _choose(choice: Choice, values: Any) -> Any:
    aggregate = choice.aggregate
    assert aggregate.argument is not None
    if aggregate.function == "quantile":
        step = aggregate.argument.number.step
        value = choice.mechanism.release(values) * step
        return int(value) if step.denominator == 1 else float(value)
    if aggregate.function == "best price":
        return aggregate.parameters[choice.mechanism.release(takings(choice, values))]
    listed = candidates(aggregate.argument.kind)
    scores = [values.get(v, 0) for v in _raw(choice, listed)]
    found = choice.mechanism.release(scores)
    return listed[found] if aggregate.function == "mode" else tuple(listed[i] for i in found)


def _raw(choice: Choice, listed: list[Any]) -> list[Any]:
    """The listed values as the engine writes them: numbers in steps."""
    kind = choice.aggregate.argument.kind if choice.aggregate.argument else None
    return list(range(kind.low, kind.high + 1)) if isinstance(kind, Whole) else listed


def takings(choice: Choice, values: Counted) -> list[int]:
    """What each price would bring in: price times the rows whose value reaches it."""
    argument = choice.aggregate.argument
    assert argument is not None
    found = []
    for price, whole in zip(choice.aggregate.parameters, whole_prices(choice.aggregate), strict=True):
        least = argument.number.near(rational("prices", price))
        found.append(whole * int(values.counts[values.values >= least].sum()))
    return found


def rehearse(plan: Plan) -> None:
    """What the question shows, computed on made-up values, so that it cannot fail after it was paid for: on none, one
    and several groups, and on each kind of value that private keys may have."""
    for day in (False, True):
        for groups in (0, 1, 2):
            _rehearse(plan, groups, day)


def _rehearse(plan: Plan, groups: int, day: bool) -> None:
    keys = {name: _array([_made_up(x.kind, day)] * groups) for name, x in plan.query.keys}
    if not keys and groups != 1:
        return
    sums = [np.ones((n.measure.parts, groups)) for n in plan.noisy]
    chosen = {}
    for c in plan.choices:
        assert c.aggregate.argument is not None
        if c.aggregate.function == "quantile":
            value: Any = 1 if c.aggregate.argument.number.step.denominator == 1 else 1.0
        elif c.aggregate.function == "best price":
            value = c.aggregate.parameters[0]
        else:
            value = candidates(c.aggregate.argument.kind)[0]
        chosen[c.aggregate.text] = _array([(value,) if c.aggregate.function == "top" else value] * groups)
    receipt = Receipt(plan.loss, plan.epsilon, plan.delta, "", plan.schema.neighbours)
    answer(plan, keys, sums, chosen, receipt).intervals()


def _made_up(kind: Any, day: bool) -> Any:
    """A value such as a key of this kind has; private keys that are not texts are numbers or days."""
    match kind:
        case Secret(text):
            return "" if text else dt.date(2000, 1, 1) if day else 0
        case Time(low):
            return low
        case Listed(values):
            return values[0]
        case Truth():
            return True
        case _:
            return 0 if kind.step.denominator == 1 else 0.0


def _array(values: list[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        out[i] = value
    return out


def answer(
    plan: Plan, keys: Mapping[str, Any], sums: list[NDArray[Any]], chosen: Mapping[str, Any], receipt: Receipt
) -> Answer:
    """What the question shows of released values, with intervals from the public law of the noise."""
    query = plan.query
    columns = {**keys, **read(plan, sums), **chosen}
    rows = _order(query, columns, len(next(iter(columns.values()))))
    noise = spread(plan.noisy)

    def simulated(output: Output, part: slice) -> NDArray[Any]:
        """Values the truth might have had in some groups: the released sums with noise of all sizes taken off."""
        at = rows[part]
        moved = [s[:, None, at] - n[:, :, None] for s, n in zip(sums, noise, strict=True)]
        among = {name: values[at] for name, values in {**keys, **chosen}.items()}
        return np.asarray(output.value.evaluate({**among, **read(plan, moved)}), dtype=float)

    shown = []
    for o in query.outputs:
        summed = o.value.key is None and all(a.text not in chosen for a in o.value.aggregates)
        shown.append(
            Column(
                o.name,
                o.value.evaluate(columns)[rows],
                key=o.value.key is not None,
                simulate=partial(simulated, o) if summed else None,
                text=o.value.text,
                share=_share(o),
            )
        )
    return Answer(tuple(shown), receipt)


def _share(output: Output) -> float | None:
    aggregate = output.value.aggregate
    return float(aggregate.parameters[0]) if aggregate is not None and aggregate.function == "quantile" else None


def read(plan: Plan, sums: list[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Every summed aggregate, read off its measure's sums."""
    place = {n.measure: i for i, n in enumerate(plan.noisy)}
    found = {}
    for aggregate, (noisy, reading) in plan.source.items():
        found[aggregate.text] = np.asarray(reading(noisy.measure, sums[place[noisy.measure]]))
    return found


def _order(query: Query, columns: Mapping[str, Any], size: int) -> NDArray[Any]:
    """Which groups are shown, in which order: HAVING, ORDER BY, LIMIT, all on released values."""
    rows = np.arange(size)
    if query.having is not None:
        rows = rows[np.asarray(query.having.evaluate(columns), dtype=bool)[rows]]
    for order in reversed(query.order):
        values = order.value.evaluate(columns)[rows]
        try:
            ranks = np.argsort(values.astype(float), kind="stable")
        except (TypeError, ValueError):
            ranks = np.array(sorted(range(len(values)), key=lambda i: str(values[i])), dtype=int)
        if order.descending:
            ranks = ranks[::-1]
        rows = rows[ranks]
    stop = None if query.limit is None else query.offset + query.limit
    return rows[query.offset : stop]
