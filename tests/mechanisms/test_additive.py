"""Numbers in, noisy numbers out: types, grids, odd data, error bars, vectors."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import ScriptedBits, SeededBits

import hubbub as hb
from hubbub.errors import DataTypeError, HubbubError, ParameterError
from hubbub.mechanisms.lattice import Lattice, float_array
from hubbub.randomness.wide import Wide

INT_MAKERS = {
    "laplace": lambda: hb.Laplace(1, epsilon=0.5),
    "gaussian": lambda: hb.Gaussian(1, sigma=3),
    "truncated": lambda: hb.TruncatedLaplace(1, epsilon=0.5, delta=1e-6),
    "discrete gaussian": lambda: hb.DiscreteGaussian(1, sigma=3),
}
FLOAT_MAKERS = {
    "laplace": lambda s=1.0: hb.Laplace(s, epsilon=0.5),
    "gaussian": lambda s=1.0: hb.Gaussian(s, epsilon=0.5, delta=1e-6),
    "truncated": lambda s=1.0: hb.TruncatedLaplace(s, epsilon=0.5, delta=1e-6),
}


@pytest.mark.parametrize("make", INT_MAKERS.values(), ids=INT_MAKERS)
def test_integers_in_integers_out(make) -> None:
    m = make()
    assert type(m.release(5)) is int
    assert type(m.release(np.int32(5))) is int
    assert type(m.release(True)) is int
    released = m.release([1, 2, 10**30])
    assert [type(x) for x in released] == [int] * 3
    assert abs(released[2] - 10**30) < 1000
    array = m.release(np.arange(6, dtype=np.uint8).reshape(2, 3))
    assert array.shape == (2, 3)
    assert array.dtype == np.int64
    assert m.release([]) == []
    assert m.release(np.zeros(0, int)).shape == (0,)
    assert m.grid == 1


@pytest.mark.parametrize("make", FLOAT_MAKERS.values(), ids=FLOAT_MAKERS)
def test_floats_in_floats_out(make) -> None:
    m = make()
    assert type(m.release(5.0)) is float
    assert type(m.release(5)) is float
    assert type(m.release(np.float32(5))) is float
    assert [type(x) for x in m.release([1.0, 2.5])] == [float] * 2
    assert [type(x) for x in m.release([1.0, 2])] == [float] * 2
    array = m.release(np.zeros((2, 3), np.float32))
    assert array.shape == (2, 3)
    assert array.dtype == np.float64
    assert m.release(np.array(3.0)).shape == ()


@pytest.mark.parametrize(
    "bad", [1.5, [1.5], np.array([1.5]), np.float64(2), "7", None, {1: 2}, [[1]], np.array(["a"]), 1j]
)
def test_integer_mechanisms_refuse_other_types_without_showing_values(bad) -> None:
    with pytest.raises(DataTypeError) as refusal:
        hb.Laplace(1, epsilon=1).release(bad)
    assert "1.5" not in str(refusal.value)


@pytest.mark.parametrize("bad", ["7", None, [[1.0]], np.array(["a"]), 1j, np.array([1.0], np.longdouble)])
def test_float_mechanisms_refuse_other_types(bad) -> None:
    with pytest.raises(DataTypeError):
        hb.Laplace(1.0, epsilon=1).release(bad)


# The grid never tells.

HOSTILE = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    1 / 3,
    1e-300,
    5e-324,
    -5e-324,
    1e15 + 0.3,
    2.0**53 + 2,
    1e300,
    -1e308,
    np.inf,
    -np.inf,
    np.nan,
]


@pytest.mark.parametrize("sensitivity", [1.0, 0.1, 3e-7, 2.5e9])
@pytest.mark.parametrize("make", FLOAT_MAKERS.values(), ids=FLOAT_MAKERS)
def test_outputs_lie_on_one_grid_whatever_the_input(make, sensitivity) -> None:
    m = make(sensitivity)
    mantissa, _ = math.frexp(m.grid)
    assert mantissa == 0.5  # a power of two
    spread = math.sqrt(m.variance)
    assert spread / 2**13 < m.grid < spread / 2**9
    for scale in (1.0, sensitivity):
        for x in HOSTILE:
            released = m.release(np.full(200, x * scale))
            assert np.all(np.isfinite(released))
            steps = released / m.grid
            assert np.array_equal(steps, np.round(steps))
            assert not np.any(np.signbit(released) & (released == 0))
            single = m.release(float(x * scale))
            assert math.isfinite(single)
            assert single / m.grid == round(single / m.grid)


def test_textbook_laplace_fails_the_same_grid_test() -> None:
    """The test above can fail: floating-point noise added to 0 has bits finer than any noise added to 1."""
    noise = np.random.default_rng(0).laplace(size=1000)
    assert np.any((0.0 + noise) % 2.0**-53 != 0)
    assert not np.any((1.0 + noise) % 2.0**-53 != 0)


@given(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(2**52), 2**52),
    st.integers(-60, 20),
    st.integers(0, 40),
)
def test_the_array_path_is_the_scalar_path(x: float, noise: int, fine: int, shift: int) -> None:
    lattice = Lattice(fine, shift)
    one = lattice.publish(lattice.floor(x) + noise)
    many = lattice.publish_sums(np.array([x]), np.array([noise]))
    assert many[0] == one


@given(
    st.floats(-1e12, 1e12),
    st.floats(-1e12, 1e12),
    st.integers(-40, 10),
)
def test_flooring_adds_at_most_one_step(a: float, b: float, fine: int) -> None:
    lattice = Lattice(fine, 10)
    apart = abs(Fraction(a) - Fraction(b)) / lattice.step
    assert abs(lattice.floor(a) - lattice.floor(b)) <= apart + 1


def test_rounding_slack_is_reserved() -> None:
    m = hb.Laplace(1.0, epsilon=1, max_length=1000)
    assert m.scale == pytest.approx(1, rel=1e-6)
    assert Fraction(m._law.scale) * m._lattice.step == 1 + 1000 * m._lattice.step
    with pytest.raises(DataTypeError, match="max_length=1000"):
        m.release(np.zeros(1001))
    with pytest.raises(DataTypeError, match="larger max_length"):
        m.release([0.0] * 1001)
    assert hb.Laplace(1.0, scale=2).loss.epsilon() > 0.5
    assert hb.Laplace(1.0, scale=2).loss.epsilon() == pytest.approx(0.5, rel=1e-6)
    g = hb.Gaussian(1.0, epsilon=1, delta=1e-5, max_length=100)
    assert Fraction(g.sigma) * Fraction(g.loss.mu) >= 1 + 10 * g._lattice.step


@pytest.mark.parametrize("make", FLOAT_MAKERS.values(), ids=FLOAT_MAKERS)
def test_large_integers_are_not_rounded_before_the_noise(make) -> None:
    m = make()
    big = 2**60 + 1
    assert abs(m.release(big) - big) < 1e5
    assert m.release(np.array([big, 3])).shape == (2,)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
@pytest.mark.parametrize("scale", [1, 10**18, 10**25])
def test_64_bit_arrays_hold_at_their_ends(value: int, scale: int) -> None:
    m = hb.Laplace(1, scale=scale)
    released = m.release(np.full(2000, value))
    assert released.dtype == np.int64
    assert np.any(released == (2**63 - 1 if value > 0 else -(2**63)))
    exact = [m.release(value) for _ in range(200)]
    assert any(abs(x) > 2**63 for x in exact)


def test_saturation_is_a_function_of_the_exact_sum() -> None:
    m = hb.Laplace(1, scale=10**18)
    for value in (2**63 - 1, 0, -(2**63)):
        exact = [value + n for n in m._law.sample(3000, SeededBits(1)).tolist()]
        held = m.release(np.full(3000, value), SeededBits(1)).tolist()
        assert held == [min(max(x, -(2**63)), 2**63 - 1) for x in exact]


def test_unsigned_arrays_above_the_range_count_as_its_end() -> None:
    released = hb.Laplace(1, epsilon=20).release(np.array([2**64 - 1, 2**63, 7], np.uint64))
    assert np.all(released[:2] > 2**63 - 100)
    assert abs(released[2] - 7) < 100


@pytest.mark.parametrize("epsilon", [1e-4, 1e-9, 2**-40, 1e-17, 1e-40])
@pytest.mark.parametrize("x", [0.0, -3.7, 1e9, 1e30])
def test_tiny_epsilon_on_floats_uses_wide_integers(epsilon: float, x: float) -> None:
    m = hb.Laplace(1.0, epsilon=epsilon)
    released = m.release(np.full(4000, x), SeededBits(3))
    assert np.array_equal(released / m.grid, np.round(released / m.grid))
    if x * epsilon < 1e9:
        assert np.median(np.abs(released - x)) * epsilon == pytest.approx(math.log(2), rel=0.1)


@given(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(2**110), 2**110),
    st.integers(-60, 20),
    st.integers(50, 110),
)
@example(-(2.0**-46), -(1 << 74), -46, 75)
def test_the_wide_path_is_the_scalar_path(x: float, noise: int, fine: int, shift: int) -> None:
    lattice = Lattice(fine, shift)
    wide = Wide(np.array([noise >> 64]), np.array([noise & (2**64 - 1)], np.uint64))
    assert lattice.publish_wide_sums(np.array([x]), wide)[0] == lattice.publish(lattice.floor(x) + noise)


# Error bars.


@pytest.mark.parametrize(
    "m",
    [
        hb.Laplace(1, epsilon=0.3),
        hb.Laplace(2.5, epsilon=0.3),
        hb.Gaussian(1, sigma=4),
        hb.Gaussian(0.1, epsilon=1, delta=1e-5),
        hb.TruncatedLaplace(1, epsilon=0.3, delta=0.05),
        hb.TruncatedLaplace(1.0, epsilon=1, delta=1e-6),
        hb.DiscreteGaussian(1, sigma=2000),
        hb.DiscreteGaussian(1, sigma=0.5),
    ],
    ids=repr,
)
def test_error_variance_and_expected_error(m) -> None:
    value = 7 if m.grid == 1 else 7.3
    off = np.abs(m.release(np.full(400_000, value), SeededBits(2)) - value)
    for confidence in (0.5, 0.95, 0.999):
        inside = np.mean(off <= m.error(confidence))
        assert inside >= confidence - 6.5 * math.sqrt(confidence * (1 - confidence) / 400_000)
        if m.grid != 1:
            assert inside <= confidence + 0.01
        elif m.error(confidence) > 0 and m.sigma < 1000 if hasattr(m, "sigma") else True:
            assert np.mean(off <= m.error(confidence) - 1) < confidence + 0.005
    assert np.mean(off**2) == pytest.approx(m.variance, rel=0.02)
    assert np.mean(off) == pytest.approx(m.expected_error(), rel=0.01)


def test_truncated_error_is_certain() -> None:
    for m, x in (
        (hb.TruncatedLaplace(1, epsilon=0.5, delta=0.01), 3),
        (hb.TruncatedLaplace(1.0, epsilon=0.5, delta=0.01), 3.7),
    ):
        off = np.abs(m.release(np.full(100_000, x)) - x)
        assert off.max() <= m.bound
        assert m.bound == pytest.approx(2 * math.log(1 + (math.exp(0.5) - 1) / 0.02), abs=1.01)


def test_truncated_bound_is_the_smallest() -> None:
    m = hb.TruncatedLaplace(3, epsilon=0.7, delta=1e-4)
    for bound, private in ((m.bound, True), (m.bound - 1, False)):
        x = np.arange(-bound, bound + 1)
        p = np.exp(-0.7 * np.abs(x) / 3)
        assert (p[x > bound - 3].sum() / p.sum() <= 1e-4) == private


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 2, math.nan, "much"])
def test_bad_confidence(confidence) -> None:
    with pytest.raises(ParameterError):
        hb.Laplace(1, epsilon=1).error(confidence)


# Vectors: the price is for the whole, and holds for every way a change is spread over coordinates.


@pytest.mark.parametrize("shift", [(2, 0, 0), (1, 1, 0), (1, 0, -1)])
def test_laplace_vectors_by_exact_enumeration(shift: tuple[int, ...]) -> None:
    m = hb.Laplace(2, epsilon=1)
    worst = 0.0
    for s in shift:
        support, p = m.distribution(0)
        _, q = m.distribution(s)
        overlap = slice(abs(s), len(support) - abs(s))
        q = np.roll(q, s)  # on the first support, away from its ends
        worst += np.abs(np.log(p[overlap] / q[overlap])).max()
    assert worst <= m.loss.epsilon() + 1e-9


def test_truncated_laplace_vectors_by_exact_enumeration() -> None:
    """Two coordinates share the sensitivity: the joint hockey-stick divergence stays below delta."""
    m = hb.TruncatedLaplace(2, epsilon=0.5, delta=0.02)
    x = np.arange(-m.bound - 2, m.bound + 3)
    law = np.where(np.abs(x) <= m.bound, m._law.pmf(x), 0)
    for shift in ((2, 0), (1, 1), (1, -1)):
        p = law[:, None] * law[None, :]
        q = np.roll(law, shift[0])[:, None] * np.roll(law, shift[1])[None, :]
        assert np.maximum(p - math.exp(0.5) * q, 0).sum() <= 0.02 + 1e-12


# Parameters.

NAMES = [hb.Laplace, hb.Gaussian, hb.TruncatedLaplace, hb.DiscreteGaussian]
BAD_NUMBERS = [0, -1, 0.0, -0.5, math.nan, math.inf, "1", None, True, [1], 1j]


@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=repr)
@pytest.mark.parametrize("maker", NAMES)
def test_bad_parameters(maker, bad) -> None:
    good = {"sensitivity": 1, "epsilon": 0.5} | ({} if maker is hb.Laplace else {"delta": 1e-6})
    for name in good:
        with pytest.raises(ParameterError) as refusal:
            maker(**good | {name: bad})
        assert str(refusal.value).startswith(f"{name}=")
        assert isinstance(refusal.value, HubbubError)
        assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize(
    "make",
    [
        lambda: hb.Laplace(1),
        lambda: hb.Laplace(1, epsilon=1, scale=1),
        lambda: hb.Gaussian(1),
        lambda: hb.Gaussian(1, epsilon=1),
        lambda: hb.Gaussian(1, delta=1e-5),
        lambda: hb.Gaussian(1, epsilon=1, delta=1e-5, sigma=1),
        lambda: hb.Gaussian(1, sigma=1, delta=1e-5),
        lambda: hb.Gaussian(1, epsilon=1, delta=0),
        lambda: hb.Gaussian(1, epsilon=1, delta=1),
        lambda: hb.DiscreteGaussian(1, sigma=1, delta=1e-5),
        lambda: hb.DiscreteGaussian(1, epsilon=1),
        lambda: hb.TruncatedLaplace(1, epsilon=1, delta=1),
        lambda: hb.Laplace(1, epsilon=1, neighbours="swap"),
        lambda: hb.Laplace(1.0, epsilon=1, max_length=0),
        lambda: hb.Laplace(1.0, epsilon=1, max_length=2.5),
        lambda: hb.Laplace(1e-305, epsilon=1),
        lambda: hb.Laplace(1e300, epsilon=1),
    ],
)
def test_bad_combinations(make) -> None:
    with pytest.raises(ParameterError, match="="):
        make()


def test_parameters_of_every_kind_of_number() -> None:
    same = [hb.Laplace(1, epsilon=e) for e in (0.1, Fraction(1, 10), Decimal("0.1"), np.float64(0.1))]
    assert len({m._law.scale for m in same}) == 1
    assert hb.Laplace(np.int64(2), epsilon=1).release(1) is not None
    assert hb.Laplace(Fraction(1, 3), epsilon=1).grid < 1


def test_unlistable_distributions_say_so() -> None:
    with pytest.raises(ParameterError, match="too fine to list"):
        hb.Laplace(1, epsilon=1e-9).distribution(0)
    with pytest.raises(ParameterError, match="too fine to list"):
        hb.DiscreteGaussian(1, sigma=1e9).distribution(0)


# Errata of the notes.


def test_classical_gaussian_is_refused_where_it_is_unproved() -> None:
    with pytest.raises(ParameterError, match="must be < 1 for the classical formula"):
        hb.Gaussian.classical(1, epsilon=1, delta=1e-5)
    classical = hb.Gaussian.classical(1, epsilon=0.5, delta=1e-5)
    assert classical.sigma == pytest.approx(math.sqrt(2 * math.log(1.25e5)) / 0.5)
    assert classical.sigma > hb.Gaussian(1, epsilon=0.5, delta=1e-5).sigma


def test_the_classical_formula_is_false_at_epsilon_ten() -> None:
    sigma = math.sqrt(2 * math.log(1.25e5)) / 10
    assert hb.Gaussian(1, sigma=sigma).loss.delta(10) > 1e-5
    p = np.arange(-60, 61)
    law = hb.Gaussian(1, sigma=sigma)._law.pmf(p)  # even rounded to integers it leaks more than it says
    assert np.maximum(law - math.exp(8) * np.roll(law, 1), 0).sum() > 0


def test_a_discrete_gaussian_at_the_continuous_sigma_misses_its_delta() -> None:
    """Why Gaussian runs the rounded continuous law: the discrete law at the same sigma needs more than delta."""
    sigma = hb.Gaussian(1, epsilon=1, delta=1e-5).sigma
    law = hb.DiscreteGaussian(1, sigma=sigma)
    _, p = law.distribution(0)
    _, q = law.distribution(1)
    q = np.roll(q, 1)
    assert np.maximum(p - math.e * q, 0)[1:].sum() > 1e-5


def test_scripted_bits_replay_a_release() -> None:
    m = hb.Laplace(1, epsilon=1)
    assert m.release(5, ScriptedBits([1, 2, 3, 4, 5])) == m.release(5, ScriptedBits([1, 2, 3, 4, 5]))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3), st.integers(-60, 0), st.integers(30, 110))
def test_splitting_a_value_is_exact(x: float, factor: float, fine: int, shift: int) -> None:
    lattice = Lattice(fine, shift)
    for value in (x, -abs(x) * factor * 2.0**fine, math.copysign(2.0**fine, -1)):
        whole, rest = lattice._split(np.array([value]))
        assert int(whole[0]) * 2**shift + int(rest[0]) == lattice.floor(value)


def test_64_bit_integers_take_one_path_whatever_their_size() -> None:
    m = hb.Laplace(1.0, epsilon=1)
    assert float_array(np.array([1, 2**60])) is None
    assert float_array(np.array([1, 2])) is None
    assert float_array(np.array([1, 2], np.int32)).tolist() == [1, 2]
    assert m.release(np.array([5, 2**60])).shape == (2,)
