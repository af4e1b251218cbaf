import math

import numpy as np
import pytest
from scipy.stats import norm
from support import SeededBits

import hubbub as hb
from hubbub.attacks import (
    AllSubsets,
    RandomSubsets,
    attack_curve,
    guessing_accuracy,
    guessing_noise,
    made_up_bits,
    predicted_accuracy,
)
from hubbub.errors import ParameterError


def gaussian(sd: float):
    return lambda counts: hb.Gaussian(1.0, sigma=sd).release(counts, SeededBits(1))


def test_theory() -> None:
    for k, c in ((5, 0.25), (10, 0.5), (2, 1.0)):
        accuracy = predicted_accuracy(c * math.sqrt(400), people=400, count=400 * k)
        assert accuracy == pytest.approx(norm.cdf(math.sqrt(k - 1) / (4 * c)))
    assert predicted_accuracy(0, people=10, count=20) == 1
    with pytest.raises(ParameterError, match="must be more than people"):
        predicted_accuracy(1, people=10, count=10)
    noise = guessing_noise(people=400, count=2000, share=0.3)
    assert predicted_accuracy(noise, people=400, count=2000) == pytest.approx(guessing_accuracy(0.3, 400))
    assert guessing_accuracy(0.3, 400) == guessing_accuracy(0.7, 400) > 0.7
    assert guessing_noise(people=4, count=8, share=0.9) == 0  # so few and so alike: any attacker may have guessed


def test_the_same_attack_against_growing_noise_follows_theory_down_to_guessing() -> None:
    people, seen = 600, []
    secret, asked = made_up_bits(people, 0.5, 1), RandomSubsets(5 * people, people, 2)
    noises = [2.0, 8.0, 15.0, 40.0, 1000.0, 3000.0]
    curve = attack_curve(secret, gaussian, noises, questions=asked, each=lambda: seen.append(1))
    assert len(seen) == len(noises)
    for point in curve.points:
        assert point.accuracy == pytest.approx(curve.theory(point.noise), abs=0.07)
    assert curve.points[0].accuracy == 1
    assert curve.falls_to_guessing in (40.0, 1000.0)
    assert curve.guessing_noise == pytest.approx(guessing_noise(people=people, count=5 * people, share=0.5))
    assert curve.label == "5 questions a person"


def test_where_there_is_no_theory() -> None:
    secret = made_up_bits(8, 0.5)
    curve = attack_curve(secret, gaussian, [0.1, 0.2], questions=AllSubsets(8), method="exhaustive")
    assert curve.theory(1.0) is None
    assert curve.guessing_noise is None
    assert curve.falls_to_guessing is None or curve.falls_to_guessing == pytest.approx(0.1)
    few = attack_curve(secret, gaussian, [0.1], questions=RandomSubsets(8, 8))
    assert few.theory(1.0) is None


def test_any_answering_will_do() -> None:
    secret, asked = made_up_bits(300, 0.5), RandomSubsets(1500, 300)
    curve = attack_curve(secret, lambda base: lambda counts: base * np.rint(counts / base), [1, 5], questions=asked)
    assert [point.accuracy for point in curve.points] == [1, 1]
