"""Black-box audit: two neighbouring inputs in, a lower bound on epsilon out that is as sure as wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hubbub.audit.bounds import Flags
from hubbub.audit.refuting import Deciding, Event, Guessing, Refuting
from hubbub.audit.report import Report
from hubbub.audit.testers import Tester, all_testers
from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.mechanisms.additive import AdditiveNoise
from hubbub.mechanisms.lattice import is_number
from hubbub.numeric.rational import Number, count, fraction_between
from hubbub.privacy.families import GaussianDP
from hubbub.privacy.loss import Loss, check_delta
from hubbub.randomness.bits import SECURE

CONFIDENCE = 1 - 1e-6
DEFAULT_DELTA = 1e-5
"""Where a loss has no epsilon at delta 0 and none was given."""
LEAST_SHARE, MOST_SHARE, ENOUGH = 0.05, 0.2, 20_000
"""Of the runs, what testers are fitted to, and again chosen by: the larger share while that is fewer than enough."""
FEWEST = 100


def audit(
    mechanism: Any,
    x: Any,
    neighbour: Any,
    *,
    samples: int = 100_000,
    confidence: Number = CONFIDENCE,
    claimed: Number | Loss | None = None,
    delta: Number | None = None,
) -> Report:
    """Tries to refute a mechanism's claim on two neighbouring inputs, from what it releases.

    ``mechanism`` is a hubbub mechanism, or any function of one input (then ``claimed`` is needed: an epsilon or a
    Loss). About ``samples`` releases of each input are drawn. Outputs may be numbers, categories, lists, arrays or
    dictionaries; an error is an output too, unless nothing else comes out.

    Claim: if the mechanism is (claimed, delta)-private, the report says otherwise with probability at most
        1 - confidence.
    Proof: testers are fitted and chosen on runs of their own; one test is then counted on fresh runs, by exact
        binomial bounds (``bounds``); a Gaussian claim has a second test at half the failure each.
    Assumes: runs are independent; inputs are neighbours in the sense of the claim.

    >>> import hubbub as hb
    >>> audit(hb.Laplace(1, epsilon=1.0), 0, 1, samples=2000).holds
    True
    """
    runs = 2 * count("samples", samples)
    if runs < 2 * FEWEST:
        raise ParameterError("samples", samples, f"must be at least {FEWEST}")
    failure = 1 - float(fraction_between("confidence", confidence, 0, 1))
    loss = _claim(mechanism, claimed)
    at = _delta(loss, delta)
    mu = loss.mu if isinstance(loss, GaussianDP) else None
    epsilon = loss.epsilon(at)
    release = getattr(mechanism, "release", mechanism)
    if not callable(release):
        raise ParameterTypeError(
            "mechanism", type(mechanism).__name__, "must have a release, or be a function of one input"
        )
    kinds: list[Refuting] = [Event(at) if at else Guessing()]
    if mu is not None:
        kinds.append(Deciding())
    share = failure / len(kinds)
    part = int(max(LEAST_SHARE * runs, min(MOST_SHARE * runs, ENOUGH)))
    counted = runs - 2 * part
    tests = _choose(mechanism, release, x, neighbour, (part, counted), kinds, share)
    outputs, first = _draw(mechanism, release, x, neighbour, counted)
    found = [test.count(tester, outputs, first, share) for tester, test in tests]
    return Report(
        mechanism=repr(mechanism) if not callable(mechanism) else getattr(mechanism, "__name__", repr(mechanism)),
        claimed=epsilon,
        delta=at,
        epsilon_lower=found[0].bound,
        confidence=1 - failure,
        samples=runs,
        event="; ".join(f.words for f in found),
        counts=found[0].counts,
        claimed_mu=mu,
        mu_lower=found[1].bound if mu is not None else None,
    )


def _claim(mechanism: Any, claimed: Number | Loss | None) -> Loss:
    """What is to be doubted, as a loss."""
    from hubbub.privacy.families import PureDP

    if isinstance(claimed, Loss):
        return claimed
    if claimed is not None:
        return PureDP(claimed)
    loss = getattr(mechanism, "loss", None)
    if isinstance(loss, Loss):
        return loss
    raise ParameterTypeError(
        "claimed", claimed, "must be an epsilon or a Loss", "a function states no claim of its own"
    )


def _delta(loss: Loss, delta: Number | None) -> float:
    if delta is not None:
        return float(check_delta(delta))
    if np.isfinite(loss.epsilon(0)):
        return 0.0
    return float(getattr(loss, "delta_bound", DEFAULT_DELTA))


def _draw(
    mechanism: Any, release: Callable[[Any], Any], x: Any, neighbour: Any, runs: int
) -> tuple[Sequence[Any], Flags]:
    """Outputs of independent runs, each on one of the two inputs by a fair coin; and which came from the first."""
    coins = np.unpackbits(SECURE.words(-(-runs // 64)).view(np.uint8))[:runs].astype(bool)
    ahead = int(coins.sum())
    drawn = [_outputs(mechanism, release, v, n) for v, n in ((x, ahead), (neighbour, runs - ahead))]
    first = np.arange(runs) < ahead
    return [*drawn[0], *drawn[1]], first


def _outputs(mechanism: Any, release: Callable[[Any], Any], value: Any, runs: int) -> list[Any]:
    if isinstance(mechanism, AdditiveNoise) and is_number(value) and runs <= mechanism.max_length:
        together: list[Any] = release(np.full(runs, value)).tolist()  # noise is drawn independently for each
        return together
    return [_told(release, value) for _ in range(runs)]


@dataclass(frozen=True)
class Failed:
    """A run that ended in an error: an output like any other, for whoever waits for one."""

    words: str
    error: Exception = field(compare=False)


def _told(release: Callable[[Any], Any], value: Any) -> Any:
    try:
        return release(value)
    except Exception as error:  # whatever a stranger's mechanism raises
        return Failed(repr(error), error)


def _choose(
    mechanism: Any,
    release: Callable[[Any], Any],
    x: Any,
    neighbour: Any,
    runs: tuple[int, int],
    kinds: Sequence[Refuting],
    failure: float,
) -> list[tuple[Tester, Refuting]]:
    """For every kind of test, the tester and the test of its scores that should refute the most."""
    part, counted = runs
    outputs, first = _draw(mechanism, release, x, neighbour, part)
    if all(isinstance(output, Failed) for output in outputs):
        raise outputs[0].error
    fresh, fresh_first = _draw(mechanism, release, x, neighbour, part)
    fitted = [tester for tester in all_testers(mechanism, x, neighbour) if tester.fit(outputs, first)]
    scores = [tester.scores(fresh) for tester in fitted]
    best = []
    for kind in kinds:
        plans = [kind.plan(score, fresh_first, counted / part, failure) for score in scores]
        expected = [bound for bound, _ in plans]
        k = expected.index(max(expected))
        best.append((fitted[k], plans[k][1]))
    return best
