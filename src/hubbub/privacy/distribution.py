"""Privacy-loss distributions as arrays, for pictures: prices come from the accountant, which is certified."""

from __future__ import annotations

import math

import numpy as np

from hubbub.privacy.accountant import Parts
from hubbub.privacy.pairs import Floats, Pair

UNSEEN = 1e-12
"""Probability that may lie beyond the first and the last cell; it is counted in these."""
MOST_CELLS = 1 << 21
"""The most cells on which a composition is computed."""


def gathered(parts: Parts, points: int) -> tuple[Floats, Floats, float]:
    """Losses, P's masses there (of about so many cells), and P's mass at infinity, of all parts together."""
    infinity = -math.expm1(sum(n * math.log1p(-min(pair.infinity, 1 - 1e-16)) for pair, n in parts))
    if len(parts) == 1 and parts[0][1] == 1:
        return *_one(parts[0][0], points), infinity
    return *_together(parts, points, 1 - infinity), infinity


def _one(pair: Pair, points: int) -> tuple[Floats, Floats]:
    """The atoms as they are, everything else in equal cells, at their middles; empty cells are left out."""
    low, high = pair.span(UNSEEN)
    edges = np.linspace(low, high, points + 1)
    inner = pair.masses(edges)[0]
    inner[1], inner[-2] = inner[0] + inner[1], inner[-2] + inner[-1]
    atoms = np.array(pair.atoms()).reshape(-1, 2)
    losses = np.concatenate(((edges[1:] + edges[:-1]) / 2, atoms[:, 0]))
    masses = np.concatenate((inner[1:-1], atoms[:, 1]))
    order = np.argsort(losses, kind="stable")
    order = order[masses[order] > 0]
    return losses[order], masses[order]


def _together(parts: Parts, points: int, finite: float) -> tuple[Floats, Floats]:
    """The law of the sum on a common grid, by the discrete Fourier transform.

    Every mass is split between two grid points so that its mean is kept; each step's variance grows by at most a
    quarter of the squared grid step, which is a small part of it.
    """
    listed = [(_one(pair, max(points, 1000)), n) for pair, n in parts]
    moments = []
    for (losses, masses), n in listed:
        mean = float(losses @ masses / masses.sum())
        moments.append((n, mean, float((losses - mean) ** 2 @ masses / masses.sum())))
    centre = sum(n * mean for n, mean, _ in moments)
    spread = math.sqrt(sum(n * variance for n, _, variance in moments))
    widest = max(float(np.ptp(losses)) for (losses, _), _ in listed)
    reach = min(8 * spread + widest, sum(n * float(np.ptp(losses)) for (losses, _), n in listed) + spread)
    finest = min(math.sqrt(variance) / 8 for _, _, variance in moments)
    cells = min(MOST_CELLS, max(points, math.ceil(2 * reach / finest)))
    step, size = 2 * reach / cells, 1 << (cells + 1).bit_length()
    spectrum, offset = np.ones(size // 2 + 1, complex), 0
    for (losses, masses), n in listed:
        places = losses / step
        first = np.floor(places).astype(np.int64)
        upper = places - first
        folded = np.bincount((first - first[0]) % size, masses * (1 - upper), size)
        folded += np.bincount((first - first[0] + 1) % size, masses * upper, size)
        spectrum *= np.fft.rfft(folded / masses.sum()) ** n
        offset += n * int(first[0])
    start = round(centre / step) - size // 2
    law = np.maximum(np.roll(np.fft.irfft(spectrum, size), -((start - offset) % size)), 0.0)
    grid = step * (start + np.arange(size))
    width = max(1, cells // points)
    kept = slice(size // 2 - cells // 2, size // 2 - cells // 2 + cells // width * width)
    mass = law[kept].reshape(-1, width).sum(axis=1)
    return grid[kept].reshape(-1, width).mean(axis=1), mass * finite / mass.sum()
