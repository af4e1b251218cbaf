"""A source of bits that can be started again: for tests alone."""

import numpy as np

from hubbub.randomness.bits import Words


class Repeated:
    """Words of a fixed generator."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def words(self, count: int) -> Words:
        return self._generator.integers(0, 2**64, count, dtype=np.uint64)

    def word(self) -> int:
        return int(self.words(1)[0])
