"""Mechanisms: frozen values with public parameters. What goes into ``release`` is private, what comes out is not."""

from hubbub.mechanisms.gaussian import DiscreteGaussian, Gaussian
from hubbub.mechanisms.keys import KeySelection
from hubbub.mechanisms.laplace import Laplace, TruncatedLaplace
from hubbub.mechanisms.mechanism import Mapped, Mechanism
from hubbub.mechanisms.quantile import Quantile
from hubbub.mechanisms.response import Estimate, RandomizedResponse
from hubbub.mechanisms.selection import Exponential, NoisyMax, TopK
from hubbub.mechanisms.threshold import AboveThreshold, ThresholdSession

__all__ = [
    "AboveThreshold",
    "DiscreteGaussian",
    "Estimate",
    "Exponential",
    "Gaussian",
    "KeySelection",
    "Laplace",
    "Mapped",
    "Mechanism",
    "NoisyMax",
    "Quantile",
    "RandomizedResponse",
    "ThresholdSession",
    "TopK",
    "TruncatedLaplace",
]
