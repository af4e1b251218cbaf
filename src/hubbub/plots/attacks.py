"""Pictures of attacks: how much noise ends reconstruction, how well members are told from others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hubbub.errors import ParameterError
from hubbub.plots.charts import SERIES, altair_module, legend, log_axis
from hubbub.privacy import Loss

if TYPE_CHECKING:
    import altair
    from numpy.typing import NDArray

GREY = "#777777"
THEORY_STEPS = 80
LOWEST_RATE = 1e-3
"""Where the axes of true and false positives begin."""


class AccuracyPoint(Protocol):
    """One attack: the noise it met and the share of bits it got right."""

    @property
    def noise(self) -> float:
        """The spread of one answer's error."""

    @property
    def accuracy(self) -> float:
        """The share of bits that came out right."""


class AccuracyCurve(Protocol):
    """What a picture of reconstruction needs to know of a series of attacks."""

    @property
    def points(self) -> Sequence[AccuracyPoint]:
        """The attacks."""

    @property
    def label(self) -> str:
        """What they have in common."""

    @property
    def share(self) -> float:
        """The share of ones in the secret."""

    def theory(self, noise: float) -> float | None:
        """The accuracy to be expected, None where there is no theory."""

    @property
    def guessing_noise(self) -> float | None:
        """Where theory falls to guessing."""


def reconstruction_accuracy(
    curves: Iterable[AccuracyCurve], marks: Mapping[str, float] | None = None
) -> altair.LayerChart:
    """Accuracy against noise: measured as points, expected as lines, and where the attacker falls to guessing.

    ``marks`` are named noises to be shown as well, such as that of a mechanism at some epsilon.
    """
    drawn = list(curves)
    noises = [p.noise for c in drawn for p in c.points if p.noise > 0] + list((marks or {}).values())
    if len(set(noises)) < 2:
        raise ParameterError("noises", noises, "must have two or more above 0", "the axis is logarithmic")
    low, high = min(noises), max(noises)
    steps = [low * (high / low) ** (k / THEORY_STEPS) for k in range(THEORY_STEPS + 1)]
    measured = [
        {"curve": c.label, "noise": p.noise, "right": p.accuracy} for c in drawn for p in c.points if p.noise > 0
    ]
    expected = [
        {"curve": c.label, "noise": noise, "right": right}
        for c in drawn
        for noise in steps
        if (right := c.theory(noise)) is not None
    ]
    falls = [
        {"curve": c.label, "noise": c.guessing_noise, "right": c.theory(c.guessing_noise)}
        for c in drawn
        if c.guessing_noise is not None and low <= c.guessing_noise <= high
    ]
    guess = [{"noise": low / 1.1, "right": max(max(c.share, 1 - c.share) for c in drawn), "text": "guessing"}]
    alt = altair_module()
    x, y = _accuracy_axes(low / 1.1, high * 1.1, min([0.5] + [p.accuracy for c in drawn for p in c.points]) - 0.02)
    names = [c.label for c in drawn]
    colours = alt.Scale(domain=names, range=[SERIES[k % len(SERIES)] for k in range(len(names))])
    heading = "measured, and by theory" if expected else "measured"
    colour = alt.Color("curve:N", title=heading, scale=colours, legend=legend())

    def placed(rows: list[Any]) -> Any:
        return alt.Chart(alt.Data(values=rows)).encode(x=x, y=y)

    level = alt.Chart(alt.Data(values=guess)).mark_rule(strokeDash=[5, 4], color=GREY).encode(y=y)
    word = placed(guess).mark_text(align="left", dx=4, dy=-6, color=GREY).encode(text="text:N")
    lines = placed(expected).mark_line(strokeWidth=1.5, clip=True).encode(color=colour)
    dots = placed(measured).mark_point(filled=True, size=55, opacity=1).encode(color=colour)
    crosses = placed(falls).mark_point(shape="cross", angle=45, size=130, filled=True, opacity=1).encode(color=colour)
    chart: altair.LayerChart = alt.layer(level, word, lines, dots, crosses, *_marks(marks or {}, x))
    below = "crosses: where least squares can no longer be told from guessing" if falls else ""
    return chart.properties(width=460, height=300, title=_title("How much noise ends a reconstruction", below))


def _accuracy_axes(low: float, high: float, floor: float) -> tuple[Any, Any]:
    """Noise across, on a logarithmic axis; the share of right bits upwards, from the floor."""
    alt = altair_module()
    x = alt.X(
        "noise:Q",
        title="noise in each answer (standard deviation, in people)",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=log_axis(low, high, grid=False),
    )
    y = alt.Y(
        "right:Q",
        title="share of people whose bit is right",
        scale=alt.Scale(domain=[floor, 1.01], nice=False),
        axis=alt.Axis(format="%", values=[k / 10 for k in range(11) if k / 10 >= floor]),
    )
    return x, y


def _title(text: str, below: str) -> dict[str, str]:
    return {"text": text, "subtitle": below, "subtitleColor": GREY}


def _marks(marks: Mapping[str, float], x: Any) -> list[Any]:
    """Named noises as upright lines."""
    if not marks:
        return []
    alt = altair_module()
    rows = [{"noise": noise, "text": name} for name, noise in marks.items()]
    base = alt.Chart(alt.Data(values=rows)).encode(x=x)
    words = base.mark_text(align="right", baseline="bottom", angle=270, dx=-4, dy=-2, color=GREY)
    return [base.mark_rule(color=GREY), words.encode(y=alt.value(0), text="text:N")]


def membership_roc(
    curves: Mapping[str, tuple[NDArray[Any], NDArray[Any]]], ceilings: Mapping[str, Loss] | None = None
) -> altair.LayerChart:
    """True against false positives of named attacks, on logarithmic axes; dotted, what their losses allow at most."""
    alt = altair_module()
    names = list(curves)
    rows = []
    for name, (false, true) in curves.items():
        first = int((false <= LOWEST_RATE).sum()) - 1  # the last point at or left of where the axis begins
        for f, t in zip(false[first:].tolist(), true[first:].tolist(), strict=True):
            rows.append({"attack": name, "false": max(f, LOWEST_RATE), "true": max(t, LOWEST_RATE)})
    rates = [10 ** (-3 + k / 20) for k in range(61)]
    limits = [
        {"attack": name, "false": rate, "true": 1 - loss.tradeoff(rate)}
        for name, loss in (ceilings or {}).items()
        for rate in rates
    ]
    scale = alt.Scale(type="log", domain=[LOWEST_RATE, 1], nice=False)
    axis = alt.Axis(values=[0.001, 0.01, 0.1, 1], format="~%")
    x = alt.X("false:Q", title="others accused (false positives)", scale=scale, axis=axis)
    y = alt.Y("true:Q", title="members found (true positives)", scale=scale, axis=axis)
    colours = alt.Scale(domain=names, range=[SERIES[k % len(SERIES)] for k in range(len(names))])
    colour = alt.Color("attack:N", title=None, scale=colours, legend=legend())
    steps = alt.Chart(alt.Data(values=rows)).mark_line(strokeWidth=2, interpolate="step-after", clip=True)
    dots = alt.Chart(alt.Data(values=limits)).mark_line(strokeDash=[2, 3], strokeWidth=1.5, clip=True)
    diagonal = [{"false": rate, "true": rate} for rate in (LOWEST_RATE, 1.0)]
    guess = (
        alt.Chart(alt.Data(values=diagonal)).mark_line(strokeDash=[5, 4], strokeWidth=1.5, color=GREY).encode(x=x, y=y)
    )
    layers = [guess, steps.encode(x=x, y=y, color=colour)]
    if limits:
        layers.append(dots.encode(x=x, y=y, color=colour))
    chart: altair.LayerChart = alt.layer(*layers)
    below = "dashed: guessing" + (" · dotted: the most that privacy allows" if limits else "")
    return chart.properties(width=340, height=340, title=_title("Telling members from others", below))
