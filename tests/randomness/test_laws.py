"""Every sampler's law against its exact probabilities, on the fast path, through forced ties, and off by 3 %."""

import contextlib
import math
import os
import signal
import threading
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from scipy.special import erf
from support import DRAWS, FALSE_ALARM, ScriptedBits, SeededBits, assert_fits, fit_p_value

from hubbub.randomness import (
    DiscreteGaussian,
    DiscreteLaplace,
    Fineness,
    Geometric,
    GridExponential,
    RoundedGaussian,
    RoundedLaplace,
    TruncatedDiscreteLaplace,
)
from hubbub.randomness.thresholds import FINE
from hubbub.randomness.wide import Wide

COARSE = Fineness(word_bits=8, margin=0.3)
"""Every few draws tie on eight bits, and most acceptances are too close for floating point: the exact paths at work."""


def discrete_gaussian(stddev: Fraction, fineness: Fineness = FINE) -> DiscreteGaussian:
    return DiscreteGaussian(stddev**2, fineness)


def truncated(scale: Fraction, fineness: Fineness = FINE) -> TruncatedDiscreteLaplace:
    return TruncatedDiscreteLaplace(scale, int(2 * scale) + 1, fineness)


LAWS = [Geometric, DiscreteLaplace, RoundedLaplace, truncated, RoundedGaussian, discrete_gaussian]
SCALES = [Fraction(1, 3), Fraction(1), Fraction(37, 2), Fraction(1000)]


def exact_pmf(name: str, scale: Fraction, k: int) -> mpmath.mpf:
    """The probability of k, from the law's definition, by other means than the code's."""
    s = mpmath.mpf(scale.numerator) / scale.denominator
    if name == "Geometric":
        return (1 - mpmath.exp(-1 / s)) * mpmath.exp(-k / s)
    if name == "RoundedLaplace":

        def cdf(x: float) -> mpmath.mpf:
            return mpmath.exp(x / s) / 2 if x < 0 else 1 - mpmath.exp(-x / s) / 2

        return cdf(k + mpmath.mpf(1) / 2) - cdf(k - mpmath.mpf(1) / 2)
    if name == "RoundedGaussian":
        return mpmath.ncdf((k + mpmath.mpf(1) / 2) / s) - mpmath.ncdf((k - mpmath.mpf(1) / 2) / s)
    exponents = {
        "DiscreteLaplace": (lambda x: abs(x) / s, range(-int(60 * scale) - 60, int(60 * scale) + 61)),
        "truncated": (lambda x: abs(x) / s, range(-int(2 * scale) - 1, int(2 * scale) + 2)),
        "discrete_gaussian": (lambda x: x * x / (2 * s * s), range(-int(12 * scale) - 12, int(12 * scale) + 13)),
    }
    exponent, everywhere = exponents[name]
    return mpmath.exp(-exponent(k)) / mpmath.fsum(mpmath.exp(-exponent(x)) for x in everywhere)


@pytest.mark.parametrize("scale", SCALES[:3], ids=str)
@pytest.mark.parametrize("make", LAWS, ids=lambda f: f.__name__)
def test_pmf_is_the_definition(make, scale) -> None:
    law = make(scale)
    for k in (0, 1, 2, 7, 30):
        assert float(law.pmf(np.array([k]))[0]) == pytest.approx(
            float(exact_pmf(make.__name__, scale, k) if not (make is truncated and k > law.bound) else 0), rel=1e-9
        )


def listed(law, reach: int) -> tuple[np.ndarray, np.ndarray]:
    support = np.arange(0 if isinstance(law, Geometric) else -reach, reach + 1)
    return support, law.pmf(support)


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("make", LAWS, ids=lambda f: f.__name__)
def test_law(make, scale) -> None:
    law, wrong = make(scale), make(scale * Fraction(103, 100))
    samples = law.sample(DRAWS, SeededBits(1))
    assert samples.dtype == np.int64
    support, probabilities = listed(law, 60 + int(45 * scale))
    assert_fits(samples, support, probabilities)
    _, wrong_probabilities = listed(wrong, 60 + int(45 * scale))
    assert fit_p_value(samples, support, wrong_probabilities) < FALSE_ALARM


@pytest.mark.parametrize("scale", SCALES[:3], ids=str)
@pytest.mark.parametrize("make", LAWS, ids=lambda f: f.__name__)
def test_law_through_forced_ties(make, scale) -> None:
    law = make(scale, COARSE)
    support, probabilities = listed(law, 60 + int(45 * scale))
    samples = law.sample(20_000, SeededBits(2))
    assert_fits(samples, support, probabilities)


@pytest.mark.parametrize("fineness", [FINE, COARSE], ids=["fine", "coarse"])
@pytest.mark.parametrize("make", LAWS, ids=lambda f: f.__name__)
def test_single_draws_follow_the_same_law(make, fineness) -> None:
    law = make(Fraction(37, 2), fineness)
    bits = SeededBits(3)
    support, probabilities = listed(law, 1000)
    assert_fits(np.array([law.draw(bits) for _ in range(10_000)]), support, probabilities)


@pytest.mark.parametrize("make", LAWS[1:], ids=lambda f: f.__name__)
@pytest.mark.parametrize("scale", [*SCALES, Fraction(2**40)], ids=str)
def test_moments_and_tails(make, scale) -> None:
    law = make(scale)
    samples = law.sample(100_000, SeededBits(4)).astype(float)
    assert np.mean(samples**2) == pytest.approx(law.variance, rel=0.05)
    assert np.mean(np.abs(samples)) == pytest.approx(law.mean_magnitude, rel=0.03)
    if scale < 2**40:
        width = law.half_width(0.05)
        reach = np.arange(width + 1, width + 60 * int(scale) + 60)
        assert 2 * float(np.sum(law.pmf(reach))) <= 0.05 + 1e-12
        assert 2 * float(np.sum(law.pmf(reach - 1))) > 0.05 or width == 0
        assert float(law.tail(np.array([3]))[0]) == pytest.approx(
            float(np.sum(law.pmf(np.arange(3, 60 * int(scale) + 60))))
        )


@pytest.mark.parametrize("scale", [Fraction(2**40), Fraction(2**55), Fraction(10**12, 7)], ids=str)
@pytest.mark.parametrize("make", [DiscreteLaplace, RoundedGaussian, discrete_gaussian], ids=lambda f: f.__name__)
def test_large_scales_by_quantiles(make, scale) -> None:
    """The continuous law is close enough at these scales: twenty equally likely cells of the magnitude."""
    samples = np.abs(make(scale).sample(DRAWS // 10, SeededBits(5)).astype(float)) / float(scale)
    uniform = 1 - np.exp(-samples) if make is DiscreteLaplace else erf(samples / 2**0.5)
    cells = np.minimum((uniform * 20).astype(int), 19)
    assert_fits(cells, np.arange(20), np.full(20, 0.05))


ENORMOUS = [
    Fraction(2**60),
    Fraction(2**63),
    Fraction(2**70, 3),
    Fraction(2**70),
    Fraction(2**111, 3),
    Fraction(2**200, 3),
]


@pytest.mark.parametrize("scale", ENORMOUS, ids=str)
@pytest.mark.parametrize(
    "make", [Geometric, DiscreteLaplace, RoundedGaussian, discrete_gaussian], ids=lambda f: f.__name__
)
def test_enormous_scales_give_python_integers(make, scale) -> None:
    samples = make(scale).sample(2000, SeededBits(6))
    assert samples.dtype == object
    magnitudes = np.array([float(abs(Fraction(int(x)) / scale)) for x in samples])
    assert 0.6 < np.mean(magnitudes) < 1.2
    assert len({int(x) & (2**64 - 1) for x in samples}) == 2000  # the low digits are random too
    spread = float(scale)
    uniform = 1 - np.exp(-magnitudes) if make in (Geometric, DiscreteLaplace) else erf(magnitudes / 2**0.5)
    assert_fits(np.minimum((uniform * 20).astype(int), 19), np.arange(20), np.full(20, 0.05))
    low = np.array([abs(int(x)) >> max(0, int(math.log2(spread)) - 40) & 15 for x in samples])
    assert_fits(low, np.arange(16), np.full(16, 1 / 16))


@pytest.mark.parametrize("make", [RoundedGaussian, discrete_gaussian, DiscreteLaplace], ids=lambda f: f.__name__)
def test_wide_draws_through_the_exact_path(make) -> None:
    scale = Fraction(2**80, 3)
    samples = make(scale, COARSE).sample(4000, SeededBits(10))
    magnitudes = np.array([float(abs(Fraction(int(x)) / scale)) for x in samples])
    uniform = 1 - np.exp(-magnitudes) if make is DiscreteLaplace else erf(magnitudes / 2**0.5)
    assert_fits(np.minimum((uniform * 20).astype(int), 19), np.arange(20), np.full(20, 0.05))


def test_wide_arithmetic_is_integer_arithmetic() -> None:
    numbers = [0, 1, -1, 2**63, -(2**63), 2**64 - 1, 2**64, -(2**64), 2**100 + 7, -(2**100) - 7]
    for a in numbers:
        for b in numbers:
            wide = Wide(np.array([a >> 64]), np.array([a & (2**64 - 1)], np.uint64))
            wide.add(b)
            assert wide.to_objects()[0] == a + b
            wide.add_each(Wide(np.array([b >> 64]), np.array([b & (2**64 - 1)], np.uint64)))
            assert wide.to_objects()[0] == a + 2 * b
            wide.negate(np.array([True]))
            assert wide.to_objects()[0] == -a - 2 * b
            if b >= 0:
                assert wide.exceeds(b)[0] == (-a - 2 * b > b)
        for shift in (0, 1, 40, 63, 64, 90):
            if abs(a) >> shift < 2**62:
                wide = Wide(np.array([a >> 64]), np.array([a & (2**64 - 1)], np.uint64))
                assert wide.shifted_down(shift)[0] == a >> shift


def test_tiny_scales_are_all_but_constant() -> None:
    for law in (
        DiscreteLaplace(Fraction(1, 10**9)),
        RoundedGaussian(Fraction(1, 10**6)),
        Geometric(Fraction(1, 10**9)),
    ):
        assert not law.sample(1000).any()
        assert law.draw() == 0


def test_grid_exponential_counts_steps() -> None:
    law = GridExponential(scale=Fraction(3), spacing=Fraction(1, 4))
    support = np.arange(700)
    assert_fits(law.sample(100_000, SeededBits(7)), support, Geometric(12).pmf(support))
    assert law.draw(SeededBits(0)) >= 0


def test_work_is_the_same_whatever_the_value() -> None:
    """A draw reads one word for zero and sign and three per trial; the number of trials tells nothing of the value."""
    law = RoundedGaussian(Fraction(1000))
    bits = SeededBits(8)
    counted = []
    for _ in range(20_000):
        source = ScriptedBits([], seed=bits.word())
        counted.append((abs(law.draw(source)), source.read))
    values, words = np.array(counted).T
    assert set((words - 1) % 3) == {0}
    assert np.mean(words) < 4.2
    again = words > 4
    large = values > np.median(values)
    table = np.array(
        [[np.sum(again & large), np.sum(again & ~large)], [np.sum(~again & large), np.sum(~again & ~large)]]
    )
    expected = table.sum(0) * table.sum(1)[:, None] / table.sum()
    assert np.sum((table - expected) ** 2 / expected) < 37  # one degree of freedom, false alarm 1e-9


@pytest.mark.parametrize("size", [0, 1, 511, 512, 70_000])
def test_sizes(size: int) -> None:
    for law in map(partial(lambda f, s: f(s), s=Fraction(37, 2)), LAWS):
        assert law.sample(size).shape == (size,)


@pytest.mark.parametrize(
    "law",
    [
        TruncatedDiscreteLaplace(Fraction(2**72), 1),
        TruncatedDiscreteLaplace(Fraction(2**127), 1),
        TruncatedDiscreteLaplace(Fraction(10**100), 2),
        TruncatedDiscreteLaplace(Fraction(10**100), 1000),
    ],
    ids=repr,
)
def test_truncation_far_below_the_scale_is_all_but_uniform(law: TruncatedDiscreteLaplace) -> None:
    support = np.arange(-law.bound, law.bound + 1)
    uniform = np.full(len(support), 1 / len(support))
    assert law.pmf(support) == pytest.approx(uniform)
    assert_fits(law.sample(100_000, SeededBits(9)), support, uniform)
    assert law.variance == pytest.approx(np.mean(support**2))
    coarse = TruncatedDiscreteLaplace(law.scale, law.bound, Fineness(8, 0.3))
    assert_fits(coarse.sample(100_000, SeededBits(9)), support, uniform)


def test_a_draw_never_wraps() -> None:
    """Words that ask for the most extreme table entry: the value is right or refused, never of the wrong sign."""
    law = DiscreteLaplace(Fraction(2**56))
    for more in (0, 2**64 - 2):
        words = [2**64 - 2, 2**64 - 1, more, 2**64 - 1, 0]
        assert law.draw(ScriptedBits(words)) > 2**61
        with contextlib.suppress(OverflowError):  # refused aloud is right too
            assert law.sample(1, ScriptedBits(words))[0] > 2**61


def test_forking_while_another_thread_builds_tables() -> None:
    """A child must not inherit a lock that was held when it was born."""
    stop = threading.Event()

    def churn() -> None:
        k = 0
        while not stop.is_set():
            k += 1
            DiscreteLaplace(Fraction(1000 + k, 7)).sample(1000)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for k in range(40):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                DiscreteLaplace(Fraction(5000 + k, 11)).sample(1000)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        thread.join()
