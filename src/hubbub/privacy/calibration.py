"""Calibration: the parameter whose loss just fits (epsilon, delta), always on the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable

from hubbub.errors import ParameterError
from hubbub.numeric.rational import Number, is_whole, positive
from hubbub.privacy.loss import Loss, Neighbours, check_delta
from hubbub.privacy.sampling import SampledGaussian

RELATIVE_STEP = 1e-6
"""How near to the exact optimum a real parameter is searched."""
LEAST_NOISE, MOST_NOISE = 0.05, 1e4
"""Between which a noise multiplier is searched."""


def calibrate(
    make_loss: Callable[[float], Loss], *, epsilon: Number, delta: Number, low: float, high: float
) -> float | int:
    """The smallest parameter whose loss fits where the loss falls with it, the largest where it grows.

    Whole low and high search whole numbers (steps); others are searched to one part in a million. ``make_loss``
    must be monotone in between.

    Claim: the loss of the returned parameter has epsilon(delta) at most the target.
    Proof: only parameters whose certified upper bound was seen to fit are ever returned.
    Assumes: nothing; a family that is not monotone gives a fitting parameter, perhaps not the best.

    >>> from hubbub.privacy import GaussianDP
    >>> round(calibrate(lambda sigma: GaussianDP(1 / sigma), epsilon=1, delta=1e-5, low=0.1, high=100), 3)
    3.731
    """
    target = float(positive("epsilon", epsilon))
    check_delta(delta)
    if not low < high:
        raise ParameterError("low", low, f"must be below high={high!r}")

    def fits(parameter: float) -> bool:
        return make_loss(parameter).epsilon(delta) <= target

    low_fits, high_fits = fits(low), fits(high)
    if not low_fits and not high_fits:
        raise ParameterError("epsilon", epsilon, f"is met at neither {low!r} nor {high!r}", "widen low and high")
    if low_fits and high_fits:
        shrinks = make_loss(high).epsilon(delta) < make_loss(low).epsilon(delta)
        return low if shrinks else high
    good, bad = (high, low) if high_fits else (low, high)
    whole = is_whole(low) and is_whole(high)
    while abs(good - bad) > (1 if whole else RELATIVE_STEP * abs(good)):
        if whole:
            middle: float = (good + bad) // 2
        else:
            middle = math.sqrt(good * bad) if good * bad > 0 else (good + bad) / 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return good


def noise_for(
    *, epsilon: Number, delta: Number, rate: Number, steps: int, neighbours: Neighbours = "add-remove"
) -> float:
    """The least noise multiplier for so many Poisson-sampled Gaussian steps at (epsilon, delta).

    >>> sigma = noise_for(epsilon=1.83, delta=1e-5, rate=0.01, steps=1000)
    >>> 0.999 < sigma < 1.0
    True
    """

    def run(noise: float) -> Loss:
        return SampledGaussian(noise, rate, neighbours=neighbours) * steps

    if run(MOST_NOISE).epsilon(delta) > positive("epsilon", epsilon):
        raise ParameterError(
            "epsilon", epsilon, f"needs a noise multiplier above {MOST_NOISE:g}", "allow more, or take fewer steps"
        )
    return float(calibrate(run, epsilon=epsilon, delta=delta, low=LEAST_NOISE, high=MOST_NOISE))


def steps_for(*, epsilon: Number, delta: Number, rate: Number, noise_multiplier: Number, most: int = 10**7) -> int:
    """The most steps of a Poisson-sampled Gaussian that fit (epsilon, delta), add-remove."""
    step = SampledGaussian(noise_multiplier, rate)
    return int(calibrate(lambda t: step * int(t), epsilon=epsilon, delta=delta, low=1, high=most))


def rate_for(*, epsilon: Number, delta: Number, noise_multiplier: Number, steps: int) -> float:
    """The largest sampling rate at which so many Gaussian steps fit (epsilon, delta), add-remove."""
    found = calibrate(
        lambda q: SampledGaussian(noise_multiplier, q) * steps, epsilon=epsilon, delta=delta, low=1e-6, high=1.0
    )
    return float(found)
