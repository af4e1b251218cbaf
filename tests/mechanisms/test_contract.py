"""What every mechanism owes: its exact law never costs more than it says, samples follow that law, and it is frozen."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from mechanisms.catalogue import Cell, cells
from support import SeededBits, assert_fits

import hubbub as hb

CELLS = cells()
LISTED = [c for c in CELLS if hasattr(c.mechanism, "distribution")]


def aligned(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Both laws on one support, as arrays of probabilities."""
    laws = []
    for value in (cell.value, cell.neighbour):
        support, probabilities = cell.mechanism.distribution(value)
        assert probabilities.sum() == pytest.approx(1, abs=2e-12)
        assert np.all(probabilities >= 0)
        keys = [tuple(k) if np.ndim(k) else k for k in np.asarray(support).tolist()]
        laws.append(dict(zip(keys, probabilities, strict=True)))
    # tails beyond what is listed are left out of both; a bounded noise lists everything, so there absence is zero
    bounded = isinstance(cell.mechanism, hb.TruncatedLaplace)
    everywhere = sorted(set(laws[0]) | set(laws[1]) if bounded else set(laws[0]) & set(laws[1]))
    return tuple(np.array([law.get(k, 0.0) for k in everywhere]) for law in laws)


@pytest.mark.parametrize("cell", LISTED, ids=lambda c: c.name)
def test_the_exact_law_never_exceeds_its_price(cell: Cell) -> None:
    """Hockey-stick divergence, both ways, at several epsilons, against the loss; 1e-12 for rounding."""
    p, q = aligned(cell)
    loss = cell.mechanism.loss
    base = next(e for e in map(loss.epsilon, (0, 1e-6, 1e-5, 1e-3)) if e < np.inf)
    for epsilon in (0.0, base / 2, base, 1.5 * base):
        for a, b in ((p, q), (q, p)):
            assert np.maximum(a - np.exp(epsilon) * b, 0).sum() <= loss.delta(epsilon) + 1e-12


@pytest.mark.parametrize("cell", [c for c in LISTED if c.mechanism.loss.epsilon() < np.inf], ids=lambda c: c.name)
def test_pure_prices_hold_point_by_point(cell: Cell) -> None:
    p, q = aligned(cell)
    kept = (p > 1e-11) & (q > 1e-11)
    ratios = np.abs(np.log(p[kept] / q[kept]))
    assert ratios.max() <= cell.mechanism.loss.epsilon() * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    "cell",
    [
        c
        for c in LISTED
        if c.name.split(" eps")[0] in ("laplace int", "response", "response 5-ary") and c.name.endswith("0")
    ],
    ids=lambda c: c.name,
)
def test_no_noise_is_wasted_where_the_price_is_tight(cell: Cell) -> None:
    p, q = aligned(cell)
    kept = (p > 1e-9) & (q > 1e-9)
    assert np.abs(np.log(p[kept] / q[kept])).max() == pytest.approx(cell.mechanism.loss.epsilon(), rel=1e-6)


@pytest.mark.parametrize("cell", [c for c in LISTED if c.name.endswith("0")], ids=lambda c: c.name)
def test_samples_follow_the_listed_law(cell: Cell) -> None:
    mechanism, bits = cell.mechanism, SeededBits(5)
    support, probabilities = mechanism.distribution(cell.value)
    if np.isscalar(cell.value):
        samples = [np.array([mechanism.release(cell.value, bits) for _ in range(2000)])]
        if getattr(mechanism, "max_length", 2) > 1:
            samples.append(mechanism.release(np.full(200_000, cell.value), bits))
    else:
        released = [mechanism.release(cell.value, bits) for _ in range(4000)]
        if isinstance(mechanism, hb.AboveThreshold):
            released = [len(cell.value) if r is None else r for r in released]
        samples = [np.array(released)]
    for sample in samples:
        if np.ndim(support) == 2:  # orders of several winners: compare by position in the list
            places = {tuple(s): i for i, s in enumerate(support.tolist())}
            sample = np.array([places[tuple(s)] for s in sample.tolist()])
            assert_fits(sample, np.arange(len(support)), probabilities)
        else:
            assert_fits(sample, support, probabilities)


@pytest.mark.parametrize("cell", CELLS[::3], ids=lambda c: c.name)
def test_frozen_equal_and_readable(cell: Cell) -> None:
    mechanism = cell.mechanism
    assert dataclasses.is_dataclass(mechanism)
    field = dataclasses.fields(mechanism)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, field, 3)
    assert mechanism == copy.deepcopy(mechanism)
    assert hash(mechanism) == hash(copy.deepcopy(mechanism))
    if not isinstance(mechanism, hb.mechanisms.Mapped):
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism
        assert repr(mechanism).startswith(type(mechanism).__name__ + "(")
        assert "_" not in repr(mechanism).replace("max_length", "")


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: c.name)
def test_the_loss_names_its_relation(cell: Cell) -> None:
    loss = cell.mechanism.loss
    assert loss.neighbours in ("add-remove", "replace")
    assert loss.epsilon(1e-6) > 0
    assert 0 <= loss.delta(1.0) <= 1
