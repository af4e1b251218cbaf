"""What all pictures share: axes, legends, and writing them to files."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hubbub.errors import MissingExtra, ParameterError

if TYPE_CHECKING:
    import altair

AnyChart: TypeAlias = "altair.Chart | altair.LayerChart | altair.HConcatChart"
SUFFIXES = (".png", ".svg", ".html")
SERIES = ("#0b6e4f", "#7b4fa3", "#d4a017", "#2c6fbb", "#b5651d", "#c23b50", "#555555", "#5aa9a3")


def log_axis(low: float, high: float, *, grid: bool = True, whole: bool = False) -> Any:
    """Labels at powers of ten if there are enough of them, else at more numbers between, or where Vega puts them."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks: list[float] = []
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        if len(marks) < 4:
            marks = [m for k in decades for step in steps if low <= (m := step * 10.0**k) <= high]
    if whole:
        marks = [m for m in marks if m.is_integer()]
    values = {"values": marks} if whole or len(marks) > 2 else {"tickCount": 5}
    return altair_module().Axis(format="~e" if high < 0.1 else "~s" if low >= 1 else "~g", grid=grid, **values)


def share_axis(channel: Any, field: str, title: str) -> Any:
    """An axis from 0 to 100 %."""
    return channel(
        f"{field}:Q", title=title, scale={"domain": [0, 1], "nice": False}, axis={"format": "%", "tickCount": 5}
    )


def legend() -> Any:
    """Strokes long enough to tell their colours and dashes."""
    return altair_module().Legend(
        symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=3, symbolSize=250, labelLimit=400
    )


def short(number: float) -> str:
    """1e-5 rather than 1e-05."""
    return re.sub(r"e([+-])0", r"e\1", f"{number:g}")


def side_by_side(*charts: AnyChart, title: str) -> altair.HConcatChart:
    """Charts in one row under one title, with one legend for the colours they share."""
    chart: altair.HConcatChart = altair_module().hconcat(*charts, title=title)
    return chart


def save(chart: AnyChart, path: str | Path) -> Path:
    """Writes the chart to a .png, .svg or .html file and returns its path."""
    target = writable(path)
    try:
        chart.save(str(target), scale_factor=2)
    except OSError as refusal:
        raise ParameterError("path", str(path), f"cannot be written ({refusal.strerror})") from refusal
    return target


def writable(path: str | Path) -> Path:
    """The path, refused unless a picture can be written there: ask before long work."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise ParameterError("path", str(path), f"must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if target.is_dir() or not target.parent.is_dir():
        raise ParameterError("path", str(path), "must be a file in a folder that exists")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise ParameterError("path", str(path), "cannot be written", "choose a folder of your own")
    return target


def altair_module() -> Any:
    """Altair, or the name of the extra that brings it."""
    try:
        import altair
    except ImportError as missing:
        raise MissingExtra("plots") from missing
    return altair
