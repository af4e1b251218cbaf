"""Pictures made on the server: plain shapes with classes, so that the style sheet colours them, light or dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

WIDTH, HEIGHT = 420, 300
LEFT, TOP, RIGHT, BOTTOM = 54, 12, 20, 46
"""Margins for the axes."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """One axis: its ends, the marks on it, and what it shows."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    @property
    def declared(self) -> str:
        """The axis in words a script reads."""
        return f"{self.low:g} {self.high:g} {'log' if self.log else 'plain'}"

    def place(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high one; values outside are held at the ends."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return (at - low) / (high - low)


@dataclass(frozen=True)
class Line:
    """A curve through points; ``kind`` is its class in the style sheet, ``id`` lets a script redraw it."""

    points: Points
    kind: Literal["main", "second", "faint", "area"] = "main"
    label: str = ""
    id: str = ""


@dataclass(frozen=True)
class Mark:
    """A point that matters."""

    x: float
    y: float
    id: str = ""


@dataclass(frozen=True)
class Chart:
    """Curves over two axes, with a text alternative that says what they show."""

    title: str
    alternative: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()
    id: str = "chart"

    width, height = WIDTH, HEIGHT
    left, top = LEFT, TOP
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def across(self, value: float) -> float:
        """The horizontal place of a value, in the picture's units."""
        return round(self.left + self.x.place(value) * (self.right - self.left), 2)

    def down(self, value: float) -> float:
        """The vertical place of a value."""
        return round(self.bottom - self.y.place(value) * (self.bottom - self.top), 2)

    def path(self, line: Line) -> str:
        """A curve in the language of SVG paths."""
        steps = [f"{self.across(x):g} {self.down(y):g}" for x, y in line.points]
        return "M" + "L".join(steps) + ("Z" if line.kind == "area" else "") if steps else ""


def evenly(low: float, high: float, count: int, log: bool = False) -> list[float]:
    """So many values from low to high, evenly apart (or in their logarithms)."""
    if log:
        return [math.exp(v) for v in evenly(math.log(low), math.log(high), count)]
    return [low + (high - low) * i / (count - 1) for i in range(count)]
