"""Certified numerical composition: lower and upper bounds on the privacy profile of many pairs together.

1. *Discretise* each pair on a grid of losses. From above: the mass of each interval is split between its two ends
so that
   P's and Q's mass are both kept (connect the dots, DGKKM22): the result dominates the pair. From below: parts of
   neighbouring intervals are merged so that each lands exactly on a grid point (merging is post-processing), and
   what is left is rounded down, giving up mass of P: the result is dominated. Both are off by the square of the
   grid step.
2. *Tilt* each by e**(lambda loss), with lambda where the sum of losses then centres on the epsilon asked for, so that
   relative, not absolute, accuracy is kept at any delta.
3. *Compose* by the discrete Fourier transform on a window around that centre: a power of T costs no more than one.
4. *Bound* what the window cuts off (Chernoff), what wraps around, and the rounding of the transforms; add it, or
subtract it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.privacy.pairs import RELATIVE_ERROR, Floats, Pair

CUT = 1e-9
"""Relative mass that the window, and a step's range, may leave out (bounded and accounted for)."""
ROUNDING = 2.0**-52
LONGEST = 1 << 21
"""Grid points a window may have."""
LARGEST_LOSS = 600.0
"""Larger losses of one step count as infinite from above, and as this from below."""
LARGEST_EXPONENT = 300.0
"""Tilts are undone up to this exponent."""
ON_GRID = 1e-13
"""Atoms this close to a grid point are on it: the relative error granted to masses covers the difference."""
END_CELLS, END_CUTS = 32, (0.5, 0.475, 0.45, 0.425, 0.4, 0.35, 0.3, 0.25)
"""Cells looked at, and distances tried (in steps), when choosing where a grid begins at a bounded end."""
MERGES = 3
"""Rounds in which neighbouring intervals are merged; what is left after them is rounded down."""


@dataclass(frozen=True)
class Steps:
    """A discretised pair: P's masses at losses start + spacing * k, and at infinity, repeated ``count`` times."""

    start: float
    chances: Floats
    infinity: float
    count: int

    @classmethod
    def of(cls, edges: Floats, chances: Floats, infinity: float, count: int) -> Steps:
        """Without the empty points at either end."""
        if not len(used := np.flatnonzero(chances)):
            return cls(float(edges[0]), chances[:1], infinity, count)
        first, last = int(used[0]), int(used[-1])
        return cls(float(edges[first]), chances[first : last + 1], infinity, count)

    def losses(self, spacing: float) -> Floats:
        """The grid."""
        return np.asarray(self.start + spacing * np.arange(len(self.chances)), np.float64)


def edges_over(pair: Pair, spacing: float, tail: float, anchor: float) -> Floats:
    """Grid points through the anchor that cover the pair's range."""
    low, high = (min(max(end, -LARGEST_LOSS), LARGEST_LOSS) for end in pair.span(tail))
    anchor = anchor if abs(anchor) <= LARGEST_LOSS else 0.0
    if (high - low) / spacing > LONGEST:
        raise TooLong
    first, last = math.floor((low - anchor) / spacing - 1e-9), math.ceil((high - anchor) / spacing + 1e-9)
    return np.asarray(anchor + spacing * np.arange(first, max(last, first + 1) + 1), np.float64)


def heaviest(pair: Pair) -> float:
    """The loss of the largest atom: a grid through it wastes nothing there; 0 where there are no atoms."""
    return max(pair.atoms(), key=lambda atom: atom[1], default=(0.0, 0.0))[0]


def from_above(pair: Pair, spacing: float, tail: float, count: int) -> Steps:
    """A discretised pair that dominates the given one."""
    edges = edges_over(pair, spacing, tail, heaviest(pair))
    p, q = pair.masses(edges)
    inner_p, inner_q = p[1:-1], q[1:-1]
    # within (e_i, e_i+1]: up + down = p and up e**-e_i+1 + down e**-e_i = q
    up = np.clip((inner_p - inner_q * np.exp(edges[:-1])) / -math.expm1(-spacing), 0.0, inner_p)
    chances = np.zeros(len(edges))
    chances[1:] += up
    chances[:-1] += inner_p - up
    chances[0] += p[0]
    infinity = pair.infinity + float(p[-1])
    for loss, chance in pair.atoms():
        if loss > edges[-1] + ON_GRID:
            infinity += chance
            continue
        k = min(max(int((loss - edges[0]) / spacing + 1e-9), 0), len(edges) - 2)
        rise = min(max(loss - edges[k], 0.0), spacing)
        share = 0.0 if rise < ON_GRID else math.expm1(-rise) / math.expm1(-spacing)
        chances[k] += chance * (1 - share)
        chances[k + 1] += chance * share
    return Steps.of(edges, chances, min(1.0, infinity), count)


def from_below(pair: Pair, spacing: float, tail: float, count: int) -> Steps:
    """A discretised pair, of less than full mass, that the given one dominates."""
    low, high = (min(max(end, -LARGEST_LOSS), LARGEST_LOSS) for end in pair.span(tail))
    bounded = next(((end, side) for end, side in ((pair.floor(), 1), (pair.ceiling(), -1)) if math.isfinite(end)), None)
    if pair.atoms() or bounded is None:
        edges = edges_over(pair, spacing, tail, heaviest(pair))
        chances, _ = _place(pair, edges, spacing, None)
    else:
        end, side = bounded
        ends = _merged_ends(pair, spacing, end, side)
        # which start wastes least is seen from its neighbourhood
        point, cut = min(
            ends, key=lambda e: _place(pair, _run(e[0], spacing, side, END_CELLS), spacing, (e[1], side))[1]
        )
        cells = max(END_CELLS, math.ceil(abs((high if side > 0 else low) - point) / spacing))
        if cells > LONGEST:
            raise TooLong
        edges = _run(point, spacing, side, cells)
        chances, _ = _place(pair, edges, spacing, (cut, side))
    for loss, chance in pair.atoms():
        k = min(math.floor((loss - edges[0]) / spacing + 1e-9), len(edges) - 1)
        k -= k > 0 and edges[k] > loss + ON_GRID
        if k >= 0 and edges[k] <= loss + ON_GRID:
            chances[k] += chance * math.exp(-max(0.0, loss - float(edges[k]) - ON_GRID))
    return Steps.of(edges, chances, pair.infinity, count)


def _run(point: float, spacing: float, side: int, cells: int) -> Floats:
    """Grid points from one on, upwards or downwards, in ascending order."""
    return np.sort(point + side * spacing * np.arange(cells + 1))


def _place(pair: Pair, edges: Floats, spacing: float, end: tuple[float, int] | None) -> tuple[Floats, float]:
    """Chances at the edges, dominated by the pair's (atoms apart), and the mass of P given up.

    Around each grid point, the half cells below and above merge into its loss exactly, up to a small share of one
    of them; what is left of each cell merges as far as it goes (``_merge``) and is rounded down at last. At a
    bounded end, all up to a given cut merges into the outermost point.
    """
    cuts = np.empty(2 * len(edges) - 1)
    cuts[::2], cuts[1::2] = edges, edges[:-1] + spacing / 2
    if end is not None:
        cuts[1 if end[1] > 0 else -2] = end[0]
    p, q = pair.masses(cuts)
    lift = np.exp(edges)
    low_p, high_p, low_q, high_q = p[1:-1:2], p[2:-1:2], q[1:-1:2], q[2:-1:2]  # halves of each cell
    excess = np.maximum(low_p - low_q * lift[:-1], 0.0)[1:]  # above the points 1 .. n-1
    lack = np.maximum(high_q * lift[1:] - high_p, 0.0)[:-1]  # below them
    both = np.minimum(excess, lack)
    of_low = np.divide(both, excess, out=np.zeros(len(both)), where=excess > 0)
    of_high = np.divide(both, lack, out=np.zeros(len(both)), where=lack > 0)
    chances = np.zeros(len(edges))
    chances[1:-1] = of_low * low_p[1:] + of_high * high_p[:-1]
    rest_low, rest_high = np.append(1.0, 1 - of_low), np.append(1 - of_high, 1.0)
    # what lies beyond the last point is rounded down to it, what lies below the first is given up
    chances[-1] = min(float(p[-1]), float(q[-1] * lift[-1]))
    if end is not None and end[1] > 0:
        chances[0], rest_low[0] = _exactly(p[:2], q[:2], float(lift[0])), 0.0
    elif end is not None:
        chances[-1], rest_high[-1] = _exactly(p[-2:], q[-2:], float(lift[-1])), 0.0
    left, lost = _merge(rest_low * low_p + rest_high * high_p, rest_low * low_q + rest_high * high_q, edges)
    return chances + left, lost


def _exactly(p: Floats, q: Floats, lift: float) -> float:
    """The mass of P at a point that these intervals, merged, were chosen to land on; none should they fall short."""
    mass, needed = float(p.sum()), float(q.sum()) * lift
    return min(mass, needed) if mass >= needed * (1 - RELATIVE_ERROR) else 0.0


def _merged_ends(pair: Pair, spacing: float, end: float, side: int) -> list[tuple[float, float]]:
    """Ways to begin at a bounded end: (point, cut) such that all from the end to the cut, merged, has the point's loss.

    A cut half a step from its point suits a density that is flat; nearer ones suit others.
    """
    scan = end + side * spacing * np.linspace(0.01, 8, 800)
    p, q = pair.masses(np.sort(scan))
    p, q = (np.cumsum(m[:-1]) if side > 0 else np.cumsum(m[:0:-1]) for m in (p, q))
    seen = (p > 0) & (q > 0)
    merged = np.where(seen, np.log(np.maximum(p, 1e-320) / np.maximum(q, 1e-320)), end)
    apart = np.where(seen, side * (scan - merged) / spacing, 0.0)
    found = []
    for wanted in END_CUTS:
        k = int(np.argmax(apart >= wanted))
        if wanted <= apart[k] < 1:
            mass_p, mass_q = (float(m[0] if side > 0 else m[-1]) for m in pair.masses(scan[k : k + 1]))
            if mass_p > 0 and mass_q > 0:
                found.append((math.log(mass_p / mass_q), float(scan[k])))
    return found or [(end, end)]


def _merge(p: Floats, q: Floats, edges: Floats) -> tuple[Floats, float]:
    """Chances at the edges: shares of neighbouring cells whose union has exactly an edge's loss, the rest rounded down.

    Also returns the mass of P given up by rounding down.
    """
    lift = np.exp(edges)
    excess = np.maximum(p - q * lift[:-1], 0.0)  # of cell i over its lower edge
    lack = np.maximum(q * lift[1:] - p, 0.0)  # of cell i below its upper edge
    below, above = np.append(0.0, lack), np.append(excess, 0.0)  # what meets at edge k, from cell k-1 and from cell k
    chances = np.zeros(len(edges))
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
        chances[1:] += of_previous[1:] * p
        left = np.maximum(0.0, left - of_cell[:-1] - of_previous[1:])
    kept = np.minimum(p, q * lift[:-1])
    chances[:-1] += left * kept
    return chances, float(np.sum(left * (p - kept)))


def cumulants(steps: Sequence[Steps], spacing: float, tilt: float) -> tuple[float, float, float]:
    """K(t) = sum of count * ln E[e**(t loss)] over the finite losses, and its first two derivatives."""
    value = mean = variance = 0.0
    for s in steps:
        losses = s.losses(spacing)
        top = tilt * float(losses[-1] if tilt > 0 else losses[0])
        weights = s.chances * np.exp(tilt * losses - top)
        mass = float(weights.sum())
        first = float(weights @ losses) / mass
        value += s.count * (math.log(mass) + top)
        mean += s.count * first
        variance += s.count * max(0.0, float(weights @ losses**2) / mass - first**2)
    return value, mean, variance


def log_moment(steps: Sequence[Steps], spacing: float, tilt: float) -> float:
    """K(t) alone."""
    value = 0.0
    for s in steps:
        losses = s.losses(spacing)
        top = tilt * float(losses[-1] if tilt > 0 else losses[0])
        value += s.count * (math.log(float(s.chances @ np.exp(tilt * losses - top))) + top)
    return value


def tilt_for_delta(steps: Sequence[Steps], spacing: float, delta: float) -> float:
    """Roughly where the saddle point puts delta: e**(K(t) - t K'(t)) / (t (1 + t) sqrt(2 pi K''(t))) = delta."""
    goal = math.log(delta)

    def is_low(t: float) -> bool:
        value, mean, variance = cumulants(steps, spacing, t)
        return value - t * mean - math.log1p(2.5 * t * (1 + t) * math.sqrt(variance)) > goal

    return _bisect_tilt(is_low, 1 / spacing)


def tilt_for_epsilon(steps: Sequence[Steps], spacing: float, epsilon: float) -> float:
    """Roughly the tilt whose mean is epsilon: K'(t) = epsilon."""
    return _bisect_tilt(lambda t: cumulants(steps, spacing, t)[1] < epsilon, 1 / spacing)


def _bisect_tilt(is_low: Callable[[float], bool], most: float) -> float:
    """A tilt within a tenth of where ``is_low`` ends, but at most ``most``: losses may be bounded."""
    low, high = min(1e-3, most), min(1.0, most)
    while is_low(high):
        if high >= most:
            return most
        low, high = high, min(4 * high, most)
    while high / low > 1.1:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return math.sqrt(low * high)


class TooLong(Exception):
    """The window would need too many points at this spacing."""


class Profile:
    """The composed profile near one epsilon: bounds on delta(epsilon) = E[(1 - e**(epsilon - loss))+] + P(infinity).

    Built from discretised pairs of one spacing, tilted so that accuracy is best where it is wanted: ``tilt`` is
    best taken from ``tilt_for_delta`` or ``tilt_for_epsilon``.
    """

    def __init__(self, steps: Sequence[Steps], spacing: float, tilt: float, upper: bool) -> None:
        self._steps, self._spacing, self._upper, self._tilt = steps, spacing, upper, tilt
        self.infinity = -math.expm1(sum(s.count * math.log1p(-min(s.infinity, 1 - 1e-16)) for s in steps))
        self._total = sum(s.count for s in steps)
        self._compose()

    def _compose(self) -> None:
        """The tilted law of the sum on the window, its scale, and bounds on all that is wrong with it."""
        spacing, tilt = self._spacing, self._tilt
        value, centre, variance = cumulants(self._steps, spacing, tilt)
        reach = self._window(value, centre, max(math.sqrt(variance), spacing))
        if 2 * reach / spacing > LONGEST:
            raise TooLong
        size = _fast_length(2 * math.ceil(reach / spacing) + 1)
        spectrum = np.ones(size // 2 + 1, complex)
        offset = 0.0
        largest = np.zeros(size // 2 + 1)  # logarithm of what the spectrum's size may really be
        for s in self._steps:
            losses = s.losses(spacing)
            top = tilt * (losses[-1] if tilt > 0 else losses[0])
            weights = s.chances * np.exp(tilt * losses - top)
            weights /= weights.sum()
            folded = np.bincount(np.arange(len(weights)) % size, weights, size)
            factor = np.fft.rfft(folded)
            error = ROUNDING * 8 * math.log2(size + 1) * math.sqrt(float(np.sum(folded**2)) * 4)
            spectrum = spectrum * factor**s.count
            largest += s.count * (np.log(np.abs(factor) + error) + 8 * ROUNDING)
            offset += s.count * s.start
        law = np.fft.irfft(spectrum, size)
        # a grid point is offset + spacing * (k + m size): take the m that puts it into the window
        first = math.ceil((centre - offset) / spacing) - size // 2
        law = np.roll(law, -(first % size))
        self._losses = offset + spacing * (first + np.arange(size))
        strength = np.abs(spectrum)
        weightings = np.full(len(strength), 2.0)
        weightings[0] = 1.0
        # |(f + e)**n - f**n| <= (|f| + |e|)**n - |f|**n; and never more than both together, the truth being at most 1
        apart = np.where(largest <= 1.0, np.exp(np.minimum(largest, 1.0)) - strength, 1.0 + strength)
        noise = float((np.maximum(apart, 0.0) * weightings).sum()) / size
        noise += ROUNDING * 8 * math.log2(size + 1) * math.sqrt(float((strength**2 * weightings).sum())) / size * 2
        self._law, self._centre = law, centre
        self._noise = noise  # each entry of the law may be off by this
        self._log_scale = value - tilt * centre  # mass at loss l is law * e**(log_scale - tilt (l - centre))
        self._outside = 2 * CUT
        self._sums()

    def _window(self, value: float, centre: float, deviation: float) -> float:
        """A half-width beyond which the tilted law has at most CUT on either side.

        Chernoff: P(sum - centre > r) <= e**(K(tilt + t) - K(tilt) - t (centre + r)) for every t > 0; solved for r,
        best t.
        """
        guard = -math.log(CUT)
        best = math.sqrt(2 * guard) / deviation
        reaches = []
        for side in (1, -1):
            bounds = []
            for t in best * 2.0 ** np.arange(-3.0, 1.5, 1.0):
                grown = log_moment(self._steps, self._spacing, self._tilt + side * float(t)) - value
                bounds.append((grown + guard) / float(t) - side * centre)
            reaches.append(min(bounds))
        return max(reaches)

    def _sums(self) -> None:
        """Suffix sums, from which delta at any epsilon of the window follows."""
        away = self._losses - self._centre
        self._covered = self._centre - LARGEST_EXPONENT / max(1.0, self._tilt)  # further left nothing is said
        kept = away >= -LARGEST_EXPONENT / max(1.0, self._tilt)
        away = np.where(kept, away, 0.0)
        masses = np.where(kept, np.maximum(self._law, 0.0) * np.exp(-self._tilt * away), 0.0)
        self._masses = masses
        self._tails = np.cumsum(masses[::-1])[::-1]
        self._discounted = np.cumsum((masses * np.exp(-away))[::-1])[::-1]

    def delta(self, epsilon: float) -> float:
        """The bound at one epsilon."""
        spacing, tilt = self._spacing, self._tilt
        if epsilon < self._covered:
            return 1.0 if self._upper else 0.0
        away = epsilon - self._centre
        k = int(np.searchsorted(self._losses, epsilon, "right"))
        inside = 0.0
        if k < len(self._losses) and away <= LARGEST_EXPONENT:
            inside = float(self._tails[k] - math.exp(away) * self._discounted[k])
        elif k < len(self._losses):  # far out: sum afresh rather than scale back
            inside = float(self._masses[k:] @ -np.expm1(epsilon - self._losses[k:]))
        scale = math.exp(self._log_scale)
        decay = math.exp(-tilt * away)
        # each entry may be off by `noise`: sum over grid points beyond epsilon of e**(-tilt distance)
        doubt = self._noise * decay * (1 + 1 / (tilt * spacing)) + self._outside * decay
        # relative errors of masses add up; an error of Q's shifts the loss, which the tilt weighs
        grow = self._total * RELATIVE_ERROR * 3 * (1 + tilt) + len(self._losses) * ROUNDING
        if self._upper:
            return min(1.0, (scale * (max(inside, 0.0) + doubt)) * (1 + grow) + self.infinity)
        return max(0.0, scale * (inside - doubt) * (1 - grow)) + self.infinity * (1 - grow)

    def epsilon(self, delta: float) -> float:
        """The epsilon at which the bound meets delta: rounded up for an upper profile, down for a lower one."""
        low, high = self._centre, float(self._losses[-1])
        step = self._spacing
        while self.delta(low) <= delta:  # down from the centre, where the bound is best, until delta is exceeded
            if low <= max(0.0, float(self._losses[0])):
                return max(0.0, low) if self._upper else 0.0
            low, high, step = max(low - step, 0.0, float(self._losses[0])), low, 2 * step
        if self.delta(high) > delta:
            return math.inf if self._upper else max(0.0, high)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return max(0.0, high if self._upper else low)


def _fast_length(size: int) -> int:
    """A length at which transforms are fast: 2**a times 1, 3 or 5."""
    power = 1 << (size - 1).bit_length()
    return min((n for n in (power, power // 4 * 3, power // 8 * 5) if n >= size), default=power)
