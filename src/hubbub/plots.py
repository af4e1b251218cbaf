"""Every picture, as Altair charts: the same object for notebooks, files and the web page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.errors import MissingExtra

if TYPE_CHECKING:
    import altair
    from numpy.typing import NDArray

VISIBLE = 5e-4
"""Bars of less chance than this would not be seen."""


def outcome_chances(laws: Mapping[str, tuple[NDArray[Any], NDArray[Any]]], *, title: str, value: str) -> altair.Chart:
    """A bar chart of the chance of every likely outcome under each of several named laws, one above the other."""
    alt = _altair()
    rows = [
        {"law": name, "outcome": int(x), "chance": float(p)}
        for name, (support, chances) in laws.items()
        for x, p in zip(support, chances, strict=True)
        if p >= VISIBLE
    ]
    chart: altair.Chart = (
        alt.Chart(alt.Data(values=rows), title=title)
        .mark_bar()
        .encode(
            x=alt.X("outcome:O", title=value, axis=alt.Axis(labelAngle=0, labelOverlap="greedy")),
            y=alt.Y("chance:Q", title="chance", axis=alt.Axis(format="%")),
            color=alt.Color("law:N", legend=None),
            row=alt.Row("law:N", title=None, sort=list(laws), header=alt.Header(labelAngle=0, labelAlign="left")),
        )
        .properties(width=420, height=90)
    )
    return chart


def save(chart: altair.Chart, path: str | Path) -> Path:
    """Writes the chart to a .png, .svg or .html file and returns its path."""
    target = Path(path)
    chart.save(str(target), scale_factor=2)
    return target


def _altair() -> Any:
    try:
        import altair
    except ImportError as missing:
        raise MissingExtra("plots") from missing
    return altair
