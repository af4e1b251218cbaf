import copy
import math
import os
import pickle
import sys
import threading

import numpy as np
import pytest

import hubbub as hb
from hubbub.errors import DataTypeError, ParameterError, SessionClosed


def test_one_answer_per_session() -> None:
    session = hb.AboveThreshold(1, threshold=0, epsilon=5).session()
    assert not session.ask(-1000)
    assert not session.closed
    assert session.ask(1000)
    assert session.closed
    with pytest.raises(SessionClosed, match="its own epsilon"):
        session.ask(1000)
    with pytest.raises(AttributeError):
        session.closed = False


def test_a_session_cannot_be_copied() -> None:
    session = hb.AboveThreshold(1, threshold=0, epsilon=1).session()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(SessionClosed, match="cannot be copied"):
            duplicate(session)
    assert "open session" in repr(session)


def test_a_session_stays_in_its_process() -> None:
    session = hb.AboveThreshold(1, threshold=0, epsilon=1).session()
    child = os.fork()
    if child == 0:
        try:
            session.ask(0)
        except SessionClosed:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_racing_threads_get_one_answer() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(60):
            session = hb.AboveThreshold(1, threshold=0, epsilon=5).session()
            answers: list[bool] = []

            def ask(session=session, answers=answers) -> None:
                for _ in range(3):
                    try:
                        answers.append(session.ask(1000))
                    except SessionClosed:
                        return

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert sum(answers) == 1
    finally:
        sys.setswitchinterval(interval)


def test_streams_are_read_lazily() -> None:
    def answers():
        yield -1000
        yield 1000
        raise AssertionError("the stream was read past the first answer above")

    assert hb.AboveThreshold(1, threshold=0, epsilon=5).release(answers()) == 1
    assert hb.AboveThreshold(1, threshold=0, epsilon=5).release([-1000] * 3) is None
    assert hb.AboveThreshold(1, threshold=0, epsilon=5).release([]) is None


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1e308, np.float32("inf"), 10**400])
def test_odd_answers(odd: float) -> None:
    m = hb.AboveThreshold(1.0, threshold=0.5, epsilon=1)
    assert m.release([odd]) in (0, None)


@pytest.mark.parametrize("bad", [5, None, ["a"], [None], [1j]])
def test_bad_answers(bad: object) -> None:
    with pytest.raises(DataTypeError):
        hb.AboveThreshold(1.0, threshold=0, epsilon=1).release(bad)


def test_integer_thresholds_take_integers() -> None:
    with pytest.raises(DataTypeError, match="int sensitivity"):
        hb.AboveThreshold(1, threshold=0, epsilon=1).release([0.5])


@pytest.mark.parametrize("bad", [{"threshold": math.nan}, {"threshold": "x"}, {"threshold": 1, "monotone": 1}])
def test_bad_parameters(bad: dict) -> None:
    with pytest.raises(ParameterError):
        hb.AboveThreshold(1, epsilon=1, **bad)


def test_a_reused_threshold_would_cost_more() -> None:
    """Why a session closes: going on under the same noisy threshold (a wrong variant of LSL17) exceeds epsilon."""
    m = hb.AboveThreshold(1, threshold=0, epsilon=1)
    noise = np.arange(-200, 201)
    weights = m._threshold_law.pmf(noise)

    def chance(answers: list[int], outcomes: list[bool]) -> float:
        product = weights.copy()
        for answer, outcome in zip(answers, outcomes, strict=True):
            gap = noise - answer
            above = np.where(
                gap >= 1, m._answer_law.tail(np.maximum(gap, 1)), 1 - m._answer_law.tail(np.maximum(1 - gap, 1))
            )
            product = product * (above if outcome else 1 - above)
        return float(product.sum())

    outcomes = [True, False] * 6
    here, there = [0, 1] * 6, [1, 0] * 6
    assert math.log(chance(there, outcomes) / chance(here, outcomes)) > 1.5
