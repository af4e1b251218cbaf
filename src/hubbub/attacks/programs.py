"""Linear programs on HiGHS (DMT07): the fractional database that fits the answers best.

Both programs are handed over as their duals. Those have a row a person instead of a row a question, so that an
interior-point step factors a matrix of people by people; the database is read off the dual prices.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from hubbub.attacks.questions import Floats, Questions
from hubbub.errors import HubbubError

Objective = Literal["l1", "max-error"]


class NoSolution(HubbubError, RuntimeError):
    """The solver gave up on a linear program; its message is kept."""


def fractional(asked: Questions, answers: Floats, objective: Objective) -> Floats:
    """Values in [0, 1], one a person, with the least total error ("l1") or the least largest error ("max-error")."""
    return _least_total(asked, answers) if objective == "l1" else _least_largest(asked, answers)


def _least_total(asked: Questions, answers: Floats) -> Floats:
    """min sum |Q x - a| over x in [0, 1]: dual to max a.y - sum z with Q' y <= z, -1 <= y <= 1, 0 <= z."""
    from scipy import sparse

    people = asked.people
    rows = sparse.hstack([asked.matrix().T, -sparse.eye_array(people)], format="csc")
    costs = np.concatenate([-answers, np.ones(people)])
    limits = np.zeros((len(costs), 2))
    limits[: len(asked)] = -1.0, 1.0
    limits[len(asked) :, 1] = np.inf
    return _prices(costs, rows, np.zeros(people), limits)


def _least_largest(asked: Questions, answers: Floats) -> Floats:
    """min max |Q x - a| over x in [0, 1]: dual to max a.(u - w) - sum z with Q'(u - w) <= z, sum(u + w) <= 1."""
    from scipy import sparse

    people, transposed = asked.people, asked.matrix().T
    rows = sparse.vstack(
        [
            sparse.hstack([transposed, -transposed, -sparse.eye_array(people)]),
            sparse.csr_array(np.repeat([1.0, 0.0], [2 * len(asked), people])[None, :]),
        ],
        format="csc",
    )
    costs = np.concatenate([-answers, answers, np.ones(people)])
    limits = np.zeros((len(costs), 2))
    limits[:, 1] = np.inf
    return _prices(costs, rows, np.append(np.zeros(people), 1.0), limits)[:people]


def _prices(costs: Floats, rows: Any, right: Floats, limits: Any) -> Floats:
    """What one unit more of each right-hand side would gain: the variables of the program this one is dual to."""
    from scipy.optimize import linprog

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solved = linprog(costs, A_ub=rows, b_ub=right, bounds=limits, method="highs-ipm")
    if solved.status != 0:
        raise NoSolution(f"the linear program of {rows.shape[0]} by {rows.shape[1]} was not solved: {solved.message}")
    prices: Floats = -np.asarray(solved.ineqlin.marginals, np.float64)
    return prices.clip(0.0, 1.0)
