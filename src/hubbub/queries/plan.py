"""From a question to a plan: which sums are measured, with which noise, at which price. Reads no row."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

from hubbub.domains.contribution import Contribution
from hubbub.domains.schema import Schema
from hubbub.errors import ParameterError, QueryRefused
from hubbub.mechanisms import Gaussian, Laplace, NoisyMax, Quantile, TopK
from hubbub.mechanisms.additive import AdditiveNoise
from hubbub.mechanisms.keys import KeySelection
from hubbub.mechanisms.mechanism import Mechanism
from hubbub.numeric.rational import Number, decimal_down, float_down, float_up, positive, rational
from hubbub.privacy.gaussian import largest_mu
from hubbub.privacy.loss import Loss, compose
from hubbub.queries.aggregates import Aggregate
from hubbub.queries.kinds import MOST_GROUPS, Listed, Truth, Whole, public_values
from hubbub.queries.measures import Measure, exact_root
from hubbub.queries.query import Query

STRETCH = 256
"""Shares of epsilon are enlarged in steps of one part in 256, while the whole still fits."""
MOST_CANDIDATES = 1_000_000
"""Most frequent values are looked for among at most this many."""
MOST_SCORES = 10_000_000
"""Candidates in all groups together."""


@dataclass(frozen=True)
class Noisy:
    """A measure and its noise; the sums are multiplied by ``fineness`` before it (1 for Laplace). None: told
    exactly."""

    measure: Measure
    mechanism: AdditiveNoise | None
    fineness: int = 1

    @property
    def stddev(self) -> float:
        """The standard deviation of the noise of one sum."""
        return 0.0 if self.mechanism is None else math.sqrt(self.mechanism.variance) / self.fineness


@dataclass(frozen=True)
class Choice:
    """An aggregate that is chosen, not summed: a quantile, the most frequent value, the best price."""

    aggregate: Aggregate
    mechanism: Mechanism


@dataclass(frozen=True)
class Plan:
    """Everything that will happen, and what it costs, from public facts only."""

    schema: Schema
    query: Query
    epsilon: float
    delta: float
    groups: tuple[tuple[Any, ...], ...] | None
    """The public values of each key, or None where keys are private."""
    contribution: Contribution
    noisy: tuple[Noisy, ...]
    choices: tuple[Choice, ...]
    keys: KeySelection | None
    loss: Loss
    source: dict[Aggregate, tuple[Noisy, Callable[..., Any]]] = field(repr=False, compare=False)
    """For each summed aggregate, the measure it is read from, and how."""

    @property
    def group_count(self) -> int | None:
        """How many groups will be reported, where that is public."""
        return None if self.groups is None else math.prod(len(v) for v in self.groups)

    def group_keys(self) -> list[tuple[Any, ...]]:
        """Every public group."""
        assert self.groups is not None
        return list(product(*self.groups))


def make_plan(schema: Schema, query: Query, epsilon: Number, delta: Number = 0.0) -> Plan:
    """The plan with the least error for this price.

    Claim: releasing every noisy measure, every choice in every group, and the private keys costs ``loss``, whose
        epsilon at ``delta`` is at most ``epsilon``.
    Proof: adaptive composition (DMNS06) of mechanisms with the sensitivities proved in Measure and Contribution; the
        shares of epsilon and of delta add up to no more than the whole, or, where Gaussian noise composes for less
        than the sum, the accountant's certified epsilon of the whole at delta does not exceed it. A choice is made in
        every group: one person is in at most most_groups of them, so their price is that many times one's.
    Assumes: the engine bounds contributions as the schema says.
    """
    price = positive("epsilon", epsilon, "smaller positive values mean more privacy")
    failure = rational("delta", delta)
    if not 0 <= failure < 1:
        raise ParameterError("delta", delta, "must be at least 0 and less than 1", "such as 1e-6")
    plan = _with_shares(schema, query, price, failure, price)
    gaussian = any(isinstance(n.mechanism, Gaussian) for n in plan.noisy)
    if not (plan.choices or plan.keys) or not (gaussian or (plan.keys and plan.keys.noise == "gaussian")):
        return plan
    low, high = STRETCH, 2 * STRETCH
    while high - low > 1:
        middle = (low + high) // 2
        other = _with_shares(schema, query, price, failure, price * middle / STRETCH)
        fits = rational("epsilon", other.loss.epsilon(float_down(failure))) <= price
        low, high, plan = (middle, high, other) if fits else (low, middle, plan)
    return plan


def _with_shares(schema: Schema, query: Query, price: Fraction, failure: Fraction, shared: Fraction) -> Plan:
    """The plan whose parts have shares of ``shared``, an epsilon for all of them."""
    values = [public_values(x.kind) for _, x in query.keys]
    private = any(v is None for v in values)
    groups = None if private else tuple(tuple(v) for v in values if v is not None)
    size = None if groups is None else math.prod(len(v) for v in groups)
    if size is not None and size > MOST_GROUPS:
        raise QueryRefused(f"{size} public groups", f"at most {MOST_GROUPS} are reported; group by fewer or wider keys")
    if private and not failure:
        raise ParameterError("delta", float(failure), "must be > 0 to select private keys", "give delta=, such as 1e-6")
    contribution = schema.contribution.within(size)
    wanted, chosen = _measures(query, schema)
    items = len(wanted) + len(chosen) + private
    shares = _shares(shared, items)
    alone = size == 1
    always = schema.unit is None and query.counts_every_row
    summed = sum(shares[: len(wanted)], Fraction(0))
    split = failure / 2 if private else failure
    noisy = _noise(list(wanted), summed, split, schema, contribution, alone, always)
    times = contribution.most_groups * (1 if schema.neighbours == "add-remove" or alone else 2)
    choices = [
        _choice(a, _shares(share, times)[0], schema, contribution, size or 1)
        for a, share in zip(chosen, shares[len(wanted) :], strict=False)
    ]
    spent = split if any(isinstance(n.mechanism, Gaussian) for n in noisy) else Fraction(0)
    keys = None
    if private:
        keys = KeySelection(
            epsilon=shares[-1], delta=failure - spent, max_groups=contribution.most_groups, neighbours=schema.neighbours
        )
    parts = [n.mechanism.loss for n in noisy if n.mechanism is not None]
    parts += [c.mechanism.loss * times for c in choices]
    parts += [keys.loss] if keys is not None else []
    if not parts:
        raise QueryRefused("a question whose answer is public already", "it follows from the declared columns alone")
    by_measure = {n.measure: n for n in noisy}
    return Plan(
        schema=schema,
        query=query,
        epsilon=float_up(price),
        delta=float_up(failure),
        groups=groups,
        contribution=contribution,
        noisy=tuple(noisy),
        choices=tuple(choices),
        keys=keys,
        loss=compose(parts),
        source={a: (by_measure[m], read) for m, reads in wanted.items() for a, read in reads},
    )


Reads = list[tuple[Aggregate, Callable[..., Any]]]


def _measures(query: Query, schema: Schema) -> tuple[dict[Measure, Reads], list[Aggregate]]:
    """The measures the aggregates are read from, how each is read, and the aggregates that are chosen instead."""
    asked = query.aggregates
    counted = next((a for a in asked if a.function == "count" and a.argument is None), None)
    numbers: dict[str, list[Aggregate]] = {}
    measures: dict[Measure, Reads] = {}
    chosen = []
    for a in asked:
        if a.function == "sum" and a.parameters:
            measures[Measure.of_sum(a)] = [(a, Measure.total)]
        elif a.function in ("sum", "mean", "variance", "stddev"):
            assert a.argument is not None
            numbers.setdefault(a.argument.text, []).append(a)
        elif a.function in ("quantile", "mode", "top", "best price"):
            chosen.append(a)
    for text, aggregates in numbers.items():
        argument = aggregates[0].argument
        assert argument is not None
        functions = {a.function for a in aggregates}
        present = next(
            (a for a in asked if a.function == "count" and a.argument is not None and a.argument.text == text), None
        )
        if functions == {"sum"} and counted is None and present is None:
            measures[Measure.of_sum(aggregates[0])] = [(aggregates[0], Measure.total)]
            continue
        degree = 2 if functions & {"variance", "stddev"} else 1
        unseen = counted is not None and argument.kind.nullable
        # a missing value adds nothing to a total, so where nothing else is asked it may count as 0, which needs no part
        zero = unseen and functions == {"sum"} and present is None and argument.number.low <= 0 <= argument.number.high
        measure = Measure("moments", argument, degree, missing=unseen and not zero, zero=zero)
        reads: Reads = [(a, _READ[a.function]) for a in aggregates]
        reads += [(counted, Measure.count)] if counted is not None else []
        reads += [(present, Measure.present)] if present is not None else []
        counted = None
        measures[measure] = reads
    done = {a for reads in measures.values() for a, _ in reads}
    for a in asked:
        if a in done or a in chosen:
            continue
        if a.function == "count units" and schema.unit is None:
            a_measure = Measure("rows")
        else:
            kinds = {"count": "rows", "count units": "units", "count distinct": "distinct"}
            a_measure = Measure(kinds[a.function], a.argument)  # type: ignore[arg-type]
        measures.setdefault(a_measure, []).append((a, Measure.count))
    return measures, chosen


_READ: dict[str, Callable[..., Any]] = {
    "sum": Measure.total,
    "mean": Measure.mean,
    "variance": Measure.variance,
    "stddev": lambda m, sums: m.variance(sums) ** 0.5,
}


def _shares(epsilon: Fraction, items: int) -> list[Fraction]:
    """Equal shares, cut to decimals; the last gets what is left, cut as well, since a float of it is rounded up."""
    if items == 1:
        return [epsilon]
    each = decimal_down(epsilon / items)
    return [each] * (items - 1) + [decimal_down(epsilon - each * (items - 1))]


def _noise(
    wanted: list[Measure],
    epsilon: Fraction,
    delta: Fraction,
    schema: Schema,
    c: Contribution,
    alone: bool,
    always: bool,
) -> list[Noisy]:
    """Laplace or Gaussian noise for all measures, whichever has the smaller standard deviations on the whole."""
    n = schema.neighbours
    moved = [m for m in wanted if m.l1(c, n, alone, always)]
    told = [Noisy(m, None) for m in wanted if m not in moved]
    if not moved:
        return told
    shares = _shares(epsilon, len(moved))
    found = [
        Noisy(m, Laplace(m.l1(c, n, alone, always), epsilon=share, neighbours=n))
        for m, share in zip(moved, shares, strict=True)
    ]
    if delta:
        mu_squared = Fraction(largest_mu(epsilon, delta)) ** 2 / len(moved)
        others = [_gaussian(m, m.squared_l2(c, n, alone, always), mu_squared, schema) for m in moved]
        if sum(math.log(x.stddev) for x in others) < sum(math.log(x.stddev) for x in found):
            found = others
    return [*found, *told]


def _gaussian(measure: Measure, square: int, mu_squared: Fraction, schema: Schema) -> Noisy:
    root, fineness = exact_root(square)
    sigma = Fraction(root) / Fraction(math.sqrt(mu_squared)) * (1 + Fraction(1, 2**40))
    return Noisy(measure, Gaussian(root, sigma=float_up(sigma), neighbours=schema.neighbours), fineness)


def _choice(aggregate: Aggregate, each: Fraction, schema: Schema, c: Contribution, groups: int) -> Choice:
    """The mechanism that runs in every group, for the price of one group."""
    rows = min(c.rows, c.most_rows)
    assert aggregate.argument is not None
    kind = aggregate.argument.kind
    if aggregate.function == "quantile":
        number = aggregate.argument.number
        if number.low == number.high:
            raise QueryRefused(f"{aggregate.text} of a constant", "its bounds are one value, which is the answer")
        return Choice(
            aggregate,
            Quantile(
                aggregate.parameters[0],
                bounds=(number.low, number.high),
                epsilon=each,
                neighbours=schema.neighbours,
                records=rows,
            ),
        )
    monotone = schema.neighbours == "add-remove"
    if aggregate.function == "best price":
        most = max(whole_prices(aggregate))
        return Choice(aggregate, NoisyMax(most * rows, epsilon=each, monotone=monotone, neighbours=schema.neighbours))
    among = len(candidates(kind))
    if among * groups > MOST_SCORES:
        raise QueryRefused(f"{aggregate.text} among {among} values in {groups} groups", "ask for fewer of either")
    if aggregate.function == "top" and aggregate.parameters[0] > among:
        raise ParameterError("k", aggregate.parameters[0], f"is more than the {among} values there are")
    if aggregate.function == "mode":
        return Choice(aggregate, NoisyMax(rows, epsilon=each, monotone=monotone, neighbours=schema.neighbours))
    return Choice(
        aggregate,
        TopK(rows, k=int(aggregate.parameters[0]), epsilon=each, monotone=monotone, neighbours=schema.neighbours),
    )


def whole_prices(aggregate: Aggregate) -> list[int]:
    """The prices of a best-price question in their smallest common unit."""
    prices = [rational("prices", p) for p in aggregate.parameters]
    unit = math.lcm(*(p.denominator for p in prices))
    return [int(p * unit) for p in prices]


def candidates(kind: Any) -> list[Any]:
    """The public values among which the most frequent is looked for."""
    if isinstance(kind, Listed | Truth) or (isinstance(kind, Whole) and kind.high - kind.low < MOST_CANDIDATES):
        values = public_values(kind)
        assert values is not None
        return values
    raise QueryRefused("the most frequent of so many values", "declare public categories, or group by the column")
