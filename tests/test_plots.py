"""What the pictures show: their data against the losses, and files that are really pictures."""

import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from struct import unpack
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub import plots
from hubbub.errors import MissingExtra, ParameterError
from hubbub.privacy import NoLoss, theorems
from hubbub.privacy.methods import METHODS, other_methods

STEPS = hb.SampledGaussian(1.0, 0.01) * 1000
DELTAS = (1e-8, 1e-6, 1e-4)


def rows(chart: Any, **where: Any) -> list[dict[str, Any]]:
    """The chart's data, as written into the file that draws it."""
    return [
        row for row in chart.to_dict()["data"]["values"] if all(row[field] == value for field, value in where.items())
    ]


def column(chart: Any, field: str, **where: Any) -> list[Any]:
    return [row[field] for row in rows(chart, **where)]


def encodings(chart: Any) -> list[dict[str, Any]]:
    """The encodings of every layer that is drawn."""
    layers = chart.to_dict()["layer"]
    return [drawn["encoding"] for layer in layers for drawn in layer.get("layer", [layer])]


def test_privacy_curve_holds_the_certified_band_and_every_method() -> None:
    chart = plots.privacy_curve(STEPS, deltas=DELTAS)
    for delta in DELTAS:
        (band,) = rows(chart, delta=delta, method=plots.CERTIFIED)
        assert (band["lower"], band["epsilon"]) == STEPS.epsilon_interval(delta)
        assert {row["method"]: row["epsilon"] for row in rows(chart, delta=delta)} == {
            **other_methods(STEPS, delta),
            plots.CERTIFIED: band["epsilon"],
        }
    assert set(column(chart, "method")) == {*METHODS, plots.CERTIFIED}
    x, y = encodings(chart)[0]["x"], encodings(chart)[0]["y"]
    assert (x["scale"]["type"], x["scale"]["domain"]) == ("log", [1e-8, 1e-4])
    assert "delta" in x["title"]
    assert "epsilon" in y["title"]
    low, high = y["scale"]["domain"]
    assert all(low < value < high for value in column(chart, "epsilon"))


def test_privacy_curve_of_one_release_has_nothing_to_compose() -> None:
    chart = plots.privacy_curve(hb.GaussianDP(1.0))
    assert set(column(chart, "method")) == {"Renyi", plots.CERTIFIED}
    deltas = column(chart, "delta", method=plots.CERTIFIED)
    assert deltas == sorted(deltas)
    assert (deltas[0], deltas[-1]) == (pytest.approx(1e-10), pytest.approx(1e-2))


def test_infinite_and_zero_prices_are_left_out_and_a_lower_end_of_zero_reaches_the_floor() -> None:
    stated = plots.privacy_curve(hb.ApproxDP(0.1, 1e-7) * 10, deltas=(1e-8, 1e-6, 1e-5))
    assert set(column(stated, "delta")) == {1e-6, 1e-5}
    unsure = plots.privacy_curve(hb.ZCDP(0.01) * 3, deltas=DELTAS)
    for row in rows(unsure, method=plots.CERTIFIED):
        assert row["lower"] == 0
        assert row["foot"] == encodings(unsure)[0]["y"]["scale"]["domain"][0]
    free = plots.privacy_curve(hb.SampledGaussian(20, 0.001) * 100)
    assert min(column(free, "epsilon")) > 1e-6
    with pytest.raises(ParameterError, match="no two epsilons"):
        plots.privacy_curve(NoLoss())
    with pytest.raises(ParameterError, match="deltas"):
        plots.privacy_curve(STEPS, deltas=(0.0, 1e-5))


def test_composition_growth_follows_the_theorems() -> None:
    counts, delta = (1, 10, 100, 1000), 1e-6
    chart = plots.composition_growth(hb.PureDP(0.1), counts, delta)
    for n in counts:
        (band,) = rows(chart, repetitions=n, method=plots.CERTIFIED)
        assert (band["lower"], band["epsilon"]) == (hb.PureDP(0.1) * n).epsilon_interval(delta)
        assert rows(chart, repetitions=n, method="basic composition")[0]["epsilon"] == pytest.approx(n / 10)
    assert column(chart, "repetitions", method="advanced composition") == [10, 100, 1000]  # one alone: no composition
    assert column(chart, "epsilon", method="advanced composition") == pytest.approx(
        [theorems.advanced_composition(0.1, 0, n, delta)[0] for n in counts[1:]]
    )
    assert "1e-6" in chart.to_dict()["title"]
    assert encodings(chart)[0]["x"]["axis"]["values"] == [1, 10, 100, 1000]


@pytest.mark.parametrize("top", [2, 3, 17, 300])
def test_repetitions_are_labelled_by_whole_numbers(top: int) -> None:
    marks = encodings(plots.composition_growth(hb.PureDP(0.1), [1, top], 1e-6))[0]["x"]["axis"]["values"]
    assert len(marks) >= 2
    assert all(mark == int(mark) and 1 <= mark <= top for mark in marks)


def test_tradeoff_curves_are_the_losses_own() -> None:
    named = {"pure": hb.PureDP(1.0), "Gaussian": hb.GaussianDP(1.0)}
    chart = plots.tradeoff(named)
    for name, loss in named.items():
        for row in rows(chart, loss=name):
            assert row["false_negatives"] == loss.tradeoff(row["false_positives"])
            assert row["false_negatives"] <= 1 - row["false_positives"] + 1e-12
    pure = {row["false_positives"]: row["false_negatives"] for row in rows(chart, loss="pure")}
    assert pure[0.1] == pytest.approx(1 - math.e * 0.1)
    assert rows(chart, loss=plots.GUESSING) == [
        {"loss": plots.GUESSING, "false_positives": 0.0, "false_negatives": 1.0},
        {"loss": plots.GUESSING, "false_positives": 1.0, "false_negatives": 0.0},
    ]
    assert encodings(chart)[0]["color"]["scale"]["domain"] == ["pure", "Gaussian", plots.GUESSING]
    assert {row["loss"] for row in rows(plots.tradeoff(hb.PureDP(1.0)))} == {"this loss", plots.GUESSING}


def test_posterior_band_is_bayes_rule() -> None:
    chart = plots.posterior([math.log(3), 0])
    for row in rows(chart, loss=f"epsilon = {math.log(3):g}"):
        prior = row["prior"]
        assert row["high"] == pytest.approx(3 * prior / (3 * prior + 1 - prior))
        assert row["low"] == pytest.approx(prior / (prior + 3 * (1 - prior)))
    for row in rows(chart, loss="epsilon = 0"):
        assert (row["low"], row["high"]) == pytest.approx((row["prior"], row["prior"]))
    named = plots.posterior({"small": 0.1, "steps": STEPS}, delta=1e-5)
    for row in rows(named, loss="steps"):
        assert (row["low"], row["high"]) == STEPS.posterior(row["prior"], 1e-5)
    assert column(named, "loss")[0] == "steps"  # the widest is drawn first, behind the others


class Curve:
    """A series of attacks as a picture wants it."""

    def __init__(self, label: str, share: float, reach: float | None) -> None:
        self.label, self.share, self.guessing_noise = label, share, reach
        self.points = [Point(1.0, 1.0), Point(10.0, 0.8), Point(100.0, 0.45)]

    def theory(self, noise: float) -> float | None:
        return None if self.guessing_noise is None else 0.5 + 0.5 / (1 + noise / 10)


@dataclass
class Point:
    noise: float
    accuracy: float


def layer_rows(chart: Any) -> list[list[dict[str, Any]]]:
    return [layer["data"]["values"] for layer in chart.to_dict()["layer"]]


def test_reconstruction_accuracy_shows_points_theory_and_where_guessing_begins() -> None:
    curves = [Curve("few", 0.5, 50.0), Curve("many", 0.3, 5000.0), Curve("no theory", 0.5, None)]
    chart = plots.reconstruction_accuracy(curves, {"ours": 30.0})
    level, _, lines, dots, crosses, mark, words = layer_rows(chart)
    assert level[0]["right"] == 0.7  # the majority of the second
    assert {row["curve"] for row in lines} == {"few", "many"}
    assert all(row["right"] == curves[0].theory(row["noise"]) for row in lines)
    assert (min(row["noise"] for row in lines), max(row["noise"] for row in lines)) == pytest.approx((1, 100))
    assert [(row["noise"], row["right"]) for row in dots if row["curve"] == "few"] == [(1, 1), (10, 0.8), (100, 0.45)]
    assert crosses == [
        {"curve": "few", "noise": 50.0, "right": curves[0].theory(50.0)}
    ]  # the other's is off the picture
    assert mark == words == [{"noise": 30.0, "text": "ours"}]
    assert encodings(chart)[2]["color"]["scale"]["domain"] == ["few", "many", "no theory"]
    low, high = encodings(chart)[2]["y"]["scale"]["domain"]
    assert low < 0.45 < 1 < high
    assert len(layer_rows(plots.reconstruction_accuracy(curves[2:]))) == 5
    alone = Curve("one", 0.5, None)
    alone.points = alone.points[:1]
    with pytest.raises(ParameterError, match="two or more above 0"):
        plots.reconstruction_accuracy([alone])


def test_membership_roc_keeps_the_curve_and_its_ceiling() -> None:
    false, true = np.array([0, 0.0005, 0.01, 1]), np.array([0, 0.2, 0.5, 1])
    chart = plots.membership_roc({"one": (false, true)}, {"one": hb.PureDP(1.0)})
    _, steps, ceiling = layer_rows(chart)
    assert [(row["false"], row["true"]) for row in steps] == [(0.001, 0.2), (0.01, 0.5), (1, 1)]
    for row in ceiling:
        assert row["true"] == pytest.approx(1 - hb.PureDP(1.0).tradeoff(row["false"]))
    assert len(layer_rows(plots.membership_roc({"one": (false, true)}))) == 2
    assert "privacy allows" not in str(plots.membership_roc({"one": (false, true)}).to_dict()["title"])


def png_size(path: Path) -> tuple[int, int]:
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    width, height = unpack(">II", content[16:24])
    return width, height


def test_pictures_are_written(tmp_path: Path) -> None:
    pure = hb.PureDP(0.1)
    growth = plots.composition_growth(pure, (1, 10, 100), 1e-6)
    curve = plots.privacy_curve(pure * 100, deltas=DELTAS)
    both = plots.side_by_side(curve, growth, title="both")
    for name, chart in {
        "curve": curve,
        "growth": growth,
        "both": both,
        "tradeoff": plots.tradeoff(pure),
        "posterior": plots.posterior([0.1, 1]),
        "reconstruction": plots.reconstruction_accuracy([Curve("few", 0.5, 50.0)], {"ours": 30.0}),
        "roc": plots.membership_roc({"one": (np.array([0, 1]), np.array([0, 1]))}),
    }.items():
        written = plots.save(chart, tmp_path / f"{name}.png")
        width, height = png_size(written)
        assert width > 800
        assert height > 600
        assert written.stat().st_size > 20_000
    assert png_size(tmp_path / "both.png")[0] > 1.7 * png_size(tmp_path / "curve.png")[0]
    assert "<svg" in plots.save(curve, tmp_path / "curve.svg").read_text()
    assert "certified" in plots.save(curve, tmp_path / "curve.html").read_text()


@pytest.mark.parametrize("where", ["picture.pdf", "picture", "no/such/folder/picture.png", "folder.png"])
def test_places_that_cannot_hold_a_picture_are_refused(tmp_path: Path, where: str) -> None:
    (tmp_path / "folder.png").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ParameterError, match=r"path=.*must"):
        plots.save(plots.posterior([1]), tmp_path / where)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_refuses_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ParameterError, match="cannot be written; choose a folder of your own"):
        plots.save(plots.posterior([1]), tmp_path / "picture.png")
    monkeypatch.undo()
    chart = plots.posterior([1])

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(chart), "save", full)
    with pytest.raises(ParameterError, match="No space left on device"):
        plots.save(chart, tmp_path / "picture.png")


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.privacy_curve(hb.PureDP(1.0), deltas=DELTAS),
        lambda: plots.composition_growth(hb.PureDP(1.0), (1, 2), 1e-5),
        lambda: plots.tradeoff(hb.PureDP(1.0)),
        lambda: plots.posterior([1.0]),
        lambda: plots.outcome_chances({}, title="", value=""),
        lambda: plots.reconstruction_accuracy([Curve("few", 0.5, 50.0)]),
        lambda: plots.membership_roc({}),
    ],
)
def test_pictures_without_altair_name_the_extra(draw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtra, match=r"pip install 'hubbub\[plots\]'"):
        draw()


def test_audit_table_marks_what_is_refuted() -> None:
    fine = {"name": "Laplace", "price": 1.0, "power": 0.95, "holds": True}
    chart = plots.audit_table([fine, {**fine, "price": 3.0}])
    assert chart.to_dict()["title"]["text"] == "All 2 claims hold"
    refuted = plots.audit_table([fine, {"name": "broken", "price": 1.0, "power": 2.0, "holds": False}]).to_dict()
    assert refuted["title"]["text"] == "1 of 2 claims are refuted"
    assert refuted["layer"][0]["encoding"]["x"]["scale"]["domain"][1] > 2
    with pytest.raises(ParameterError, match="found"):
        plots.audit_table([])


def test_pictures_of_votes_count_rows_and_say_that_they_are_private() -> None:
    shares = plots.vote_agreement([0.5, 0.51, 1.0])
    assert sum(column(shares, "rows")) == 3
    assert column(shares, "rows")[-1] == 1
    assert sum(column(plots.vote_gaps([0, 250, 249], 250), "rows")) == 3
    for chart in (shares, plots.vote_gaps([1], 250)):
        assert chart.to_dict()["title"]["subtitle"].startswith("Private")
    prices = plots.label_prices([(n, hb.GaussianDP(0.02) * n) for n in (1, 100)], 1e-5)
    assert column(prices, "epsilon") == [(hb.GaussianDP(0.02) * n).epsilon(1e-5) for n in (1, 100)]
    for wrong in (lambda: plots.vote_agreement([]), lambda: plots.label_prices([], 1e-5)):
        with pytest.raises(ParameterError):
            wrong()


def test_pictures_of_models_show_what_was_released() -> None:
    rows = [{"epsilon": e, "accuracy": 0.8 + e / 100, "error": 0.01, "method": m} for e in (0.1, 1.0) for m in "ab"]
    curve = plots.accuracy_curve(rows, ceiling=0.9).to_dict()
    assert len(curve["layer"]) == 4
    assert "without privacy" in curve["title"]["subtitle"]
    assert len(plots.accuracy_curve([{"epsilon": 1.0, "accuracy": 0.5}, {"epsilon": 2.0, "accuracy": 0.6}]).layer) == 3
    weights = plots.coefficients(["age", "income"], [0.5, -1], noise=0.1).to_dict()
    assert weights["layer"][0]["mark"]["type"] == "bar"
    assert plots.cluster_centres([[0, 1], [2, 3]], [5, -1]).to_dict()["mark"]["type"] == "point"
    assert plots.cluster_centres([[0, 1], [2, 3]]).to_dict()["encoding"]["size"] == {"value": 120}
    for wrong in (
        lambda: plots.accuracy_curve([]),
        lambda: plots.coefficients(["a"], [1, 2], 0.1),
        lambda: plots.cluster_centres([[1]]),
    ):
        with pytest.raises(ParameterError):
            wrong()


def test_training_curves_are_drawn_against_what_was_asked_for() -> None:
    rows = [
        {"method": m, "round": k, "epsilon": k / 2, "bytes": 100 * k, "accuracy": k / 9} for m in "ab" for k in (1, 2)
    ]
    for by, title in (("round", "rounds"), ("epsilon", "epsilon so far"), ("bytes", "bytes sent by clients")):
        chart = plots.training_curves(rows, by=by).to_dict()
        assert chart["encoding"]["x"]["title"] == title
        assert len(chart["data"]["values"]) == 4
    assert (
        len(plots.training_curves([*rows, {"method": "c", "bytes": None}], by="bytes").to_dict()["data"]["values"]) == 4
    )
    for wrong in (lambda: plots.training_curves([]), lambda: plots.training_curves(rows, by="time")):
        with pytest.raises(ParameterError):
            wrong()
