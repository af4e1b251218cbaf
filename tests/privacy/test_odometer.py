"""The odometer: above the truth at every moment, close to it, and at the delta it says."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hubbub as hb
from hubbub.privacy.odometer import COARSE, FINE, Odometer


def after(losses: list[hb.Loss], delta: float = 1e-6, scale: float = 1.0, at: float = 0.0) -> float:
    odometer = Odometer(Fraction(str(scale)), Fraction(str(delta)))
    for loss in losses:
        odometer.add(loss, Fraction(str(at)))
    return odometer.epsilon()


def test_pure_losses_are_their_sum_at_any_delta() -> None:
    for delta in (0.0, 1e-9):
        assert after([], delta) == 0
        assert after([hb.PureDP(0.1)] * 3, delta) == 0.3
    assert after([hb.PureDP(0.1)] * 30, 1e-6) == 3.0  # beyond the scale as well


def test_deltas_are_spent_up_to_half() -> None:
    assert after([hb.ApproxDP(0.1, 1e-7)] * 5) == 0.5
    assert after([hb.ApproxDP(0.1, 1e-7)] * 6) == math.inf
    assert after([hb.ApproxDP(0.1, 1e-7)], 0.0) == math.inf


def test_gaussians_need_levels_and_many_cost_less_than_their_sum() -> None:
    one = hb.GaussianDP(0.01)
    assert after([one] * 100, 0.0) == math.inf
    for n in (100, 1000):
        assert (one * n).epsilon(1e-6) <= after([one] * n) < 1.5 * (one * n).epsilon(1e-6)
    assert after([one], at=1e-7) == pytest.approx(one.epsilon(1e-7))  # its price in the sum is less than any level's
    assert after([one]) > one.epsilon(1e-7)


def test_a_first_loss_beyond_everything_is_shown_at_its_own_price_and_then_nothing_is() -> None:
    wide = hb.ApproxDP(0.5, 9e-7)
    assert after([wide]) == 0.5
    assert after([wide, hb.PureDP(0.1)]) == math.inf
    assert after([hb.PureDP(0.1), wide]) == math.inf


def test_levels_share_half_of_delta() -> None:
    """The claim adds up only if they do: the order and capacity of each are those of its own share."""
    from hubbub.privacy.budget import _best_order

    odometer = Odometer(Fraction(2), Fraction(1, 10**6))
    assert len(odometer._levels) == FINE + COARSE == 64
    assert odometer._levels[31] == (Fraction(2), *_best_order(2.0, 1e-6 / 128))
    assert odometer._levels[-1][0] > 500


LOSSES = st.one_of(
    st.builds(hb.PureDP, st.floats(0.01, 1)),
    st.builds(hb.GaussianDP, st.floats(0.01, 1)),
    st.builds(hb.ZCDP, st.floats(1e-4, 0.1)),
    st.builds(hb.ApproxDP, st.floats(0.01, 0.5), st.floats(1e-12, 1e-8)),
)


@settings(max_examples=40)
@given(st.floats(0.2, 5), st.sampled_from([1e-9, 1e-6, 1e-3]), st.lists(LOSSES, min_size=1, max_size=20))
def test_it_never_falls_and_is_never_below_the_truth(scale: float, delta: float, losses: list[hb.Loss]) -> None:
    """Questions fixed in advance are a case of adaptive ones: what they cost exactly is a lower bound."""
    odometer, before = Odometer(Fraction(str(scale)), Fraction(str(delta))), 0.0
    for loss in losses:
        odometer.add(loss)
        assert odometer.epsilon() >= before
        before = odometer.epsilon()
    low, _ = hb.compose(losses).epsilon_interval(delta)
    assert low <= before * (1 + 1e-9)


def test_reading_it_adaptively_stays_within_delta() -> None:
    """The exact excess of an analyst who stops at the first bad moment: runs of randomised response, listed whole.

    Each release is approximate: with probability d the truth is told. The analyst stops as soon as that happens.
    """
    epsilon, d, rounds = 0.1, Fraction(1, 100), 4
    delta = float(2 * d * rounds)
    odometer = Odometer(Fraction(1), Fraction(str(delta)))
    good = 1 / (1 + math.exp(epsilon))
    excess, weight, ratio = 0.0, 1.0, 1.0
    for _ in range(rounds):
        odometer.add(hb.ApproxDP(epsilon, float(d)))
        shown = odometer.epsilon()
        told = weight * float(d)  # impossible under the neighbour
        excess += told
        high = weight * (1 - float(d)) * (1 - good)
        ratio *= (1 - good) / good
        assert math.log(ratio) <= shown + 1e-12
        weight = high
    assert excess <= delta / 2
