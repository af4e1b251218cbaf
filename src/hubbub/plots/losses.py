"""Pictures of losses: prices, trade-offs, beliefs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.errors import ParameterError
from hubbub.plots.charts import SERIES, AnyChart, altair_module, legend, log_axis, share_axis, short
from hubbub.privacy import Loss, NoLoss, PureDP, other_methods
from hubbub.privacy.methods import METHODS, releases

if TYPE_CHECKING:
    import altair
    from numpy.typing import NDArray

VISIBLE = 5e-4
"""Bars of less chance than this would not be seen."""
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


def outcome_chances(laws: Mapping[str, tuple[NDArray[Any], NDArray[Any]]], *, title: str, value: str) -> altair.Chart:
    """A bar chart of the chance of every likely outcome under each of several named laws, one above the other."""
    alt = altair_module()
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
    return _by_method(loss, rows, "repetitions", "repetitions", f"Price of repetitions at delta = {short(delta)}")


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
    alt = altair_module()
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
            axis=log_axis(min(places), max(places), grid=False, whole=across == "repetitions"),
        ),
        y=alt.Y(
            "epsilon:Q",
            title="epsilon, at most",
            scale=alt.Scale(type="log", domain=[bottom, top], nice=False),
            axis=log_axis(bottom, top),
        ),
        color=alt.Color("method:N", title=None, scale=colours, legend=legend()),
    )
    is_certified = alt.datum.method == CERTIFIED
    band = base.transform_filter(is_certified).mark_area(opacity=0.25, clip=True).encode(y2="foot:Q")
    certified = base.transform_filter(is_certified).mark_line(strokeWidth=2.5, clip=True)
    others = base.transform_filter(alt.datum.method != CERTIFIED).mark_line(strokeDash=[7, 3], clip=True)
    chart: altair.LayerChart = alt.layer(band, certified, others)
    return chart.properties(width=400, height=300, title=title)


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
    alt = altair_module()
    lines = alt.Chart(alt.Data(values=rows), title="What any test of taking part must get wrong").encode(
        x=share_axis(alt.X, "false_positives", "false positives"),
        y=share_axis(alt.Y, "false_negatives", "false negatives, at least"),
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
    alt = altair_module()
    base = alt.Chart(alt.Data(values=rows), title="How far a release can move a belief").encode(
        x=share_axis(alt.X, "prior", "belief before the release"),
        y=share_axis(alt.Y, "high", "belief after it"),
        color=_series(losses, UNCHANGED),
    )
    edge = base.mark_line(strokeWidth=1.5)
    bands = alt.layer(
        base.mark_area(opacity=0.15).encode(y2="low:Q"), edge, edge.encode(y=share_axis(alt.Y, "low", ""))
    )
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


def _series(names: Iterable[str], line: str) -> Any:
    """A colour for each name, in the order given, and grey for the line they are compared with."""
    alt, every = altair_module(), list(names)
    colours = [SERIES[k % len(SERIES)] for k in range(len(every))]
    scale = alt.Scale(domain=[*every, line], range=[*colours, "#777777"])
    return alt.Color("loss:N", title=None, scale=scale, legend=legend())


def _with_dashes(base: altair.Chart, drawn: AnyChart, line: str) -> altair.LayerChart:
    """Everything of the base drawn as given, but the named line dashed."""
    alt = altair_module()
    given = drawn.transform_filter(alt.datum.loss != line)
    dashed = base.transform_filter(alt.datum.loss == line).mark_line(strokeDash=[5, 4], strokeWidth=1.5)
    chart: altair.LayerChart = alt.layer(given, dashed)
    return chart.properties(width=340, height=340)
