"""Pictures of private models; they show what was released, never a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.errors import ParameterError
from hubbub.plots.charts import SERIES, altair_module, legend, log_axis

if TYPE_CHECKING:
    import altair


def accuracy_curve(found: Sequence[Mapping[str, Any]], *, ceiling: float | None = None) -> altair.LayerChart:
    """Accuracy against epsilon, one line a ``method``; each row has ``epsilon``, ``accuracy`` and its ``error``.

    ``ceiling`` is what a model without privacy reaches.
    """
    alt = altair_module()
    if not found:
        raise ParameterError("found", "nothing", "must have one row or more")
    rows = [{"method": "", "error": 0.0, **row} for row in found]
    for row in rows:
        row["low"], row["high"] = row["accuracy"] - row["error"], row["accuracy"] + row["error"]
    names = list(dict.fromkeys(row["method"] for row in rows))
    prices = [row["epsilon"] for row in rows]
    colour = alt.Color(
        "method:N",
        title=None,
        legend=legend() if len(names) > 1 else None,
        scale={"domain": names, "range": [SERIES[k % len(SERIES)] for k in range(len(names))]},
    )
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("epsilon:Q", title="epsilon", scale={"type": "log"}, axis=log_axis(min(prices), max(prices))),
        color=colour,
    )
    height = alt.Y("accuracy:Q", title="accuracy", scale={"zero": False}, axis={"format": "%"})
    layers = [
        base.mark_line(strokeWidth=2).encode(y=height),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title="accuracy"), y2="high:Q"),
        base.mark_point(filled=True, size=60).encode(y=height),
    ]
    if ceiling is not None:
        values = alt.Data(values=[{"accuracy": ceiling}])
        layers.append(alt.Chart(values).mark_rule(strokeDash=[6, 4], color="#444444").encode(y="accuracy:Q"))
    subtitle = "Whiskers: error. Dashed: without privacy" if ceiling is not None else "Whiskers: error"
    title = alt.Title("What privacy costs a model", subtitle=subtitle, anchor="start")
    chart: altair.LayerChart = alt.layer(*layers).properties(width=460, height=300, title=title)
    return chart


AXES = {"round": "rounds", "epsilon": "epsilon so far", "bytes": "bytes sent by clients"}


def training_curves(found: Sequence[Mapping[str, Any]], *, by: str = "round") -> altair.Chart:
    """Accuracy while training, one line a ``method``, against rounds, the price so far or the bytes sent so far.

    Each row has ``method``, ``accuracy`` and what it is drawn against: ``by`` is "round", "epsilon" or "bytes".
    """
    alt = altair_module()
    if by not in AXES:
        raise ParameterError("by", by, f"must be one of {', '.join(AXES)}")
    rows = [dict(row) for row in found if row.get(by) is not None]
    if not rows:
        raise ParameterError("found", "nothing", f"must have one row or more with {by}")
    names = list(dict.fromkeys(row["method"] for row in rows))
    scale = {"type": "log"} if by == "bytes" else {"zero": True}
    colour = alt.Color(
        "method:N",
        title=None,
        legend=legend() if len(names) > 1 else None,
        scale={"domain": names, "range": [SERIES[k % len(SERIES)] for k in range(len(names))]},
    )
    chart: altair.Chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=alt.X(f"{by}:Q", title=AXES[by], scale=scale),
            y=alt.Y("accuracy:Q", title="accuracy", scale={"zero": False}, axis={"format": "%"}),
            color=colour,
            order=alt.Order("round:Q"),
        )
        .properties(width=460, height=300, title=alt.Title("Accuracy while training", anchor="start"))
    )
    return chart


def coefficients(names: Sequence[str], values: Sequence[float], noise: float) -> altair.LayerChart:
    """Released weights, each with the spread of the noise in it."""
    alt = altair_module()
    if len(names) != len(values) or not len(names):
        raise ParameterError("names", len(names), "must be as many as the values, and at least one")
    rows = [
        {"name": n, "value": float(v), "low": float(v) - 2 * noise, "high": float(v) + 2 * noise}
        for n, v in zip(names, values, strict=True)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(y=alt.Y("name:N", title=None, sort=None))
    bars = base.mark_bar(color=SERIES[0], opacity=0.7).encode(x=alt.X("value:Q", title="weight"))
    whiskers = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    title = alt.Title("Weights of the model", subtitle="Whiskers: two standard deviations of noise", anchor="start")
    chart: altair.LayerChart = (bars + whiskers).properties(width=420, height=alt.Step(24), title=title)
    return chart


def cluster_centres(centres: Sequence[Sequence[float]], weights: Sequence[float] | None = None) -> altair.Chart:
    """Released centres by their first two coordinates, larger where a weight says so."""
    alt = altair_module()
    sizes = [1.0] * len(centres) if weights is None else [max(0.0, float(w)) for w in weights]
    if not len(centres) or len(sizes) != len(centres) or len(centres[0]) < 2:
        raise ParameterError("centres", len(centres), "must be at least one, with two coordinates and one weight each")
    rows = [{"x": float(c[0]), "y": float(c[1]), "weight": w} for c, w in zip(centres, sizes, strict=True)]
    size = alt.Size("weight:Q", legend=None, scale={"range": [60, 600]}) if weights is not None else alt.value(120)
    chart: altair.Chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, color=SERIES[0], opacity=0.8)
        .encode(
            x=alt.X("x:Q", title="first coordinate", scale={"zero": False}),
            y=alt.Y("y:Q", title="second coordinate", scale={"zero": False}),
            size=size,
        )
        .properties(width=380, height=380, title="Released centres")
    )
    return chart
