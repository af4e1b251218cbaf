"""Every picture, as Altair charts: the same object for notebooks, files and the web page."""

from hubbub.plots.answers import released_bars, released_quantiles
from hubbub.plots.attacks import membership_roc, reconstruction_accuracy
from hubbub.plots.audits import audit_report, audit_table
from hubbub.plots.charts import AnyChart, save, side_by_side, writable
from hubbub.plots.losses import (
    CERTIFIED,
    GUESSING,
    UNCHANGED,
    composition_growth,
    outcome_chances,
    posterior,
    privacy_curve,
    tradeoff,
)
from hubbub.plots.models import accuracy_curve, cluster_centres, coefficients, training_curves
from hubbub.plots.votes import label_prices, vote_agreement, vote_gaps

__all__ = [
    "CERTIFIED",
    "GUESSING",
    "UNCHANGED",
    "AnyChart",
    "accuracy_curve",
    "audit_report",
    "audit_table",
    "cluster_centres",
    "coefficients",
    "composition_growth",
    "label_prices",
    "membership_roc",
    "outcome_chances",
    "posterior",
    "privacy_curve",
    "reconstruction_accuracy",
    "released_bars",
    "released_quantiles",
    "save",
    "side_by_side",
    "tradeoff",
    "training_curves",
    "vote_agreement",
    "vote_gaps",
    "writable",
]
