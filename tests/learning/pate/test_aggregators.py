"""Noise of the stated law, drawn afresh for every look, and prices known before a vote is cast."""

import math

import numpy as np
import pytest
from oracle import gaussian_masses, laplace_masses, outcomes, winner
from scipy.stats import binom
from support import FALSE_ALARM, SeededBits, assert_fits, fit_p_value

from hubbub.errors import DataTypeError, ParameterError, ParameterTypeError
from hubbub.learning.pate import Confident, GaussianMax, Interactive, LaplaceMax
from hubbub.learning.pate.aggregators import check_aggregator
from hubbub.learning.pate.counting import EnoughVotes, MostVotes
from hubbub.privacy import GaussianDP, PureDP

DRAWS = 20_000
VOTES = [7, 5, 6]


@pytest.mark.parametrize("aggregator", [GaussianMax(3), LaplaceMax(3)])
def test_winners_follow_the_stated_law(aggregator):
    masses = gaussian_masses(3.0, 45) if isinstance(aggregator, GaussianMax) else laplace_masses(3.0, 200)
    found = aggregator.labels([VOTES] * DRAWS, bits=SeededBits(3))
    assert_fits(found, np.arange(3), winner(VOTES, masses))
    for wrong in (gaussian_masses(2.0, 45), laplace_masses(1.5, 200)):  # half the noise, say 1/epsilon for 2/epsilon
        assert fit_p_value(found, np.arange(3), winner(VOTES, wrong)) < FALSE_ALARM


def test_refusals_and_answers_follow_the_stated_law():
    aggregator = Confident(8, check_sigma=4, sigma=3)
    found = aggregator.labels([VOTES] * DRAWS, bits=SeededBits(4))
    law = outcomes(VOTES, gaussian_masses(3.0, 45), (8, 4.0))
    assert_fits(np.where(found < 0, 3, found), np.arange(4), law)
    shifted = outcomes(VOTES, gaussian_masses(3.0, 45), (9, 4.0))
    assert fit_p_value(np.where(found < 0, 3, found), np.arange(4), shifted) < FALSE_ALARM


def test_every_check_and_every_choice_has_noise_of_its_own():
    """Two questions whose checks pass half the time do so a quarter of the time; answers do not follow checks."""
    aggregator = Confident(8, check_sigma=40, sigma=3)
    passed = aggregator.labels([VOTES] * DRAWS, bits=SeededBits(5)) >= 0
    share = float(EnoughVotes(8, sigma=40).chance(7))
    both = int((passed[::2] & passed[1::2]).sum())
    low, high = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], DRAWS // 2, share**2)
    assert low <= both <= high
    assert binom.sf(both, DRAWS // 2, share) > 1 - FALSE_ALARM  # as many as if the noise were one for all: no
    close = Confident(0, check_sigma=3, sigma=3).labels([[0, 0]] * DRAWS, bits=SeededBits(6))
    first = int((close == 0).sum())
    answered = int((close >= 0).sum())
    fair = winner([0, 0], gaussian_masses(3.0, 45))[0]
    low, high = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], answered, fair)
    assert low <= first <= high  # a check's noise used again would favour the class it belonged to


def test_laplace_costs_two_over_the_scale():
    assert LaplaceMax(20).loss(100).epsilon() == 10.0
    assert LaplaceMax(20).loss(1) == PureDP(0.1)
    ratio = 0.0
    for k in range(40):  # one vote moves; the truth attains nearly 2/scale, twice what 1/scale would claim
        one, other = winner([0, k + 1], laplace_masses(2, 200)), winner([1, k], laplace_masses(2, 200))
        ratio = max(ratio, float(np.abs(np.log(one / other)).max()))
    assert 0.9 < ratio <= 1.0


def test_prices_add_up_as_one_gaussian():
    assert GaussianMax(40).loss(200).epsilon(1e-5) == pytest.approx(
        GaussianDP(math.sqrt(2 * 200) / 40).epsilon(1e-5), rel=1e-9
    )
    mixed = Confident(200, check_sigma=150, sigma=40).loss(640, 286)
    mu = math.sqrt(640 / 150**2 + 2 * 286 / 40**2)
    assert mixed.epsilon(1e-5) == pytest.approx(GaussianDP(mu).epsilon(1e-5), rel=1e-9)
    assert GaussianMax(40).loss(200, 50) == GaussianMax(40).loss(50)
    assert GaussianMax(40).loss(200, 500) == GaussianMax(40).loss(200)
    assert LaplaceMax(5, neighbours="replace").loss(3).neighbours == "replace"


def test_answers_end_and_nothing_is_looked_at_after_them(monkeypatch):
    looks = []
    for kind in (MostVotes, EnoughVotes):
        release = kind.release
        monkeypatch.setattr(
            kind, "release", lambda self, value, bits, release=release: looks.append(1) or release(self, value, bits)
        )
    found = GaussianMax(0.1).labels([[9, 1]] * 5, answers=2)
    assert found.tolist() == [0, 0, -2, -2, -2]
    assert len(looks) == 2
    found = Confident(5, check_sigma=0.1, sigma=0.1).labels([[9, 1], [3, 3], [1, 9], [9, 1]], answers=2)
    assert found.tolist() == [0, -1, 1, -2]
    assert len(looks) == 2 + 3 + 2


def test_expected_votes_are_subtracted_before_the_check_only():
    aggregator = Confident(5, check_sigma=0.1, sigma=0.1)
    votes, expected = [[9, 1], [1, 9]], np.array([[9, 1], [9, 1]])
    assert aggregator.labels(votes, expected=expected).tolist() == [-1, 1]


def test_moves_that_one_teacher_can_make_are_neighbours():
    most, enough = MostVotes(3), EnoughVotes(5, sigma=3)
    assert most.apart([5, 3], [4, 4]) == pytest.approx(1)
    assert enough.apart([5, 3], [4, 4]) == 1
    assert most.apart([5, 3, 1], [3, 4, 2]) > 1
    assert enough.apart([5, 3], [3, 5]) == 2
    assert most.apart([5, 3], [5, 3, 0]) == enough.apart([5, 3], [5, 3, 0]) == math.inf


def test_bad_parameters_are_refused():
    for wrong in (lambda: GaussianMax(0), lambda: LaplaceMax(-1), lambda: Confident(1, check_sigma=0, sigma=1)):
        with pytest.raises(ParameterError, match="must be > 0"):
            wrong()
    with pytest.raises(ParameterError, match="rounds"):
        Interactive(5, check_sigma=1, sigma=1, rounds=1)
    with pytest.raises(ParameterError, match="sure"):
        Interactive(5, check_sigma=1, sigma=1, sure=1)
    with pytest.raises(ParameterError, match="neighbours"):
        GaussianMax(3, neighbours="both")
    with pytest.raises(ParameterError, match="asked"):
        GaussianMax(3).loss(0)
    with pytest.raises(ParameterError, match="must be given"):
        check_aggregator(None)
    with pytest.raises(ParameterTypeError, match="GaussianMax"):
        check_aggregator("gaussian")
    for votes in ([1.5, 2], [1], "ab", None):
        with pytest.raises(DataTypeError, match="votes"):
            MostVotes(1).release(votes)
