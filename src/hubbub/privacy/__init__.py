"""What a release costs: losses as values. Draws no randomness."""

from hubbub.privacy.families import (
    ZCDP,
    ApproxDP,
    BoundedRange,
    GaussianDP,
    LaplaceDP,
    PureDP,
    RenyiDP,
)
from hubbub.privacy.loss import Composed, Loss, Neighbours, compose
from hubbub.privacy.sampling import SampledGaussian, Subsampled

__all__ = [
    "ZCDP",
    "ApproxDP",
    "BoundedRange",
    "Composed",
    "GaussianDP",
    "LaplaceDP",
    "Loss",
    "Neighbours",
    "PureDP",
    "RenyiDP",
    "SampledGaussian",
    "Subsampled",
    "compose",
]
