"""Pictures of audits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hubbub.plots.charts import altair_module

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
