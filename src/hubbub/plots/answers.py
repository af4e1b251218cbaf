"""Pictures of answers: bars with the intervals their noise leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hubbub.plots.charts import SERIES, AnyChart, altair_module, share_axis

MOST_BARS = 200
"""More groups than this are not told apart in a picture; the first ones are drawn."""


def released_bars(
    labels: Sequence[Any],
    values: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    name: str,
    key: str,
    subtitle: str = "",
) -> AnyChart:
    """One bar a group, in the order given, with its interval."""
    alt = altair_module()
    rows = [
        {"group": str(g), "value": float(v), "low": float(a), "high": float(b)}
        for g, v, a, b in list(zip(labels, values, low, high, strict=True))[:MOST_BARS]
    ]
    along = alt.X("group:N", title=key or None, sort=None, axis={"labelAngle": -40 if len(rows) > 6 else 0})
    base = alt.Chart(alt.Data(values=rows)).encode(x=along)
    bars = base.mark_bar(color=SERIES[0], opacity=0.75).encode(y=alt.Y("value:Q", title=name))
    whiskers = base.mark_rule(color="#222222", strokeWidth=1.5).encode(y="low:Q", y2="high:Q")
    title = {"text": f"{name} by {key}" if key else name, "subtitle": subtitle}
    chart: AnyChart = alt.layer(bars, whiskers).properties(
        width=max(200, min(900, 28 * len(rows))), height=300, title=title
    )
    return chart


def released_quantiles(points: Sequence[tuple[str, float, float]], *, title: str, subtitle: str = "") -> AnyChart:
    """Values against the shares below them, a line for each group: points are (group, share, value)."""
    alt = altair_module()
    rows = [{"group": g, "share": s, "value": v} for g, s, v in points]
    groups = list(dict.fromkeys(g for g, _, _ in points))[: len(SERIES)]
    base = alt.Chart(alt.Data(values=[r for r in rows if r["group"] in groups])).encode(
        x=share_axis(alt.X, "share", "share below"), y=alt.Y("value:Q", title="value")
    )
    colour = alt.Color("group:N", title=None, scale={"domain": groups, "range": list(SERIES[: len(groups)])})
    if len(groups) == 1:
        colour = alt.value(SERIES[0])
    lines = base.mark_line(strokeWidth=2).encode(color=colour)
    dots = base.mark_point(filled=True, size=50).encode(color=colour)
    chart: AnyChart = alt.layer(lines, dots).properties(
        width=420, height=300, title={"text": title, "subtitle": subtitle}
    )
    return chart
