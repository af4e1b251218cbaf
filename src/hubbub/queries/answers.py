"""An answer: released values with their intervals and receipt. Everything done to it costs nothing more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import MissingExtra, ParameterError
from hubbub.numeric.rational import Number, fraction_between
from hubbub.privacy.loss import Loss

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

CHUNK = 2000
"""Groups whose intervals are computed together."""
SHOWN = 30
"""Rows a printed answer shows."""


@dataclass(frozen=True)
class Receipt:
    """What an answer cost: the loss, its epsilon at the question's delta, whose privacy, and which neighbours."""

    loss: Loss
    epsilon: float
    delta: float
    unit: str
    neighbours: str
    note: str = ""

    def __str__(self) -> str:
        price = f"epsilon {self.epsilon:.6g}" + (f", delta {self.delta:.3g}" if self.delta else "")
        return f"{price}, {self.neighbours} one {self.unit}"


@dataclass(frozen=True, eq=False)
class Column:
    """One column of an answer. ``simulate`` gives, for some of its rows, values the truth might have had, under the
    known law of the noise; None where there is no such law, as for keys and chosen values."""

    name: str
    values: NDArray[Any]
    key: bool = False
    simulate: Callable[[slice], NDArray[Any]] | None = field(default=None, repr=False)
    text: str = ""
    share: float | None = None
    """Of a quantile, the share that lies below it."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Released values, one row a group. Maps, rounds, plots and converts without touching the data or the budget."""

    columns: tuple[Column, ...]
    receipt: Receipt

    def __len__(self) -> int:
        return len(self.columns[0].values)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._column(name).values

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for i in range(len(self)):
            yield {c.name: c.values[i] for c in self.columns}

    @property
    def value(self) -> Any:
        """The one number of an answer with one row and one column that is not a key."""
        released = [c for c in self.columns if not c.key]
        if len(released) != 1 or len(self) != 1:
            raise ParameterError(
                "answer", f"{len(self)} x {len(released)}", "is not a single number", "use answer[name]"
            )
        return released[0].values[0]

    def __float__(self) -> float:
        return float(self.value)

    def intervals(self, confidence: Number = 0.95) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
        """For every released column the ends of an interval that holds the exact answer with this probability.

        They cover the noise, not what clamping and bounding of contributions leave out. Chosen values (quantiles, the
        most frequent) have none.
        """
        doubt = float(1 - fraction_between("confidence", confidence, 0, 1)) / 2
        found = {}
        for c in self.columns:
            if c.simulate is not None:
                parts = [slice(i, i + CHUNK) for i in range(0, len(self), CHUNK)]
                ends = [np.quantile(c.simulate(part), [doubt, 1 - doubt], axis=0) for part in parts]
                low, high = np.concatenate(ends, axis=1) if ends else np.zeros((2, 0))
                found[c.name] = (np.minimum(low, c.values.astype(float)), np.maximum(high, c.values.astype(float)))
        return found

    def errors(self, confidence: Number = 0.95) -> dict[str, NDArray[Any]]:
        """Half the width of every interval."""
        return {name: (high - low) / 2 for name, (low, high) in self.intervals(confidence).items()}

    def map(self, function: Callable[[NDArray[Any]], Any], *names: str) -> Answer:
        """The same answer with a function applied to released columns (all that are numbers, unless named)."""
        chosen = set(names) or {c.name for c in self.columns if c.simulate is not None}
        for name in chosen:
            self._column(name)
        return replace(self, columns=tuple(_mapped(c, function) if c.name in chosen else c for c in self.columns))

    def rounded(self, digits: int = 0) -> Answer:
        """Released numbers rounded."""
        return self.map(lambda v: np.round(np.asarray(v, dtype=float), digits))

    def at_least(self, least: float = 0.0, *names: str) -> Answer:
        """Released numbers held at a lower bound, such as counts at zero."""
        return self.map(lambda v: np.maximum(np.asarray(v, dtype=float), least), *names)

    def consistent(self, name: str, total: float) -> Answer:
        """One column moved by equal amounts so that it adds up to a total known otherwise."""
        change = (total - float(np.sum(self[name].astype(float)))) / max(len(self), 1)
        return self.map(lambda v: v + change, name)

    def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame."""
        try:
            import pandas as pd
        except ImportError as missing:
            raise MissingExtra("queries") from missing
        return pd.DataFrame(
            {c.name: pd.Series(list(c.values), dtype=None if len(self) else object) for c in self.columns}
        )

    def to_arrow(self) -> pa.Table:
        """A pyarrow table."""
        try:
            import pyarrow as pa
        except ImportError as missing:
            raise MissingExtra("queries") from missing
        return pa.table({c.name: pa.array(c.values.tolist()) for c in self.columns})

    def to_json(self) -> str:
        """Values, intervals and receipt as JSON; ``Answer.from_json`` reads it."""
        from hubbub.queries.wire import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """The answer that ``to_json`` wrote, with intervals as fine as it tells."""
        from hubbub.queries.wire import from_json

        return from_json(text)

    def plot(self, value: str | None = None) -> Any:
        """A bar chart of one released column (the first, unless named) over the groups, with 95 % intervals; if there
        are quantiles and nothing else, the curve through them."""
        from hubbub.plots import released_bars, released_quantiles

        ends = self.intervals()
        quantiles = [c for c in self.columns if c.share is not None]
        if quantiles and not ends and value is None:
            keys = [c for c in self.columns if c.key]
            points = [
                (" · ".join(str(k.values[i]) for k in keys), float(c.share or 0), float(c.values[i]))
                for i in range(len(self))
                for c in quantiles
            ]
            what = quantiles[0].text.removeprefix("quantile(").rpartition(",")[0]
            return released_quantiles(points, title=f"quantiles of {what}", subtitle=str(self.receipt))
        name = value or next(iter(ends), "")
        if name not in ends:
            raise ParameterError("value", value, "is not a released number", f"there are: {', '.join(ends) or 'none'}")
        keys = [c for c in self.columns if c.key]
        labels = [" · ".join(str(c.values[i]) for c in keys) or name for i in range(len(self))]
        title = " · ".join(c.name for c in keys)
        return released_bars(
            labels,
            self[name].astype(float).tolist(),
            *(e.tolist() for e in ends[name]),
            name=name,
            key=title,
            subtitle=f"± 95 % noise; {self.receipt}",
        )

    def __repr__(self) -> str:
        ends = self.intervals()
        lines = [[c.name for c in self.columns]]
        for i in range(min(len(self), SHOWN)):
            lines.append([_cell(c, i, ends) for c in self.columns])
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.columns))]
        text = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        if len(self) > SHOWN:
            text.append(f"… {len(self) - SHOWN} more")
        return "\n".join([*text, f"(± 95 % noise; {self.receipt})"])

    def _column(self, name: str) -> Column:
        for c in self.columns:
            if c.name == name:
                return c
        raise ParameterError(
            "column", name, "is not in the answer", f"its columns: {', '.join(c.name for c in self.columns)}"
        )


def _mapped(c: Column, function: Callable[[NDArray[Any]], Any]) -> Column:
    inner = c.simulate
    simulate = None if inner is None else (lambda part: np.asarray(function(inner(part))))
    return replace(c, values=np.asarray(function(c.values)), simulate=simulate)


def _cell(c: Column, i: int, ends: dict[str, tuple[NDArray[Any], NDArray[Any]]]) -> str:
    value = c.values[i]
    if c.name not in ends:
        return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
    low, high = (float(end[i]) for end in ends[c.name])
    half = (high - low) / 2
    digits = 0 if half >= 3 else min(12, 1 - int(np.floor(np.log10(half)))) if half > 0 else 6
    return f"{float(value):.{digits}f} ± {half:.{digits}f}"
