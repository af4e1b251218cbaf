"""Certified bounds on a composition's profile by inverting its transform, where all parts have one (``transforms``).

With M(z) = E[e**(z L)] of the summed loss L, the product of the parts', g(epsilon) = E[(1 - e**(epsilon - L))+] has

    integral of e**(z epsilon) g(epsilon) = M(z) / (z (z + 1)),   Re z > 0,

so that by Poisson's summation, on the line Re z = t, with y = 2 pi k / W and z = t + i y,

    sum over m of e**(t (epsilon + m W)) g(epsilon + m W) = sum over k of M(z) e**(-i y epsilon) / (z (z + 1) W).

Nothing on the left is negative: the whole bounds what is at m = 0 from above, and the rest, by Chernoff, is what a
lower bound subtracts. Both account for the terms left out and for rounding. There is no grid of losses, and the work
does not grow with the number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from hubbub.privacy.pairs import ROUNDING, Pair
from hubbub.privacy.sketch import Sketch
from hubbub.privacy.transforms import Complex, TooCostly, Transform, few_bits, transform_of

ENOUGH, BARELY = 26.0, 15.0
"""e**-26 of the result may be left out, or wrap around; where the sum falls slowly, e**-15 may be left out."""
MOST_TERMS, MOST_PLACES = 1 << 21, 1 << 16
"""Terms of all sums, and places on the line, that an inversion may take."""
PLACES = np.geomspace(2.0, 2e5, 64)
"""Where sums may end, in inverse deviations."""
FARTHER = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
"""Second tilts beyond the first, in inverse deviations, by which what wraps around is bounded."""
GENTLE, NEAR = 0.65, 2.0
"""Of the best tilt, what is taken, so that tails are lighter; but at most so many inverse deviations below it."""
MOST_TILT = 1e6
NEWTON_STEPS, WIDENINGS = 12, 8
SMALLEST, VANISHED = 1e-300, 1e-307
"""Smaller numbers are not divided by; smaller ones are no longer told from 0."""
UNSURE = 5e-3
"""What a composition's moments may be off by, relatively: by more, rounding leaves too little of so many steps."""
LOOSE = 2.0
"""About the logarithm of how much larger a Chernoff bound is than what it bounds."""

Parts = Sequence[tuple[Pair, int]]


@dataclass(frozen=True)
class Inverse:
    """g(epsilon) of one direction, from the places i step k on the line of one tilt."""

    tilt: float
    step: float
    log_scale: float
    terms: Complex
    """M / (z (z + 1)), relative to e**log_scale; the first one halved."""
    error: float
    """What all terms together may be off by, and what lies beyond the last."""
    turning: float
    """The sum of y times the terms' sizes: what a small turn of all of them changes."""
    doubt: float
    """Of the scale, relatively."""
    farther: tuple[float, float]
    """A larger tilt, and the logarithm of M there."""

    def log_bounds(self, epsilon: float) -> tuple[float, float, float]:
        """(lower, upper) on ln g(epsilon), and about how fast it changes.

        Claim: ln g(epsilon) lies between the two.
        Proof: transforms of independent losses multiply (ZDW22); the identity above, every error of its sums bounded.
        Assumes: the parts' losses are independent, as in the composition of dominating pairs.
        """
        y = self.step * np.arange(len(self.terms))
        cosine, sine = np.cos(epsilon * y), np.sin(epsilon * y)
        total = float(np.sum(self.terms.real * cosine + self.terms.imag * sine))
        change = float(np.sum(y * (self.terms.imag * cosine - self.terms.real * sine)))
        error = self.error + 4 * ROUNDING * abs(epsilon) * self.turning
        spread = math.log(self.step / math.pi)  # 2 / W: y and -y are mirrored
        base = self.log_scale - self.tilt * epsilon + spread
        slack = self.doubt + 8 * ROUNDING * (abs(self.log_scale) + self.tilt * abs(epsilon) + abs(spread) + 1)
        low, high = total - error - self._wrapped(epsilon), max(total, 0.0) + error
        return (
            base + math.log(low) - slack if low > 0 else -math.inf,
            base + math.log(max(high, SMALLEST)) + slack,
            change / max(total, SMALLEST) - self.tilt,
        )

    def _wrapped(self, epsilon: float) -> float:
        """A bound on what all m other than 0 add, in the units of the terms."""
        window = 2 * math.pi / self.step * (1 - 1e-12)
        second, moment = self.farther
        left = self.tilt * (epsilon - window) - math.log(-math.expm1(-self.tilt * window))  # g is at most 1
        apart = second - self.tilt
        right = moment + chernoff(second) - apart * (epsilon + window) - math.log(-math.expm1(-apart * window))
        units = self.log_scale + math.log(self.step / math.pi)
        return 1.01 * sum(math.exp(min(side - units, 700.0)) for side in (left, right))

    def delta_interval(self, epsilon: float, infinite: float) -> tuple[float, float]:
        """(lower, upper) on delta, the mass at infinity included."""
        low, high, _ = self.log_bounds(epsilon)
        least = max(0.0, math.exp(min(low, 0.0)) * (1 - 4 * ROUNDING) - VANISHED) + infinite * (1 - 1e-12)
        most = math.exp(min(high, 0.0)) * (1 + 4 * ROUNDING) + VANISHED + infinite * (1 + 1e-12)
        return least, min(1.0, most)

    def epsilon_interval(self, guess: float, delta: float, infinite: float) -> tuple[float, float]:
        """(lower, upper) on the epsilon at which g and the mass at infinity are delta: near a guess, by Newton's steps.

        Whatever is found there, the bounds at the two ends are what is certain.
        """
        most = (delta - infinite * (1 - 1e-12)) * (1 + 4 * ROUNDING)
        least = (delta - infinite * (1 + 1e-12)) * (1 - 4 * ROUNDING)
        if least <= 0:
            raise TooCostly
        goal, at = math.log(least), guess
        for _ in range(NEWTON_STEPS):
            low, high, slope = self.log_bounds(at)
            if not (low > -math.inf and slope < 0):
                raise TooCostly
            last, at = at, max(0.0, at + (goal - (low + high) / 2) / slope)
            if abs(at - last) <= 1e-9 * at:
                break
        low, high, slope = self.log_bounds(at)
        if at == 0 and _below(high, goal):
            return 0.0, 0.0
        doubt = (high - low + math.log(most / least)) / max(-slope, SMALLEST) + 4 * ROUNDING * at
        wider = [doubt * 2**k for k in range(WIDENINGS)]
        above = (at + d for d in wider if _below(self.log_bounds(at + d)[1], goal))
        below = (at - d for d in wider if at <= d or _below(math.log(most), self.log_bounds(at - d)[0]))
        return max(0.0, next(below, 0.0)), next(above, math.inf)


def _below(one: float, other: float) -> bool:
    """Whether one logarithm is below the other for certain."""
    return one < other - 8 * ROUNDING * (1 + abs(other))


def chernoff(tilt: float) -> float:
    """ln of the least c such that (1 - e**-u)+ <= c e**(tilt u): g(epsilon) <= c M(tilt) e**(-tilt epsilon)."""
    return -tilt * math.log1p(1 / tilt) - math.log1p(tilt)  # t ln t - (1 + t) ln(1 + t), of large t too


def epsilon_interval(directions: Sequence[tuple[Parts, Sketch]], delta: float, infinite: float) -> tuple[float, float]:
    """(lower, upper) on epsilon, the larger of all directions'; (0, inf) where inversion does not suit."""
    found = sorted(
        ((*sketch.saddle(delta - infinite), parts, sketch) for parts, sketch in directions), key=itemgetter(1)
    )
    low, high = 0.0, 0.0
    try:
        for tilt, guess, parts, sketch in reversed(found):
            if low and _chernoff_epsilon(parts, tilt, delta - infinite * (1 + 1e-12)) <= low:
                continue
            inverse = invert(parts, sketch, tilt, guess, math.log(delta - infinite))
            bounds = inverse.epsilon_interval(guess, delta, infinite)
            low, high = max(low, bounds[0]), max(high, bounds[1])
    except TooCostly:
        return 0.0, math.inf
    return low, high


def delta_interval(directions: Sequence[tuple[Parts, Sketch]], epsilon: float, infinite: float) -> tuple[float, float]:
    """(lower, upper) on delta, the larger of all directions'; (0, 1) where inversion does not suit."""
    low, high = 0.0, 0.0
    try:
        for parts, sketch in directions:
            tilt = sketch.tilt_of_mean(epsilon)
            guess = min(sketch.moments(tilt)[0] - tilt * epsilon + chernoff(tilt), 0.0) - LOOSE
            bounds = invert(parts, sketch, tilt, epsilon, guess).delta_interval(epsilon, infinite)
            low, high = max(low, bounds[0]), max(high, bounds[1])
    except TooCostly:
        return 0.0, 1.0
    return low, high


def _chernoff_epsilon(parts: Parts, tilt: float, delta: float) -> float:
    """An upper bound on epsilon at once."""
    moments = [n * transform_of(pair).log_moment(tilt) for pair, n in parts]
    bound = (math.fsum(moments) + chernoff(tilt) - math.log(delta)) / tilt
    return bound + 1e-12 * (abs(bound) + sum(map(abs, moments)) / tilt)


def invert(parts: Parts, sketch: Sketch, best: float, epsilon: float, log_delta: float) -> Inverse:
    """The composition on a line of about the best tilt, about this epsilon, where ln g is about that."""
    transforms = [(transform_of(pair), n) for pair, n in parts]
    least = min(sketch.deviation(0.0), sketch.deviation(best))
    if not (least * MOST_TILT > 1 and any(t.smooth for t, _ in transforms)):
        raise TooCostly
    tilt = max(GENTLE * best, best - NEAR / sketch.deviation(best), 1 / sketch.deviation(0.0))
    value, deviation = sketch.moments(tilt)[0], sketch.deviation(tilt)
    if deviation * MOST_TILT <= 1:
        raise TooCostly
    second = _second(sketch, tilt, deviation, epsilon, log_delta)
    if second > MOST_TILT:
        raise TooCostly
    moment = sum(n * t.log_moment(second) for t, n in transforms)
    window = max(
        (ENOUGH - log_delta) / tilt,
        (ENOUGH - log_delta + moment + chernoff(second) - second * epsilon) / (second - tilt),
        deviation,
    )
    step = few_bits(2 * math.pi / window)
    beyond = PLACES / deviation
    fall = np.zeros(len(PLACES))
    for transform, n in transforms:
        fall += n * transform.decay(tilt, beyond)
    left = fall - np.log(beyond) + value - tilt * epsilon - log_delta
    for enough in (ENOUGH, BARELY):
        last = int(np.argmax(left <= -enough))
        count = math.ceil(beyond[last] / step) + 1
        if left[last] <= -enough and _affordable(transforms, tilt, step, count):
            return _on_line(transforms, tilt, step, count, float(fall[last]), (second, moment))
    raise TooCostly


def _affordable(transforms: Sequence[tuple[Transform, int]], tilt: float, step: float, count: int) -> bool:
    """Whether so many places are not too many."""
    return count <= MOST_PLACES and count * sum(t.nodes(tilt, step * count) for t, _ in transforms) <= MOST_TERMS


def _second(sketch: Sketch, tilt: float, deviation: float, epsilon: float, log_delta: float) -> float:
    """The second tilt by which the least window should do."""

    def needed(second: float) -> float:
        grown = sketch.moments(second)[0] + chernoff(second) - second * epsilon - log_delta + ENOUGH
        return grown / (second - tilt)

    return min((float(second) for second in tilt + FARTHER / deviation), key=needed)


def _on_line(
    transforms: Sequence[tuple[Transform, int]],
    tilt: float,
    step: float,
    count: int,
    fall: float,
    farther: tuple[float, float],
) -> Inverse:
    y = step * np.arange(count)
    logs, grown = np.zeros(count, np.complex128), np.zeros(count)
    scale, doubt = 0.0, 0.0
    for transform, n in transforms:
        line = transform.line(tilt, step, count)
        size = np.maximum(np.abs(line.values), SMALLEST)
        log = np.log(size) + 1j * np.angle(line.values)
        logs += n * log
        # |(v + e)**n - v**n| <= (|v| + |e|)**n - |v|**n
        grown += n * (np.log1p(line.errors / size) + 16 * ROUNDING * (1 + np.abs(log)))
        scale += n * line.log_scale
        doubt += n * abs(line.log_scale)
    doubt *= 4 * ROUNDING * (1 + len(transforms))
    if grown[0] + doubt > UNSURE:
        raise TooCostly
    z = tilt + 1j * y
    kernel = z * (z + 1)
    terms = np.asarray(np.exp(logs) / kernel, np.complex128)
    terms[0] /= 2
    largest = np.exp(np.minimum(logs.real + grown, 700.0))
    errors = largest * -np.expm1(-grown) / np.abs(kernel) + ROUNDING * (32 + count) * np.abs(terms)
    # the places beyond have |z (z + 1)| >= y**2, and their sum is at most the integral
    beyond = math.exp(fall + float(logs[0].real + grown[0])) / (step * float(y[-1]))
    return Inverse(
        tilt=tilt,
        step=step,
        log_scale=scale,
        terms=terms,
        error=1.001 * (float(errors.sum()) + beyond),
        turning=1.001 * float(np.sum(y * np.abs(terms))),
        doubt=doubt,
        farther=farther,
    )
