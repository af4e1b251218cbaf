"""What a question would cost and how good its answer would be, from public facts only."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.domains.schema import Schema
from hubbub.errors import ParameterError
from hubbub.mechanisms import Gaussian, Quantile
from hubbub.numeric.rational import Number, fraction_between, positive
from hubbub.queries.noise import POINTS, spread
from hubbub.queries.plan import Noisy, Plan, make_plan
from hubbub.queries.query import Query

SIZES = (100, 1_000, 10_000, 100_000)
"""Group sizes for which the error of a mean is foretold."""


@dataclass(frozen=True)
class Explanation:
    """A plan, for people to read."""

    plan: Plan

    @property
    def epsilon(self) -> float:
        """What the question would cost at its delta, computed from its loss."""
        return self.plan.loss.epsilon(self.plan.delta)

    @property
    def loss(self) -> Any:
        """The loss that would be charged."""
        return self.plan.loss

    def error(self, name: str, size: int = 10_000, confidence: float = 0.95) -> float:
        """The expected half-width of an output's interval in a group of this many rows."""
        for output in self.plan.query.outputs:
            if output.name == name and output.value.aggregate in self.plan.source:
                assert output.value.aggregate is not None
                noisy, reading = self.plan.source[output.value.aggregate]
                return _foretold(noisy, reading, size, confidence)
        return float("nan")

    def to_json(self) -> str:
        """Cost, loss, text and the expected errors by size of group, as JSON."""
        p = self.plan
        outputs = {
            o.name: {str(size): self.error(o.name, size) for size in SIZES}
            for o in p.query.outputs
            if o.value.aggregate in p.source
        }
        told = {
            "epsilon": self.epsilon,
            "delta": p.delta,
            "neighbours": p.schema.neighbours,
            "unit": p.schema.unit or "row",
            "groups": p.group_count,
            "loss": json.loads(p.loss.to_json()),
            "errors": outputs,
            "confidence": 0.95,
            "text": repr(self),
        }
        return json.dumps(told, allow_nan=False)

    def __repr__(self) -> str:
        p = self.plan
        whose = p.schema.unit or "row"
        c = p.contribution
        bounds = "" if p.schema.unit is None else f"; of one {whose} at most {c.rows} rows in each of {c.groups} groups"
        bounds += "" if c.total is None else f", {c.total} in all"
        groups = "private keys" if p.groups is None else f"{p.group_count} group{'s' if p.group_count != 1 else ''}"
        delta = f" at delta {p.delta:.3g}" if p.delta else ""
        lines = [
            f"cost: epsilon {self.epsilon:.6g}{delta}, {p.schema.neighbours} one {whose}{bounds}",
            f"answer: {groups}",
        ]
        for n in p.noisy:
            lines.append(f"  {n.measure.name}: {_noise_words(n)}")
        for choice in p.choices:
            words = type(choice.mechanism).__name__
            if isinstance(choice.mechanism, Quantile):
                off = rank_error(choice.mechanism)
                words += f" at epsilon {choice.mechanism.epsilon:.4g} a group, rank within {off:.4g} rows (95 %)"
            lines.append(f"  {choice.aggregate.text}: {words}")
        if p.keys is not None:
            lines.append(f"  keys: shown if more than {p.keys.threshold} {whose}s with noise ({p.keys.noise})")
        for output in p.query.outputs:
            if output.value.aggregate in p.source:
                lines.append(f"  {output.name}: {self._error_words(output.name)}")
        return "\n".join(lines)

    def _error_words(self, name: str) -> str:
        errors = [self.error(name, size) for size in SIZES]
        if max(errors) - min(errors) < 0.02 * max(errors):
            return f"within {errors[0]:.4g} (95 %)"
        listed = ", ".join(f"{e:.3g} in a group of {size:,}" for e, size in zip(errors, SIZES, strict=True))
        return f"within {listed} (95 %)"


def _noise_words(noisy: Noisy) -> str:
    if noisy.mechanism is None:
        return "public, told exactly"
    law = "Gaussian" if isinstance(noisy.mechanism, Gaussian) else "Laplace"
    parts = f", {noisy.measure.parts} parts measured together" if noisy.measure.parts > 1 else ""
    return (
        f"{law} noise, standard deviation {noisy.stddev / noisy.measure.whole:.4g} rows{parts}"
        if (noisy.measure.kind != "total")
        else f"{law} noise, standard deviation {noisy.stddev * float(noisy.measure.number.step):.4g}"
    )


def _foretold(noisy: Noisy, reading: Any, size: int, confidence: float) -> float:
    """The half-width, by simulation of the noise around a group whose values are spread over the middle of the
    range."""
    m = noisy.measure
    base = np.zeros((m.parts, POINTS))
    if m.kind == "moments":
        y = np.linspace(0.25, 0.75, 101)
        parts = [1 - y, y] if m.degree == 1 else [(1 - y) ** 2, 2 * y * (1 - y), y**2]
        for i, part in enumerate(parts):
            base[i] = size * m.whole * part.mean()
    else:
        base[:] = size
    values = np.asarray(reading(m, base + spread([noisy])[0]))
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(high - low) / 2


def rank_error(mechanism: Quantile, confidence: float = 0.95) -> float:
    """How many rows the rank of a released quantile may be off, at most, with this probability.

    MT07, Theorem 6: the exponential mechanism over candidates of weight m in all, the best at least 1, misses the best
    score by more than (2 sensitivity / epsilon)(ln m + t) with probability at most e**-t; permute-and-flip (MS20) does
    no worse.
    """
    share = float(mechanism.quantile)
    most = 1.0 if mechanism.neighbours == "replace" else max(share, 1 - share)
    return 2 * most * mechanism.records / mechanism.epsilon * math.log(mechanism.candidates / (1 - confidence))


CHEAPEST, DEAREST = 1e-6, 1e4
"""Prices tried for a wanted error."""


def price_for_error(
    schema: Schema, query: Query, delta: Number, error: Any, confidence: Number = 0.95, group_size: int | None = None
) -> Plan:
    """The plan with the least epsilon (to three digits) at which every output's error is within the wanted one."""
    sure = float(fraction_between("confidence", confidence, 0, 1))
    goals = _goals(query, error)
    plan = make_plan(schema, query, 1.0, delta)
    for output in query.outputs:
        aggregate = output.value.aggregate
        if output.name in goals and (aggregate is None or aggregate not in plan.source):
            raise ParameterError(
                "error", error, f"cannot be had for {output.name!r}", "ask for a price instead, epsilon="
            )
        if (
            output.name in goals
            and aggregate is not None
            and aggregate.function not in _SIZELESS
            and group_size is None
        ):
            raise ParameterError(
                "group_size",
                None,
                f"must be given: the error of {output.name!r} depends on it",
                "a public least number of rows",
            )

    def fits(epsilon: float) -> bool:
        explanation = Explanation(make_plan(schema, query, epsilon, delta))
        return all(explanation.error(name, group_size or SIZES[0], sure) <= wanted for name, wanted in goals.items())

    if not fits(DEAREST):
        raise ParameterError("error", error, "is too small at any price", "ask for a larger error")
    low, high = np.log10(CHEAPEST), np.log10(DEAREST)
    while high - low > 2e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(_digits(middle)) else (middle, high)
    return make_plan(schema, query, _digits(high), delta)


_SIZELESS = ("count", "count distinct", "count units", "sum")


def _digits(log: float) -> float:
    """A price of a given logarithm, as a decimal of four digits."""
    return float(f"{10**log:.4g}")


def _goals(query: Query, error: Any) -> dict[str, float]:
    names = [o.name for o in query.outputs if o.value.key is None]
    wanted = error if isinstance(error, dict) else dict.fromkeys(names, error)
    for name, value in wanted.items():
        if name not in names:
            raise ParameterError("error", name, "is not an output of the question", f"its outputs: {', '.join(names)}")
        positive("error", value)
    return {name: float(value) for name, value in wanted.items()}
