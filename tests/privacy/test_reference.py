"""Never below the truth: random settings against references that share nothing with the accountant."""

import math
from fractions import Fraction

import pytest
from privacy import truths
from privacy.reference import measure, settings
from privacy.truths import Gaussian, Laplace, Response, Sampled, by_inversion

QUICK, LONG = 200, 2000
SEED = 1
CHUNK = 10


def check(first: int, count: int) -> None:
    for kind, seed in list(settings(first + count, SEED))[first:]:
        outcome, _ = measure(kind, seed)
        assert not outcome.underestimates, str(outcome)
        assert not outcome.too_loose, str(outcome)
        assert outcome.low <= outcome.high


@pytest.mark.parametrize("first", range(0, QUICK, CHUNK))
def test_never_below_the_truth(first: int) -> None:
    check(first, CHUNK)


@pytest.mark.long
@pytest.mark.parametrize("first", range(QUICK, QUICK + LONG, 50))
def test_never_below_the_truth_in_thousands_of_settings(first: int) -> None:
    check(first, 50)


# The references against each other


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(
    ("sigma", "rate", "delta"), [(1, 0.1, 1e-10), (1, 0.9, 1e-3), (2, 0.01, 1e-4), (5, 0.3, 1e-15), (0.7, 0.5, 1e-6)]
)
def test_inversion_agrees_with_one_step(sigma: float, rate: float, delta: float, replace: bool) -> None:
    pair = Sampled(sigma, rate, 1, replace)
    found = by_inversion([(pair, 1)], delta).epsilon
    assert found == pytest.approx(truths.by_one_step(pair, delta).epsilon, rel=1e-11)


@pytest.mark.parametrize(
    ("sigma", "rate", "delta"), [(1, 0.1, 1e-9), (1, 0.9, 1e-3), (0.5, 0.3, 1e-6), (2, 0.01, 1e-4)]
)
def test_inversion_agrees_with_two_steps(sigma: float, rate: float, delta: float) -> None:
    pair = Sampled(sigma, rate)
    found = by_inversion([(pair, 2)], delta).epsilon
    assert found == pytest.approx(truths.by_quadrature(pair, delta).epsilon, rel=1e-10)


@pytest.mark.parametrize(
    ("sigma", "steps", "delta"), [(0.3, 1, 1e-5), (1, 100, 1e-12), (20, 10**5, 1e-20), (50, 3, 1e-3)]
)
def test_inversion_agrees_with_exact_gaussians(sigma: float, steps: int, delta: float) -> None:
    truth = truths.by_gaussian(steps / truths.mpmath.mpf(sigma) ** 2, delta).epsilon
    for pair in (Gaussian(1 / sigma), Sampled(sigma, 1)):
        assert by_inversion([(pair, steps)], delta).epsilon == pytest.approx(truth, rel=1e-11)
    replaced = truths.by_gaussian(4 * steps / truths.mpmath.mpf(sigma) ** 2, delta).epsilon
    assert by_inversion([(Sampled(sigma, 1, 1, True), steps)], delta).epsilon == pytest.approx(replaced, rel=1e-11)
    assert by_inversion([(Sampled(sigma, 1, 2), steps)], delta).epsilon == pytest.approx(replaced, rel=1e-11)


def test_a_group_of_one_step_is_a_mixture() -> None:
    """Two who join with certainty or not at all: the likelihood ratio of three normals, by plain quadrature."""
    pair, epsilon = Sampled(1.0, 0.3, 2), by_inversion([(Sampled(1.0, 0.3, 2), 1)], 1e-4).epsilon
    with truths.mpmath.workdps(20):

        def gain(x: float) -> float:
            p = sum(w * truths.mpmath.npdf(x, j) for j, w in ((0, 0.49), (1, 0.42), (2, 0.09)))
            return max(truths.mpmath.mpf(0), p - truths.mpmath.exp(epsilon) * truths.mpmath.npdf(x))

        start = truths.mpmath.findroot(
            lambda x: float(pair.parts(truths.np.array([complex(x)]))[1][0].real) - epsilon, 2
        )
        assert float(truths.mpmath.quad(gain, [start, start + 2, start + 5, 20])) == pytest.approx(1e-4, rel=1e-8)


def test_inversion_agrees_with_exact_laplaces() -> None:
    """A little Gaussian noise makes the transform fall off; what it adds is below the tolerance."""
    found = by_inversion([(Laplace(0.8), 8), (Gaussian(2e-4), 1)], 1e-4).epsilon
    assert found == pytest.approx(truths.by_laplace(0.8, 8, 1e-4).epsilon, rel=1e-6)
    assert truths.by_laplace(1.0, 1, 0.1).epsilon == pytest.approx(1 + 2 * math.log(1 - 0.1), rel=1e-12)


@pytest.mark.parametrize("pair", [Response(0.7), Response(0.7, 0.2)])
def test_responses_agree_with_enumeration(pair: Response) -> None:
    p = [Fraction(chance) for _, chance in pair.atoms()]
    q = [Fraction(chance) for _, chance in pair.atoms(forward=False)]
    for delta in (1e-2, 1e-4):
        truth = truths.by_enumeration(p, q, 7, delta).epsilon
        assert truths.by_responses([(pair, 7)], delta).epsilon == pytest.approx(truth, rel=1e-12)
        assert truths.by_responses([(pair, 3), (pair, 4)], delta).epsilon == pytest.approx(truth, rel=1e-12)


def test_failures_use_up_delta() -> None:
    assert truths.by_responses([(Response(1.0), 2)], 1e-3, failure=1e-2).epsilon == math.inf
    with_failures = truths.by_responses([(Response(1.0), 5)], 1e-3, failure=1e-4).epsilon
    assert with_failures > truths.by_responses([(Response(1.0), 5)], 1e-3).epsilon
