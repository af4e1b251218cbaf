"""How close a sum of discrete Gaussians is to one discrete Gaussian, and what that costs a sum of shares."""

from __future__ import annotations

import math
from fractions import Fraction

from hubbub.privacy.loss import nudged_up


def closeness(share: Fraction, shares: int) -> float:
    """A bound on |ln(P/Q)|, at every integer: P is the law of a sum of so many N_Z(0, share), Q = N_Z(0, shares share).

    Claim: as said, rounded up.
    Proof: the sum of independent N_Z(0, a) and N_Z(0, b) is z with probability e**(-z**2/(2 (a + b))) over constants
        times the sum over x of e**(-(x - c)**2/(2 v)), v = a b/(a + b), with some c that depends on z. By Poisson's
        summation formula that is sqrt(2 pi v) times a number between 1 - 2 S and 1 + 2 S, where S is the sum over
        m >= 1 of t**(m**2), t = e**(-2 pi**2 v), at most t/(1 - t). So P/N_Z(0, a + b) lies within a range of
        (1 + 2 S)/(1 - 2 S) whose mean is 1. Adding the (k + 1)-th share, v = share k/(k + 1); adding an independent
        variable to both does not increase a largest ratio, so the logarithms of all steps add up. KLS21 has such a
        bound with larger constants.
    Assumes: nothing.

    >>> closeness(Fraction(4), 100) < 1e-13
    True
    """
    total = 0.0
    for k in range(1, shares):
        t = math.exp(-2 * math.pi**2 * float(share) * k / (k + 1)) * (1 + 2.0**-40)
        rest = 2 * t / (1 - t)
        if rest >= 0.5:
            return math.inf
        total += (math.log1p(rest) - math.log1p(-rest)) * (1 + 2.0**-40)
    return nudged_up(total)


def root_of_rho(shift: float, share: Fraction, shares: int, width: int) -> float:
    """The square root of 2 rho for the concentrated price of a sum of shares, ``width`` coordinates of each.

    ``shift`` is how far a client moves the sum, in standard deviations of N_Z(0, shares share).

    Claim: the Renyi divergence of order a, between the sums with a client's vector and with another in its place, is
        at most a root_of_rho**2 / 2, for every a > 1.
    Proof: one coordinate, moved by t deviations: from the shifted sum to the shifted discrete Gaussian is at most
        e = ``closeness`` in every ratio, so e**2 a/2 (BS16, Proposition 3.3); on to the centred one t**2 a/2 (CKS20,
        Theorem 4); on to the centred sum e**2 a/2. Square roots of such prices add up along a path (BS16,
        Lemma 5.2, at k = 1 + the ratio of the two), so (t + 2 e)**2 a/2. Coordinates are independent: prices add up,
        and the norm of (t_i + 2 e) is at most that of t plus 2 e sqrt(width).
    Assumes: the shares' noises are independent.
    """
    return nudged_up(shift + 2 * closeness(share, shares) * nudged_up(math.sqrt(width)))
