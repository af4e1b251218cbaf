"""Private keys: nobody's key is never shown, a lone person's at most as often as delta says, noise as priced."""

import numpy as np
import pytest

import hubbub as hb
from hubbub.errors import DataTypeError, ParameterError
from hubbub.mechanisms import KeySelection

WAYS = [
    (noise, groups, neighbours, epsilon, delta)
    for noise in ("truncated", "gaussian")
    for groups in (1, 7)
    for neighbours in ("add-remove", "replace")
    for epsilon, delta in ((1.0, 1e-5), (0.2, 1e-3), (5.0, 0.05))
]


def shown(m: KeySelection, people: int) -> dict[int | None, float]:
    """What becomes of one key of so many people: hidden (None), or shown with a number; exactly, from the noise's
    law."""
    steps, chances = m._adding.distribution(people * m._fine)
    law: dict[int | None, float] = {}
    for n, chance in zip(steps.tolist(), chances.tolist(), strict=True):
        out = round(n / m._fine) if n > m.threshold * m._fine else None
        law[out] = law.get(out, 0.0) + chance
    return law


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_one_key_alone_is_hidden_but_for_delta(way: tuple[str, int, str, float, float]) -> None:
    noise, groups, neighbours, epsilon, delta = way
    m = KeySelection(epsilon=epsilon, delta=delta, max_groups=groups, noise=noise, neighbours=neighbours)
    touched = groups * (1 if neighbours == "add-remove" else 2)
    chance = sum(p for out, p in shown(m, 1).items() if out is not None)
    assert touched * chance <= delta * (1 + 1e-9)
    assert m.loss.epsilon(delta) <= epsilon
    assert m.loss.neighbours == neighbours
    if noise == "truncated":
        assert chance > 0
        assert m.release({"nobody": 0}) == {}


@pytest.mark.parametrize("way", [w for w in WAYS if w[0] == "truncated"], ids=str)
def test_the_law_of_one_key_is_within_its_price(way: tuple[str, int, str, float, float]) -> None:
    """The hockey-stick divergence between n and n + 1 people, both ways, for every n around the threshold."""
    noise, groups, neighbours, epsilon, delta = way
    m = KeySelection(epsilon=epsilon, delta=delta, max_groups=groups, noise=noise, neighbours=neighbours)
    touched = groups * (1 if neighbours == "add-remove" else 2)
    for n in {1, 2, m.threshold // 2 + 1, m.threshold, m.threshold + 1, 2 * m.threshold}:
        one, other = shown(m, n), shown(m, n + 1)
        for a, b in ((one, other), (other, one)):
            outside = sum(max(0.0, p - np.exp(epsilon / touched) * b.get(out, 0.0)) for out, p in a.items())
            assert outside <= delta / touched * (1 + 1e-6) + 1e-12


def test_the_better_noise_is_taken() -> None:
    few, many = (KeySelection(epsilon=1, delta=1e-5, max_groups=g) for g in (1, 100))
    assert (few.noise, many.noise) == ("truncated", "gaussian")
    for g, m in ((1, few), (100, many)):
        for noise in ("truncated", "gaussian"):
            assert m.threshold <= KeySelection(epsilon=1, delta=1e-5, max_groups=g, noise=noise).threshold


def test_the_known_threshold() -> None:
    """Desfontaines and others: at (1, 1e-5) and one key a person, half of the keys of 12 people are shown."""
    m = KeySelection(epsilon=1.0, delta=1e-5)
    assert m.threshold == 11
    assert sum(p for out, p in shown(m, 11).items() if out is not None) < 0.5
    assert sum(p for out, p in shown(m, 12).items() if out is not None) > 0.5


def test_common_keys_are_shown_with_their_numbers() -> None:
    for noise in ("truncated", "gaussian"):
        m = KeySelection(epsilon=1.0, delta=1e-12, max_groups=3, noise=noise)
        for _ in range(20):
            found = m.release({("é", 1): 10_000, None: 20_000, "rare": 1})
            assert set(found) == {("é", 1), None}
            assert abs(found[None] - 20_000) <= 300
        assert m.error(0.95) < 100


def test_apart() -> None:
    m = KeySelection(epsilon=1.0, delta=1e-6, max_groups=2)
    assert m.apart({"a": 3, "b": 1}, {"a": 2}) == 1
    assert m.apart({"a": 3}, {"a": 1}) == float("inf")
    assert m.apart({"a": 1, "b": 1, "c": 1}, {}) == 1.5


@pytest.mark.parametrize(
    "bad", [{"epsilon": 0}, {"delta": 0}, {"delta": 1}, {"max_groups": 0}, {"noise": "cauchy"}, {"neighbours": "none"}]
)
def test_bad_parameters(bad: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        KeySelection(**({"epsilon": 1, "delta": 1e-6} | bad))


@pytest.mark.parametrize("value", [[1, 2], {"a": 1.5}, {"a": "x"}, 3, None])
def test_bad_values(value: object) -> None:
    with pytest.raises(DataTypeError):
        hb.KeySelection(epsilon=1, delta=1e-6).release(value)
