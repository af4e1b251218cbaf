"""Losses as values: sums, repeats, groups, relations, JSON, readings."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hubbub as hb
from hubbub.errors import ParameterError
from hubbub.privacy import NoLoss, Subsampled

leaves = st.one_of(
    st.builds(hb.PureDP, st.floats(0.01, 5)),
    st.builds(hb.ApproxDP, st.floats(1e-3, 5), st.floats(1e-12, 0.1)),
    st.builds(hb.GaussianDP, st.floats(0.01, 5)),
    st.builds(hb.LaplaceDP, st.floats(0.01, 5)),
    st.builds(hb.ZCDP, st.floats(0.01, 5)),
    st.builds(hb.BoundedRange, st.floats(0.01, 5)),
    st.builds(lambda e, k: hb.RandomizedResponseDP(e, k, "add-remove"), st.floats(0.01, 5), st.integers(2, 9)),
    st.builds(hb.TruncatedLaplaceDP, st.floats(0.01, 5), st.floats(1e-12, 0.01), st.none() | st.integers(5, 10**15)),
    st.builds(hb.DiscreteGaussianDP, st.integers(1, 5), st.floats(0.5, 50)),
    st.builds(lambda e: hb.RenyiDP((2, 8), (e, 2 * e)), st.floats(0.01, 2)),
    st.builds(lambda mu, q: hb.GaussianDP(mu).subsample(q), st.floats(0.1, 2), st.floats(0.001, 1)),
    st.builds(hb.SampledGaussian, st.floats(0.5, 5), st.floats(0.001, 1), st.integers(1, 5)),
)
losses = st.one_of(leaves, st.builds(lambda a, b, n: a + b * n, leaves, leaves, st.integers(1, 50)))


@given(losses, losses, losses)
def test_addition_is_associative_and_commutative(a: hb.Loss, b: hb.Loss, c: hb.Loss) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert hash(a + b) == hash(b + a)


@given(losses, st.integers(1, 20), st.integers(1, 20))
def test_repeats_multiply(a: hb.Loss, m: int, n: int) -> None:
    assert (a * m) * n == a * (m * n) == (m * n) * a
    assert a * 2 == a + a
    assert a * 1 == a


@given(losses)
def test_json_round_trip(loss: hb.Loss) -> None:
    text = loss.to_json()
    assert hb.Loss.from_json(text) == loss
    assert hb.Loss.from_json(text).to_json() == text


@given(losses)
def test_group_of_one_is_identity(loss: hb.Loss) -> None:
    assert loss.group(1) == loss


@settings(max_examples=25)
@given(leaves, leaves)
def test_more_costs_more(a: hb.Loss, b: hb.Loss) -> None:
    both = (a + b).epsilon_interval(1e-4)
    assert both[1] >= a.epsilon_interval(1e-4)[0] * (1 - 1e-9)
    assert (a + b).epsilon(1e-3) <= (a + b).epsilon(1e-4) * (1 + 1e-3)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        '"pure"',
        '{"loss": "os.system"}',
        '{"loss": "pure"}',
        '{"loss": "pure", "epsilon": -1}',
        '{"loss": "pure", "epsilon": 1, "sudo": true}',
        '{"loss": "composed", "parts": []}',
        '{"loss": "composed", "parts": [[{"loss": "pure", "epsilon": 1}, 0]]}',
        '{"loss": "subsampled", "base": 3, "rate": 1, "scheme": "poisson"}',
        '{"loss": ["pure"]}',
        '{"loss": "pure", "epsilon": 1}',
        '{"loss": "composed", "parts": [[1, 2, 3]], "neighbours": "add-remove"}',
        '{"loss": "composed", "parts": {"a": 1}, "neighbours": "add-remove"}',
        '{"loss": "composed", "parts": [[{"loss": "pure", "epsilon": 1, "neighbours": "add-remove"}, 2]], '
        '"neighbours": "replace"}',
        '{"loss": "composed", "neighbours": "add-remove", "parts": ['
        '[{"loss": "pure", "epsilon": 1, "neighbours": "add-remove"}, 1], '
        '[{"loss": "pure", "epsilon": 1, "neighbours": "replace"}, 1]]}',
        "not json",
        "[" * 100000,
    ],
)
def test_hostile_json_is_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        hb.Loss.from_json(text)


def test_relations_never_mix() -> None:
    with pytest.raises(ParameterError, match="cannot be mixed"):
        hb.PureDP(1) + hb.PureDP(1, neighbours="replace")
    with pytest.raises(ParameterError, match="already replace"):
        hb.PureDP(1, neighbours="replace").to_replace()
    assert hb.PureDP(1).to_replace() == hb.PureDP(2, neighbours="replace")
    assert hb.GaussianDP(1.5).to_replace() == hb.GaussianDP(3, neighbours="replace")
    assert (hb.GaussianDP(1).subsample(0.01) * 10).to_replace().neighbours == "replace"
    assert not hasattr(hb.PureDP(1), "to_add_remove")
    with pytest.raises(ParameterError, match="cannot be mixed"):
        NoLoss("replace") + hb.PureDP(1)


def test_gaussians_join_into_one() -> None:
    for loss in (hb.GaussianDP(1) * 4, hb.GaussianDP(1) + hb.GaussianDP(math.sqrt(3))):
        assert loss.epsilon(1e-5) == pytest.approx(hb.GaussianDP(2).epsilon(1e-5), rel=1e-3)


def test_unsound_samplings_are_refused() -> None:
    with pytest.raises(ParameterError, match="does not go with without-replacement"):
        hb.GaussianDP(1).subsample(0.1, "without-replacement")
    with pytest.raises(ParameterError, match="does not go with poisson"):
        hb.GaussianDP(1, neighbours="replace").subsample(0.1)
    with pytest.raises(ParameterError, match="shuffled batches are not amplified"):
        hb.GaussianDP(1).subsample(0.1, "shuffle")
    with pytest.raises(ParameterError, match="cannot be subsampled"):
        hb.ZCDP(1).subsample(0.1)
    with pytest.raises(ParameterError, match="cannot be subsampled"):
        hb.GaussianDP(1).subsample(0.1).subsample(0.1)
    for bad in (0, -0.1, 1.1, math.nan, "x"):
        with pytest.raises(ParameterError):
            hb.GaussianDP(1).subsample(bad)


def test_bad_counts_and_operands() -> None:
    for bad in (0, -1, 1.5, "2", True):
        with pytest.raises(ParameterError):
            hb.PureDP(1) * bad
        with pytest.raises(ParameterError):
            hb.PureDP(1).group(bad)
    with pytest.raises(TypeError):
        hb.PureDP(1) + 1
    with pytest.raises(ParameterError, match="at least one"):
        hb.compose([])
    with pytest.raises(ParameterError, match="at most 1000000000000000"):
        hb.PureDP(1) * (10**15 + 1)
    assert (hb.PureDP(1) * 10**15).epsilon() == 1e15


def test_amplification_of_pure_privacy_is_the_theorem() -> None:
    loss = hb.PureDP(1).subsample(0.1)
    assert loss.epsilon() == pytest.approx(math.log1p(0.1 * math.expm1(1)), rel=1e-9)
    replaced = hb.PureDP(1, neighbours="replace").subsample(0.1, "without-replacement")
    assert replaced.epsilon() == pytest.approx(loss.epsilon())


def test_group_prices() -> None:
    assert hb.PureDP(0.1).group(3).epsilon() == pytest.approx(0.3)
    assert hb.GaussianDP(0.5).group(4) == hb.GaussianDP(2)
    assert hb.ZCDP(0.1).group(3) == hb.ZCDP(0.9)
    assert hb.ApproxDP(1, 1e-6).group(2).delta_bound == pytest.approx(1e-6 * (1 + math.e))
    with pytest.raises(ParameterError, match="nothing is left"):
        hb.ApproxDP(5, 0.1).group(3)
    assert (hb.PureDP(1) + hb.GaussianDP(1)).group(2) == hb.PureDP(2) + hb.GaussianDP(2)
    alone, together = (hb.SampledGaussian(1, 0.01) * 100).epsilon(1e-6), (hb.SampledGaussian(1, 0.01) * 100).group(3)
    assert together.epsilon(1e-6) > 2 * alone


def test_group_prices_by_kind() -> None:
    assert hb.LaplaceDP(0.1).group(3) == hb.LaplaceDP(0.3)
    assert hb.BoundedRange(0.1).group(3) == hb.BoundedRange(0.3)
    assert hb.ApproxDP(0, 1e-6).group(3).delta_bound == pytest.approx(3e-6)
    sampled = hb.GaussianDP(2).subsample(0.1)
    assert sampled.group(3) == hb.SampledGaussian(0.5, 0.1, people=3)
    assert hb.SampledGaussian(0.5, 0.1, people=2).group(3) == hb.SampledGaussian(0.5, 0.1, people=6)
    assert hb.SampledGaussian(0.5, 0.1).to_replace() == hb.SampledGaussian(0.5, 0.1, neighbours="replace")
    with pytest.raises(ParameterError, match="needs larger Renyi orders"):
        hb.RenyiDP((2, 3), (1, 2)).group(2)
    for loss in (
        hb.PureDP(1).subsample(0.1),
        hb.GaussianDP(1, neighbours="replace").subsample(0.1, "without-replacement"),
    ):
        with pytest.raises(ParameterError, match="has no group price"):
            loss.group(2)
    with pytest.raises(ParameterError, match="has no group price"):
        hb.LaplaceDP(1).subsample(0.1).to_replace()
    with pytest.raises(ParameterError, match="must be 1 under replace-one"):
        hb.SampledGaussian(1, 0.1, neighbours="replace").group(2)


def test_sampled_gaussians_check_their_parameters() -> None:
    for bad in (0, -0.1, 1.1):
        with pytest.raises(ParameterError, match=r"must lie in \(0, 1\]"):
            hb.SampledGaussian(1, bad)
    with pytest.raises(ParameterError, match="at most 500"):
        hb.SampledGaussian(1, 0.1, people=501)
    with pytest.raises(ParameterError, match="neighbours"):
        hb.SampledGaussian(1, 0.1, neighbours="other")
    with pytest.raises(ParameterError, match="must be > 0"):
        hb.SampledGaussian(0, 0.1)


def test_readings() -> None:
    pure = hb.PureDP(math.log(3))
    assert pure.posterior(0.5) == pytest.approx((0.25, 0.75))
    assert pure.posterior(0) == (0, 0)
    assert pure.advantage() == pytest.approx(0.5)
    assert pure.utility_factor() == pytest.approx(3)
    # the trade-off of randomised response: 1 - 3 alpha, then (1 - alpha)/3
    for alpha in (0.0, 0.1, 0.25, 0.6, 1.0):
        assert pure.tradeoff(alpha) == pytest.approx(max(0, 1 - 3 * alpha, (1 - alpha) / 3), abs=1e-9)
        assert pure.true_positive_rate(alpha) == 1 - pure.tradeoff(alpha)
    both = hb.ApproxDP(math.log(3), 0.05)
    for alpha in (0.0, 0.1, 0.25, 0.9, 1.0):
        curve = max(0, 0.95 - 3 * alpha, (0.95 - alpha) / 3)
        assert both.tradeoff(alpha) == pytest.approx(curve, abs=1e-9)
        assert both.tradeoff(alpha) <= curve
    assert hb.GaussianDP(1).tradeoff(0.05) == pytest.approx(0.74049, abs=1e-4)
    assert (hb.GaussianDP(1).tradeoff(0), hb.GaussianDP(1).tradeoff(1)) == (1, 0)
    composed = hb.LaplaceDP(0.1) * 50
    for alpha in (0.01, 0.2):
        assert 0 <= composed.tradeoff(alpha) <= 1 - alpha
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(ParameterError):
            pure.tradeoff(bad)
        with pytest.raises(ParameterError):
            hb.GaussianDP(1).tradeoff(bad)
        with pytest.raises(ParameterError):
            pure.posterior(bad)


def test_body_temperature_of_the_notes() -> None:
    """Laplace 38 against 39, scale 1: at 5 % false positives the best test misses as much as the curve says."""
    threshold = 38 + math.log(1 / (2 * 0.05))
    misses = 1 - 0.5 * math.exp(-(threshold - 39)) if threshold > 39 else 0.5 * math.exp(threshold - 39)
    assert hb.LaplaceDP(1).tradeoff(0.05) <= misses + 1e-9
    assert hb.LaplaceDP(1).tradeoff(0.05) == pytest.approx(misses, abs=0.02)


def test_nothing_costs_nothing() -> None:
    none = NoLoss()
    assert none.epsilon() == none.delta(0) == none.renyi(2) == 0
    assert none + hb.PureDP(1) == hb.PureDP(1)
    assert none * 5 == none
    assert hb.compose([none, none]) == none
    assert hb.Loss.from_json(none.to_json()) == none


def test_subsampled_laplace_is_between_its_bounds() -> None:
    loss = Subsampled(hb.LaplaceDP(0.5), 0.1) * 200
    low, high = loss.epsilon_interval(1e-6)
    pure = (Subsampled(hb.PureDP(0.5), 0.1) * 200).epsilon(1e-6)
    assert low <= high <= pure * (1 + 1e-3)


def test_json_is_plain_data() -> None:
    data = json.loads((hb.GaussianDP(1).subsample(0.5) * 3).to_json())
    assert data == {
        "loss": "composed",
        "neighbours": "add-remove",
        "parts": [
            [
                {
                    "base": {"loss": "gaussian", "mu": 1.0, "neighbours": "add-remove"},
                    "loss": "subsampled",
                    "neighbours": "add-remove",
                    "rate": 0.5,
                    "scheme": "poisson",
                },
                3,
            ]
        ],
    }


def test_renyi_losses() -> None:
    flat = hb.RenyiDP(tuple(range(2, 33)), (1.1,) * 31)
    assert flat.epsilon(1e-5) <= 1.32783806 + 1e-6
    assert flat.renyi(33) == math.inf
    assert flat.renyi(1.5) == pytest.approx(1.1)
    assert hb.RenyiDP((2, 4), (1, 2)).renyi(3) == pytest.approx((1 * 1 + 3 * 2) / 2 / 2)
    assert hb.RenyiDP((2, 8), (1, 2)).group(2).orders == (4.0,)
    for orders, epsilons in (((), ()), ((2,), (1, 2)), ((3, 2), (1, 1)), ((1,), (1,))):
        with pytest.raises(ParameterError):
            hb.RenyiDP(orders, epsilons)
    assert np.isfinite((flat + hb.GaussianDP(1)).epsilon(1e-5))
