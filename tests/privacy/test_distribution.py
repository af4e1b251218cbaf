"""Loss distributions to look at: they add up, have the right moments, and agree with the certified price."""

import math

import numpy as np
import pytest

import hubbub as hb
from hubbub.errors import ParameterError

SINGLE = [
    hb.PureDP(0.7),
    hb.ApproxDP(0.7, 1e-3),
    hb.GaussianDP(0.9),
    hb.LaplaceDP(1.2),
    hb.RandomizedResponseDP(0.5, 5),
    hb.TruncatedLaplaceDP(0.5, 1e-3, 100),
    hb.DiscreteGaussianDP(1, 2.0),
    hb.DiscreteGaussianDP(3, 50.0),
    hb.BoundedRange(0.5),
    hb.SampledGaussian(1.0, 0.1),
]


def delta(listing: tuple[np.ndarray, np.ndarray, float], epsilon: float) -> float:
    losses, masses, infinity = listing
    return float((masses * np.maximum(0, -np.expm1(epsilon - losses))).sum()) + infinity


@pytest.mark.parametrize("loss", SINGLE, ids=repr)
def test_one_loss(loss: hb.Loss) -> None:
    losses, masses, infinity = listing = loss.distribution()
    assert masses.sum() + infinity == pytest.approx(1, abs=1e-11)
    assert np.all(np.diff(losses) >= 0)
    assert np.all(masses > 0)
    assert len(losses) <= 1300
    assert (masses * np.exp(-losses)).sum() <= 1 + 1e-3  # Q's mass
    for epsilon in (0.0, 0.1, 0.3):
        if loss.neighbours == "replace" or not isinstance(loss, hb.SampledGaussian):
            assert delta(listing, epsilon) == pytest.approx(loss.delta(epsilon), rel=0.02, abs=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        hb.GaussianDP(0.2) * 30,
        hb.LaplaceDP(0.1) * 200,
        hb.RandomizedResponseDP(0.3, 4) * 50,
        hb.ApproxDP(0.2, 1e-4) * 20 + hb.GaussianDP(0.5),
        hb.DiscreteGaussianDP(1, 3.0) * 10,
        hb.PureDP(0.5) + hb.LaplaceDP(0.25),
        hb.LaplaceDP(0.01) * 10**6,
    ],
    ids=repr,
)
def test_compositions(loss: hb.Loss) -> None:
    losses, masses, infinity = listing = loss.distribution(points=500)
    assert masses.sum() + infinity == pytest.approx(1, abs=1e-9)
    assert np.all(np.diff(losses) > 0)
    assert len(losses) <= 1010
    for at in (1e-2, 3e-2):
        epsilon = loss.epsilon(at + infinity)
        assert delta(listing, epsilon) == pytest.approx(at + infinity, rel=0.1)


def test_moments_of_a_gaussian() -> None:
    losses, masses, infinity = (hb.GaussianDP(0.3) * 16 + hb.LaplaceDP(1e-6)).distribution(4000)
    mean = float(masses @ losses)
    assert infinity == 0
    assert mean == pytest.approx(1.2**2 / 2, rel=1e-3)
    assert math.sqrt(float(masses @ (losses - mean) ** 2)) == pytest.approx(1.2, rel=1e-2)


def test_no_distribution_without_a_pair() -> None:
    with pytest.raises(ParameterError, match="has no loss distribution"):
        (hb.ZCDP(1) + hb.PureDP(1)).distribution()
    for bad in (1, 0, 2.5):
        with pytest.raises(ParameterError, match="points"):
            hb.PureDP(1).distribution(bad)
