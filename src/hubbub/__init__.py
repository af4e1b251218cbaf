"""hubbub: ask, train, attack and audit personal data under one privacy budget.

A hubbub is the noise of a crowd: what one person says is lost in it, and what the crowd says is not.

Names are loaded on first use, so that ``import hubbub`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub import attacks, errors, learning, plots
    from hubbub.curator import connect
    from hubbub.domains import Category, Key, Moment, Number
    from hubbub.errors import BudgetExceeded
    from hubbub.mechanisms import (
        AboveThreshold,
        DiscreteGaussian,
        Exponential,
        Gaussian,
        KeySelection,
        Laplace,
        NoisyMax,
        Quantile,
        RandomizedResponse,
        TopK,
        TruncatedLaplace,
    )
    from hubbub.privacy import (
        ZCDP,
        ApproxDP,
        BoundedRange,
        Budget,
        DiscreteGaussianDP,
        GaussianDP,
        LaplaceDP,
        Loss,
        PureDP,
        RandomizedResponseDP,
        RenyiDP,
        SampledGaussian,
        TruncatedLaplaceDP,
        calibrate,
        compose,
    )
    from hubbub.queries import (
        best_price,
        count,
        count_distinct,
        max,
        mean,
        median,
        min,
        mode,
        protect,
        quantile,
        stddev,
        sum,
        top,
        variance,
    )

__version__ = "0.1.0"

_ROOMS = {
    "hubbub.curator": ("connect",),
    "hubbub.domains": ("Category", "Key", "Moment", "Number"),
    "hubbub.errors": ("BudgetExceeded",),
    "hubbub.mechanisms": (
        "AboveThreshold",
        "DiscreteGaussian",
        "Exponential",
        "Gaussian",
        "KeySelection",
        "Laplace",
        "NoisyMax",
        "Quantile",
        "RandomizedResponse",
        "TopK",
        "TruncatedLaplace",
    ),
    "hubbub.privacy": (
        "ZCDP",
        "ApproxDP",
        "BoundedRange",
        "Budget",
        "DiscreteGaussianDP",
        "GaussianDP",
        "LaplaceDP",
        "Loss",
        "PureDP",
        "RandomizedResponseDP",
        "RenyiDP",
        "SampledGaussian",
        "TruncatedLaplaceDP",
        "calibrate",
        "compose",
    ),
    "hubbub.queries": (
        "best_price",
        "count",
        "count_distinct",
        "max",
        "mean",
        "median",
        "min",
        "mode",
        "protect",
        "quantile",
        "stddev",
        "sum",
        "top",
        "variance",
    ),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}
_MODULES = (
    "attacks",
    "audit",
    "curator",
    "domains",
    "errors",
    "learning",
    "mechanisms",
    "plots",
    "privacy",
    "queries",
    "randomness",
)

__all__ = [
    "ZCDP",
    "AboveThreshold",
    "ApproxDP",
    "BoundedRange",
    "Budget",
    "BudgetExceeded",
    "Category",
    "DiscreteGaussian",
    "DiscreteGaussianDP",
    "Exponential",
    "Gaussian",
    "GaussianDP",
    "Key",
    "KeySelection",
    "Laplace",
    "LaplaceDP",
    "Loss",
    "Moment",
    "NoisyMax",
    "Number",
    "PureDP",
    "Quantile",
    "RandomizedResponse",
    "RandomizedResponseDP",
    "RenyiDP",
    "SampledGaussian",
    "TopK",
    "TruncatedLaplace",
    "TruncatedLaplaceDP",
    "attacks",
    "best_price",
    "calibrate",
    "compose",
    "connect",
    "count",
    "count_distinct",
    "errors",
    "learning",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "plots",
    "protect",
    "quantile",
    "stddev",
    "sum",
    "top",
    "variance",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"hubbub.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'hubbub' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_MODULES])
