"""What a release costs: losses as values. Draws no randomness."""

from hubbub.privacy.budget import Budget, Receipt
from hubbub.privacy.calibration import calibrate, noise_for, rate_for, steps_for
from hubbub.privacy.discrete import DiscreteGaussianDP
from hubbub.privacy.families import ZCDP, ApproxDP, GaussianDP, LaplaceDP, NoLoss, PureDP, RenyiDP
from hubbub.privacy.finite import RandomizedResponseDP, TruncatedLaplaceDP
from hubbub.privacy.loss import Composed, Loss, Neighbours, compose
from hubbub.privacy.methods import other_methods
from hubbub.privacy.ranges import BoundedRange
from hubbub.privacy.sampling import SampledGaussian, Subsampled

__all__ = [
    "ZCDP",
    "ApproxDP",
    "BoundedRange",
    "Budget",
    "Composed",
    "DiscreteGaussianDP",
    "GaussianDP",
    "LaplaceDP",
    "Loss",
    "Neighbours",
    "NoLoss",
    "PureDP",
    "RandomizedResponseDP",
    "Receipt",
    "RenyiDP",
    "SampledGaussian",
    "Subsampled",
    "TruncatedLaplaceDP",
    "calibrate",
    "compose",
    "noise_for",
    "other_methods",
    "rate_for",
    "steps_for",
]
