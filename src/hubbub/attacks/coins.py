"""The attacker's coins: which questions to ask, which shadows to train, whom to make up. Never noise that protects.

Seeds are welcome here, because nothing drawn here is secret: a public question is the same for everybody. This is the
only module of hubbub that opens numpy's generator; ``tests/test_house.py`` checks, and that only attacks and the
command line come here.
"""

from __future__ import annotations

import numpy as np

from hubbub.attacks.demands import share_of, whole


def coins(seed: int) -> np.random.Generator:
    """A repeatable generator for public choices.

    >>> coins(1).integers(0, 2, 8).tolist() == coins(1).integers(0, 2, 8).tolist()
    True
    """
    return np.random.default_rng(whole("seed", seed, 0))


def made_up_bits(people: int, share: float = 0.5, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A made-up secret: one bit a person, 1 for this share of them, in random order."""
    bits = np.zeros(whole("people", people, 1), np.int64)
    bits[: round(share_of("share", share) * people)] = 1
    return coins(seed).permutation(bits)
