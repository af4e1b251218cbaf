"""Search for the pair of neighbours on which a mechanism gives away the most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations_with_replacement, islice
from typing import Any

from hubbub.audit.blackbox import CONFIDENCE, audit
from hubbub.audit.report import Report
from hubbub.errors import ParameterError
from hubbub.numeric.rational import Number, count, fraction_between
from hubbub.privacy.loss import Loss, Neighbours, check_neighbours

SCREENING, SCREENING_CONFIDENCE = 100, 0.99
"""Releases of each input in the first round, and how sure its bounds are; every round keeps the worse half and doubles
the releases."""
MOST_PAIRS = 4096


def neighbouring(domain: Sequence[Any], size: int, neighbours: Neighbours) -> Iterable[tuple[list[Any], list[Any]]]:
    """All pairs of neighbouring data sets of up to so many records from a domain, order apart, both ways."""
    for n in range(size + 1):
        for base in combinations_with_replacement(domain, n):
            for one in domain:
                if neighbours == "add-remove":
                    yield [*base, one], list(base)
                    yield list(base), [*base, one]
                else:
                    yield from ([[*base, one], [*base, other]] for other in domain if other != one)  # type: ignore[misc]


def worst_pair(
    mechanism: Callable[[list[Any]], Any] | Any,
    domain: Sequence[Any],
    *,
    size: int = 2,
    neighbours: Neighbours = "add-remove",
    samples: int = 100_000,
    confidence: Number = CONFIDENCE,
    claimed: Number | Loss | None = None,
    delta: Number | None = None,
) -> tuple[list[Any], list[Any], Report]:
    """The neighbouring data sets, made of records from a small domain, on which the most is measured; and their audit.

    Give extreme records: the bounds, something beyond them, nan, the commonest value. All pairs are screened with few
    releases, and the worse half is kept and looked at again with twice as many. A pair that seems to refute the claim
    is audited at once, on fresh releases, and ends the search if it does; so is the last pair left.

    Claim: the report's confidence holds for the search as a whole.
    Proof: one fresh audit a round at most, each at an equal share of the failure.
    Assumes: as ``audit`` does of every pair.

    >>> import hubbub as hb
    >>> count = lambda rows: hb.Laplace(1, epsilon=1.0).release(len(rows))
    >>> x, y, report = worst_pair(count, [0], size=1, samples=2000, claimed=1.0)
    >>> abs(len(x) - len(y)), report.holds
    (1, True)
    """
    check_neighbours(neighbours)
    pairs = list(islice(neighbouring(domain, count("size", size), neighbours), MOST_PAIRS + 1))
    if not 0 < len(pairs) <= MOST_PAIRS:
        raise ParameterError(
            "domain", len(domain), f"makes no or over {MOST_PAIRS} pairs of data sets", "give other records or a size"
        )
    rounds = len(pairs).bit_length()
    failure = 1 - float(fraction_between("confidence", confidence, 0, 1))
    surely = 1 - failure / rounds

    def audited(pair: tuple[list[Any], list[Any]], runs: int, sure: float) -> Report:
        return audit(mechanism, *pair, samples=runs, confidence=sure, claimed=claimed, delta=delta)

    runs = SCREENING
    while len(pairs) > 1:
        found = [audited(pair, min(runs, samples), SCREENING_CONFIDENCE) for pair in pairs]
        ranked = sorted(range(len(pairs)), key=lambda k: -_shown(found[k]))
        pairs = [pairs[k] for k in ranked[: len(pairs) // 2]]
        if not found[ranked[0]].holds and not (report := audited(pairs[0], samples, surely)).holds:
            return *pairs[0], report
        runs *= 2
    return *pairs[0], audited(pairs[0], samples, surely)


def _shown(report: Report) -> float:
    """How much of the claim was seen."""
    return max(report.power, report.epsilon_lower / report.claimed if report.claimed else report.epsilon_lower)
