"""Pictures of audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.errors import ParameterError
from hubbub.plots.charts import SERIES, altair_module

if TYPE_CHECKING:
    import altair


def audit_report(found: Mapping[str, Any]) -> altair.LayerChart:
    """The claimed epsilon of an audited mechanism beside what was proved of it."""
    alt = altair_module()
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


def audit_table(found: Sequence[Mapping[str, Any]]) -> altair.LayerChart:
    """Of every audited mechanism, the share of its claim that was proved, one point a price; 1 is the claim itself.

    Each row has a ``name``, a ``price``, and ``power`` and ``holds`` as a Report's ``to_dict`` gives them.
    """
    alt = altair_module()
    if not found:
        raise ParameterError("found", "nothing", "must have one audit or more")
    rows = [{key: row[key] for key in ("name", "price", "power", "holds")} for row in found]
    prices = sorted({row["price"] for row in rows})
    farthest = max(1.05, *(1.05 * row["power"] for row in rows))
    points = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, opacity=0.9)
        .encode(
            x=alt.X(
                "power:Q",
                title="measured lower bound, as a share of the claim",
                scale={"domain": [0, farthest], "nice": False},
                axis={"format": "%"},
            ),
            y=alt.Y("name:N", title=None, sort=None, axis={"grid": True, "labelLimit": 240}),
            color=alt.Color(
                "price:O",
                title="epsilon",
                legend=alt.Legend(symbolType="circle"),
                scale={"domain": prices, "range": [SERIES[k % len(SERIES)] for k in range(len(prices))]},
            ),
            shape=alt.condition("datum.holds", alt.value("circle"), alt.value("cross")),
            size=alt.condition("datum.holds", alt.value(70), alt.value(220)),
        )
    )
    claim = (
        alt.Chart(alt.Data(values=[{"claim": 1, "words": "the claim"}]))
        .mark_rule(strokeDash=[6, 4], color="#444444")
        .encode(x="claim:Q")
    )
    refuted = sum(not row["holds"] for row in rows)
    verdict = f"{refuted} of {len(rows)} claims are refuted" if refuted else f"All {len(rows)} claims hold"
    subtitle = (
        "Right of the dashed line a claim would be false; far left of it the audit saw little, or noise is wasted"
    )
    chart: altair.LayerChart = (points + claim).properties(
        width=520, height=alt.Step(24), title=alt.Title(verdict, subtitle=subtitle, anchor="start")
    )
    return chart
