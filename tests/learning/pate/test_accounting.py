"""The owner's price is the true divergence, never less, and the analyst's does not depend on votes."""

import math

import numpy as np
import pytest
from oracle import gaussian_masses, laplace_masses, largest_divergence, outcomes, winner

from hubbub.errors import ParameterTypeError
from hubbub.learning.pate import Confident, ForOwner, GaussianMax, Interactive, LaplaceMax, Votes, accounting
from hubbub.learning.pate.accounting import choice_laws, divergence
from hubbub.randomness.laplace import DiscreteLaplace


def random_case(generator):
    """Votes of a few teachers, an aggregator, and its law by the other road."""
    classes, teachers = int(generator.integers(2, 5)), int(generator.integers(2, 30))
    shares = generator.dirichlet(np.full(classes, generator.choice([0.2, 1.0, 5.0])))
    votes = generator.multinomial(teachers, shares).tolist()
    sigma = float(np.round(generator.uniform(0.7, 6), 2))
    kind = generator.integers(3)
    if kind == 0:
        masses = gaussian_masses(sigma, math.ceil(14 * sigma))
        return votes, GaussianMax(sigma), lambda v: outcomes(v, masses)
    if kind == 1:
        masses = laplace_masses(sigma, math.ceil(60 * sigma))
        return votes, LaplaceMax(sigma), lambda v: outcomes(v, masses)
    masses, check = gaussian_masses(sigma, math.ceil(14 * sigma)), (int(generator.integers(0, teachers + 5)), 2 * sigma)
    return votes, Confident(check[0], check_sigma=check[1], sigma=sigma), lambda v: outcomes(v, masses, check)


@pytest.mark.parametrize("cases", [400, pytest.param(10_000, marks=pytest.mark.long)])
def test_never_below_the_exact_divergence(cases):
    generator = np.random.default_rng(cases)
    orders = (1.5, 2.0, 5.0, 12.0)
    below, above = 0, 0
    for _ in range(cases):
        votes, aggregator, law = random_case(generator)
        found = divergence(votes, aggregator, orders)
        for order, bound in zip(orders, found, strict=True):
            exact = largest_divergence(votes, order, law)
            below += bound < exact * (1 - 1e-10) - 1e-13  # what the other road may have lost
            above += bound > exact * 1.02 + 1e-6
    assert below == 0
    assert above < 0.1 * 4 * cases  # it is the divergence itself, but where rare outcomes weigh much


def test_one_vote_less_in_the_gap_would_be_seen():
    """The other side: the same number for votes with a larger lead is below the truth."""
    masses = gaussian_masses(4.0, 56)
    exact = largest_divergence([12, 6, 2], 5.0, lambda v: outcomes(v, masses))
    assert divergence([12, 6, 2], GaussianMax(4), [5.0])[0] >= exact
    assert divergence([13, 5, 2], GaussianMax(4), [5.0])[0] < exact


@pytest.mark.parametrize("votes", [[3, 1, 4], [0, 0], [9, 9, 9, 0], [25, 0, 0]])
def test_laws_of_winners_and_ties(votes):
    own, others = choice_laws(np.array(votes), GaussianMax(3).choice._law)
    masses = gaussian_masses(3.0, 45)
    np.testing.assert_allclose(own, winner(votes, masses), rtol=1e-9, atol=1e-25)
    one = [votes[0] - 1, votes[1] + 1, *votes[2:]]
    np.testing.assert_allclose(others[0], winner(one, masses), rtol=1e-9, atol=1e-25)
    own, _ = choice_laws(np.array(votes), DiscreteLaplace(3))
    np.testing.assert_allclose(own, winner(votes, laplace_masses(3, 200)), rtol=1e-9, atol=1e-25)


def test_prices_for_all_votes_are_the_worst_ones():
    """Data-independent prices hold for every vote; two classes in a tie come within a factor pi/2 of them."""
    for votes in ([5, 5], [10, 0, 0], [4, 3, 3]):
        for aggregator in (GaussianMax(3), LaplaceMax(3), Confident(6, check_sigma=3, sigma=3)):
            for order in (2.0, 10.0, 60.0):
                bound, cap = divergence(votes, aggregator, [order])[0], aggregator.loss(1).renyi(order)
                assert 0 < bound <= cap
    tie = divergence([125, 125], GaussianMax(40), [2.0])[0]
    assert tie == pytest.approx(GaussianMax(40).loss(1).renyi(2) * 2 / math.pi, rel=1e-3)


PUBLISHED = [
    # aggregator, classes, teachers, asked, share of teachers that agree, delta, printed epsilon
    ("MNIST 2017", LaplaceMax(20), 10, 250, 100, 0.84, 1e-5, 2.04),
    ("MNIST 2017", LaplaceMax(20), 10, 250, 1000, 0.84, 1e-5, 8.03),
    ("SVHN 2017", LaplaceMax(20), 10, 250, 500, 0.83, 1e-6, 5.04),
    ("SVHN 2017", LaplaceMax(20), 10, 250, 1000, 0.83, 1e-6, 8.19),
    ("MNIST 2018", Confident(200, check_sigma=150, sigma=40), 10, 250, 640, None, 1e-5, 1.97),
    ("SVHN 2018", Confident(300, check_sigma=200, sigma=40), 10, 250, 8500, None, 1e-6, 4.96),
    ("Adult 2018", Confident(300, check_sigma=200, sigma=40), 2, 250, 1500, None, 1e-5, 1.90),
]
ANSWERED = {"MNIST 2018": 286 / 640, "SVHN 2018": 3098 / 8500, "Adult 2018": 524 / 1500}


def simulated(name, aggregator, classes, teachers, agreement, rows=100):
    """Votes whose first class gets a share around the agreement, the rest scattered; or as many as pass the check."""
    generator = np.random.default_rng(8)
    spread = np.clip(generator.normal(0, 0.1, rows), -0.3, 0.3)

    def votes(centre):
        most = np.clip(np.round(teachers * (centre + spread)), teachers / classes + 1, teachers).astype(int)
        rest = np.array([np.random.default_rng(k).multinomial(teachers - m, np.ones(classes - 1) / (classes - 1))
                         for k, m in enumerate(most)])  # fmt: skip
        return np.column_stack([most, rest])

    if agreement is not None:
        return votes(agreement)
    low, high = 1 / classes, 1.3
    for _ in range(30):
        middle = (low + high) / 2
        passes = aggregator.check.chance(votes(middle).max(axis=1)).mean()
        low, high = (middle, high) if passes < ANSWERED[name] else (low, middle)
    return votes(low)


@pytest.mark.parametrize(
    ("name", "aggregator", "classes", "teachers", "asked", "agreement", "delta", "printed"), PUBLISHED
)
def test_published_settings_cost_no_more(name, aggregator, classes, teachers, asked, agreement, delta, printed):
    counts = simulated(name, aggregator, classes, teachers, agreement)
    if agreement is None:
        assert aggregator.check.chance(counts.max(axis=1)).mean() == pytest.approx(ANSWERED[name], abs=0.01)
    owner = ForOwner(Votes(counts, teachers, np.arange(classes)), aggregator)
    orders = tuple(1 + np.geomspace(0.5, 150, 20))
    one = owner.loss(orders)
    per_row = [e / len(counts) for e in one.epsilons]
    total = type(one)(one.orders, tuple(e * asked for e in per_row)).epsilon(delta)
    print(f"{name}, {asked} asked: {total:.3f} here, {printed} printed")
    assert total <= printed


def test_what_the_owner_sees_is_hidden_and_depends_on_votes():
    aggregator = GaussianMax(40)
    agreed = ForOwner(Votes(np.array([[250, 0]] * 20), 250, np.array([0, 1])), aggregator)
    split = ForOwner(Votes(np.array([[125, 125]] * 20), 250, np.array([0, 1])), aggregator)
    assert agreed.epsilon(1e-5) < split.epsilon(1e-5) / 3
    assert split.epsilon(1e-5) < aggregator.loss(20).epsilon(1e-5)
    assert repr(agreed) == str(agreed) == "<ForOwner: private, not shown>" == f"{split}"


def test_no_price_by_votes_where_questions_depend_on_answers():
    owner = ForOwner(Votes(np.array([[9, 1]]), 10, np.array([0, 1])), Interactive(5, check_sigma=4, sigma=3))
    with pytest.raises(ParameterTypeError, match="depends on answers"):
        owner.loss()


def test_what_is_no_number_ends_at_the_price_for_all_votes(monkeypatch):
    nothing = np.full((1, 2), np.nan)
    for laws in ((nothing[0], nothing), (np.array([0.5, np.nan]), np.array([[0.5, 0.5]]))):
        monkeypatch.setattr(accounting, "outcome_laws", lambda *_, laws=laws: laws)
        assert divergence([5, 5], GaussianMax(3), [2.0])[0] == GaussianMax(3).loss(1).renyi(2)


def test_failing_numbers_end_at_the_price_for_all_votes():
    wide = GaussianMax(0.2)
    for order in (1.2, 40.0, 300.0):
        found = divergence([200, 3, 0], wide, [order])[0]
        assert 0 <= found <= wide.loss(1).renyi(order)
