"""Random settings with their true prices, and a program that measures the accountant against them:

python tests/privacy/reference.py --settings 2000 --seed 1
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import mpmath
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from privacy import truths
from privacy.truths import Gaussian, Laplace, Response, Sampled, Truth, Unresolved, WithoutReplacement

import hubbub as hb
from hubbub.privacy import accountant
from hubbub.privacy.pairs import Atoms

SLACK = 1e-9
"""What the references may be off by, relatively."""
LOOSENESS = 5e-3
"""How far above the truth an upper bound may be, relatively, wherever delta is at least SMALLEST_DELTA."""
SMALLEST_DELTA = 1e-12


@dataclass(frozen=True)
class Finite:
    """A mechanism of finitely many outcomes, chances p or q, straight to the accountant."""

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]
    times: int

    def epsilon_interval(self, delta: float) -> tuple[float, float]:
        """Certified, as a loss has it."""
        points = tuple(sorted((math.log(a / b), float(a)) for a, b in zip(self.p, self.q, strict=True)))
        return accountant.epsilon_interval(((Atoms(points, symmetric=False), self.times),), delta)

    def __repr__(self) -> str:
        return f"[{' '.join(map(str, self.p))}] against [{' '.join(map(str, self.q))}] * {self.times}"


@dataclass(frozen=True)
class Setting:
    """A loss at a delta, and how its true price is found."""

    kind: str
    loss: hb.Loss | Finite
    delta: float
    truth: Callable[[], Truth]


@dataclass(frozen=True)
class Outcome:
    """What hubbub said about a setting, and what is true."""

    kind: str
    loss: str
    delta: float
    truth: float
    doubt: float
    low: float
    high: float
    seconds: float
    crash: str = ""

    @property
    def underestimates(self) -> bool:
        """Whether the truth is outside the interval, or there is no interval."""
        slack = SLACK * self.truth + self.doubt
        return bool(self.crash) or self.high < self.truth - slack or self.low > self.truth + slack

    @property
    def looseness(self) -> float:
        """How far the upper bound is above the truth, relatively; an absolute 1e-9 is free."""
        return 0.0 if self.high <= self.truth + 1e-9 else (self.high - self.truth) / max(self.truth, 1e-300)

    @property
    def too_loose(self) -> bool:
        """Whether the promised tightness is missed."""
        return self.delta >= SMALLEST_DELTA and self.looseness > LOOSENESS

    def __str__(self) -> str:
        return (
            f"{self.looseness:9.2e}  {self.truth:<12.7g} {self.low:<12.7g} {self.high:<12.7g} {self.seconds:6.2f}s  "
            f"delta={self.delta!r}  {self.loss}  {self.crash}"
        )


class Draw:
    """Random parameters."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def log(self, low: float, high: float) -> float:
        """Log-uniform, kept to five digits so that settings can be read."""
        return float(f"{math.exp(self._generator.uniform(math.log(low), math.log(high))):.5g}")

    def whole(self, low: int, high: int) -> int:
        """A whole number, log-uniform."""
        return min(high, max(low, round(math.exp(self._generator.uniform(math.log(low), math.log(high + 1))))))

    def choice(self, *options: object) -> object:
        """One of several."""
        return options[int(self._generator.integers(len(options)))]

    def delta(self, smallest: float = 1e-20) -> float:
        return self.log(smallest, 1e-3)

    def sigma(self) -> float:
        return self.log(0.2, 50)

    def rate(self) -> float:
        """From 1e-4 to 1, also close to 1."""
        return self.log(1e-4, 1) if self.choice(True, True, False) else round(1 - self.log(1e-6, 0.9), 9)


# Each kind of setting: what hubbub is asked, and the reference


def one_step(draw: Draw) -> Setting:
    sigma, rate, delta = draw.sigma(), draw.rate(), draw.delta()
    replace = bool(draw.choice(True, False))
    loss = hb.SampledGaussian(sigma, rate, neighbours="replace" if replace else "add-remove")
    return Setting("one step", loss, delta, partial(truths.by_one_step, Sampled(sigma, rate, 1, replace), delta))


def two_steps(draw: Draw) -> Setting:
    sigma, rate, delta = draw.sigma(), draw.rate(), draw.delta(1e-10)
    loss = hb.SampledGaussian(sigma, rate) * 2
    return Setting("two steps", loss, delta, partial(truths.by_quadrature, Sampled(sigma, rate), delta))


def gaussians(draw: Draw) -> Setting:
    sigma, steps, delta = draw.sigma(), draw.whole(1, 10**5), draw.delta()
    one = draw.choice(hb.GaussianDP(1 / sigma).subsample(1), hb.GaussianDP(1 / sigma), hb.SampledGaussian(sigma, 1))
    mu_squared = steps / mpmath.mpf(sigma) ** 2
    return Setting("gaussians", one * steps, delta, partial(truths.by_gaussian, mu_squared, delta))


def responses(draw: Draw) -> Setting:
    epsilon, steps, delta = draw.log(1e-3, 5), draw.whole(2, 10**5), draw.delta()
    rate = draw.choice(1.0, 1.0, draw.log(1e-3, 1))
    one = hb.PureDP(epsilon) if rate == 1 else hb.PureDP(epsilon).subsample(rate)
    parts = ((Response(epsilon, rate), steps),)
    return Setting("responses", one * steps, delta, partial(truths.by_responses, parts, delta))


def two_responses(draw: Draw) -> Setting:
    (a, b), (m, n), delta = (
        (draw.log(0.01, 3), draw.log(0.01, 3)),
        (draw.whole(1, 300), draw.whole(1, 300)),
        draw.delta(),
    )
    parts = ((Response(a), m), (Response(b), n))
    return Setting(
        "two responses", hb.PureDP(a) * m + hb.PureDP(b) * n, delta, partial(truths.by_responses, parts, delta)
    )


def failures(draw: Draw) -> Setting:
    epsilon, steps, delta = draw.log(0.01, 3), draw.whole(2, 1000), draw.delta()
    failure = delta / steps * draw.log(0.01, 0.9)
    parts = ((Response(epsilon), steps),)
    return Setting(
        "failures", hb.ApproxDP(epsilon, failure) * steps, delta, partial(truths.by_responses, parts, delta, failure)
    )


def finite(draw: Draw) -> Setting:
    laws = [[draw.whole(1, 1000) for _ in range(4)] for _ in range(2)]
    p, q = (tuple(Fraction(weight, sum(law)) for weight in law) for law in laws)
    times, delta = draw.whole(1, 6), draw.delta(1e-8)
    return Setting("finite", Finite(p, q, times), delta, partial(truths.by_enumeration, p, q, times, delta))


def few_laplaces(draw: Draw) -> Setting:
    shift, steps, delta = draw.log(0.01, 8), draw.whole(1, 10), draw.delta()
    return Setting("few laplaces", hb.LaplaceDP(shift) * steps, delta, partial(truths.by_laplace, shift, steps, delta))


def many_laplaces(draw: Draw) -> Setting:
    shift, steps, delta = draw.log(0.05, 2), draw.whole(400, 10**5), draw.delta()
    parts = [(Laplace(shift), steps)]
    return Setting("many laplaces", hb.LaplaceDP(shift) * steps, delta, partial(truths.by_inversion, parts, delta))


def many_steps(draw: Draw) -> Setting:
    sigma, rate, steps, delta = draw.sigma(), draw.rate(), draw.whole(3, 10**5), draw.delta()
    replace = bool(draw.choice(True, False, False))
    loss = hb.SampledGaussian(sigma, rate, neighbours="replace" if replace else "add-remove") * steps
    parts = [(Sampled(sigma, rate, 1, replace), steps)]
    return Setting("many steps", loss, delta, partial(truths.by_inversion, parts, delta))


def groups(draw: Draw) -> Setting:
    sigma, rate, steps, delta = draw.log(0.5, 20), draw.log(1e-3, 0.9), draw.whole(3, 10**4), draw.delta()
    people = draw.whole(2, 8)
    parts = [(Sampled(sigma, rate, people), steps)]
    loss = (hb.SampledGaussian(sigma, rate) * steps).group(people)
    return Setting("groups", loss, delta, partial(truths.by_inversion, parts, delta))


def without_replacement(draw: Draw) -> Setting:
    sigma, rate, steps, delta = draw.log(0.5, 20), draw.log(1e-3, 0.9), draw.whole(100, 10**4), draw.delta()
    loss = hb.GaussianDP(1 / sigma, "replace").subsample(rate, "without-replacement") * steps
    parts = [(WithoutReplacement(sigma, rate), steps)]
    return Setting("without replacement", loss, delta, partial(truths.by_inversion, parts, delta))


def mixed(draw: Draw) -> Setting:
    """Sampled steps together with two more kinds."""
    replace = bool(draw.choice(True, False))
    relation = "replace" if replace else "add-remove"
    sigma, rate, steps, delta = draw.sigma(), draw.rate(), draw.whole(1, 10**4), draw.delta()
    parts: list[tuple[truths.Pair, int]] = [(Sampled(sigma, rate, 1, replace), steps)]
    loss = hb.SampledGaussian(sigma, rate, neighbours=relation) * steps
    if draw.choice(True, False):
        sigma, n = draw.log(1, 50), draw.whole(1, 100)
        parts.append((Gaussian(1 / sigma), n))
        loss = loss + hb.GaussianDP(1 / sigma, relation) * n
    if draw.choice(True, False):
        epsilon, n = draw.log(0.01, 2), draw.whole(1, 100)
        parts.append((Response(epsilon), n))
        loss = loss + hb.PureDP(epsilon, relation) * n
    if draw.choice(True, False):
        shift, n = draw.log(0.01, 2), draw.whole(1, 100)
        parts.append((Laplace(shift), n))
        loss = loss + hb.LaplaceDP(shift, relation) * n
    if len(parts) == 1:
        sigma, rate, n = draw.sigma(), draw.rate(), draw.whole(1, 10**4)
        parts.append((Sampled(sigma, rate, 1, replace), n))
        loss = loss + hb.SampledGaussian(sigma, rate, neighbours=relation) * n
    return Setting("mixed", loss, delta, partial(truths.by_inversion, parts, delta))


SHARES = {
    one_step: 14,
    two_steps: 6,
    gaussians: 8,
    responses: 8,
    two_responses: 4,
    failures: 3,
    finite: 3,
    few_laplaces: 5,
    many_laplaces: 4,
    many_steps: 27,
    groups: 3,
    without_replacement: 3,
    mixed: 12,
}
"""How many of a hundred settings are of each kind."""


def settings(count: int, seed: int) -> Iterator[tuple[Callable[[Draw], Setting], int]]:
    """(kind, seed) of so many settings, all kinds spread evenly."""
    hundred = [kind for kind, share in SHARES.items() for _ in range(share)]
    hundred = [hundred[37 * k % len(hundred)] for k in range(len(hundred))]
    for k in range(count):
        yield hundred[k % len(hundred)], seed * 10**6 + 20 * k


def measure(kind: Callable[[Draw], Setting], seed: int) -> tuple[Outcome, int]:
    """hubbub against the truth in the first setting, from this seed on, that a reference can resolve; how many not."""
    for missed in range(20):
        setting = kind(Draw(seed + missed))
        try:
            truth = setting.truth()
        except Unresolved:
            continue
        start = time.perf_counter()
        low, high, crash = 0.0, math.inf, ""
        try:
            low, high = setting.loss.epsilon_interval(setting.delta)
        except Exception as wrong:  # shown with its setting
            crash = repr(wrong)
        seconds = time.perf_counter() - start
        shown = (setting.kind, repr(setting.loss), setting.delta)
        return Outcome(*shown, truth.epsilon, truth.doubt, low, high, seconds, crash), missed
    raise Unresolved(kind.__name__)


def _measure(job: tuple[Callable[[Draw], Setting], int]) -> tuple[Outcome, int]:
    return measure(*job)


def summary(outcomes: list[Outcome], worst: int = 20) -> str:
    """Counts by kind, then the worst."""
    lines = [f"{'kind':22} settings  under  too loose  worst looseness  slowest"]
    for kind in [*Counter(o.kind for o in outcomes), None]:
        of_kind = [o for o in outcomes if kind in (o.kind, None)]
        wanted = [o.looseness for o in of_kind if o.delta >= SMALLEST_DELTA]
        lines.append(
            f"{kind or 'all':22} {len(of_kind):8} {sum(o.underestimates for o in of_kind):6} "
            f"{sum(o.too_loose for o in of_kind):10} {max(wanted, default=0):16.2e} "
            f"{max(o.seconds for o in of_kind):7.2f}s"
        )
    under = [o for o in outcomes if o.underestimates]
    if under:
        lines += ["", "underestimates: the truth is outside, or there is no answer", *map(str, under)]
    loosest = sorted((o for o in outcomes if o.delta >= SMALLEST_DELTA), key=lambda o: -o.looseness)[:worst]
    lines += ["", f"loosest where delta >= {SMALLEST_DELTA}:  looseness, truth, low, high", *map(str, loosest)]
    beyond = sorted((o for o in outcomes if o.delta < SMALLEST_DELTA), key=lambda o: -o.looseness)[: worst // 4]
    if beyond:
        lines += ["", "loosest below", *map(str, beyond)]
    return "\n".join(lines)


def main() -> int:
    """Measure, print, and fail where the promise is broken."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--settings", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--kind", choices=[k.__name__ for k in SHARES], help="only this kind")
    options.add_argument("--worst", type=int, default=20)
    chosen = options.parse_args()
    start = time.perf_counter()
    jobs = list(settings(chosen.settings, chosen.seed))
    if chosen.kind:
        jobs = [(next(k for k in SHARES if k.__name__ == chosen.kind), seed) for _, seed in jobs]
    if chosen.jobs == 1:
        found = [measure(*job) for job in jobs]
    else:
        with ProcessPoolExecutor(chosen.jobs) as pool:
            found = list(pool.map(_measure, jobs, chunksize=4))
    outcomes = [outcome for outcome, _ in found]
    print(summary(outcomes, chosen.worst))
    print(
        f"\n{len(outcomes)} settings, {sum(missed for _, missed in found)} more without a reference, "
        f"{time.perf_counter() - start:.0f} s, of which hubbub {sum(o.seconds for o in outcomes):.0f} s"
    )
    return 1 if any(o.underestimates or o.too_loose for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
