"""How a budget came to stand as it does: what was spent after every charge, of all and of each analyst."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise

from hubbub.curator.chain import Entry
from hubbub.curator.config import Dataset
from hubbub.curator.ledger import Ledger
from hubbub.curator.web.charts import Axis, Chart, Line
from hubbub.curator.web.formats import number
from hubbub.curator.web.standings import share
from hubbub.numeric.rational import rational
from hubbub.privacy.budget import Filter

NEARBY = 100
"""Entries looked at beside the new ones: others may be charged meanwhile."""
STEPS = 200
"""Steps a picture shows at most."""

Points = list[tuple[float, float]]


class Trail:
    """A data set's charges, added up one after another as the ledger does."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.length = 0
        self.last = 0
        self.dates: tuple[str, str] | None = None
        self._everybody = self._empty()
        self._each: dict[str, Filter] = {}
        self._total: Points = [(0.0, 0.0)]
        self._own: dict[str, Points] = {}

    def add(self, entry: Entry) -> None:
        """The next charge."""
        self.length += 1
        self.last = entry.number
        self.dates = (self.dates[0] if self.dates else entry.at[:10], entry.at[:10])
        own = self._each.setdefault(entry.analyst, self._empty())
        for line, filter_ in ((self._total, self._everybody), (self._own.setdefault(entry.analyst, []), own)):
            filter_.add(entry.loss, Fraction(entry.delta))
            line.append((self.length, share(filter_).used))

    def spent(self) -> dict[str, float]:
        """What each analyst's charges take of the data set's limit, by themselves."""
        return {analyst: line[-1][1] for analyst, line in sorted(self._own.items())}

    def chart(self, analyst: str | None) -> Chart:
        """The budget over time: of all together, and of one analyst where named."""
        limit, last = float(self.dataset.epsilon), max(self.length, 1)
        end = 1.04 * last
        lines = [Line(_steps(self._total, end), "main", "all analysts together")]
        said = f"After {self.length} charges, ε = {number(self._total[-1][1])} of {number(limit)} is spent"
        if analyst is not None:
            own = [(0.0, 0.0), *self._own.get(analyst, [])]
            lines.append(Line(_steps(own, end), "second", "you"))
            said += f", {number(own[-1][1])} of it by you"
        lines.append(Line([(0, limit), (end, limit)], "faint", "the limit"))
        ticks = range(0, last + 1, max(1, -(-last // 6)))
        return Chart(
            "Budget over time",
            f"{said}.",
            Axis("charges", 0, end, tuple((t, number(t, 9)) for t in ticks)),
            Axis("ε spent", 0, limit, tuple((limit * k / 4, number(limit * k / 4)) for k in range(5))),
            tuple(lines),
            id="over-time",
        )

    def _empty(self) -> Filter:
        return Filter(rational("epsilon", self.dataset.epsilon), rational("delta", self.dataset.delta))


class Trails:
    """The trails of all data sets, kept in memory and followed only from where they were left."""

    def __init__(self) -> None:
        self._known: dict[str, Trail] = {}
        self._lock = threading.Lock()

    @contextmanager
    def of(self, ledger: Ledger, dataset: Dataset) -> Iterator[Trail]:
        """A data set's trail up to now; nobody adds to it while it is looked at."""
        with self._lock:
            found, length = self._known.get(dataset.name), ledger.length(dataset.name)
            if found is None or found.length > length:
                found = self._known[dataset.name] = Trail(dataset)
            if length > found.length:
                newest = ledger.entries(dataset.name, limit=length - found.length + NEARBY)
                for entry in newest:
                    if entry.number > found.last:
                        found.add(entry)
            yield found


def _steps(points: Sequence[tuple[float, float]], end: float) -> Points:
    """Level until the next point, then up to it; thinned out where there are many, and level to the end."""
    every = -(-len(points) // STEPS)
    kept = [*points[:-1:every], points[-1], (end, points[-1][1])]
    found = [kept[0]]
    for (_, before), (x, after) in pairwise(kept):
        found += [(x, before), (x, after)]
    return found
