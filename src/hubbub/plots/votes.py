"""Pictures of teachers' votes, for the owner of the data only, and of what labels cost, for anybody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hubbub.errors import ParameterError
from hubbub.plots.charts import SERIES, altair_module
from hubbub.privacy.loss import Loss

if TYPE_CHECKING:
    import altair

BARS = 25
PRIVATE = "Private: for the owner of the data only"


def vote_agreement(agreement: Sequence[float]) -> altair.Chart:
    """How many public rows have how large a share of teachers agreeing. Private: it shows the votes themselves."""
    return _histogram(agreement, 1.0, "share of teachers that agree", "How far teachers agree", "%")


def vote_gaps(gaps: Sequence[float], teachers: int) -> altair.Chart:
    """How many public rows have how large a lead of the first class over the second. Private: it shows the votes."""
    return _histogram(gaps, float(teachers), "lead of the first class, in votes", "How clear votes are", "~g")


def _histogram(values: Sequence[float], largest: float, name: str, title: str, form: str) -> altair.Chart:
    alt = altair_module()
    if not len(values):
        raise ParameterError("values", "none", "must be one or more")
    width, heights = largest / BARS, [0] * BARS
    for value in values:
        heights[min(BARS - 1, max(0, int(value / width)))] += 1
    rows = [{"low": k * width, "high": (k + 1) * width, "rows": n} for k, n in enumerate(heights)]
    chart: altair.Chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(color=SERIES[0], opacity=0.8)
        .encode(
            x=alt.X("low:Q", title=name, scale={"domain": [0, largest]}, axis={"format": form}),
            x2="high:Q",
            y=alt.Y("rows:Q", title="public rows"),
        )
        .properties(width=420, height=260, title=alt.Title(title, subtitle=PRIVATE, anchor="start"))
    )
    return chart


def label_prices(losses: Sequence[tuple[int, Loss]], delta: float) -> altair.LayerChart:
    """Epsilon at delta against labels answered, the same whatever the votes: (labels, their loss) for some numbers."""
    alt = altair_module()
    if not len(losses):
        raise ParameterError("losses", "none", "must be one or more")
    rows = [{"labels": int(n), "epsilon": loss.epsilon(delta)} for n, loss in losses]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("labels:Q", title="labels answered"), y=alt.Y("epsilon:Q", title=f"epsilon at delta {delta:g}")
    )
    title = alt.Title("What labels cost", subtitle="Holds whatever the votes", anchor="start")
    lines = base.mark_line(strokeWidth=2, color=SERIES[0]) + base.mark_point(filled=True, size=50, color=SERIES[0])
    chart: altair.LayerChart = lines.properties(width=420, height=260, title=title)
    return chart
