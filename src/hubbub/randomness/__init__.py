"""Secure random bits, and exact vectorised samplers of integer laws on top of them. Knows no epsilon."""

from hubbub.randomness.bits import SECURE, Bits, SecureBits
from hubbub.randomness.choice import (
    Bernoulli,
    BernoulliExp,
    GridExponential,
    draw_below,
    permutation,
    uniform_below,
    weighted_choice,
)
from hubbub.randomness.gaussian import DiscreteGaussian, RoundedGaussian
from hubbub.randomness.laplace import DiscreteLaplace, RoundedLaplace, TruncatedDiscreteLaplace
from hubbub.randomness.laws import Geometric
from hubbub.randomness.thresholds import Fineness

__all__ = [
    "SECURE",
    "Bernoulli",
    "BernoulliExp",
    "Bits",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Fineness",
    "Geometric",
    "GridExponential",
    "RoundedGaussian",
    "RoundedLaplace",
    "SecureBits",
    "TruncatedDiscreteLaplace",
    "draw_below",
    "permutation",
    "uniform_below",
    "weighted_choice",
]
