"""Inversion of transforms: against the accountant's grids, which share nothing with it, and against many digits."""

import math

import mpmath
import numpy as np
import pytest

import hubbub as hb
from hubbub.privacy import accountant, inversion, transforms
from hubbub.privacy.pairs import (
    Atoms,
    GaussianMixturePair,
    GaussianPair,
    LaplacePair,
    Pair,
    PoissonPair,
    Reversed,
    WithoutReplacementPair,
)
from hubbub.privacy.transforms import TooCostly, transform_of

SAMPLED = PoissonPair(GaussianPair(1.0), 0.01)
TWO_SIDED = GaussianMixturePair(((0.9, 0.0), (0.1, 1.0)), ((0.9, 0.0), (0.1, -1.0)), 0.7, symmetric=True)
GROUP = GaussianMixturePair(((0.81, 0.0), (0.18, 1.0), (0.01, 2.0)), ((1.0, 0.0),), 1.5)
TWO = Atoms(((-0.3, 0.4255574831883411), (0.3, 0.5744425168116589)))
PAIRS: list[Pair] = [
    GaussianPair(0.7),
    LaplacePair(0.4),
    TWO,
    PoissonPair(TWO, 0.2),
    Reversed(PoissonPair(TWO, 0.2)),
    SAMPLED,
    Reversed(SAMPLED),
    PoissonPair(GaussianPair(0.5), 1.0),
    PoissonPair(GaussianPair(4.0), 0.3),
    TWO_SIDED,
    GROUP,
    Reversed(GROUP),
]
COMPOSITIONS = [
    hb.SampledGaussian(1, 0.01) * 1000,
    hb.SampledGaussian(0.5, 0.2) * 50,
    hb.SampledGaussian(1, 0.01, neighbours="replace") * 3000,
    (hb.SampledGaussian(2, 0.05) * 300).group(3),
    hb.LaplaceDP(0.1) * 500,
    hb.GaussianDP(0.2) * 3 + hb.LaplaceDP(0.3) * 20 + hb.PureDP(0.1) * 5 + hb.ApproxDP(0.2, 1e-7),
    hb.GaussianDP(1.0) + hb.PureDP(0.5).subsample(0.1) * 10,
]


def mixture(pair: Pair) -> tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...], float]:
    if isinstance(pair, Reversed):
        upper, lower, stddev = mixture(pair.pair)
        return lower, upper, stddev
    if isinstance(pair, PoissonPair):
        assert isinstance(pair.base, GaussianPair)
        return ((1 - pair.rate, 0.0), (pair.rate, pair.base.mu)), ((1.0, 0.0),), 1.0
    assert isinstance(pair, GaussianMixturePair)
    return pair.upper, pair.lower, pair.stddev


def moment(pair: Pair, z: complex) -> mpmath.mpc:
    """E[e**(z loss)] to many digits, from the pair's definition."""
    with mpmath.workdps(30):
        at = mpmath.mpc(z)
        inner = pair.pair if isinstance(pair, Reversed) else pair
        if isinstance(inner, Atoms) or (isinstance(inner, PoissonPair) and isinstance(inner.base, Atoms)):
            return mpmath.fsum(p * mpmath.exp(at * loss) for loss, p in pair.atoms())
        if isinstance(pair, GaussianPair):
            return mpmath.exp(mpmath.mpf(pair.mu) ** 2 * at * (at + 1) / 2)
        if isinstance(pair, LaplacePair):
            s = mpmath.mpf(pair.shift)
            inside = mpmath.quad(lambda loss: mpmath.exp((loss - s) / 2 + at * loss) / 4, np.linspace(-1, 1, 41) * s)
            return inside + mpmath.exp(at * s) / 2 + mpmath.exp(-(at + 1) * s) / 2
        upper, lower, stddev = mixture(pair)

        def density(mixed: tuple[tuple[float, float], ...], x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.fsum(w * mpmath.npdf(x, s, stddev) for w, s in mixed)

        def value(x: mpmath.mpf) -> mpmath.mpc:
            p, q = density(upper, x), density(lower, x)
            return p * mpmath.exp(at * mpmath.log(p / q))

        h = mpmath.mpf(stddev) / 16
        return h * mpmath.fsum(value(h * k + mpmath.mpf("0.0017")) for k in range(-250, 500))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: repr(p)[:50])
def test_a_transform_is_within_its_error(pair: Pair) -> None:
    """At a few places: nothing is off by more than said, which is next to nothing."""
    tilt, step = 2.5, 3.25
    line = transform_of(pair).line(tilt, step, 8)
    for k in (0, 7):
        truth = moment(pair, complex(tilt, step * k)) / mpmath.exp(mpmath.mpf(line.log_scale))
        assert abs(truth - mpmath.mpc(complex(line.values[k]))) <= line.errors[k] < 1e-11
    assert mpmath.mpf(transform_of(pair).log_moment(tilt)) >= mpmath.log(moment(pair, tilt).real)


@pytest.mark.parametrize("pair", [SAMPLED, Reversed(GROUP), TWO_SIDED], ids=lambda p: repr(p)[:50])
@pytest.mark.parametrize("nothing", [2.0, 5.0, 10.0])
def test_what_a_sum_leaves_out_is_accounted_for(pair: Pair, nothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With far too few outcomes, far too wide apart."""
    monkeypatch.setattr(transforms, "NOTHING", nothing)
    line = transform_of(pair).line(2.5, 3.25, 4)
    for k in (0, 3):
        truth = moment(pair, complex(2.5, 3.25 * k)) / mpmath.exp(mpmath.mpf(line.log_scale))
        assert 1e-6 < line.errors[k] < 5
        assert abs(truth - mpmath.mpc(complex(line.values[k]))) <= line.errors[k]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: repr(p)[:50])
@pytest.mark.parametrize("tilt", [0.1, 2.5, 12.0])
def test_a_transform_decays_as_fast_as_said(pair: Pair, tilt: float) -> None:
    transform = transform_of(pair)
    step = 0.5
    sizes = np.abs(transform.line(tilt, step, 400).values)
    largest = np.maximum.accumulate(sizes[::-1])[::-1]
    bound = np.exp(transform.decay(tilt, step * np.arange(400)))
    assert np.all(largest <= bound * (1 + 1e-12))
    assert np.all(np.diff(bound) <= 1e-12)
    assert (bound[-1] < 0.9) == transform.smooth or isinstance(pair, LaplacePair)


def by_grids(loss: hb.Loss, read: str, at: float, monkeypatch: pytest.MonkeyPatch) -> tuple[float, float]:
    ask = {"epsilon": accountant.epsilon_interval, "delta": accountant.delta_interval}[read]
    with monkeypatch.context() as patched:
        patched.setattr(inversion, "MOST_PLACES", 0)
        return ask.__wrapped__(loss._pairs(), at)


@pytest.mark.parametrize("loss", COMPOSITIONS, ids=lambda x: repr(x)[:50])
@pytest.mark.parametrize("delta", [0.1, 1e-5, 1e-11])
def test_inversion_agrees_with_the_grids(loss: hb.Loss, delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    if "ApproxDP" in repr(loss) and delta < 1e-7:
        delta = 2e-7
    low, high = by_grids(loss, "epsilon", delta, monkeypatch)
    exact = accountant.epsilon_interval(loss._pairs(), delta)
    assert low <= exact[0] <= exact[1] <= high
    assert exact[1] - exact[0] <= 1e-7 * exact[1]
    at = exact[1]
    low, high = by_grids(loss, "delta", at, monkeypatch)
    found = accountant.delta_interval(loss._pairs(), at)
    assert low <= found[0] <= found[1] <= high
    assert found[0] <= delta
    assert found[1] == pytest.approx(delta, rel=1e-5)


@pytest.mark.parametrize("delta", [0.5, 1e-3, 1e-9, 1e-40])
@pytest.mark.parametrize(("mu", "steps"), [(1.0, 2), (0.01, 10**4), (0.3, 10**6)])
def test_gaussians_are_exact(mu: float, steps: int, delta: float) -> None:
    """Against the closed form, to many digits."""
    (parts, sketch), *_ = accountant._directions(((GaussianPair(mu), steps),), delta)
    low, high = inversion.epsilon_interval([(parts, sketch)], delta, 0.0)
    with mpmath.workdps(60):
        m = mpmath.sqrt(steps) * mpmath.mpf(mu)

        def profile(epsilon: float) -> mpmath.mpf:
            e = mpmath.mpf(epsilon)
            return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)

        assert profile(high) <= delta
        assert low == 0 or profile(low) >= delta
        assert high - low <= 1e-8 * high


def test_grids_where_nothing_is_left_to_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = hb.SampledGaussian(1, 0.01) * 1000
    assert loss.delta(0) == pytest.approx(0.161, rel=1e-2)
    assert by_grids(loss, "epsilon", 0.5, monkeypatch) == (0.0, 0.0) == loss.epsilon_interval(0.5)


def test_newton_stopped_early_is_wide_but_right(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = (hb.LaplaceDP(0.1) * 500)._pairs()
    low, high = accountant.epsilon_interval(parts, 1e-5)
    directions = accountant._directions(parts, 1e-5)
    for steps in (1, 2, 3):
        monkeypatch.setattr(inversion, "NEWTON_STEPS", steps)
        early = inversion.epsilon_interval(directions, 1e-5, 0.0)
        assert early[0] <= low <= high <= early[1]


def test_wrapped_around_mass_is_bounded() -> None:
    """A window far too narrow: the interval is wide, and still holds the truth."""
    loss = hb.GaussianDP(0.5) * 4
    (parts, sketch), *_ = accountant._directions(((GaussianPair(0.5), 4),), 1e-5)
    transform = [(transform_of(parts[0][0]), 4)]
    truth = hb.GaussianDP(1.0).epsilon(1e-5)
    for window in (1.0, 2.0, 5.0, 20.0):
        step = transforms.few_bits(2 * math.pi / window)
        farther = (8.0, 4 * transform[0][0].log_moment(8.0))
        fall = float(4 * transform[0][0].decay(3.0, np.array([12.0]))[0])
        line = inversion._on_line(transform, 3.0, step, math.ceil(12 / step) + 1, fall, farther)
        low, high = line.delta_interval(truth, 0.0)
        assert low <= 1e-5 * (1 + 1e-7)
        assert high >= 1e-5 * (1 - 1e-7)
        assert (high - low < 1e-12) == (window == 20)
    assert sketch.deviation(0.0) == pytest.approx(1.0, rel=0.01)
    assert loss.epsilon(1e-5) == pytest.approx(truth)


@pytest.mark.parametrize("parts", [((LaplacePair(0.5), 60), (TWO, 2)), ((SAMPLED, 100),)], ids=repr)
def test_a_sum_that_ends_early_is_wide_but_right(parts: accountant.Parts) -> None:
    sketch = accountant._directions(parts, 1e-5)[0][1]
    tilt, epsilon = sketch.saddle(1e-5)
    whole = inversion.invert(parts, sketch, tilt, epsilon, math.log(1e-5))
    pairs = [(transform_of(pair), n) for pair, n in parts]
    low, high, _ = whole.log_bounds(epsilon)
    for count in (2, 3, 5, len(whole.terms) // 8, len(whole.terms) // 3):
        fall = sum(n * float(t.decay(whole.tilt, np.array([whole.step * (count - 1)]))[0]) for t, n in pairs)
        part = inversion._on_line(pairs, whole.tilt, whole.step, count, fall, whole.farther).log_bounds(epsilon)
        assert part[0] <= low <= high <= part[1]
        assert part[1] > high + 1e-9


def test_of_two_directions_the_dearer_counts() -> None:
    """Nearly the same in both: neither can be dismissed at once."""
    parts = ((PoissonPair(GaussianPair(0.02), 0.5), 10**5),)
    both = accountant._directions(parts, 1e-5)
    each = [inversion.epsilon_interval([one], 1e-5, 0.0) for one in both]
    assert inversion.epsilon_interval(both[::-1], 1e-5, 0.0) == pytest.approx(max(each), rel=1e-12)
    swapped = [(both[0][0], both[1][1]), (both[1][0], both[0][1])]  # the sketches mislead about which is dearer
    assert inversion.epsilon_interval(swapped, 1e-5, 0.0)[1] == pytest.approx(max(each)[1], rel=1e-8)


def test_rounding_grows_with_the_steps() -> None:
    widths = []
    for steps in (10**3, 10**6, 10**9):
        pairs = [(transform_of(SAMPLED), steps)]
        widths.append(inversion._on_line(pairs, 1e-3, 1.0, 2, -50.0, (1.0, 1.0)).error)
    assert widths[1] > 100 * widths[0]
    assert widths[2] > 100 * widths[1]


def test_what_has_no_transform_is_left_to_grids() -> None:
    for pair in (WithoutReplacementPair(GaussianPair(1.0), 0.1), PoissonPair(LaplacePair(1.0), 0.1)):
        with pytest.raises(TooCostly):
            transform_of(pair)


@pytest.mark.parametrize(
    ("parts", "delta"),
    [
        (((TWO, 100),), 1e-5),  # no density: the transform does not decay
        (((LaplacePair(1.0), 3),), 1e-5),  # too little density
        (((SAMPLED, 2),), 1e-5),  # too many places
        (((PoissonPair(GaussianPair(1e-8), 0.5), 2),), 1e-30),  # too small losses
        (((PoissonPair(GaussianPair(200.0), 0.01), 1000),), 1e-5),  # too many outcomes
        (((PoissonPair(GaussianPair(1.0), 1e-5), 50),), 1e-9),
    ],
    ids=repr,
)
def test_where_it_does_not_converge_nothing_is_said(parts: accountant.Parts, delta: float) -> None:
    directions = accountant._directions(parts, delta)
    assert inversion.epsilon_interval(directions, delta, 0.0) == (0.0, math.inf)


def test_delta_where_it_does_not_converge() -> None:
    assert inversion.delta_interval(accountant._directions(((TWO, 100),), 1e-20), 1.0, 0.0) == (0.0, 1.0)


def test_delta_that_vanishes_is_not_nothing() -> None:
    parts = (hb.SampledGaussian(1, 0.01) * 10**9)._pairs()
    low, high = accountant.delta_interval(parts, 1e5)
    assert low == 0
    assert 0 < high < 1e-300


def test_nearly_all_of_delta_is_a_failure() -> None:
    """What is left to finite losses drowns in the rounding of what is not."""
    line = inversion.invert(*accountant._directions(((GaussianPair(0.1), 9),), 1e-5)[0], 3.0, 1.0, math.log(1e-5))
    with pytest.raises(TooCostly):
        line.epsilon_interval(1.0, 1e-5, 1e-5 * (1 - 1e-15))


def test_far_from_its_epsilon_a_line_says_nothing() -> None:
    line = inversion.invert(*accountant._directions(((GaussianPair(0.1), 9),), 1e-5)[0], 15.0, 1.2, math.log(1e-5))
    with pytest.raises(TooCostly):
        line.epsilon_interval(60.0, 1e-5, 0.0)


@pytest.mark.parametrize("tilt", [1e-7, 0.3, 50.0, 1e6])
def test_the_constant_of_chernoff_is_exact(tilt: float) -> None:
    with mpmath.workdps(40):
        t = mpmath.mpf(tilt)
        exact = t * mpmath.log(t) - (1 + t) * mpmath.log1p(t)
        assert abs(inversion.chernoff(tilt) / exact - 1) < 1e-15


class Doubtful(transforms.GaussianTransform):
    """Off by as much as it is large."""

    def line(self, tilt: float, step: float, count: int) -> transforms.Line:
        line = super().line(tilt, step, count)
        return transforms.Line(line.log_scale, line.values, np.ones(count))


@pytest.mark.parametrize("steps", [2, 900, 2000])
def test_moments_that_are_anything_say_nothing(steps: int) -> None:
    """Of 2000 such steps, the logarithm is off by more than a double's exponent holds."""
    with pytest.raises(TooCostly):
        inversion._on_line([(Doubtful(0.01), steps)], 3.0, 1.0, 9, -50.0, (8.0, 1.0))


@pytest.mark.parametrize("rate", [0.3, 0.999, 1 - 1e-10, 1 - 2.0**-50, 1 - 2.0**-53])
@pytest.mark.parametrize("epsilon", [3.0, 20.0, 30.0, 37.0])
def test_sampled_responses_at_rates_near_one(epsilon: float, rate: float) -> None:
    """1 - rate + rate e**-epsilon is small there, and not to be had from 1."""
    odds = math.exp(-epsilon)
    base = Atoms(((-epsilon, odds / (1 + odds)), (epsilon, 1 / (1 + odds))))
    line = transform_of(Reversed(PoissonPair(base, rate))).line(1.5, 2.0, 3)
    with mpmath.workdps(40):
        e, q = mpmath.mpf(epsilon), mpmath.mpf(rate)
        for k in range(3):
            z = mpmath.mpc(1.5, 2.0 * k)
            truth = sum(
                mpmath.exp(-z * mpmath.log(1 - q + q * mpmath.exp(sign * e))) / (1 + mpmath.exp(sign * e))
                for sign in (1, -1)
            ) / mpmath.exp(mpmath.mpf(line.log_scale))
            assert abs(truth - mpmath.mpc(complex(line.values[k]))) <= line.errors[k] < 1e-11
