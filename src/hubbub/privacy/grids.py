"""Discretisation: a pair's law of losses on a grid, such that what is on the grid dominates it, or is dominated by it.

From above: the mass between two grid points is split between them so that P's and Q's mass are both kept (connect the
dots, DGKKM22). From below: parts of neighbouring intervals are merged so that each lands exactly on a grid point, as
far as there is something to merge with (merging is post-processing). Both are off by the square of the grid step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.privacy.pairs import RELATIVE_ERROR, Floats, Pair

LONGEST = 1 << 22
"""Grid points a law may have."""
LARGEST_LOSS = 600.0
"""Larger losses of one step count as infinite from above, and as this from below."""
ON_GRID = 1e-13
"""Atoms this close to a grid point are on it: the relative error granted to masses covers the difference."""
END_CELLS, END_CUTS = 16, (0.85, 0.7, 0.55, 0.4)
"""Cells looked at, and distances tried first (in steps), when choosing where a grid begins at a bounded end."""
MERGES, LOW_SHARE = 3, 0.02
"""Rounds in which neighbouring intervals are merged; and how low mass lies that brings down what is left after them."""

Widths = Sequence[tuple[float, int]]
"""From each loss on (ascending), how many grid steps a cell may span where little depends on it."""


class TooLong(Exception):
    """The grid would need too many points at this spacing."""


@dataclass(frozen=True)
class Steps:
    """A discretised pair: P's masses at losses start + spacing * points, and at infinity. Points ascend."""

    start: float
    points: NDArray[np.int64]
    chances: Floats
    infinity: float

    @classmethod
    def of(cls, start: float, chances: Floats, infinity: float) -> Steps:
        """Of masses at all points from the first on, only those where there is any."""
        used = np.flatnonzero(chances)
        return cls(start, used, chances[used], infinity)


def reach(pair: Pair, tail: float) -> tuple[float, float]:
    """The losses a grid covers."""
    low, high = (min(max(end, -LARGEST_LOSS), LARGEST_LOSS) for end in pair.span(tail))
    return low, high


def heaviest(pair: Pair) -> float:
    """The loss of the largest atom: a grid through it wastes nothing there; 0 where there are no atoms."""
    found = max(pair.atoms(), key=lambda atom: atom[1], default=(0.0, 0.0))[0]
    return found if abs(found) <= LARGEST_LOSS else 0.0


def _ends(pair: Pair, spacing: float, tail: float, anchor: float) -> tuple[int, int]:
    """The first and last grid point, counted from the anchor, that are needed to cover the pair's range."""
    low, high = reach(pair, tail)
    if (high - low) / spacing > LONGEST:
        raise TooLong
    first, last = math.floor((low - anchor) / spacing - 1e-9), math.ceil((high - anchor) / spacing + 1e-9)
    return first, max(last, first + 1)


def _indices(first: int, last: int, spacing: float, anchor: float, widths: Widths) -> NDArray[np.int64]:
    """Grid points between which masses are looked up: all, or every so many where cells may be wider."""
    begins = [first, *(min(max(round((loss - anchor) / spacing), first), last) for loss, _ in widths[1:])]
    runs = [
        np.arange(begin, end, factor)
        for (_, factor), begin, end in zip(widths, begins, [*begins[1:], last], strict=True)
    ]
    return np.concatenate((*runs, [last])).astype(np.int64)


def from_above(pair: Pair, spacing: float, tail: float, widths: Widths = ((-math.inf, 1),)) -> Steps:
    """A discretised pair that dominates the given one."""
    anchor = heaviest(pair)
    first, last = _ends(pair, spacing, tail, anchor)
    points = _indices(first, last, spacing, anchor, widths)
    edges = np.asarray(anchor + spacing * points, np.float64)
    p, q = pair.masses(edges)
    inner_p = p[1:-1]
    # within (e_i, e_i+1]: up + down = p and up e**-e_i+1 + down e**-e_i = q
    up = np.clip((inner_p - q[1:-1] * np.exp(edges[:-1])) / -np.expm1(edges[:-1] - edges[1:]), 0.0, inner_p)
    at_points = np.append(inner_p - up, 0.0)
    at_points[1:] += up
    at_points[0] += p[0]
    chances = np.zeros(last - first + 1)
    chances[points - first] = at_points
    infinity = pair.infinity + float(p[-1])
    if atoms := pair.atoms():
        losses, masses = np.array(atoms).T
        beyond = losses > edges[-1] + ON_GRID
        infinity += float(masses[beyond].sum())
        losses, masses = losses[~beyond], masses[~beyond]
        k = np.clip(np.floor((losses - edges[0]) / spacing + 1e-9), 0, last - first - 1).astype(np.int64)
        rise = np.clip(losses - (edges[0] + spacing * k), 0.0, spacing)
        share = np.where(rise < ON_GRID, 0.0, np.expm1(-rise) / math.expm1(-spacing))
        np.add.at(chances, k, masses * (1 - share))
        np.add.at(chances, k + 1, masses * share)
    return Steps.of(float(edges[0]), chances, min(1.0, infinity))


def from_below(pair: Pair, spacing: float, tail: float) -> Steps:
    """A discretised pair, of less than full mass, that the given one dominates."""
    low, high = reach(pair, tail)
    bounded = next(((end, side) for end, side in ((pair.floor(), 1), (pair.ceiling(), -1)) if math.isfinite(end)), None)
    if pair.atoms() or bounded is None:
        anchor = heaviest(pair)
        first, last = _ends(pair, spacing, tail, anchor)
        edges = np.asarray(anchor + spacing * np.arange(first, last + 1), np.float64)
        chances, _ = _place(pair, edges, spacing, None)
    else:
        end, side = bounded
        point, cut = _best_end(pair, spacing, end, side)
        cells = max(END_CELLS, math.ceil(abs((high if side > 0 else low) - point) / spacing))
        if cells > LONGEST:
            raise TooLong
        edges = _run(point, spacing, side, cells)
        chances, _ = _place(pair, edges, spacing, (cut, side))
    if atoms := pair.atoms():
        losses, masses = np.array(atoms).T
        k = np.clip(np.floor((losses - edges[0]) / spacing + 1e-9), -1, len(edges) - 1).astype(np.int64)
        k -= (k > 0) & (edges[np.maximum(k, 0)] > losses + ON_GRID)
        held = (k >= 0) & (edges[np.maximum(k, 0)] <= losses + ON_GRID)
        fall = np.maximum(0.0, losses[held] - edges[k[held]] - ON_GRID)
        np.add.at(chances, k[held], masses[held] * np.exp(-fall))
    return Steps.of(float(edges[0]), chances, pair.infinity)


def _run(point: float, spacing: float, side: int, cells: int) -> Floats:
    """Grid points from one on, upwards or downwards, in ascending order."""
    return np.sort(point + side * spacing * np.arange(cells + 1))


def _place(pair: Pair, edges: Floats, spacing: float, end: tuple[float, int] | None) -> tuple[Floats, float]:
    """Chances at the edges, dominated by the pair's (atoms apart), and the mass of P given up.

    At a bounded end, all up to a given cut merges into the outermost point.
    """
    cuts = np.empty(2 * len(edges) - 1)
    cuts[::2], cuts[1::2] = edges, edges[:-1] + spacing / 2
    if end is not None:
        cuts[1 if end[1] > 0 else -2] = end[0]
    p, q = pair.masses(cuts)
    lift = np.exp(edges)
    low_p, high_p, low_s, high_s = p[1:-1:2], p[2:-1:2], q[1:-1:2] * lift[:-1], q[2:-1:2] * lift[1:]
    # what lies beyond the last point is rounded down to it, what lies below the first is given up
    first, last = 0.0, min(float(p[-1]), float(q[-1] * lift[-1]))
    low_p, low_s, high_p, high_s = (np.array(m) for m in (low_p, low_s, high_p, high_s))
    if end is not None and end[1] > 0:
        first, low_p[0], low_s[0] = _exactly(p[:2], q[:2], float(lift[0])), 0.0, 0.0
    elif end is not None:
        last, high_p[-1], high_s[-1] = _exactly(p[-2:], q[-2:], float(lift[-1])), 0.0, 0.0
    chances, lost = settle(low_p, low_s, high_p, high_s, spacing, 1.0)
    chances[0] += first
    chances[-1] += last
    return chances, lost


def settle(
    low_p: Floats, low_s: Floats, high_p: Floats, high_s: Floats, spacing: float, growth: float
) -> tuple[Floats, float]:
    """Chances at the n + 1 ends of n cells, dominated by what is in the halves of the cells; and P's mass given up.

    For each half, P's mass and Q's times e**(loss of the nearer end); low halves are measured at the lower end, high
    ones at the upper. A mass measured at one end counts ``growth`` times as much at the next (a tilt; 1 without).

    Around each point, the half cells below and above merge into its loss exactly, up to a small share of one
    of them; what is left of each cell merges as far as it goes (``_merge``). What is still left is brought down to the
    lower end of its cell by merging it with a little mass from far below; where there is none, P's mass is given up.
    """
    excess = np.maximum(low_p - low_s, 0.0)[1:]  # above the points 1 .. n-1
    lack = np.maximum(high_s - high_p, 0.0)[:-1]  # below them
    both = np.minimum(excess, lack)
    of_low = np.divide(both, excess, out=np.zeros(len(both)), where=excess > 0)
    of_high = np.divide(both, lack, out=np.zeros(len(both)), where=lack > 0)
    chances = np.zeros(len(low_p) + 1)
    chances[1:-1] = of_low * low_p[1:] + of_high * high_p[:-1]
    rest_low, rest_high = np.append(1.0, 1 - of_low), np.append(1 - of_high, 1.0) / growth
    merged, excess = _merge(
        rest_low * low_p + rest_high * high_p,
        rest_low * low_s + rest_high * high_s * math.exp(-spacing),
        spacing,
        growth,
    )
    chances += merged
    below = int(np.searchsorted(np.cumsum(chances), LOW_SHARE * chances.sum()))
    above = np.arange(below + 1, len(excess))
    apart = spacing * (above - below)
    # (p + x) / (q + x e**-l) is e**end for x = (p - q e**end) / (e**(end - l) - 1)
    needed = excess[above] / np.expm1(np.minimum(apart, 700.0))
    cost = float(np.sum(needed * np.exp(-np.minimum((above - below) * math.log(growth), 700.0))))
    share = min(1.0, 0.9 * float(chances[below]) / cost) if cost > 0 else 0.0
    chances[above] += share * (excess[above] + needed)
    chances[below] -= share * cost
    return chances, float(excess.sum() - share * excess[above].sum())


def _exactly(p: Floats, q: Floats, lift: float) -> float:
    """The mass of P at a point that these intervals, merged, were chosen to land on; none should they fall short."""
    mass, needed = float(p.sum()), float(q.sum()) * lift
    return min(mass, needed) if mass >= needed * (1 - RELATIVE_ERROR) else 0.0


def _best_end(pair: Pair, spacing: float, end: float, side: int) -> tuple[float, float]:
    """Where to begin at a bounded end: (point, cut) such that all up to the cut, merged, has the point's loss.

    A cut half a step from its point suits a density that is flat; nearer or farther ones suit others. Which wastes
    least is seen from its neighbourhood.
    """
    scan = end + side * spacing * np.linspace(0.005, 8, 1600)
    p, q = pair.masses(np.sort(scan))
    p, q = (np.cumsum(m[:-1]) if side > 0 else np.cumsum(m[:0:-1]) for m in (p, q))
    seen = (p > 0) & (q > 0)
    merged = np.where(seen, np.log(np.maximum(p, 1e-320) / np.maximum(q, 1e-320)), end)
    apart = np.where(seen, side * (scan - merged) / spacing, 0.0)

    def waste(wanted: float) -> tuple[float, float, float, float]:
        k = int(np.argmax(apart >= wanted))
        if not wanted <= apart[k] < 1:
            return math.inf, wanted, end, end
        mass_p, mass_q = (float(m[0] if side > 0 else m[-1]) for m in pair.masses(scan[k : k + 1]))
        point, cut = math.log(mass_p / mass_q), float(scan[k])
        lost = _place(pair, _run(point, spacing, side, END_CELLS), spacing, (cut, side))[1]
        return lost, wanted, point, cut

    best = min(map(waste, END_CUTS))
    for closer in (0.05, 0.02, 0.01):
        best = min(best, waste(best[1] - closer), waste(best[1] + closer))
    return best[2], best[3]


def _merge(p: Floats, s: Floats, spacing: float, growth: float) -> tuple[Floats, Floats]:
    """Chances at the ends of cells: shares of neighbours whose union has exactly an end's loss; the rest at lower ends.

    Given P's mass and Q's times e**(loss of the lower end), both measured at the lower end. Also returns the mass of P
    in each cell that is too much for its lower end.
    """
    excess = np.maximum(p - s, 0.0)  # of cell i over its lower end
    lack = np.maximum(s * math.exp(spacing) - p, 0.0) * growth  # of cell i below its upper end
    below, above = np.append(0.0, lack), np.append(excess, 0.0)  # what meets at end k, from cell k-1 and from cell k
    chances = np.zeros(len(p) + 1)
    left = np.ones(len(p))  # share of each cell not yet placed
    for _ in range(MERGES):
        low, high = below * np.append(0.0, left), above * np.append(left, 0.0)
        meet = (low > 0) & (high > 0)
        both = np.where(meet, low + high, 1.0)
        of_cell, of_previous = np.where(meet, low, 0.0) / both, np.where(meet, high, 0.0) / both
        limit = 1 / np.maximum(1.0, of_cell[:-1] + of_previous[1:])
        scale = np.minimum(np.append(1.0, limit), np.append(limit, 1.0))
        of_cell, of_previous = of_cell * scale * np.append(left, 0.0), of_previous * scale * np.append(0.0, left)
        chances[:-1] += of_cell[:-1] * p
        chances[1:] += of_previous[1:] * p * growth
        left = np.maximum(0.0, left - of_cell[:-1] - of_previous[1:])
    kept = np.minimum(p, s)
    chances[:-1] += left * kept
    return chances, left * (p - kept)
