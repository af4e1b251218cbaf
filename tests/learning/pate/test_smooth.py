"""The released price: bounds by table, sensitivity by brute force, noise by its exact divergence."""

import math
from itertools import product

import numpy as np
import pytest
from oracle import gaussian_masses, largest_divergence, moved, outcomes
from scipy.integrate import quad
from scipy.stats import binom, norm
from support import FALSE_ALARM, SeededBits

import hubbub as hb
from hubbub.errors import BudgetExceeded, ParameterError, ParameterTypeError
from hubbub.learning.pate import Confident, ForOwner, GaussianMax, LaplaceMax, Votes
from hubbub.learning.pate.smooth import LEAST, SmoothNoise, cost_table, released_epsilon, smooth_sensitivity
from hubbub.privacy.renyi import epsilon_at


def all_votes(teachers, classes):
    return [v for v in product(range(teachers + 1), repeat=classes) if sum(v) == teachers]


def looks(votes):
    ordered = sorted(votes)
    return ordered[-1], ordered[-1] - ordered[-2]


@pytest.mark.parametrize("order", [2.0, 6.0])
@pytest.mark.parametrize("aggregator", [GaussianMax(1), Confident(8, check_sigma=3, sigma=1)])
def test_tables_are_never_below_the_exact_divergence(order, aggregator):
    masses = gaussian_masses(1.0, 20)
    check = (8, 3.0) if aggregator.check else None
    table, tight = cost_table(18, 3, aggregator, order), 0
    for votes in all_votes(18, 3):
        most, lead = looks(votes)
        bound = table[most if check else 0, lead]
        assert bound >= largest_divergence(votes, order, lambda v: outcomes(v, masses, check)) * (1 - 1e-10) - 1e-13
        tight += bound < 0.9 * aggregator.loss(1).renyi(order)
    assert tight > 1


def test_smooth_sensitivity_is_that_of_brute_force_or_more():
    """Two questions, four teachers: every table of votes, what one teacher changes, and how far it is."""
    aggregator, beta = GaussianMax(0.4), 0.3
    table = cost_table(8, 2, aggregator, 3.0)[0]
    every = [(a, b) for a in range(9) for b in range(9)]  # votes for the first class, of two questions
    total = {v: sum(table[abs(2 * n - 8)] for n in v) for v in every}
    local = {
        v: max(abs(total[v] - total[w]) for w in every if max(abs(v[0] - w[0]), abs(v[1] - w[1])) <= 1) for v in every
    }
    assert max(local.values()) > 0
    found = {}
    for v in every:
        true = max(local[w] * math.exp(-beta * max(abs(v[0] - w[0]), abs(v[1] - w[1]))) for w in every)
        most = np.array([max(n, 8 - n) for n in v])
        found[v] = smooth_sensitivity(table[None], most, np.array([abs(2 * n - 8) for n in v]), beta)
        assert found[v] >= true
    for v, w in product(every, every):
        if max(abs(v[0] - w[0]), abs(v[1] - w[1])) <= 1:
            assert found[v] <= found[w] * math.exp(beta) * (1 + 1e-9)


def test_smooth_sensitivity_with_a_check_is_that_of_brute_force_or_more():
    aggregator, beta = Confident(5, check_sigma=2, sigma=0.5), 0.2
    table = cost_table(6, 3, aggregator, 3.0)
    every = all_votes(6, 3)
    cost = {v: table[looks(v)] for v in every}
    apart = {(v, w): sum(abs(a - b) for a, b in zip(v, w, strict=True)) // 2 for v in every for w in every}
    local = {v: max(abs(cost[v] - cost[tuple(w)]) for w in moved(v) if min(w) >= 0) for v in every}
    found = {v: smooth_sensitivity(table, np.array([looks(v)[0]]), np.array([looks(v)[1]]), beta) for v in every}
    for v in every:
        assert found[v] >= max(local[w] * math.exp(-beta * apart[v, w]) for w in every)
        assert all(found[v] <= found[tuple(w)] * math.exp(beta) * (1 + 1e-9) for w in moved(v) if min(w) >= 0)


@pytest.mark.parametrize("order", [1.5, 4.0, 12.0])
def test_the_noise_costs_at_least_its_exact_divergence(order):
    """Between neighbours whose sensitivities are e**beta apart and whose numbers are as far apart as may be."""
    noise = SmoothNoise(beta=0.02, sigma=3, confidence=0.95)
    shift, tight = float(noise._quantile), 0.0
    for ratio in (math.exp(-0.02), math.exp(-0.01), 1.0, math.exp(0.02)):
        for sign in (1, -1):
            s, t = 1.0, ratio
            centres = s * shift, t * shift + sign * min(s, t)
            p, q = norm(centres[0], 3 * s), norm(centres[1], 3 * t)
            found = quad(lambda x, p=p, q=q: math.exp(order * p.logpdf(x) + (1 - order) * q.logpdf(x)), -150, 150,
                         points=[-10, 0, 5, 10], limit=400)[0]  # fmt: skip
            true = math.log(found) / (order - 1)
            assert true <= noise.price(order)
            tight = max(tight, true / noise.price(order))
    assert tight > 0.6
    assert noise.loss.renyi(order) >= noise.price(order) * (1 - 1e-9)
    assert noise.price(100.0) == math.inf


def test_the_number_is_likely_no_less_than_it_was_and_on_the_grid():
    noise, bits = SmoothNoise(beta=0.02, sigma=5, confidence=0.9), SeededBits(8)
    drawn = np.array([noise.release((0.3, 0.01), bits) for _ in range(3000)])
    low, high = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], len(drawn), 0.9)
    assert low <= (drawn >= 0.3).sum() <= high
    assert drawn.std() == pytest.approx(5 * 0.01, rel=0.1)
    assert (drawn * 2**30 % 1 == 0).all()
    still = np.array([noise.release((0.0, 0.0), bits) for _ in range(300)])
    assert still.std() == pytest.approx(5 * float(LEAST), rel=0.2)


def owner_of(counts, aggregator):
    return ForOwner(Votes(np.asarray(counts), int(np.sum(counts[0])), np.arange(len(counts[0]))), aggregator)


def test_a_release_is_paid_for_and_covers_the_truth():
    aggregator = GaussianMax(100)
    owner = owner_of([[4800, 100, 100]] * 2000, aggregator)
    budget = hb.Budget(20, 1e-5)
    told = released_epsilon(owner, delta=1e-6, order=20, sigma=20, budget=budget, bits=SeededBits(1))
    assert [receipt.loss for receipt in budget.receipts] == [told.loss]
    own = SmoothNoise(beta=0.3 / 20, sigma=20).price(20.0)
    assert told.epsilon >= epsilon_at(20, owner.loss([20.0]).renyi(20) + own, 1e-6)
    assert told.epsilon < aggregator.loss(2000).epsilon(1e-6) / 2
    assert "for these data" in str(told)
    split = released_epsilon(owner_of([[2500, 2500, 0]] * 2000, aggregator), delta=1e-6, order=20, sigma=20)
    assert split.epsilon <= (aggregator.loss(2000) + split.loss).epsilon(1e-6) * (1 + 1e-9)
    assert split.epsilon > told.epsilon


def test_nothing_is_released_unpaid():
    with pytest.raises(BudgetExceeded):
        released_epsilon(owner_of([[40, 10]], GaussianMax(5)), delta=1e-5, order=10, budget=hb.Budget(0.01, 1e-6))


def test_bad_settings_are_refused():
    owner = owner_of([[40, 10]], GaussianMax(5))
    with pytest.raises(ParameterError, match="beta"):
        released_epsilon(owner, delta=1e-5, order=20, beta=0.2)
    with pytest.raises(ParameterError, match="delta"):
        released_epsilon(owner, delta=0, order=20)
    with pytest.raises(ParameterError, match="beta"):
        SmoothNoise(beta=3, sigma=1).loss  # noqa: B018
    with pytest.raises(ParameterTypeError, match="no released price"):
        released_epsilon(owner_of([[40, 10]], LaplaceMax(5)), delta=1e-5, order=20)
    with pytest.raises(ParameterError, match="too many"):
        cost_table(5000, 3, Confident(8, check_sigma=3, sigma=1.5), 2.0)


def test_neighbouring_inputs_of_the_noise():
    noise = SmoothNoise(beta=0.1, sigma=5)
    assert noise.apart((1.0, 0.5), (1.4, 0.5)) == pytest.approx(0.8)
    assert noise.apart((1.0, 0.5), (1.0, 0.5 * math.exp(0.2))) == pytest.approx(2)
