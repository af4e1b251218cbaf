"""Distributed noise: its law against exact ones, its price, shares, masks, drop-outs."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flwr.app import Message
from learning.federated.toys import Here, adding, app_of, model
from scipy.stats import kstest, norm
from support import FALSE_ALARM, SeededBits

from hubbub.errors import ParameterError
from hubbub.learning.federated import Distributed, DistributedPlan, Sharing
from hubbub.learning.federated.closeness import closeness, root_of_rho
from hubbub.learning.federated.distributed import rounded, share_of, unwrapped
from hubbub.learning.federated.masking import fresh_key, joined, mask_of, packed, unpacked
from hubbub.learning.federated.rotation import PublicBits, chosen, rotated, unrotated


def plan(**changes: Any) -> DistributedPlan:
    given = {"rounds": 1, "noise": 1.0, "honest": 3, "clients": 4, "length": 100}
    return DistributedPlan(**(given | changes))


# the price, against exact laws of sums


def law(share: float, shares: int, reach: int) -> np.ndarray:
    """The exact law of a sum of discrete Gaussians, on -reach..reach, by convolution."""
    k = np.arange(-reach, reach + 1)
    one = np.exp(-(k**2) / (2 * share))
    one /= one.sum()
    total = one
    for _ in range(shares - 1):
        total = np.convolve(total, one)
        middle = len(total) // 2
        total = total[middle - reach : middle + reach + 1]
    return total


@pytest.mark.parametrize("share", [0.5, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("shares", [2, 3, 5, 10])
def test_a_sum_is_as_close_to_one_discrete_gaussian_as_said(share: float, shares: int) -> None:
    reach = math.ceil(7 * math.sqrt(shares * share))
    wide = math.ceil(20 * math.sqrt(shares * share)) + 5
    sums, one = law(share, shares, wide), law(shares * share, 1, wide)
    inside = slice(wide - reach, wide + reach + 1)
    apart = np.abs(np.log(sums[inside] / one[inside])).max()
    bound = closeness(Fraction(share), shares)
    assert apart <= bound + 1e-12
    if shares == 2 and bound > 1e-10:
        assert apart > bound / 3  # nearly what two shares come to


@pytest.mark.parametrize("share", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("shares", [2, 5])
@pytest.mark.parametrize("shift", [1, 2, 4])
@pytest.mark.parametrize("order", [1.01, 2.0, 8.0, 20.0])
def test_renyi_divergence_of_sums_is_below_the_price(share: float, shares: int, shift: int, order: float) -> None:
    sigma = math.sqrt(shares * share)
    wide = math.ceil(20 * sigma + order * shift) + 5
    sums = law(share, shares, wide)
    seen = (sums[shift:] > 0) & (sums[:-shift] > 0)
    p, q = np.log(sums[shift:][seen]), np.log(sums[:-shift][seen])
    true = np.logaddexp.reduce(order * p + (1 - order) * q) / (order - 1)
    root = root_of_rho(shift / sigma, Fraction(share), shares, 1)
    assert true <= order * root**2 / 2 * (1 + 1e-9)
    if order * shift < 25 * sigma:  # beyond, doubles end
        assert true > 0.9 * order * (shift / sigma) ** 2 / 2  # and not far below


def test_the_price_counts_honest_shares_only_and_grows_with_the_distance() -> None:
    one = plan(noise=2.0)
    assert one.loss.rho == pytest.approx(1 / 8, rel=1e-3)  # type: ignore[attr-defined]
    assert plan(noise=2.0, neighbours="replace").loss.rho == pytest.approx(1 / 2, rel=1e-3)  # type: ignore[attr-defined]
    many = plan(noise=2.0, clients=100)
    assert many.honest * many.share >= 4 * many.radius_squared
    assert many.loss.rho == pytest.approx(1 / 8, rel=1e-3)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "changes", [{"bits": 3}, {"bits": 40}, {"honest": 0}, {"clients": 2}, {"dishonest": 5}, {"bits": 4, "noise": 50.0}]
)
def test_plans_that_cannot_be(changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        plan(**changes)


# shares


def test_rotations_keep_lengths_and_are_undone() -> None:
    vector = np.random.default_rng(0).normal(size=100)
    turned = rotated(vector, b"seed", 128)
    assert np.isclose(np.linalg.norm(turned), np.linalg.norm(vector))
    assert np.allclose(unrotated(turned, b"seed", 100), vector)
    spike = np.zeros(100)
    spike[3] = 1
    assert np.allclose(np.abs(rotated(spike, b"seed", 128)), 128**-0.5)
    assert not np.allclose(rotated(vector, b"other", 128), turned)
    assert chosen(b"a", 50, 10).tolist() == chosen(b"a", 50, 10).tolist()
    assert PublicBits(b"s", "x").word() != PublicBits(b"s", "y").word()


def test_rounding_is_right_on_average_and_never_too_long() -> None:
    values = np.array([0.25, -1.75, 3.0])
    found = np.array([rounded(values, 100, SeededBits(k)) for k in range(4000)])
    assert np.abs(found.mean(0) - values).max() < 0.05
    assert np.abs(found - values).max() < 1
    long = np.full(64, 0.5)
    for limit in (0, 5, 16, 24):
        kept = rounded(long, limit, SeededBits(1))
        assert int(kept @ kept) <= limit


@pytest.mark.parametrize("size", [0.0, 0.3, 1.0, 1e9])
def test_shares_are_numbers_below_the_modulus(size: float) -> None:
    stated = plan(noise=0.1, length=200, clients=4)
    for seed in range(20):
        vector = np.random.default_rng(seed).normal(size=200) * size
        share = share_of(stated, vector, b"s%d" % seed, SeededBits(seed))
        assert share.min() >= 0
        assert share.max() < 1 << stated.bits


@pytest.mark.parametrize(("noise", "honest"), [(1.0, 3), (3.0, 10)])
def test_noise_of_a_sum_of_shares(noise: float, honest: int) -> None:
    """Within 1 % of what is paid for, and with its law."""
    stated = plan(noise=noise, honest=honest, clients=honest, length=1 << 16)
    bits = SeededBits(5)
    total = joined([share_of(stated, np.zeros(stated.length), b"s", bits) for _ in range(honest)], stated.bits)
    half = 1 << (stated.bits - 1)
    steps = np.mod(total + half, 2 * half) - half
    sigma = math.sqrt(honest * stated.share)
    assert sigma >= noise * math.sqrt(stated.radius_squared)
    assert abs(steps.std() / sigma - 1) < 0.01
    assert (
        kstest((steps + np.random.default_rng(0).uniform(-0.5, 0.5, len(steps))) / sigma, norm.cdf).pvalue > FALSE_ALARM
    )
    assert abs(unwrapped(stated, total, b"s").std() / noise - 1) < 0.02


def test_sums_of_shares_are_sums_of_clipped_vectors() -> None:
    stated = plan(noise=0.05, honest=3, clients=3, length=100, clip=2.0, bits=20)
    vectors = [np.random.default_rng(k + 9).normal(size=100) * 10.0**k for k in (-2, 0, 2)]
    got = unwrapped(stated, joined([share_of(stated, v, b"s") for v in vectors], 20), b"s")
    want = sum(v * min(1.0, 2.0 / np.linalg.norm(v)) for v in vectors)
    assert np.abs(got - want).max() < 7 * 0.05 * 2.0


@pytest.mark.parametrize("bits", [4, 7, 16, 32])
def test_shares_as_bytes(bits: int) -> None:
    values = np.random.default_rng(0).integers(0, 1 << bits, 100)
    data = packed(values, bits)
    assert len(data) == -(-100 * bits // 8)
    assert unpacked(data, 100, bits).tolist() == values.tolist()  # type: ignore[union-attr]
    assert unpacked(data + b"0", 100, bits) is None
    assert unpacked(b"", 100, bits) is None


# masks


def test_masks_hide_and_cancel() -> None:
    stated = plan(length=4096)
    pairs = [fresh_key() for _ in range(4)]
    keys = [public for _, public in pairs]
    masks = [mask_of(private, keys, b"round", stated) for private, _ in pairs]
    assert not joined(masks, stated.bits).any()
    for mask in masks:
        assert kstest(mask / (1 << stated.bits), "uniform").pvalue > FALSE_ALARM
    assert joined(masks[:3], stated.bits).std() > 1000  # without one of them, nothing cancels


def test_lists_of_keys_that_could_single_out_are_refused() -> None:
    stated = plan()
    private, public = fresh_key()
    others = [fresh_key()[1] for _ in range(3)]
    twin = others[0][:31] + bytes([others[0][31] | 128])  # the same point in another encoding
    some = (others, [public], [public, others[0]], [public, others[0], others[0]], [public, public, *others])
    for keys in (*some, [public, *others, twin]):
        with pytest.raises(ParameterError, match="keys"):
            mask_of(private, keys, b"", stated)


# rounds


def trained(stated: DistributedPlan, change: Any, nodes: int, behave: Any = None, **options: Any) -> Any:
    train = change if callable(change) else adding(change)
    grid = Here(app_of(train, Sharing(stated, bits=SeededBits(2), **options)), nodes, behave)
    strategy = Distributed(stated, **options)
    result = strategy.start(grid, model(stated.length if "mask" not in options else 200))
    return grid, strategy, result.arrays["w"].numpy()


@pytest.mark.parametrize("sums", ["masked", "trusted"])
def test_a_round(sums: str) -> None:
    stated = plan(noise=0.01, bits=20)
    change = np.random.default_rng(0).normal(size=100) / 20
    grid, strategy, got = trained(stated, change, 4, sums=sums)
    assert np.abs(got - change).max() < 0.02
    assert strategy.loss == stated.loss
    assert all(list(r.content) == ["update"] for r in grid.replies)
    share = 128 * 20 // 8
    keys = 32 if sums == "masked" else 0
    assert 4 * (share + keys) <= strategy.received < 4 * (share + keys + 40)


def test_what_the_server_gets_of_one_client_is_uniform_where_sums_are_masked() -> None:
    stated = plan(length=1 << 15, noise=0.01)
    grid, _, _ = trained(stated, 0.0, 4)
    for reply in grid.replies[4:]:
        values = unpacked(reply.content["update"]["update"], stated.width, stated.bits)
        assert kstest(values / (1 << stated.bits), "uniform").pvalue > FALSE_ALARM  # type: ignore[operator]


@pytest.mark.parametrize("sums", ["masked", "trusted"])
def test_too_few_answers_release_nothing_and_are_paid(sums: str) -> None:
    stated = plan(honest=4, clients=4)
    sent = []

    def behave(node: int, reply: Message) -> list[Message]:
        sent.append(node)
        return [] if node == 10 else [reply]

    _, strategy, got = trained(stated, 0.5, 4, behave, sums=sums)
    assert not got.any()
    assert strategy.loss == stated.loss


def test_a_client_that_is_lost_after_its_key_ends_a_masked_round() -> None:
    stated, seen = plan(noise=0.01, rounds=2), []

    def behave(node: int, reply: Message) -> list[Message]:
        seen.append(node)
        return [] if node == 10 and len(seen) > 4 else [reply]

    grid, strategy, got = trained(stated, 0.01, 4, behave)
    assert strategy.rounds == 2
    assert len(grid.replies) == 4 + 3 + 3 + 3  # the second round goes on with three
    assert np.abs(got - 0.01).max() < 0.1
    assert got.any()


def test_shares_of_the_wrong_length_are_none() -> None:
    stated = plan(honest=3, clients=4)

    def behave(node: int, reply: Message) -> list[Message]:
        if node == 10:
            reply.content.config_records["update"]["update"] = b"\xff" * 99
        return [reply]

    _, strategy, got = trained(plan(noise=0.01), 0.01, 4, behave, sums="trusted")
    assert np.abs(got - 0.01).max() < 0.1
    assert strategy.rounds == stated.rounds


def test_masked_coordinates_and_signs() -> None:
    stated = plan(noise=0.01, length=100, bits=20)
    change = np.random.default_rng(1).normal(size=200)
    _, _, got = trained(stated, change, 4, mask=0.5, signs=True)
    places = np.flatnonzero(got)
    assert len(places) <= 100
    assert (np.sign(got[places]) == np.sign(change[places])).mean() > 0.99
