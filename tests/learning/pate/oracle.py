"""The law of a noisy vote by another road: class by class, the joint law of the best noisy count and whose it is."""

import math
from itertools import permutations

import numpy as np
from scipy.stats import norm


def gaussian_masses(sigma, reach):
    k = np.arange(-reach, reach + 1)
    upper = norm.sf((np.abs(k) - 0.5) / sigma) - norm.sf((np.abs(k) + 0.5) / sigma)
    return np.where(k == 0, 1 - 2 * norm.sf(0.5 / sigma), upper)


def laplace_masses(scale, reach):
    k = np.arange(-reach, reach + 1)
    r = math.exp(-1 / scale)
    return (1 - r) / (1 + r) * r ** np.abs(k)


def winner(votes, masses):
    """P(class i wins), ties to the first: the best so far meets one class more at a time."""
    reach = len(masses) // 2
    low, high = min(votes) - reach, max(votes) + reach
    best = np.zeros((len(votes), high - low + 1))
    for i, n in enumerate(votes):
        own = np.zeros(high - low + 1)
        own[n - reach - low : n + reach + 1 - low] = masses
        if not i:
            best[0] = own
            continue
        sofar = best.sum(axis=0)
        below = np.concatenate(([0.0], np.cumsum(sofar)[:-1]))
        best *= np.cumsum(own)  # who leads stays if the newcomer is no higher
        best[i] = own * below
    return best.sum(axis=1)


def outcomes(votes, masses, check=None):
    chances = winner(votes, masses)
    if check is None:
        return chances
    threshold, sigma = check
    passed = norm.sf((math.ceil(threshold) - 0.5 - max(votes)) / sigma)
    return np.append(chances * passed, norm.cdf((math.ceil(threshold) - 0.5 - max(votes)) / sigma))


def moved(votes):
    for a, b in permutations(range(len(votes)), 2):
        other = list(votes)
        other[a], other[b] = other[a] - 1, other[b] + 1
        yield other


def largest_divergence(votes, order, law):
    """Over all votes one move away, both ways."""
    own = law(votes)
    found = 0.0
    for other in moved(votes):
        theirs = law(other)
        for p, q in ((own, theirs), (theirs, own)):
            seen = (p > 0) & (q > 0)
            logs = order * np.log(p[seen]) + (1 - order) * np.log(q[seen])
            found = max(found, np.logaddexp.reduce(logs) / (order - 1))
    return found
