import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse

from hubbub import attacks
from hubbub.attacks import AllSubsets, RandomSubsets, exact, questions, released, rounded, suppressed
from hubbub.errors import DataTypeError, ParameterError, ParameterTypeError


@pytest.mark.parametrize("people", [1, 7, 8, 9, 31])
def test_every_form_of_questions_counts_alike(people: int) -> None:
    drawn = RandomSubsets(50, people, seed=people)
    matrix = drawn.matrix().toarray()
    assert matrix.shape == (50, people)
    assert set(np.unique(matrix)) <= {0.0, 1.0}
    rng = np.random.default_rng(1)
    values, weights, keep = rng.normal(size=people), rng.normal(size=50), rng.random(50) < 0.5
    bits = rng.integers(0, 2, people)
    for asked in (drawn, questions(matrix), questions(matrix.astype(bool)), questions(sparse.coo_array(matrix))):
        assert (len(asked), asked.people) == (50, people)
        np.testing.assert_allclose(asked.dot(values), matrix @ values, atol=1e-12)
        np.testing.assert_allclose(asked.dot_transposed(weights), matrix.T @ weights, atol=1e-12)
        np.testing.assert_array_equal(asked.counts(bits), matrix @ bits)
        np.testing.assert_array_equal(asked.numbers(), matrix.astype(np.int64) @ (1 << np.arange(people)))
        np.testing.assert_array_equal(asked.matrix().toarray(), matrix)
        np.testing.assert_array_equal(asked.only(keep).matrix().toarray(), matrix[keep])
        assert asked.overlap == matrix.sum(axis=0).max()


def test_random_subsets_are_public_and_uniform() -> None:
    asked = RandomSubsets(20_000, 19, seed=5)
    assert asked == RandomSubsets(20_000, 19, seed=5)
    np.testing.assert_array_equal(asked.packed, RandomSubsets(20_000, 19, seed=5).packed)
    assert (asked.packed != RandomSubsets(20_000, 19, seed=6).packed).any()
    matrix = asked.matrix().toarray()
    spread = np.sqrt(0.25 / 20_000)
    assert np.abs(matrix.mean(axis=0) - 0.5).max() < 6.5 * spread  # 19 columns, 1e-9
    pairs = np.corrcoef(matrix.T) - np.eye(19)
    assert np.abs(pairs).max() < 7 / np.sqrt(20_000)


def test_all_subsets_and_how_they_are_recognised() -> None:
    asked = AllSubsets(9)
    assert asked.holds_every_subset
    np.testing.assert_array_equal(asked.counts(np.ones(9, np.int64)), [bin(q).count("1") for q in range(512)])
    matrix = asked.matrix().toarray()
    shuffled = np.random.default_rng(1).permutation(matrix)
    assert questions(shuffled).holds_every_subset
    assert questions(sparse.csr_array(matrix)).holds_every_subset
    assert questions(matrix[1:]).holds_every_subset  # nobody need ask about nobody
    assert not questions(matrix[:-1]).holds_every_subset
    assert not questions(np.repeat(matrix[:256], 2, axis=0)).holds_every_subset
    assert not RandomSubsets(600, 9).holds_every_subset


@pytest.mark.parametrize(
    "queries", [[[0, 2]], [[0.5, 1]], [1, 0], [[1], [0, 1]], [], [[]], "ab", None, sparse.csr_array([[2.0, 1.0]])]
)
def test_what_is_no_question_is_refused(queries: object) -> None:
    with pytest.raises(ParameterTypeError, match="must be a 0/1 matrix"):
        questions(queries)


def test_sizes_that_cannot_be_are_refused() -> None:
    for count, people in ((0, 5), (5, 0)):
        with pytest.raises(ParameterError, match="must be >= 1"):
            RandomSubsets(count, people)
    with pytest.raises(ParameterTypeError, match="must be an int"):
        RandomSubsets(2.5, 3)
    with pytest.raises(ParameterError, match="at most 24"):
        AllSubsets(25)
    with pytest.raises(ParameterError, match="at most 62"):
        RandomSubsets(3, 63).numbers()


def test_ways_of_answering() -> None:
    secret, asked = [1, 1, 1, 0, 1, 1, 0, 1], questions(np.tril(np.ones((8, 8), int)))
    counts = [1, 2, 3, 3, 4, 5, 5, 6]
    assert exact(secret)(asked).tolist() == counts
    assert rounded(secret, 5)(asked).tolist() == [0, 0, 5, 5, 5, 5, 5, 5]
    np.testing.assert_array_equal(suppressed(secret, 4)(asked), [np.nan] * 4 + [4, 5, 5, 6])
    assert released(secret, lambda n: n + 1)(asked).tolist() == [n + 1 for n in counts]
    with pytest.raises(ParameterError, match="base"):
        rounded(secret, 0)
    for wrong in ([0, 2], [[0, 1]], ["a"], [0.5]):
        with pytest.raises(DataTypeError) as refusal:
            exact(wrong)
        assert "2" not in str(refusal.value)
        assert "0.5" not in str(refusal.value)


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda: attacks.exact([1, 0, 1])(RandomSubsets(2, 2)), "people=2 are asked about"),
        (lambda: attacks.reconstruct([[1]], [1]).wrong([1, 0]), "people=1 were reconstructed"),
        (lambda: attacks.reconstruct([[1]], [1e200]), "answers='inf' must be finite"),
        (lambda: attacks.reconstruct([[1]], [1], max_error="much"), "max_error='much' must be a number"),
        (lambda: attacks.reconstruct([[1]], [1], stddev=math.nan), "stddev=nan must be >= 0"),
        (lambda: attacks.reconstruct([[1]], [1], share=None), "share=None must be a number"),
        (lambda: attacks.made_up_bits(10, 2), "share=2 must lie in"),
        (lambda: attacks.made_up_bits(0), "people=0 must be >= 1"),
        (lambda: RandomSubsets(3, 3, seed=-1), "seed=-1 must be >= 0"),
        (lambda: suppressed([1, 0], below=0), "below=0 must be >= 1"),
        (lambda: attacks.difference(math.inf, 1), "answers='inf' must be finite"),
        (lambda: attacks.difference("one", 1), "answers='str' must be numbers"),
        (lambda: attacks.difference(1, 0, values=(0, 1, 1)), "each listed once"),
        (lambda: attacks.difference(1, 0, values=()), "values=\\(\\) must be"),
        (lambda: attacks.difference(1, 0, sizes=(0, 1)), "sizes=0 must be >= 1"),
        (lambda: attacks.difference(math.nan, 0, noise=(np.arange(2), np.ones(2) / 2)), "answers='nan'"),
        (lambda: attacks.withheld_cells([[-4, 1]], below=3), "must be counts"),
        (lambda: attacks.withheld_cells([[1, 2]], below=0), "below=0 must be >= 1"),
        (lambda: attacks.pair_columns([1, 0]), "two columns or more"),
        (lambda: attacks.predicted_power(0.01, people=0, attributes=4), "people=0 must be >= 1"),
        (lambda: attacks.predicted_power(0.01, people=5, attributes=4, share=1), "share=1 must lie"),
        (lambda: attacks.predicted_accuracy(-1, people=2, count=5), "stddev=-1 must be >= 0"),
        (lambda: attacks.AdditiveCounterexample("each row", 5.5, 0.1), "people=5.5 must be an int"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(attempt: Callable[[], object], words: str) -> None:
    with pytest.raises((ParameterError, ParameterTypeError), match=words):
        attempt()
