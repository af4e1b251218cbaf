"""The README's example of an audit says what the README says it says."""

import numpy as np

import hubbub as hb
from hubbub.audit import audit, replay


def test_the_readme() -> None:
    noise = np.random.default_rng(1)
    assert not audit(lambda v: v + noise.laplace(), 0.0, 1.0, claimed=1.0).holds

    def mean(rows: list[float]) -> float:
        return hb.Laplace(1.0, epsilon=1.0).release(sum(rows)) / len(rows)

    assert "more than what was released" in str(replay(mean, [0.2, 0.9, 0.5], [0.2, 0.9]))
