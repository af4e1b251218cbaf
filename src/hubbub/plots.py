"""Every picture, as Altair charts: the same object for notebooks, files and the web page."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.errors import MissingExtra, ParameterError
from hubbub.privacy import Loss, NoLoss, PureDP, other_methods
from hubbub.privacy.methods import METHODS, releases

if TYPE_CHECKING:
    import altair
    from numpy.typing import NDArray

    AnyChart = altair.Chart | altair.LayerChart | altair.HConcatChart

VISIBLE = 5e-4
"""Bars of less chance than this would not be seen."""
SUFFIXES = (".png", ".svg", ".html")
DELTAS = tuple(10 ** (k / 2) for k in range(-20, -3))
"""From 1e-10 to 1e-2, two to a decade."""
NOTHING, DEEPEST = 1e-12, 1e-9
"""Epsilons below the first count as 0; the second is the most of a picture's largest that its floor goes down to."""
CERTIFIED = "certified (lower to upper)"
GUESSING, UNCHANGED = "guessing (no privacy loss)", "belief unchanged"
COLOURS = {
    "basic composition": "#b5651d",
    "advanced composition": "#d4a017",
    "Renyi": "#7b4fa3",
    CERTIFIED: "#0b6e4f",
}
"""One colour for a method, in every picture."""
SERIES = ("#0b6e4f", "#7b4fa3", "#d4a017", "#2c6fbb", "#b5651d", "#c23b50", "#555555", "#5aa9a3")


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


def privacy_curve(loss: Loss, *, deltas: Iterable[float] | None = None) -> altair.LayerChart:
    """Epsilon against delta: the certified band, and the curve of every other method that applies.

    Composition methods are shown for losses of several releases. Epsilons of 0 or infinity have no place on the
    logarithmic axis and are left out.
    """
    tried = tuple(DELTAS if deltas is None else deltas)
    if not all(delta > 0 for delta in tried):
        raise ParameterError("deltas", tried, "must all be > 0", "the axis is logarithmic")
    shown = METHODS if releases(loss) > 1 else ("Renyi",)
    rows = [row for delta in tried for row in _prices(loss, delta, shown, {"delta": float(delta)})]
    return _by_method(loss, rows, "delta", "delta (chance that the promise fails)", "Price at every delta")


def composition_growth(loss: Loss, counts: Iterable[int], delta: float) -> altair.LayerChart:
    """Epsilon at one delta against how often the loss is repeated: basic, advanced, Renyi, and the certified band."""
    rows = [row for n in counts for row in _prices(loss * n, delta, METHODS, {"repetitions": int(n)})]
    return _by_method(loss, rows, "repetitions", "repetitions", f"Price of repetitions at delta = {_short(delta)}")


def _prices(loss: Loss, delta: float, shown: Sequence[str], place: dict[str, float]) -> list[dict[str, Any]]:
    """One row a method; ``lower`` is given for the certified band only."""
    lower, upper = loss.epsilon_interval(delta)
    others = other_methods(loss, delta)
    rows: list[dict[str, Any]] = [
        {**place, "method": name, "epsilon": others[name]} for name in shown if name in others
    ]
    rows.append({**place, "method": CERTIFIED, "epsilon": upper, "lower": lower})
    return [row for row in rows if NOTHING < row["epsilon"] < math.inf]


def _by_method(loss: Loss, rows: list[dict[str, Any]], across: str, across_title: str, title: str) -> altair.LayerChart:
    """Lines by method on logarithmic axes; the certified band runs off the bottom where its lower end is 0."""
    alt = _altair()
    places = [row[across] for row in rows]
    if len(set(places)) < 2:
        raise ParameterError("loss", loss, "has no two epsilons between 0 and infinity here", "ask at other places")
    ends = [row[end] for row in rows for end in ("epsilon", "lower") if row.get(end)]
    bottom, top = max(min(ends), max(ends) * DEEPEST) / 1.15, max(ends) * 1.15
    drawn = [{**row, "foot": max(row["lower"], bottom)} if "lower" in row else row for row in rows]
    used = [name for name in COLOURS if any(row["method"] == name for row in rows)]
    colours = alt.Scale(domain=used, range=[COLOURS[name] for name in used])
    base = alt.Chart(alt.Data(values=drawn)).encode(
        x=alt.X(
            f"{across}:Q",
            title=across_title,
            scale=alt.Scale(type="log", domain=[min(places), max(places)], nice=False),
            axis=_log_axis(min(places), max(places), grid=False, whole=across == "repetitions"),
        ),
        y=alt.Y(
            "epsilon:Q",
            title="epsilon, at most",
            scale=alt.Scale(type="log", domain=[bottom, top], nice=False),
            axis=_log_axis(bottom, top),
        ),
        color=alt.Color("method:N", title=None, scale=colours, legend=_legend()),
    )
    is_certified = alt.datum.method == CERTIFIED
    band = base.transform_filter(is_certified).mark_area(opacity=0.25, clip=True).encode(y2="foot:Q")
    certified = base.transform_filter(is_certified).mark_line(strokeWidth=2.5, clip=True)
    others = base.transform_filter(alt.datum.method != CERTIFIED).mark_line(strokeDash=[7, 3], clip=True)
    chart: altair.LayerChart = alt.layer(band, certified, others)
    return chart.properties(width=400, height=300, title=title)


def _log_axis(low: float, high: float, *, grid: bool = True, whole: bool = False) -> Any:
    """Labels at powers of ten if there are enough of them, else at more numbers between, or where Vega puts them."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks: list[float] = []
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        if len(marks) < 4:
            marks = [m for k in decades for step in steps if low <= (m := step * 10.0**k) <= high]
    if whole:
        marks = [m for m in marks if m.is_integer()]
    values = {"values": marks} if whole or len(marks) > 2 else {"tickCount": 5}
    return _altair().Axis(format="~e" if high < 0.1 else "~s" if low >= 1 else "~g", grid=grid, **values)


def tradeoff(losses: Loss | Mapping[str, Loss | float] | Iterable[float]) -> altair.LayerChart:
    """False negatives against false positives of the best possible test, for one loss or each named loss or epsilon.

    No test of who took part has errors below a loss's curve; guessing, on the dashed line, learns nothing.
    """
    named = _named(losses)
    rates = sorted({k / 100 for k in range(101)} | {10 ** (-k / 4) for k in range(8, 17)})
    rows = [
        {"loss": name, "false_positives": rate, "false_negatives": loss.tradeoff(rate)}
        for name, loss in named.items()
        for rate in rates
    ]
    rows += [{"loss": GUESSING, "false_positives": rate, "false_negatives": 1 - rate} for rate in (0.0, 1.0)]
    alt = _altair()
    lines = alt.Chart(alt.Data(values=rows), title="What any test of taking part must get wrong").encode(
        x=_share(alt.X, "false_positives", "false positives"),
        y=_share(alt.Y, "false_negatives", "false negatives, at least"),
        color=_series(named, GUESSING),
    )
    return _with_dashes(lines, lines.mark_line(strokeWidth=2), GUESSING)


def posterior(prices: Loss | Mapping[str, Loss | float] | Iterable[float], *, delta: float = 0.0) -> altair.LayerChart:
    """What belief can become against what it was: a band for one loss, or for each named loss or epsilon.

    With delta > 0 a loss's bounds may fail with a chance of about delta.
    """
    losses = _named(prices)
    rows = []
    for name in sorted(losses, key=lambda name: -losses[name].epsilon(delta)):  # the widest behind
        for k in range(101):
            low, high = losses[name].posterior(k / 100, delta)
            rows.append({"loss": name, "prior": k / 100, "high": high, "low": low})
    rows += [{"loss": UNCHANGED, "prior": belief, "high": belief} for belief in (0.0, 1.0)]
    alt = _altair()
    base = alt.Chart(alt.Data(values=rows), title="How far a release can move a belief").encode(
        x=_share(alt.X, "prior", "belief before the release"),
        y=_share(alt.Y, "high", "belief after it"),
        color=_series(losses, UNCHANGED),
    )
    edge = base.mark_line(strokeWidth=1.5)
    bands = alt.layer(base.mark_area(opacity=0.15).encode(y2="low:Q"), edge, edge.encode(y=_share(alt.Y, "low", "")))
    return _with_dashes(base, bands, UNCHANGED)


def _named(prices: Loss | Mapping[str, Loss | float] | Iterable[float]) -> dict[str, Loss]:
    """Losses by name; a bare epsilon is the loss of that pure price."""
    if isinstance(prices, Loss):
        return {"this loss": prices}
    given = prices if isinstance(prices, Mapping) else {f"epsilon = {e:g}": e for e in prices}
    return {
        name: price if isinstance(price, Loss) else PureDP(price) if price else NoLoss()
        for name, price in given.items()
    }


def _share(channel: Any, field: str, title: str) -> Any:
    """An axis from 0 to 100 %."""
    return channel(
        f"{field}:Q", title=title, scale={"domain": [0, 1], "nice": False}, axis={"format": "%", "tickCount": 5}
    )


def _series(names: Iterable[str], line: str) -> Any:
    """A colour for each name, in the order given, and grey for the line they are compared with."""
    alt, every = _altair(), list(names)
    colours = [SERIES[k % len(SERIES)] for k in range(len(every))]
    scale = alt.Scale(domain=[*every, line], range=[*colours, "#777777"])
    return alt.Color("loss:N", title=None, scale=scale, legend=_legend())


def _with_dashes(base: altair.Chart, drawn: AnyChart, line: str) -> altair.LayerChart:
    """Everything of the base drawn as given, but the named line dashed."""
    alt = _altair()
    given = drawn.transform_filter(alt.datum.loss != line)
    dashed = base.transform_filter(alt.datum.loss == line).mark_line(strokeDash=[5, 4], strokeWidth=1.5)
    chart: altair.LayerChart = alt.layer(given, dashed)
    return chart.properties(width=340, height=340)


def _legend() -> Any:
    return _altair().Legend(symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=3, symbolSize=250, labelLimit=400)


def _short(number: float) -> str:
    """1e-5 rather than 1e-05."""
    return re.sub(r"e([+-])0", r"e\1", f"{number:g}")


def audit_report(found: Mapping[str, Any]) -> altair.LayerChart:
    """The claimed epsilon of an audited mechanism beside what was proved of it."""
    alt = _altair()
    rows = [
        {"what": "claimed at most", "epsilon": found["claimed"]},
        {"what": "measured at least", "epsilon": found["epsilon_lower"]},
    ]
    colours = alt.condition("datum.refuted", alt.value("#c0392b"), alt.value("#4c78a8"))
    for row in rows:
        row["refuted"] = row["what"].startswith("measured") and not found["holds"]
    bars = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("epsilon:Q", title="epsilon"), y=alt.Y("what:N", title=None, sort=None)
    )
    text = bars.mark_text(align="left", dx=4).encode(text=alt.Text("epsilon:Q", format=".3f"))
    title = alt.Title("The claim holds" if found["holds"] else "The claim is refuted", subtitle=found["event"])
    chart: altair.LayerChart = (bars.mark_bar(height=22).encode(color=colours) + text).properties(
        width=420, height=80, title=title
    )
    return chart


def side_by_side(*charts: AnyChart, title: str) -> altair.HConcatChart:
    """Charts in one row under one title, with one legend for the colours they share."""
    chart: altair.HConcatChart = _altair().hconcat(*charts, title=title)
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


def _altair() -> Any:
    try:
        import altair
    except ImportError as missing:
        raise MissingExtra("plots") from missing
    return altair
