"""Gaussian noise on sums of gradients, from secure bits and on a public grid."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.lazy import PREFIX, rounded_sum

FINE = 12
"""The grid has 2**FINE to 2**(FINE + 1) steps in a standard deviation."""
SURE, RATHER_SURE = 2.0**-44, 2.0**-30
"""By how much a normal variable computed in doubles may be off: commonly, and where its radius is nearly 0 or its first
uniform number is."""
COMMON_RADIUS, LEAST_RADIUS = 2.0**-10, 2.0**-30
"""Squared radii from which on the two hold."""
COMMON_UNIFORM, LEAST_UNIFORM = 2.0**-16, 2.0**-32
"""First uniform numbers from which on the two hold."""
CHUNK = 1 << 20


def grid_of(stddev: float) -> float:
    """The step of the grid for noise of this standard deviation: a power of two."""
    return 2.0 ** (math.floor(math.log2(stddev)) - FINE)


def noisy(total: Tensor, stddev: float, bits: Bits = SECURE) -> Tensor:
    """A float32 or float64 sum plus Gaussian noise, each coordinate rounded to a multiple of ``grid_of(stddev)``.

    Claim: each coordinate is the nearest multiple to x + stddev * z with z standard normal, independent, exactly; then
        rounded to the sum's own type. What cannot be a number in the sum counts as 0. Of two coordinates that share
        their uniform numbers and are both in doubt (less than 2**-60 of pairs), each draws further bits of its own.
    Proof: rounding after the noise is post-processing, so the law is a Gaussian's of this standard deviation whatever
        the grid. z is Box and Muller's of two uniform numbers; where the double nearest to x + stddev z is farther from
        a rounding boundary than doubles can be off, it decides; else ``rounded_sum`` decides with more bits of the same
        numbers. A uniform number u is off by 2**-65 + 2**-53 u, so -2 ln u by 2**-64/u + 2**-51 and a little for the
        logarithm, and the radius by that over twice itself: below 2**-47 where SURE is used, 2**-35 where RATHER_SURE;
        angles, cosines, products and the sum add less than 2**-48 (1 + |z|) and 2**-51 of the sum.
    Assumes: torch's elementary functions of doubles keep to these errors; the bits are uniform.
    """
    flat = torch.nan_to_num(total.detach().reshape(-1), nan=0.0, posinf=0.0, neginf=0.0)
    if flat.is_cuda and bits is SECURE:
        from hubbub.learning.sgd import cipher

        if cipher.READY:
            pieces = [cipher.noisy_on_device(piece, stddev) for piece in flat.split(cipher.MOST)]
            return (pieces[0] if len(pieces) == 1 else torch.cat(pieces)).view(total.shape)
    out = torch.empty_like(flat)
    for start in range(0, len(flat), CHUNK):
        out[start : start + CHUNK] = _noisy(flat[start : start + CHUNK], stddev, bits)
    return out.view(total.shape)


def _noisy(flat: Tensor, stddev: float, bits: Bits) -> Tensor:
    step = grid_of(stddev)
    spread = stddev / step  # exact: the step is a power of two
    half = -(-len(flat) // 2)
    words = bits.words(2 * half)
    uniform = torch.from_numpy(words.astype(np.float64)).to(flat.device).add_(0.5).mul_(2.0**-PREFIX)
    u = uniform[:half]
    squared = u.log().mul_(-2)
    radius = squared.sqrt()
    angle = uniform[half:] * (2 * math.pi)
    z = torch.cat([radius * angle.cos(), radius * angle.sin()])[: len(flat)]
    sums = (flat.double() / step).add_(z, alpha=spread)
    whole = sums.round()
    sure = (squared > COMMON_RADIUS) & (u > COMMON_UNIFORM)
    common, rather, never = u.new_tensor([SURE * spread, RATHER_SURE * spread, math.inf])  # doubles, as u is
    off = torch.where((squared > LEAST_RADIUS) & (u > LEAST_UNIFORM), torch.where(sure, common, rather), never)
    doubtful = (sums - whole).abs_().add_(sums.abs() * 2.0**-50) > 0.5 - torch.cat([off, off])[: len(flat)]
    for i in doubtful.nonzero().flatten().tolist():
        pair = i % half
        decided = rounded_sum(
            float(flat[i]) / step, spread, int(words[pair]), int(words[half + pair]), cosine=i < half, bits=bits
        )
        whole[i] = decided
    return (whole * step).to(flat.dtype)
