"""Choosing questions: from public rows and a student alone."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from hubbub.errors import ParameterError
from hubbub.learning.pate import Confident, GaussianMax, LaplaceMax, doubtful, most_answers, spread


def test_spread_asks_about_every_cluster_once_and_lists_every_row() -> None:
    centres = np.array([[0, 0], [9, 0], [0, 9], [9, 9]])
    rows = np.repeat(centres, 25, axis=0) + np.random.default_rng(0).normal(0, 0.3, (100, 2))
    order = spread(rows, 4)
    assert sorted(order.tolist()) == list(range(100))
    assert sorted((order[:4] // 25).tolist()) == [0, 1, 2, 3]
    assert sorted(spread(np.zeros((5, 2, 2)), 1).tolist()) == list(range(5))
    with pytest.raises(ParameterError, match="at most"):
        spread(rows, 101)


def test_doubtful_begins_where_the_student_is_least_sure() -> None:
    rows = np.linspace(-1, 1, 41)[:, None]
    student = LogisticRegression().fit(rows, (rows[:, 0] > 0).astype(int))
    assert abs(rows[doubtful(student, rows)[0], 0]) < 0.06
    assert abs(rows[doubtful(student, rows)[-1], 0]) == 1


@pytest.mark.parametrize(
    ("aggregator", "asked"), [(GaussianMax(50), None), (Confident(200, check_sigma=150, sigma=40), 640)]
)
def test_as_many_answers_as_fit_and_no_more(aggregator: object, asked: int | None) -> None:
    found = most_answers(aggregator, epsilon=1.97, delta=1e-5, asked=asked)
    assert aggregator.loss(asked or found, found).epsilon(1e-5) <= 1.97
    assert aggregator.loss(asked or found + 1, found + 1).epsilon(1e-5) > 1.97
    assert most_answers(LaplaceMax(20), epsilon=1, delta=0) == 10
