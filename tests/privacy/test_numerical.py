"""The parts of the numerical accountant: grids bracket their pairs, composition is convolution, cases add up."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hubbub as hb
from hubbub.privacy import accountant, grids, pairs, rare
from hubbub.privacy.numerical import Law, Profile, compose, where_met
from hubbub.privacy.pairs import Reversed
from hubbub.privacy.sketch import Sketch

PAIRS = [
    pairs.GaussianPair(0.7),
    pairs.LaplacePair(0.9),
    pairs.PoissonPair(pairs.GaussianPair(1.0), 0.1),
    Reversed(pairs.PoissonPair(pairs.GaussianPair(1.0), 0.1)),
    pairs.PoissonPair(pairs.GaussianPair(4.0), 0.01),
    pairs.PoissonPair(pairs.LaplacePair(1.0), 0.3),
    pairs.WithoutReplacementPair(pairs.GaussianPair(1.0), 0.2),
    pairs.GaussianMixturePair(((0.9, 0.0), (0.1, 1.0)), ((0.9, 0.0), (0.1, -1.0)), 1.0),
    pairs.Atoms(((-0.313, 0.2), (0.05, 0.3), (0.4, 0.45)), infinity=0.05),
]


def profile(losses: np.ndarray, chances: np.ndarray, infinity: float, epsilon: float) -> float:
    beyond = losses > epsilon
    return float((chances[beyond] * -np.expm1(epsilon - losses[beyond])).sum()) + infinity


def on_grid(steps: grids.Steps, spacing: float) -> tuple[np.ndarray, np.ndarray, float]:
    return steps.start + spacing * steps.points, steps.chances, steps.infinity


def truth(pair: pairs.Pair, epsilon: float) -> float:
    """The pair's own profile, from its masses beyond one loss."""
    p, q = (float(m[1]) for m in pair.masses(np.array([epsilon])))
    atoms = sum(mass * -math.expm1(epsilon - loss) for loss, mass in pair.atoms() if loss > epsilon)
    return p - math.exp(epsilon) * q + atoms + pair.infinity


def epsilons(pair: pairs.Pair) -> np.ndarray:
    low, high = pair.span(1e-10)
    return np.linspace(low - 0.1, high + 0.1, 101)


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
@pytest.mark.parametrize("spacing", [0.2, 0.05, 0.004])
def test_discretised_pairs_bracket_the_pair(pair: pairs.Pair, spacing: float) -> None:
    """From above dominates and from below is dominated, at every epsilon, also far between grid points."""
    above, below = grids.from_above(pair, spacing, 1e-25), grids.from_below(pair, spacing, 1e-25)
    assert above.chances.sum() + above.infinity == pytest.approx(1, abs=1e-12)
    assert below.chances.sum() + below.infinity <= 1 + 1e-12
    for epsilon in epsilons(pair):
        assert profile(*on_grid(above, spacing), epsilon) >= truth(pair, epsilon) - 1e-13
        assert profile(*on_grid(below, spacing), epsilon) <= truth(pair, epsilon) + 1e-13


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
def test_wide_cells_still_dominate(pair: pairs.Pair) -> None:
    """Cells may span several grid steps where little depends on them: the price rises, hardly."""
    sketch = Sketch.of(((pair, 1),), 1e-25)
    widths = sketch.widths(0, 2.0)
    assert max(factor for _, factor in widths) > 1 or not isinstance(pair, pairs.GaussianPair)
    wide, plain = grids.from_above(pair, 0.004, 1e-25, widths), grids.from_above(pair, 0.004, 1e-25)
    for epsilon in epsilons(pair):
        assert profile(*on_grid(wide, 0.004), epsilon) >= profile(*on_grid(plain, 0.004), epsilon) - 1e-13


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
@pytest.mark.parametrize("factor", [2, 3, 8])
@pytest.mark.parametrize("tilt", [0.0, 3.0])
def test_coarser_grids_bracket_finer_ones(pair: pairs.Pair, factor: int, tilt: float) -> None:
    spacing = 0.01
    above = Law.of(grids.from_above(pair, spacing, 1e-20), spacing, tilt, upper=True)
    below = Law.of(grids.from_below(pair, spacing, 1e-20), spacing, tilt, upper=False)
    for epsilon in epsilons(pair):
        fine, coarse = (Profile(law, epsilon).delta(epsilon) for law in (above, above.coarser(factor)))
        assert coarse >= fine - 1e-11
        fine, coarse = (Profile(law, epsilon).delta(epsilon) for law in (below, below.coarser(factor)))
        assert coarse <= fine + 1e-11


def test_coarser_grids_lose_little() -> None:
    """Both err by the square of the step: halving it quarters the gap."""
    pair, gaps = pairs.GaussianPair(0.7), []
    for factor in (8, 4, 2):
        laws = [
            Law.of(make(pair, 0.01, 1e-20), 0.01, 1.0, upper).coarser(factor)
            for make, upper in ((grids.from_above, True), (grids.from_below, False))
        ]
        high, low = (Profile(law, 0.5).delta(0.5) for law in laws)
        gaps.append(high - low)
    assert gaps[1] < gaps[0] / 2.5
    assert gaps[2] < gaps[1] / 2.5


@pytest.mark.parametrize("tilt", [0.0, 1.0, 6.0])
@pytest.mark.parametrize("count", [2, 7, 40])
def test_composition_is_convolution(count: int, tilt: float) -> None:
    spacing = 0.05
    steps = grids.from_above(pairs.PoissonPair(pairs.GaussianPair(1.0), 0.1), spacing, 1e-12)
    direct, one = np.ones(1), np.bincount(steps.points, steps.chances)
    for _ in range(count):
        direct = np.convolve(direct, one)
    losses = count * steps.start + spacing * np.arange(len(direct))
    composed = compose([(Law.of(steps, spacing, tilt, upper=True), count)])
    below = compose([(Law.of(steps, spacing, tilt, upper=False), count)])
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        infinite = 1 - (1 - steps.infinity) ** count
        exact = profile(losses, direct, infinite, epsilon)
        if tilt < 2:  # further off, the answer is correct but loose
            assert Profile(composed, epsilon).delta(epsilon) == pytest.approx(exact, rel=1e-4, abs=1e-12)
        assert Profile(composed, epsilon).delta(epsilon) >= exact * (1 - 1e-13)
        assert Profile(below, epsilon).delta(epsilon) <= exact * (1 + 1e-13)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [97, 1000, 12345])
def test_stages_agree_with_one(monkeypatch: pytest.MonkeyPatch, stages: int, count: int) -> None:
    """However the repetitions are grouped, the bounds bracket the same truth."""
    parts = ((pairs.PoissonPair(pairs.GaussianPair(0.5), 0.05), count), (pairs.LaplacePair(0.03), 5))
    side, sketch = accountant._directions(parts, 1e-6)[0]
    question = accountant.Question.about_delta(side, sketch, 1e-6)
    spacing = question.spacing(1e-3)
    whole = [question.profile(spacing / 4, upper).epsilon(1e-6) for upper in (False, True)]
    monkeypatch.setattr(accountant.Question, "stages", lambda *_: (stages, 0.0))
    low, high = (question.profile(spacing, upper).epsilon(1e-6) for upper in (False, True))
    assert low <= whole[1]
    assert whole[0] <= high
    assert high - low <= 0.01 * high


@settings(max_examples=60)
@given(st.floats(1e-4, 0.999), st.floats(0.2, 20), st.floats(-30, 30))
def test_places_in_a_mixture(rate: float, sigma: float, share: float) -> None:
    """Where a mixture's loss takes a value, against high precision: the mass on either side is right."""
    pair = pairs.GaussianMixturePair(((1 - rate, 0.0), (rate, 1.0)), ((1 - rate, 0.0), (rate, -1.0)), sigma)
    loss = float(pair.loss_at(np.array([share * sigma / 3]))[0][0])
    x = pair.place(np.array([loss]))[0]
    with mpmath.workprec(200):
        q, s, at = mpmath.mpf(rate), mpmath.mpf(sigma), mpmath.mpf(float(x))
        upper = (1 - q) + q * mpmath.exp((2 * at - 1) / (2 * s * s))
        lower = (1 - q) + q * mpmath.exp((-2 * at - 1) / (2 * s * s))
        assert abs(mpmath.log(upper / lower) - loss) <= 1e-13 * (1 + abs(loss))


RARE = [(1.0, 1e-4, 3, 1e-12), (2.0, 1e-3, 5, 1e-15), (0.3, 1e-4, 100, 1e-9), (0.2, 1e-4, 2, 1e-6)]


@pytest.mark.parametrize(("sigma", "rate", "steps", "delta"), RARE)
def test_one_rare_step_decides(sigma: float, rate: float, steps: int, delta: float) -> None:
    low, high = (hb.SampledGaussian(sigma, rate) * steps).epsilon_interval(delta)
    assert high - low <= 1e-3 * high
    alone = [(hb.SampledGaussian(sigma, rate)).epsilon_interval(d)[0] for d in (delta, delta / steps)]
    assert alone[0] <= high
    assert low <= 1.2 * alone[1] + steps * rate


def test_cases_agree_with_the_whole() -> None:
    """Where both ways work, they bracket the same truth; and with too many rare steps the cases give up."""
    parts = (
        (pairs.PoissonPair(pairs.GaussianPair(1 / 0.7), 1e-3), 6),
        (pairs.PoissonPair(pairs.GaussianPair(1.0), 2e-3), 2),
    )
    side, sketch = accountant._directions(parts, 1e-5)[0]
    question = accountant.Question.about_delta(side, sketch, 1e-5)
    low, high = (question.profile(question.spacing(1e-4), upper).epsilon(1e-5) for upper in (False, True))
    epsilon, delta = question.by_one_step()
    case_low, case_high = (rare.cases(side, sketch, epsilon, delta, upper).epsilon(1e-5) for upper in (False, True))
    assert case_low <= high
    assert low <= case_high
    assert case_high - case_low <= 0.02 * case_high
    with pytest.raises(rare.NotRare):
        rare.cases(((parts[0][0], 10**6),), sketch, epsilon, delta, upper=True)
    with pytest.raises(rare.NotRare):
        rare.cases(parts * 4, sketch, epsilon, delta, upper=True)


def test_laws_without_mass() -> None:
    """Nothing left is an answer: below, delta is what sits at infinity."""
    nothing = Law.of(grids.Steps(0.0, np.zeros(0, np.int64), np.zeros(0), 0.25), 0.1, 1.0, upper=False)
    some = Law.of(grids.from_below(pairs.GaussianPair(1.0), 0.1, 1e-9), 0.1, 1.0, upper=False)
    assert Profile(compose([(some, 3), (nothing, 1)]), 1.0).delta(1.0) == pytest.approx(0.25)
    assert not some._with(0.0, 0.1, np.zeros(5)).weights.any()
    assert some.coarser(1) is some


def test_where_bounds_meet_delta() -> None:
    assert where_met(lambda _: 1.0, 0.5, (0.0, 1.0, 2.0), 0.1, upper=False) == 2.0
    assert where_met(lambda _: 1.0, 0.5, (0.0, 1.0, 2.0), 0.1, upper=True) == math.inf
    assert where_met(lambda _: 0.1, 0.5, (0.0, 1.0, 2.0), 0.1, upper=True) == 0.0
    assert where_met(lambda e: float(e == 0), 0.5, (0.0, 0.0, 1.0), 0.1, upper=True) < 1e-300
    falling = where_met(lambda e: math.exp(-e), 0.5, (0.0, 3.0, 9.0), 0.1, upper=True)
    assert math.log(2) <= falling <= math.log(2) * (1 + 1e-9)


def test_reversing_keeps_symmetry() -> None:
    assert Reversed(pairs.GaussianPair(1.0)).symmetric
    assert not Reversed(pairs.PoissonPair(pairs.GaussianPair(1.0), 0.1)).symmetric


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
def test_what_is_cut_off_is_not_lost(pair: pairs.Pair) -> None:
    """Mass beyond a near end of the grid counts as infinite from above."""
    above = grids.from_above(pair, 0.05, 1e-2)
    assert above.chances.sum() + above.infinity == pytest.approx(1, abs=1e-12)


def test_one_step_has_two_directions_and_an_infinity() -> None:
    points = ((-2.0, 0.05), (0.1, 0.85), (0.5, 0.08))
    pair = pairs.Atoms(points, infinity=0.02, symmetric=False)
    (low, high), (other_low, other_high) = (accountant._step_delta(side, 0.3) for side in (pair, Reversed(pair)))
    assert low <= 0.02 + 0.08 * -math.expm1(-0.2) <= high
    assert other_low <= 0.05 * math.exp(2.0) * -math.expm1(-1.7) <= other_high
    assert other_low > high
    assert accountant.delta_interval(((pair, 1),), 0.3) == (other_low, other_high)
    assert accountant.delta_interval(((pair, 1),), 5.0)[0] >= 0.02 * (1 - 1e-9)
