import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import SeededBits

import hubbub as hb
from hubbub.attacks import difference, exact, made_up_bits, released, rounded, single_out, suppressed, withheld_cells
from hubbub.attacks.singling import ALONE, BROUGHT, EVERYBODY, STRANGERS
from hubbub.errors import ParameterError

NAN = math.nan


@pytest.mark.parametrize(("a", "b", "value"), [(98, 97, 1), (97, 97, 0), (97, 98, 1), (1, 0, 1)])
def test_exact_counts_give_the_bit_away(a: int, b: int, value: int) -> None:
    learnt = difference(a, b)
    assert (learnt.value, learnt.low, learnt.high, learnt.guess) == (value, value, value, value)
    assert learnt.posterior[value] == 1


def test_the_village_of_the_notes() -> None:
    """Yearly means of the opinions of everybody: the newcomer's is the difference of the sums."""
    before, after = 97 / 212, 98 / 213
    assert difference(after, before, sizes=(213, 212)).value == 1
    assert difference(97 / 213, before, sizes=(213, 212)).value == 0
    many = difference(333_334 / 1_000_001, 333_333 / 1_000_000, sizes=(1_000_001, 1_000_000))
    assert many.value == 1  # floats and all
    salaries = difference(50_100.0, 50_000.0, sizes=(101, 100), values=None)
    assert salaries.value == pytest.approx(60_100)


def test_errors_leave_an_interval() -> None:
    learnt = difference(100.5, 97.0, values=None, max_error=1.0)
    assert (learnt.low, learnt.high, learnt.value) == (1.5, 5.5, None)
    assert difference(100, 99, max_error=0.4).value == 1
    assert difference(100, 99, max_error=0.5).value is None
    assert difference(100, 99, max_error=(0.4, 0.5)).value == 1
    unsure = difference(100, 100, max_error=2, prior=(3, 1))
    assert (unsure.low, unsure.high) == (0, 1)
    assert unsure.posterior == {0: 0.75, 1: 0.25}
    assert difference(33, 30, values=(0, 1, 2, 3)).value == 3
    assert difference([10, 20], [9, 20], max_error=0.6).value is None
    assert difference([10, 20], [9, 19], max_error=0.5, values=(0, 1, 2)).low == 0
    assert difference([10, 20.7], [9, 19], max_error=0.5, values=None).low == pytest.approx(0.7)


def test_shown_against_withheld_gives_the_bit_away() -> None:
    assert difference(5, NAN, below=5).value == 1
    assert difference(NAN, NAN, below=5).value is None
    assert difference(6, 5, below=5).value == 1
    with pytest.raises(ParameterError, match="say below which threshold"):
        difference(5, NAN)


def log_chance(law: tuple[np.ndarray, np.ndarray], gap: int) -> float:
    """Two independent noises of the law differ by the gap: by a plain double loop."""
    pairs = product(zip(*law, strict=True), zip(*law, strict=True))
    return math.log(math.fsum(p * q for (x, p), (y, q) in pairs if x - y == gap))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("gap", [-3, 0, 1, 4])
def test_noisy_counts_leave_the_posterior_of_bayes_rule(epsilon: float, gap: int) -> None:
    law = hb.Laplace(1, epsilon=epsilon).distribution(0)
    learnt = difference(50 + gap, 50, noise=law, prior=(0.7, 0.3))
    odds = math.exp(log_chance(law, gap - 1) - log_chance(law, gap)) * 0.3 / 0.7
    assert learnt.posterior[1] == pytest.approx(odds / (1 + odds), rel=1e-9)
    assert learnt.value is None
    known_rest = difference(50 + gap, 50, noise=(law, None))
    ratio = math.exp(-epsilon * (abs(gap - 1) - abs(gap)))
    assert known_rest.posterior[1] == pytest.approx(ratio / (1 + ratio))


@given(st.lists(st.integers(-99, 99), min_size=1, max_size=5), st.sampled_from([0.1, 1.0]))
def test_beliefs_move_by_no_more_than_epsilon_a_pair(gaps: list[int], epsilon: float) -> None:
    law = hb.Laplace(1, epsilon=epsilon).distribution(0)
    learnt = difference(gaps, [0] * len(gaps), noise=law)
    assert abs(math.log(learnt.posterior[1] / learnt.posterior[0])) <= epsilon * len(gaps) + 1e-9


def test_asking_again_and_again_wears_the_noise_down() -> None:
    mechanism, bits = hb.Laplace(1, epsilon=1), SeededBits(1)
    law = mechanism.distribution(0)
    a, b = mechanism.release(np.full(200, 98), bits), mechanism.release(np.full(200, 97), bits)
    assert difference(a[:1], b[:1], noise=law).posterior[1] < 0.74
    assert difference(a, b, noise=law).posterior[1] > 0.999


def test_noise_with_an_end_can_give_the_bit_away() -> None:
    law = hb.TruncatedLaplace(1, epsilon=1, delta=1e-3).distribution(0)
    top = int(law[0][-1])
    assert difference(97 + top + 1, 97, noise=(law, None)).value == 1
    assert difference(97 + top, 97, noise=(law, None)).value is None
    endless = hb.Laplace(1, epsilon=1).distribution(0)
    beyond = int(endless[0][-1]) + 1
    assert difference(97 + beyond, 97, noise=(endless, None)).value is None  # unlisted is not impossible


def test_float_noise_is_compared_on_its_grid() -> None:
    mechanism = hb.Laplace(1.0, epsilon=1.0, max_length=1)
    support, chances = mechanism.distribution(0.0)
    law = (support[:: len(support) // 400], chances[:: len(support) // 400] / chances[:: len(support) // 400].sum())
    step = law[0][1] - law[0][0]
    learnt = difference(10 + 3 * step, 10, values=(0, 3 * step), noise=law)
    assert learnt.guess == 3 * step
    with pytest.raises(ParameterError, match="fit none of the values"):
        difference(10 + step / 2, 10, values=(0, step), noise=law)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"a": 100, "b": 90}, "fit none of the values"),
        ({"a": [1, 2], "b": 1}, "must come in pairs"),
        ({"a": [], "b": []}, "must come in pairs"),
        ({"max_error": -1}, "max_error=-1 must be >= 0"),
        ({"prior": (1,)}, "must be 2 probabilities"),
        ({"prior": (0, 0)}, "must be 2 probabilities"),
        ({"a": [10, 10], "b": [9, 10], "values": None}, "fit no value; do they differ in one person only"),
        ({"noise": (np.arange(3), np.ones(3) / 3), "values": None}, "goes with counts and listed values only"),
        ({"noise": (np.arange(3), np.ones(3) / 3), "sizes": (2, 1)}, "goes with counts and listed values only"),
        ({"noise": ((np.arange(3), np.ones(3) / 3), (np.arange(0, 6, 2), np.ones(3) / 3))}, "two laws on one grid"),
        ({"a": 30, "b": 1, "noise": (np.arange(3), np.ones(3) / 3)}, "fit none of the values"),
    ],
)
def test_answers_that_make_no_sense_are_refused(options: dict, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        difference(**({"a": 1, "b": 0} | options))


@pytest.mark.parametrize("people", [30, 80])
def test_thresholds_and_rounding_hide_nobody(people: int) -> None:
    secret = made_up_bits(people, 0.4, people)
    for person in range(people):
        found = single_out(exact(secret), person, people)
        assert (found.value, found.trick, found.asked) == (secret[person], ALONE, 1)
        through = single_out(suppressed(secret, 5), person, people, below=5)
        assert (through.value, through.trick) == (secret[person], EVERYBODY)
        helped = single_out(
            suppressed(secret, 5), person, people, below=5, known=dict.fromkeys(friends(secret, person), 1)
        )
        assert (helped.value, helped.trick, helped.asked) == (secret[person], BROUGHT, 2)
        for base in (3, 5):
            seen = single_out(rounded(secret, base), person, people, max_error=base // 2)
            assert seen.value == secret[person]
            assert seen.trick in (EVERYBODY, STRANGERS)


def friends(secret: np.ndarray, person: int) -> list[int]:
    """Five people with the condition whom the attacker has brought along."""
    return [int(i) for i in np.flatnonzero(secret) if i != person][:5]


def test_totals_withheld_too_leave_strangers_to_be_added() -> None:
    """An office that answers about at most 20 people: asking for everybody fails, crossing the threshold works."""
    secret = made_up_bits(100, 0.5, 2)

    def careful(asked):
        answers = suppressed(secret, 5)(asked)
        return np.where(asked.dot(np.ones(100)) > 20, np.nan, answers)

    found = single_out(careful, 7, 100, below=5, strangers=15)
    assert (found.value, found.trick) == (secret[7], STRANGERS)


def test_noise_leaves_nobody_certain() -> None:
    secret, mechanism, bits = made_up_bits(60, 0.5, 2), hb.Laplace(1, epsilon=0.5), SeededBits(3)
    answering = released(secret, lambda counts: mechanism.release(counts, bits))
    reach = mechanism.error(1 - 1e-9)
    assert all(single_out(answering, person, 60, max_error=reach).value is None for person in range(60))
    with pytest.raises(ParameterError, match="is less than the answers err by: they fit no bit"):
        [single_out(answering, person, 60) for person in range(60)]
    with pytest.raises(ParameterError, match="person=60"):
        single_out(answering, 60, 60)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(2, 6), st.booleans())
def test_withheld_cells_are_bounded_as_trying_everything_bounds_them(seed: int, below: int, both: bool) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 9, (2, 3)).astype(float)
    shown = np.where(table < below, NAN, table)
    totals = {"row_totals": table.sum(axis=1)} | ({"column_totals": table.sum(axis=0)} if both else {})
    low, high = withheld_cells(shown, below=below, **totals)
    hidden = np.isnan(shown)
    fits = []
    for filling in product(range(below), repeat=int(hidden.sum())):
        tried = table.copy()
        tried[hidden] = filling
        if (tried.sum(axis=1) == table.sum(axis=1)).all() and (
            not both or (tried.sum(axis=0) == table.sum(axis=0)).all()
        ):
            fits.append(tried)
    np.testing.assert_array_equal(low, np.min(fits, axis=0))
    np.testing.assert_array_equal(high, np.max(fits, axis=0))


def test_cells_without_totals_stay_hidden_and_wrong_totals_are_refused() -> None:
    low, high = withheld_cells([[NAN, 7]], below=5)
    assert (low.tolist(), high.tolist()) == ([[0, 7]], [[4, 7]])
    with pytest.raises(ParameterError, match="fit no counts below the threshold"):
        withheld_cells([[NAN, 7]], below=5, row_totals=[20])
    with pytest.raises(ParameterError, match="must have the shape"):
        withheld_cells([[NAN, 7]], below=5, row_totals=[20, 1])
    with pytest.raises(ParameterError, match="must have rows and columns"):
        withheld_cells([NAN, 7], below=5)
