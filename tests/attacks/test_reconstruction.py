"""The three attacks: against independent twins, the theorems of the notes, the figures of the field, and hubbub."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from scipy.stats import binom, norm
from support import SeededBits

import hubbub as hb
from hubbub.attacks import (
    AllSubsets,
    RandomSubsets,
    exact,
    made_up_bits,
    questions,
    reconstruct,
    released,
    rounded,
    suppressed,
)
from hubbub.attacks.exhaustive import largest_errors
from hubbub.errors import ParameterError, ParameterTypeError

FALSE_ALARM = 1e-6


def misleading(asked, secret: np.ndarray, decoy: np.ndarray, error: float) -> np.ndarray:
    """Answers within the error of the truth, as near to another database's as they can be."""
    truth = asked.counts(secret)
    return np.clip(asked.counts(decoy), truth - error, truth + error).astype(float)


@given(data=st.data(), people=st.integers(1, 9), error=st.sampled_from([0, 0.1, 0.5, 1, 1.5, 2]))
def test_theorem_1_exhaustive_search_is_within_4_errors_always(data: st.DataObject, people: int, error: float) -> None:
    bits = st.lists(st.integers(0, 1), min_size=people, max_size=people)
    secret, decoy = np.array(data.draw(bits)), np.array(data.draw(bits))
    asked = AllSubsets(people)
    if data.draw(st.booleans()):
        answers = misleading(asked, secret, decoy, error)
    else:
        seed = data.draw(st.integers(0, 2**32))
        answers = asked.counts(secret) + np.random.default_rng(seed).uniform(-error, error, len(asked))
    guess = reconstruct(asked, answers, "exhaustive", max_error=error)
    assert guess.residual <= error + 1e-9
    assert guess.bound == 4 * error
    assert guess.confidence == 1
    assert guess.wrong(secret) <= guess.radius <= guess.bound
    given_as_matrix = reconstruct(asked.matrix(), answers, "exhaustive", max_error=error)
    assert (given_as_matrix.bound, given_as_matrix.radius) == (guess.bound, guess.radius)


@pytest.mark.parametrize("error", [1, 2])
def test_theorem_1_cannot_be_bettered(error: int) -> None:
    """Half-way between two databases 4E apart both fit: a guess right about one is 4E wrong about the other."""
    secret = np.array([1] * 2 * error + [0] * 2 * error)
    asked = AllSubsets(4 * error)
    answers = (asked.counts(secret) + asked.counts(1 - secret)) / 2
    guess = reconstruct(asked, answers, "exhaustive", max_error=error)
    assert max(guess.wrong(secret), guess.wrong(1 - secret)) == guess.radius == guess.bound == 4 * error


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 30))
def test_exhaustive_search_against_a_plain_loop(seed: int, people: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 2, (count, people))
    answers = rng.integers(0, people + 1, count) + rng.choice([0, 0.25], count)
    errors = largest_errors(questions(matrix), answers)
    databases = (np.arange(2**people)[:, None] >> np.arange(people)) & 1
    plain = np.abs(databases @ matrix.T - answers).max(axis=1)
    np.testing.assert_allclose(errors, plain, atol=1e-12)
    guess = reconstruct(matrix, answers, "exhaustive", max_error=float(plain.min()) + 0.5)
    assert guess.residual == pytest.approx(plain.min())
    fitting = databases[plain <= plain.min() + 0.5 + 1e-9]
    assert guess.radius == np.abs(fitting - guess.bits).sum(axis=1).max()


def test_twenty_people_are_searched_at_once() -> None:
    secret, asked = made_up_bits(20, 0.4, seed=1), AllSubsets(20)
    answers = misleading(asked, secret, made_up_bits(20, 0.5, seed=2), 1)
    guess = reconstruct(asked, answers, "exhaustive", max_error=1)
    assert guess.wrong(secret) <= 4
    with pytest.raises(ParameterError, match="at most 24 for exhaustive search; use lp or least-squares"):
        reconstruct(RandomSubsets(50, 25), np.zeros(50), "exhaustive")


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("error", [0.0, 0.1, 0.2])
def test_theorem_2_on_random_instances(seed: int, error: float) -> None:
    people = 14
    secret, decoy = made_up_bits(people, 0.5, seed), made_up_bits(people, 0.4, seed + 100)
    asked = RandomSubsets(20 * people, people, seed)
    guess = reconstruct(asked, misleading(asked, secret, decoy, error), "exhaustive", max_error=error)
    assert guess.bound == 256 * error**2
    assert guess.confidence == 1 - 2**-people
    assert guess.wrong(secret) <= min(guess.bound, guess.radius)


def test_theorem_2_for_many_people_by_least_squares() -> None:
    people, error = 1000, 1.5
    secret, asked = made_up_bits(people, 0.5, 1), RandomSubsets(20 * people, people, 2)
    answers = misleading(asked, secret, 1 - secret, error)
    guess = reconstruct(asked, answers, max_error=error)
    assert guess.residual <= 3 * error
    assert guess.wrong(secret) <= guess.bound == 256 * error**2 < people


def test_the_step_of_theorem_2_that_is_left_as_an_exercise() -> None:
    """Where d > 256 E**2 bits differ, two random counts are within 4E with probability at most 0.6 <= 9/10."""
    for error in (0.0, 0.1, 0.2, 0.25, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0):
        d = math.floor(256 * error**2) + 1
        for differing in (d, d + 1, 2 * d, 10 * d):
            chances = binom.pmf(np.arange(differing + 1), differing, 0.5)
            width = 2 * math.floor(4 * error) + 1  # wherever the binomial is shifted to
            assert np.convolve(chances, np.ones(width)).max() <= 0.6


def test_where_no_theorem_applies_there_is_no_bound() -> None:
    secret, people = made_up_bits(10, 0.5), 10
    few, many = RandomSubsets(199, people), RandomSubsets(200, people)
    assert reconstruct(many, exact(secret), "exhaustive", max_error=0).bound == 0
    assert reconstruct(many, exact(secret), "exhaustive").bound is None
    assert reconstruct(few, exact(secret), "exhaustive", max_error=0).bound is None
    assert (
        reconstruct(many.matrix(), exact(secret), "exhaustive", max_error=0).bound is None
    )  # who knows how it was drawn
    withheld = reconstruct(many, suppressed(secret, 2), "exhaustive", max_error=0)
    assert withheld.answered < 200
    assert withheld.bound is None
    assert withheld.radius == 0
    all_but_small = reconstruct(AllSubsets(10), suppressed(secret, 2), "exhaustive", max_error=0)
    assert all_but_small.bound is None
    assert all_but_small.wrong(secret) == 0
    refuted = reconstruct(AllSubsets(10), exact(secret)(AllSubsets(10)) + 7, "exhaustive", max_error=1)
    assert (refuted.bound, refuted.radius) == (None, None)
    poor = reconstruct(many, np.arange(200.0) % 9, max_error=0.1)  # fits worse than 3E
    assert poor.bound is None


def test_a_guess_that_fits_badly_has_a_bound_that_says_so() -> None:
    asked, secret = AllSubsets(8), made_up_bits(8, 0.5)
    answers = misleading(asked, secret, 1 - secret, 1.5)
    guess = reconstruct(asked, answers, "least-squares", max_error=1.5)
    assert guess.wrong(secret) <= guess.bound == 2 * (1.5 + max(1.5, guess.residual))


@pytest.mark.parametrize("objective", ["l1", "max-error"])
@pytest.mark.parametrize("seed", range(5))
def test_the_programs_against_their_primal_forms(objective: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, people = rng.integers(0, 2, (40, 12)).astype(float), 12
    answers = matrix @ rng.integers(0, 2, people) + rng.normal(0, 3, 40)
    found = reconstruct(matrix, answers, "lp", objective=objective).scores
    assert ((found >= 0) & (found <= 1)).all()
    errors = np.abs(matrix @ found - answers)
    if objective == "l1":
        rows = np.block([[matrix, -np.eye(40)], [-matrix, -np.eye(40)]])
        costs = np.r_[np.zeros(people), np.ones(40)]
        reached = errors.sum()
    else:
        rows = np.block([[matrix, -np.ones((40, 1))], [-matrix, -np.ones((40, 1))]])
        costs = np.r_[np.zeros(people), 1.0]
        reached = errors.max()
    limits = [(0, 1)] * people + [(0, None)] * (len(costs) - people)
    best = linprog(costs, A_ub=rows, b_ub=np.r_[answers, -answers], bounds=limits).fun
    assert reached == pytest.approx(best, rel=1e-6)


def test_gross_errors_in_a_fifth_of_the_answers_do_not_matter_to_l1() -> None:
    people, count = 256, 5 * 256
    secret, asked = made_up_bits(people, 0.5, 3), RandomSubsets(count, people, 4)
    rng = np.random.default_rng(5)
    answers = exact(secret)(asked)
    gross = rng.permutation(count)[: count // 5]
    answers[gross] = rng.uniform(0, people, len(gross))
    assert reconstruct(asked, answers, "lp").wrong(secret) == 0
    assert reconstruct(asked, answers, "least-squares").wrong(secret) > 10  # squares do mind


@pytest.mark.long
def test_a_thousand_people_by_linear_programming() -> None:
    people, count = 1000, 5000
    secret, asked = made_up_bits(people, 0.5, 3), RandomSubsets(count, people, 4)
    answers = exact(secret)(asked) + np.random.default_rng(1).normal(0, 0.25 * math.sqrt(people), count)
    assert reconstruct(asked, answers, "lp").accuracy(secret) > 0.92
    assert reconstruct(asked, answers, "lp", objective="max-error").accuracy(secret) > 0.8


@pytest.mark.parametrize(
    ("per_person", "c", "about"), [(5, 0.1, 1.0), (5, 0.25, 0.97), (5, 0.5, 0.83), (10, 0.5, 0.93)]
)
def test_accuracy_of_least_squares_is_what_theory_says(per_person: int, c: float, about: float) -> None:
    people = 1000
    rates = []
    for seed in range(6):
        secret, asked = made_up_bits(people, 0.5, seed), RandomSubsets(per_person * people, people, seed)
        noise = np.random.default_rng(seed).normal(0, c * math.sqrt(people), len(asked))
        rates.append(reconstruct(asked, exact(secret)(asked) + noise).accuracy(secret))
    assert np.mean(rates) == pytest.approx(norm.cdf(math.sqrt(per_person - 1) / (4 * c)), abs=0.015)
    assert np.mean(rates) == pytest.approx(about, abs=0.02)


def test_least_squares_is_least_squares() -> None:
    rng = np.random.default_rng(2)
    matrix = rng.integers(0, 2, (90, 30))
    answers = matrix @ rng.integers(0, 2, 30) + rng.normal(0, 2, 90)
    solved = np.linalg.lstsq(matrix, answers)[0]
    for form in (matrix, sparse.csc_matrix(matrix)):
        np.testing.assert_allclose(reconstruct(form, answers).scores, solved, atol=1e-4)
    believed = reconstruct(matrix, answers, stddev=2.0, share=0.3).scores
    ridge = np.linalg.solve(matrix.T @ matrix + 4 / 0.21 * np.eye(30), matrix.T @ (answers - matrix @ np.full(30, 0.3)))
    np.testing.assert_allclose(believed, 0.3 + ridge, atol=1e-4)
    few = reconstruct(matrix[:10], answers[:10])  # too few questions: the belief decides
    assert few.residual < 20


def test_rounding_and_thresholds_stop_nothing() -> None:
    people = 400
    secret, asked = made_up_bits(people, 0.3, 1), RandomSubsets(4 * people, people, 2)
    for answering in (exact(secret), rounded(secret, 5), suppressed(secret, 5)):
        guess = reconstruct(asked, answering)
        assert guess.wrong(secret) == 0
        assert guess.answered == len(asked)
    half_withheld = reconstruct(asked, suppressed(secret, 60))
    assert people < half_withheld.answered < len(asked)
    assert half_withheld.wrong(secret) == 0


def no_better_than(chance: float, people: int) -> int:
    """The most bits right that guessing, each bit right with this chance, has but once in a million times."""
    return int(binom.isf(FALSE_ALARM, people, chance))


@pytest.mark.parametrize("share", [0.5, 0.3])
@pytest.mark.parametrize(
    ("method", "options", "people", "runs"),
    [
        ("least-squares", {}, 1000, 1),
        ("least-squares", {"belief": True}, 1000, 1),
        ("lp", {"objective": "l1"}, 150, 1),
        ("lp", {"objective": "max-error"}, 100, 1),
        ("exhaustive", {}, 12, 50),
    ],
)
def test_against_hubbub_at_epsilon_1_no_better_than_guessing_the_majority(
    share: float, method: str, options: dict, people: int, runs: int
) -> None:
    """All answers together cost epsilon = 1. False alarms: at most 1e-6 a case; exact answers do fail the same test."""
    right = bare_right = majority = 0
    for seed in range(runs):
        secret, asked = made_up_bits(people, share, seed), RandomSubsets(5 * people, people, seed)
        mechanism = hb.Laplace(asked.overlap, epsilon=1)
        assert mechanism.loss.epsilon() == 1
        belief = {"stddev": math.sqrt(mechanism.variance), "share": share} if "belief" in options else options
        answering = released(secret, lambda counts, m=mechanism, s=seed: m.release(counts, SeededBits(s)))
        right += people - reconstruct(asked, answering, method, **belief).wrong(secret)
        bare_right += people - reconstruct(asked, exact(secret), method).wrong(secret)
        majority += max(secret.sum(), people - secret.sum())
    bar = no_better_than(majority / (people * runs), people * runs)
    assert right <= bar < bare_right
    if "belief" in options and share < 0.5:
        assert right == majority  # whoever weighs the noise rightly guesses the majority


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "magic"}, "method='magic' must be one of"),
        ({"method": "lp", "objective": "l2"}, "objective='l2' must be one of"),
        ({"max_error": -1}, "max_error=-1 must be >= 0"),
        ({"max_error": math.nan}, "max_error=nan must be >= 0"),
        ({"stddev": -1}, "stddev=-1 must be >= 0"),
        ({"share": 0}, "share=0 must lie strictly between"),
        ({"method": "lp", "stddev": 1}, "makes no use of stddev and share; use least-squares"),
        ({"answers": [1.0]}, r"answers=\(1,\) must have the shape \(3,\)"),
        ({"answers": [1, math.inf, 0]}, "must be finite"),
        ({"answers": [math.nan] * 3}, "must hold some numbers"),
    ],
)
def test_what_cannot_be_asked_is_refused(options: dict, words: str) -> None:
    given = {"queries": [[1, 0], [0, 1], [1, 1]], "answers": [1, 0, 1]} | options
    with pytest.raises(ParameterError, match=words):
        reconstruct(**given)


def test_answers_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ParameterTypeError, match="must be numbers, one a question"):
        reconstruct([[1, 0]], ["many"])
