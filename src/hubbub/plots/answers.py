"""Pictures of answers: bars with the intervals their noise leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hubbub.plots.charts import SERIES, AnyChart, altair_module

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
