"""The noise on sums: its law, its grid, and that doubt is settled by exact arithmetic."""

import hashlib
import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from learning.sgd.toys import plan
from scipy.stats import kstest, norm
from support import FALSE_ALARM, ScriptedBits, SeededBits
from torch import Tensor, nn

from hubbub.learning.sgd import Run, cipher, noise
from hubbub.learning.sgd.batches import Batch
from hubbub.learning.sgd.noise import grid_of, noisy
from hubbub.learning.sgd.plan import Plan

MANY = 200_000


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("stddev", [1e-3, 0.7, 300.0])
def test_its_law_and_its_grid(stddev: float, kind: torch.dtype) -> None:
    start = torch.linspace(-stddev, stddev, MANY, dtype=kind)
    got = noisy(start, stddev, SeededBits(1))
    assert got.dtype == kind
    assert float(torch.frac(got.double() / grid_of(stddev)).abs().max()) == 0
    z = ((got.double() - start.double()) / stddev).numpy()
    assert kstest(z, norm.cdf).pvalue > FALSE_ALARM
    assert abs(z.std() - 1) < 0.01
    assert abs(np.corrcoef(z[: MANY // 2], z[MANY // 2 :])[0, 1]) < 0.02  # the two of one pair
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 0.02


def test_a_scale_that_is_off_is_noticed() -> None:
    z = noisy(torch.zeros(MANY), 1.03, SeededBits(1)).numpy()
    assert abs(z.std() - 1) > 0.01
    assert kstest(z, norm.cdf).pvalue < 1e-3


def test_the_grid_does_not_depend_on_the_sum() -> None:
    assert {math.log2(grid_of(s)) for s in (0.5, 0.75, 0.99)} == {-13.0}
    assert 2**noise.FINE <= 0.7 / grid_of(0.7) < 2 ** (noise.FINE + 1)


def test_shapes_and_odd_lengths_and_what_is_no_number() -> None:
    assert noisy(torch.zeros(3, 5), 1.0, SeededBits(0)).shape == (3, 5)
    assert noisy(torch.zeros(0), 1.0, SeededBits(0)).shape == (0,)
    start = torch.tensor([torch.nan, torch.inf, -torch.inf])
    assert torch.equal(noisy(start, 1.0, SeededBits(2)), noisy(torch.zeros(3), 1.0, SeededBits(2)))


@pytest.mark.parametrize("length", [1000, 1001])
def test_doubles_agree_with_exact_arithmetic(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start = torch.linspace(-3, 3, length, dtype=torch.float64)
    quick = noisy(start, 1.3, SeededBits(4))
    asked = []

    def counting(*given: Any, **options: Any) -> int:
        asked.append(1)
        return exact(*given, **options)

    exact = noise.rounded_sum
    monkeypatch.setattr(noise, "rounded_sum", counting)
    monkeypatch.setattr(noise, "SURE", 1.0)
    monkeypatch.setattr(noise, "RATHER_SURE", 1.0)
    assert torch.equal(noisy(start, 1.3, SeededBits(4)), quick)
    assert len(asked) == length


@pytest.mark.parametrize(
    ("word", "why"),
    [(0, "the first uniform number is 0"), (2**31, "it is nearly 0"), (2**64 - 1, "the radius is nearly 0")],
)
def test_doubt_where_doubles_are_vague(word: int, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def remembered(*given: Any, **options: Any) -> int:
        asked.append(given[2])
        return exact(*given, **options)

    exact = noise.rounded_sum
    monkeypatch.setattr(noise, "rounded_sum", remembered)
    noisy(torch.zeros(2, dtype=torch.float64), 1.0, ScriptedBits([word, 12345 << 48]))
    assert asked == [word, word], why


def test_doubt_at_the_boundary_of_two_grid_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum that lies, as far as doubles can tell, half way between two: whole grid points away from a half."""
    words = [1 << 63, 1 << 61]
    step, z = grid_of(1.0), math.sqrt(2 * math.log(2)) * math.cos(math.pi / 4)
    start = torch.tensor([(round(z / step) + 0.5) * step - z, 0.0], dtype=torch.float64)
    asked = []
    monkeypatch.setattr(noise, "rounded_sum", lambda *given, **_: asked.append(given) or 7)
    got = noisy(start, 1.0, ScriptedBits(words))
    assert len(asked) == 1
    assert float(got[0]) == 7 * step
    value, spread, radial, angular = asked[0]
    assert (Fraction(value) * Fraction(step), spread, [radial, angular]) == (Fraction(float(start[0])), 1 / step, words)


def chacha20(key: bytes, counter: int, nonce: bytes) -> bytes:
    """One block, written down from RFC 8439 and for nothing but this test."""
    start = [
        *struct.unpack("<4I", b"expand 32-byte k"),
        *struct.unpack("<8I", key),
        counter,
        *struct.unpack("<3I", nonce),
    ]
    state = list(start)

    def quarter(*places: int) -> None:
        a, b, c, d = places
        for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) % 2**32
            mixed = state[z] ^ state[x]
            state[z] = (mixed << by | mixed >> (32 - by)) % 2**32

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *((a + b) % 2**32 for a, b in zip(state, start, strict=True)))


@pytest.mark.parametrize("block", [0, 1, 2**31, 2**32 - 1])
def test_words_of_the_device_are_the_ciphers(block: int) -> None:
    key, nonce = hashlib.sha256(b"key").digest(), hashlib.sha256(b"nonce").digest()[:12]
    numbers = struct.unpack("<8Q", chacha20(key, block, nonce))
    assert [n for pair in cipher.words_of(key, nonce, block) for n in pair] == list(numbers)


def test_the_ciphers_published_block() -> None:
    """RFC 8439, section 2.3.2."""
    block = chacha20(bytes(range(32)), 1, bytes.fromhex("000000090000004a00000000"))
    assert block[:16].hex() == "10f1e7e4d13b5915500fdd1fa32071c4"


# noise as it arrives in a model


class Flat(nn.Module):
    """One layer of many parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1000, 120, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


def gradient(plan: Plan, parts: list[int], seed: int = 0) -> tuple[Run, Tensor]:
    """The gradient of one step on a batch of examples whose own gradients are 0, times the constant that divides."""
    model = Flat()
    run = Run(
        model, torch.optim.SGD(model.parameters(), 0.0), plan, lambda m, x: 0 * m(x).sum(1), bits=SeededBits(seed)
    )
    run.step(Batch([lambda n=n: ((torch.ones(n, 1000),), None) for n in parts]))  # type: ignore[misc]
    assert model.layer.weight.grad is not None
    return run, model.layer.weight.grad.flatten() * plan.batch


@pytest.mark.parametrize("parts", [[4], [4, 3, 1], []])
@pytest.mark.parametrize("clipping", ["flat", "automatic", "adaptive"])
def test_noise_of_a_step(clipping: str, parts: list[int]) -> None:
    stated = plan(clipping=clipping, clip=0.4, noise=1.7)
    run, got = gradient(stated, parts)
    assert abs(float(got.double().std()) / (stated.gradient_noise * 0.4) - 1) < 0.01
    assert kstest(got.double().numpy() / (stated.gradient_noise * 0.4), norm.cdf).pvalue > FALSE_ALARM
    assert (run.clip == 0.4) == (clipping != "adaptive")


@pytest.mark.parametrize("changes", [{"rate": 0.5}, {"rate": 0.01}, {"batch": 1000.0}, {"steps": 1000}])
def test_noise_depends_on_nothing_else(changes: dict[str, Any]) -> None:
    _, got = gradient(plan(**changes), [2])
    assert abs(float(got.double().std()) / 2.0 - 1) < 0.01


def test_every_step_draws_afresh() -> None:
    model = Flat()
    run = Run(model, torch.optim.SGD(model.parameters(), 0.0), plan(), lambda m, x: 0 * m(x).sum(1))
    seen = []
    for _ in range(2):
        run.step(Batch([]))
        assert model.layer.weight.grad is not None
        seen.append(model.layer.weight.grad.flatten().clone())
    assert abs(float(torch.corrcoef(torch.stack(seen))[0, 1])) < 0.03


def test_noise_on_the_share_of_clipped_gradients() -> None:
    """The clip norm moves by the noisy share: over many empty steps, by as much noise as the plan pays for."""
    stated = plan(clipping="adaptive", steps=400, noise=1.0)
    model = nn.Linear(1, 1)
    run = Run(model, torch.optim.SGD(model.parameters(), 0.0), stated, lambda m, x: m(x)[:, 0], bits=SeededBits(5))
    clips = [run.clip]
    for _ in range(400):
        run.step(Batch([]))
        clips.append(run.clip)
    shares = -np.diff(np.log(clips)) / 0.2
    assert abs(shares.std() / (stated.count_noise / stated.batch) - 1) < 0.15
