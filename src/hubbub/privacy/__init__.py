"""What a release costs: losses as values. Draws no randomness."""

from hubbub.privacy.loss import ZCDP, ApproxDP, GaussianDP, Loss, Neighbours, PureDP

__all__ = ["ZCDP", "ApproxDP", "GaussianDP", "Loss", "Neighbours", "PureDP"]
