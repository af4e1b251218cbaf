"""The default accountant: certified intervals for what many releases cost together.

Where every part's transform is known and its inversion converges, that gives the answer to many digits (``inversion``).
Elsewhere, a rough sketch of the composition says which tilt, grid and stages suit the question; coarse passes bound the
answer in both directions, and the upper bound that counts is then taken on a finer grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.privacy import gaussian, inversion
from hubbub.privacy.grids import LARGEST_LOSS, TooLong, from_above, from_below
from hubbub.privacy.numerical import Law, Profile, compose, infinite, where_met
from hubbub.privacy.pairs import (
    RELATIVE_ERROR,
    Atoms,
    GaussianMixturePair,
    GaussianPair,
    LaplacePair,
    Pair,
    PoissonPair,
    Reversed,
    WithoutReplacementPair,
)
from hubbub.privacy.rare import Cases, NotRare, cases
from hubbub.privacy.sketch import Sketch

PRECISION = 8e-4
"""Relative width of an interval at which refinement stops."""
EXACT = 1e-4
"""Relative width at which an interval by inversion is all that is wanted."""
FINE, FINE_STEP = 2e-6, 8e-5
"""Relative error, and grid step, at which an upper bound is fine enough."""
POINTS, FINE_POINTS = 1 << 19, 1 << 20
"""Grid points, over all parts and stages, that a coarse and a fine pass may use."""
REFINEMENTS, WIDE = 5, 5e-3
"""How often grids are refined; relative width at which it is tried whether rare steps decide."""
LEAST = 1e-4
"""Of the deviation of the sum of losses: smaller epsilons need no relative precision."""
TAIL_SHARE = 1e-6
"""Of delta, what the losses cut off at the far end of every step may add up to."""
SMALLEST_MASS = 1e-307
"""Smaller masses may have vanished."""
SMALLEST_EPSILON = 1e-200
"""Below, no grid has a step."""
MOST_STAGES, STAGE_POINTS, SPARSE = 5, 1 << 12, 1 << 13
"""Stages of composition; what one costs whatever its size, in grid points; and at most how many one step's law has."""

TRIED = 1000
"""How far from the number of groups wanted one is looked for that divides all counts."""

LEAST_STDDEV = 0.01
"""Of a mixture's parts, one apart or more: below, losses cannot be computed to the relative error granted."""
CAN_HOLD_ATOMS = (Atoms, LaplacePair, PoissonPair, WithoutReplacementPair)

Parts = tuple[tuple[Pair, int], ...]
Read = Callable[[Profile | Cases], float]


@lru_cache(maxsize=512)
def epsilon_interval(parts: Parts, delta: float) -> tuple[float, float]:
    """(lower, upper) on the epsilon at which the composition of all parts is (epsilon, delta)-private.

    Claim: the truth for the composition of the given pairs lies between the two.
    Proof: by inversion as said in ``inversion``; by grids, DGKKM22 for domination and composition of the discretised
        pairs, in both directions, with errors bounded as said in ``numerical``.
    Assumes: the pairs dominate (upper bound) or are attained by (lower bound) what ran.
    """
    if _too_telling(parts):
        return 0.0, math.inf
    endless = infinite([(p.infinity, n) for p, n in parts])
    if endless >= delta:
        return (math.inf, math.inf) if endless * (1 - 1e-9) > delta else (0.0, math.inf)
    if sum(n for _, n in parts) == 1:
        return _one_step(parts[0][0], delta)
    finite = delta - endless  # what is left to the finite losses
    directions = _directions(parts, finite)
    inverted = inversion.epsilon_interval(directions, delta, endless)
    if _narrow(inverted, EXACT):
        return inverted
    if sum(n * _step_delta(p, 0.0)[1] for p, n in parts) * (1 + 1e-12) <= delta:  # distances in variation add at most
        return 0.0, 0.0
    questions = [Question.about_delta(side, sketch, finite) for side, sketch in directions]
    low, high = _answer(questions, lambda profile: profile.epsilon(delta), PRECISION)
    return max(low, inverted[0]), min(high, inverted[1])


@lru_cache(maxsize=512)
def delta_interval(parts: Parts, epsilon: float) -> tuple[float, float]:
    """(lower, upper) on the delta at which the composition of all parts is (epsilon, delta)-private."""
    if _too_telling(parts):
        return 0.0, 1.0
    if sum(n for _, n in parts) == 1 and epsilon <= LARGEST_LOSS:
        bounds = [_step_delta(side, epsilon) for side in _sides(parts[0][0])]
        return max(b[0] for b in bounds), max(b[1] for b in bounds)
    directions = _directions(parts, 1e-20)
    if all(sketch.all_beyond(epsilon) for _, sketch in directions):
        return 0.0, 1.0
    inverted = inversion.delta_interval(directions, epsilon, infinite([(p.infinity, n) for p, n in parts]))
    if _narrow(inverted, 10 * PRECISION):
        return inverted
    questions = [Question.about_epsilon(side, sketch, epsilon) for side, sketch in directions]
    low, high = _answer(questions, lambda profile: profile.delta(epsilon), 10 * PRECISION)
    return max(low, inverted[0]), min(high, inverted[1])


def _too_telling(parts: Parts) -> bool:
    """Whether a step has, or may have, single losses beyond what doubles hold: a closed form or Renyi price must do."""
    return any(
        (isinstance(p, CAN_HOLD_ATOMS) and max(map(abs, p.span(1e-12))) > LARGEST_LOSS)
        or (isinstance(p, GaussianMixturePair) and p.stddev < LEAST_STDDEV)
        for p, _ in parts
    )


def _narrow(interval: tuple[float, float], precision: float) -> bool:
    low, high = interval
    return math.isfinite(high) and high - low <= max(precision * high, SMALLEST_MASS)


def _sides(pair: Pair) -> list[Pair]:
    return [pair] if pair.symmetric else [pair, Reversed(pair)]


def _tail(parts: Parts, delta: float) -> float:
    """The mass that each step may leave out at its far ends."""
    return max(delta * TAIL_SHARE / sum(n for _, n in parts), 1e-300)


def _directions(parts: Parts, delta: float) -> list[tuple[Parts, Sketch]]:
    """The composition as it is and, unless all parts are symmetric, with P and Q exchanged."""
    sketch = Sketch.of(parts, _tail(parts, delta))
    if all(p.symmetric for p, _ in parts):
        return [(parts, sketch)]
    return [(parts, sketch), (tuple((p if p.symmetric else Reversed(p), n) for p, n in parts), sketch.reversed())]


# one step alone


def _step_delta(pair: Pair, epsilon: float) -> tuple[float, float]:
    """Bounds on the profile of one step: P(loss > epsilon) - e**epsilon Q(loss > epsilon), from the masses.

    Losses may be off a little, too: masses just below epsilon may belong beyond it.
    """
    near, growth = epsilon - RELATIVE_ERROR * (1 + epsilon), math.exp(min(epsilon, 700.0))
    (_, p_near, p), (_, q_near, q) = (m.tolist() for m in pair.masses(np.array([near, epsilon])))
    atoms = [(loss, mass) for loss, mass in pair.atoms() if loss > near]
    beyond = math.fsum(mass * -math.expm1(epsilon - loss) for loss, mass in atoms if loss > epsilon)
    centre = p - growth * q + beyond + pair.infinity
    doubtful = p_near + p + growth * (q_near + q) + math.fsum(mass for _, mass in atoms)
    error = RELATIVE_ERROR * doubtful + growth * SMALLEST_MASS
    return max(0.0, centre - 2 * error), min(1.0, max(0.0, centre) + 2 * error)


def _one_step(pair: Pair, delta: float) -> tuple[float, float]:
    """The epsilons at which the bounds of one step's profile meet delta."""
    if isinstance(pair, GaussianPair):
        return gaussian.epsilon_interval(Fraction(pair.mu), Fraction(delta))
    ends = []
    for which in (0, 1):
        value = 0.0
        for side in _sides(pair):
            low, high = 0.0, min(max(side.span(delta / 2)[1], 0.0), LARGEST_LOSS) + 1.0
            if _step_delta(side, low)[which] <= delta:
                continue
            if _step_delta(side, high)[which] > delta:
                low = high = math.inf if which else high
            while low < (middle := (low + high) / 2) < high and high - low > 1e-12 * high:
                low, high = (middle, high) if _step_delta(side, middle)[which] > delta else (low, middle)
            value = max(value, high if which else low)
        ends.append(value)
    return ends[0], ends[1]


# many steps


@dataclass(frozen=True, eq=False)
class Question:
    """One direction of a composition, with where to look: a tilt, and about which epsilon and delta."""

    parts: Parts
    sketch: Sketch
    tilt: float
    slope: float
    """About how fast ln delta falls with epsilon."""
    epsilon: float
    delta: float
    asked_delta: bool
    """Whether delta is given and epsilon a guess, or the other way round."""

    @classmethod
    def about_delta(cls, parts: Parts, sketch: Sketch, delta: float) -> Question:
        """Which epsilon is it?"""
        tilt, slope, epsilon = sketch.tilt_for_delta(delta)
        least = LEAST * sketch.deviation(tilt)
        return cls(parts, sketch, tilt, slope, max(epsilon, least, 1e-12), delta, asked_delta=True)

    @classmethod
    def about_epsilon(cls, parts: Parts, sketch: Sketch, epsilon: float) -> Question:
        """Which delta is it?"""
        tilt, slope = sketch.tilt_for_epsilon(epsilon)
        value, means, _ = sketch.moments(tilt)
        delta = math.exp(max(-600.0, min(-1.0, value - tilt * float(sketch.counts @ means))))
        return cls(parts, sketch, tilt, slope, max(epsilon, 1e-12), delta, asked_delta=False)

    def spacing(self, error: float) -> float:
        """The grid step at which an upper bound should be off by this, relatively.

        Splitting mass between grid points adds up to h**2/6 to the variance of each step, and (1 + slope)/2 times that
        to epsilon.
        """
        total = float(self.sketch.counts.sum())
        step = math.sqrt(12 * error * self.epsilon / (total * (1 + self.slope)))
        return min(step, 0.5 / (1 + self.slope))

    def by_one_step(self) -> tuple[float, float]:
        """(epsilon, delta) if one step alone were to exceed epsilon: the sum of what each step has there is delta."""

        def total(epsilon: float) -> float:
            return sum(n * _step_delta(pair, epsilon)[1] for pair, n in self.parts)

        if not self.asked_delta:
            return self.epsilon, total(self.epsilon)
        high = max(max(pair.span(self.delta)[1] for pair, _ in self.parts), 1e-12)
        return where_met(total, self.delta, (0.0, high, high), high / 100, upper=True), self.delta

    def stages(self, spacing: float) -> tuple[int, float]:
        """(how many, grid points): stages for the least work, at an error as of one grid of this step."""
        most = float(self.sketch.counts.max())
        whole = 16 * self.sketch.deviation(self.tilt) / spacing
        length = float(np.minimum(self.sketch.lengths / spacing, SPARSE).sum())
        tries = []
        for k in range(1, MOST_STAGES + 1):
            windows = k * whole * most ** (0.5 / k - 0.5) if k > 1 else whole
            tries.append((math.sqrt(k) * (length / 2 + windows * len(self.parts)) + k * STAGE_POINTS, k))
        work, best = min(tries)
        return best, work

    def profile(self, spacing: float, upper: bool) -> Profile:
        """The composed profile from a grid of about this step, in stages where that is less work."""
        stages, _ = self.stages(spacing)
        spacing = through_atoms(self.parts, spacing / math.sqrt(stages))
        tail = _tail(self.parts, self.delta)
        laws = []
        for k, (pair, n) in enumerate(self.parts):
            if upper:
                steps = from_above(pair, spacing, tail, self.sketch.widths(k, self.tilt))
            else:
                steps = from_below(pair, spacing, tail)
            laws.append((Law.of(steps, spacing, self.tilt, upper), n))
        share = max(n for _, n in laws) ** (1 / stages)
        factor = 2 * round(math.sqrt(share) / 2) if share > 2 else 1
        for _ in range(stages - 1):
            laws = _grouped(laws, share, factor)
        return Profile(compose(laws), self.epsilon)


def _grouped(laws: Sequence[tuple[Law, int]], share: float, factor: int) -> list[tuple[Law, int]]:
    """The same in larger steps on a coarser grid: groups of about ``share`` steps, and what is left over."""
    wanted = max(n for _, n in laws) / share
    near = range(math.ceil(max(wanted / 1.4, wanted - TRIED)), math.floor(min(wanted * 1.4, wanted + TRIED)) + 1)
    groups = min(near, key=lambda g: (any(n % g for _, n in laws), abs(g - wanted)), default=1)
    inner = [(law, n // groups) for law, n in laws if n >= groups]
    rest = [(law, n % groups) for law, n in laws if n % groups]
    grouped = [(compose(inner).coarser(factor), groups)]
    return [*grouped, (compose(rest).coarser(factor), 1)] if rest else grouped


def _answer(questions: Sequence[Question], read: Read, precision: float) -> tuple[float, float]:
    """The larger of the directions' bounds, narrow as far as that can be had."""
    main = max(questions, key=lambda q: q.epsilon)
    others = [
        replace(q, tilt=min(q.tilt, 4 * main.tilt), slope=min(q.slope, 4 * main.slope), epsilon=main.epsilon)
        for q in questions
        if q is not main
    ]  # that they cost less is all that is wanted to know
    bounds = {q: _upper(q, read, q.spacing(0.3 * precision)) for q in (main, *others)}
    main = max(bounds, key=lambda q: bounds[q])
    for _ in range(REFINEMENTS):  # where epsilon is far below what it was taken for, the grid was too coarse
        if not main.asked_delta or bounds[main] > 0.7 * main.epsilon:
            break
        bound = bounds.pop(main)
        main = replace(main, epsilon=max(bound, 1e-12))
        bounds[main] = min(bound, _upper(main, read, main.spacing(0.3 * precision)))
    step = main.spacing(0.3 * precision)
    low, below = 0.0, _affordable(main, step, POINTS)
    for _ in range(REFINEMENTS):
        with suppress(TooLong):
            low = max(low, read(main.profile(below, upper=False)))
        if bounds[main] - low <= precision * bounds[main] or main.stages(below / 2)[1] > POINTS:
            break
        below /= 2
    fine = _affordable(main, min(main.spacing(FINE), FINE_STEP), FINE_POINTS)
    if fine < step:
        for q in bounds:
            if bounds[q] > low:
                bounds[q] = min(bounds[q], _upper(q, read, fine))
    if low < (1 - WIDE) * max(bounds.values()):
        for q in bounds:
            case_low, case_high = _by_cases(q, read)
            low, bounds[q] = max(low, case_low), min(bounds[q], case_high)
    high = max(bounds.values())
    return min(low, high), high


def _by_cases(question: Question, read: Read) -> tuple[float, float]:
    """Bounds in one direction where one rare step decides; (0, inf) where that is not so."""
    epsilon, delta = question.by_one_step()
    if not SMALLEST_EPSILON < epsilon <= LARGEST_LOSS or delta <= 0:
        return 0.0, math.inf
    try:
        both = [cases(question.parts, question.sketch, epsilon, delta, upper) for upper in (False, True)]
    except (NotRare, TooLong):
        return 0.0, math.inf
    return read(both[0]), read(both[1])


def _affordable(question: Question, spacing: float, points: int) -> float:
    """This grid step, or the next at which so many grid points are enough."""
    while question.stages(spacing)[1] > points and spacing < 1:
        spacing *= 1.2
    return spacing


def _upper(question: Question, read: Read, spacing: float) -> float:
    """The upper bound at about this grid step, or the finest that can be had."""
    spacing = _affordable(question, spacing, 2 * FINE_POINTS)
    for _ in range(REFINEMENTS):
        try:
            return read(question.profile(spacing, upper=True))
        except TooLong:
            spacing *= 4
    return math.inf


def through_atoms(parts: Sequence[tuple[Pair, int]], spacing: float) -> float:
    """A little smaller, so that atoms of the most frequent part that has several lie on its grid.

    All of them where they are evenly spaced (a lattice), else the two outermost.
    """
    with_atoms = [(n, p) for p, n in parts if len(p.atoms()) > 1]
    if not with_atoms:
        return spacing
    _, pair = max(with_atoms, key=lambda part: part[0])
    losses = np.unique([loss for loss, _ in pair.atoms()])
    gaps, apart = np.diff(losses), float(losses[-1] - losses[0])
    if len(gaps) and np.ptp(gaps) <= 1e-9 * apart:
        apart /= len(gaps)
        if apart <= spacing:
            return apart * math.floor(spacing / apart)
    return apart / math.ceil(apart / spacing) if apart > spacing else spacing
