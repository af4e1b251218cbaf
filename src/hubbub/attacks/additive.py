"""Why privacy is not measured by total variation: two mechanisms that pass that test and publish people's rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.coins import coins
from hubbub.attacks.demands import share_of, whole
from hubbub.errors import ParameterError

Rule = Literal["everything", "each row"]
RULES = ("everything", "each row")


@dataclass(frozen=True)
class AdditiveCounterexample:
    """Publishes everything with probability delta, or each row with probability delta; otherwise a blank.

    Claim: the laws of the output on databases that differ in one row are delta apart in total variation, so it is
        "delta-additively" private, (0, delta)-DP; yet epsilon is infinite at any smaller delta. Some row is published
        with probability ``any_row``: delta for everything, 1 - (1 - delta)**people for each row.
    Proof: neighbours' outputs differ only where the changed row is published, which happens with probability delta, and
        then no output is possible under both. Rows are published independently, or all together.
    Assumes: neighbours replace one row by another.

    >>> leak = AdditiveCounterexample("each row", people=1000, delta=1 / 1000)
    >>> leak.total_variation, round(leak.any_row, 3), leak.expected_rows
    (0.001, 0.632, 1.0)
    """

    rule: Rule
    people: int
    delta: float

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ParameterError("rule", self.rule, f"must be one of {', '.join(RULES)}")
        whole("people", self.people, 1)
        share_of("delta", self.delta)

    @property
    def total_variation(self) -> float:
        """The distance between the laws of the output on neighbours."""
        return self.delta

    @property
    def any_row(self) -> float:
        """The probability that at least one person's row is published."""
        if self.rule == "everything" or self.delta == 1:
            return self.delta
        return -math.expm1(self.people * math.log1p(-self.delta))

    @property
    def expected_rows(self) -> float:
        """How many rows are published on average: the same by either rule."""
        return self.people * self.delta

    def release(self, rows: NDArray[Any], seed: int) -> list[Any]:
        """One release of these rows, None for a blank. A demonstration: it protects nobody."""
        generator = coins(seed)
        draws = 1 if self.rule == "everything" else len(rows)
        shown = np.broadcast_to(generator.random(draws) < self.delta, len(rows))
        return [row if seen else None for row, seen in zip(rows.tolist(), shown, strict=True)]

    def simulate(self, releases: int, seed: int = 0) -> tuple[float, float]:
        """The share of simulated releases that published a row, and the mean number of rows they published."""
        generator = coins(seed)
        if self.rule == "everything":
            rows = self.people * generator.binomial(1, self.delta, releases)
        else:
            rows = generator.binomial(self.people, self.delta, releases)
        return float(np.mean(rows > 0)), float(rows.mean())
