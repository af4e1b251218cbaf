"""How a data set's budget stands: for all together, for one person, and how it came to that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from hubbub.curator.accounts import Account
from hubbub.curator.config import Dataset
from hubbub.curator.ledger import Entry
from hubbub.curator.service import Curator
from hubbub.curator.web.charts import Axis, Chart, Line
from hubbub.curator.web.formats import number
from hubbub.numeric.rational import rational
from hubbub.privacy.budget import Filter

STEPS = 200
"""Steps a picture shows at most."""


@dataclass(frozen=True)
class Share:
    """A limit, and what of it still fits."""

    limit: float
    left: float

    @property
    def used(self) -> float:
        """What no longer fits."""
        return max(0.0, self.limit - self.left)


@dataclass(frozen=True)
class Standing:
    """A data set's budget as one person sees it."""

    dataset: Dataset
    everybody: Share
    cap: Share | None
    """Of this person alone, where they have one."""
    yours: float
    """The largest pure epsilon that still fits for this person."""


def standing(the: Curator, account: Account, dataset: Dataset) -> Standing:
    """How a data set stands for somebody who may see it."""
    own = the.accounts.caps(dataset.name).get(account.name)
    left = the.ledger.remaining(dataset.name)
    return Standing(
        dataset,
        Share(float(dataset.epsilon), left),
        None if own is None else share(own),
        min([left] if own is None else [left, own.left()]),
    )


def share(limits: Filter) -> Share:
    """What a filter has let through."""
    return Share(float(limits.epsilon), limits.left())


def spenders(entries: Sequence[Entry], dataset: Dataset) -> dict[str, float]:
    """What each analyst's charges take of a data set's limit, by themselves."""
    filters: dict[str, Filter] = {}
    for entry in entries:
        filters.setdefault(entry.analyst, _empty(dataset)).add(entry.loss, Fraction(entry.delta))
    return {analyst: share(f).used for analyst, f in filters.items()}


def over_time(entries: Sequence[Entry], dataset: Dataset, analyst: str | None) -> Chart:
    """What was spent after every charge: of all together, and of one analyst where named."""
    everybody, own = _empty(dataset), _empty(dataset)
    total, mine = [(0.0, 0.0)], [(0.0, 0.0)]
    every = max(1, len(entries) // STEPS)
    for n, entry in enumerate(entries, 1):
        everybody.add(entry.loss, Fraction(entry.delta))
        if entry.analyst == analyst:
            own.add(entry.loss, Fraction(entry.delta))
        if n % every == 0 or n == len(entries):
            total.append((n, share(everybody).used))
            mine.append((n, share(own).used))
    for line in (total, mine):
        line.append((1.04 * max(len(entries), 1), line[-1][1]))
    limit, last = float(dataset.epsilon), max(len(entries), 1)
    lines = [Line(_steps(total), "main", "all analysts together")]
    if analyst is not None:
        lines.append(Line(_steps(mine), "second", "you"))
    lines.append(Line([(0, limit), (1.04 * last, limit)], "faint", "the limit"))
    said = f"After {len(entries)} charges, ε = {number(total[-1][1])} of {number(limit)} is spent"
    said += f", {number(mine[-1][1])} of it by you." if analyst is not None else "."
    ticks = sorted({round(last * k / 4) for k in range(5)})
    return Chart(
        "Budget over time",
        said,
        Axis("charges", 0, 1.04 * last, tuple((t, number(t, 9)) for t in ticks)),
        Axis("ε spent", 0, limit, tuple((limit * k / 4, number(limit * k / 4)) for k in range(5))),
        tuple(lines),
        id="over-time",
    )


def _empty(dataset: Dataset) -> Filter:
    return Filter(rational("epsilon", dataset.epsilon), rational("delta", dataset.delta))


def _steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Level until the next point, then up to it."""
    found = [points[0]]
    for (_, before), (x, after) in pairwise(points):
        found += [(x, before), (x, after)]
    return found
