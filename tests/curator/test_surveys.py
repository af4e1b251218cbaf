"""Surveys: budgets are shared exactly, only well-formed reports count and only once, estimates hold."""

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from support import SeededBits

import hubbub as hb
from hubbub.curator.questionnaire import LEAST_SHARE, questions, shares
from hubbub.curator.store import Store
from hubbub.curator.surveys import Surveys, draft
from hubbub.errors import ParameterError, ReportRefused, UnknownSurvey

DAM = [("Did you vote for the dam?", ()), ("Which ward?", ("north", "south", "hill"))]


@pytest.fixture
def surveys(url: str) -> Iterator[Surveys]:
    found = Surveys(url)
    yield found
    found.close()


def number(n: int) -> str:
    return f"{n:032x}"


@given(
    st.decimals("0.1", 50, places=6),
    st.lists(st.decimals("0.1", 10, places=3), min_size=1, max_size=20),
)
def test_shares_never_exceed_the_total_and_lose_less_than_a_step_each(epsilon: Decimal, weights: list[Decimal]) -> None:
    if epsilon * min(weights) / sum(weights) < LEAST_SHARE * 2:
        return
    found = shares(epsilon, weights)
    total = sum(map(Fraction, found))
    assert total <= Fraction(epsilon)
    assert Fraction(epsilon) - total < Fraction(len(weights), 10**6)
    for share, weight in zip(found, weights, strict=True):
        wanted = Fraction(epsilon) * Fraction(weight) / sum(map(Fraction, weights))
        assert 0 <= wanted - Fraction(share) < Fraction(1, 10**6)
    asked = questions(epsilon, [(f"q{i}", ()) for i in range(len(weights))], weights)
    assert hb.compose([q.mechanism.loss for q in asked]).epsilon() <= float(epsilon)


def test_questions_share_a_persons_budget() -> None:
    survey = draft("ada", "Dam", DAM, epsilon=Decimal(1), weights=[Decimal(3), Decimal(1)])
    assert [q.epsilon for q in survey.questions] == [Decimal("0.75"), Decimal("0.25")]
    assert survey.loss.epsilon() == 1.0
    assert survey.loss.neighbours == "replace"
    assert survey.questions[1].mechanism == hb.RandomizedResponse(epsilon=0.25, categories=3)
    sizes = [q.sample_size(0.05) for q in survey.questions]
    assert survey.sample_size(0.05) == max(sizes)
    assert sizes[0] == hb.RandomizedResponse(epsilon=0.75).sample_size(0.05, 0.05)
    assert survey.expected_error(max(sizes))[1] <= 0.05
    assert survey.expected_error(100)[0] > survey.expected_error(1000)[0]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"title": " "}, "title"),
        ({"title": "x" * 121}, "title"),
        ({"title": "a\x00b"}, "title"),
        ({"title": "\ud800"}, "title"),
        ({"asked": []}, "questions"),
        ({"asked": DAM * 11}, "questions"),
        ({"asked": [("", ())]}, "question"),
        ({"asked": [("one?", ("only",))]}, "options"),
        ({"asked": [("one?", ("a", "a"))]}, "options"),
        ({"asked": [("one?", [str(i) for i in range(51)])]}, "options"),
        ({"asked": [("one?", (1, 2))]}, "option"),
        ({"epsilon": Decimal(0)}, "epsilon"),
        ({"epsilon": Decimal(-1)}, "epsilon"),
        ({"epsilon": Decimal(51)}, "epsilon"),
        ({"epsilon": Decimal("0.0000001")}, "epsilon"),
        ({"epsilon": Decimal("0.0015")}, "epsilon"),
        ({"weights": [Decimal(1)]}, "weights"),
        ({"weights": [Decimal(1), Decimal(0)]}, "weight"),
        ({"introduction": "x" * 2001}, "introduction"),
    ],
)
def test_wrong_surveys_are_refused(change: dict, name: str) -> None:
    arguments = {"title": "Dam", "asked": DAM, "epsilon": Decimal(1)} | change
    with pytest.raises(ParameterError) as refused:
        draft("ada", **arguments)
    assert refused.value.name == name


def test_surveys_are_kept_as_they_were_made(surveys: Surveys) -> None:
    made = surveys.create("ada", " Dam \n", DAM, epsilon=Decimal("0.7"), introduction="Hello.", invited=True)
    assert surveys.find(made.id) == made
    assert made.title == "Dam"
    other = surveys.create("bob", "Other", DAM, epsilon=Decimal(1))
    assert made.id != other.id
    assert [s.id for s in surveys.of_owner("ada")] == [made.id]
    for wrong in ("nothing", "", "a" * 26, "\x00", "é" * 26):
        with pytest.raises(UnknownSurvey):
            surveys.find(wrong)
        with pytest.raises(UnknownSurvey):
            surveys.submit(wrong, number(1), [0, 0])


def test_reports_count_once_and_only_if_well_formed(surveys: Surveys) -> None:
    survey = surveys.create("ada", "Dam", DAM, epsilon=Decimal(2))
    assert surveys.submit(survey.id, number(1), [1, 2])
    assert not surveys.submit(survey.id, number(1), [0, 0])
    assert surveys.results(survey.id)[0].reports == 1
    for reports in ([], [1], [1, 2, 0], [2, 0], [-1, 0], [0, 3], [True, 0], [0.0, 0], ["1", 0], [None, 0], [2**70, 0]):
        with pytest.raises(ReportRefused, match="whole number"):
            surveys.submit(survey.id, number(2), reports)
    for wrong in ("", "1", number(1).upper() + "A", "g" * 32, number(1) + "\n", None, 1):
        with pytest.raises(ReportRefused, match="whole number"):
            surveys.submit(survey.id, wrong, [0, 0])
    surveys.close_survey(survey.id)
    assert not surveys.submit(survey.id, number(1), [1, 2])  # a replay is still a replay
    with pytest.raises(ReportRefused, match="closed"):
        surveys.submit(survey.id, number(3), [0, 0])
    assert surveys.results(survey.id)[0].reports == 1
    assert not surveys.find(survey.id).open


def test_an_invitation_is_good_for_one_submission(surveys: Surveys) -> None:
    survey = surveys.create("ada", "Dam", DAM, epsilon=Decimal(2), invited=True)
    other = surveys.create("ada", "Dam", DAM, epsilon=Decimal(2), invited=True)
    one, two = surveys.invite(survey.id, 2)
    for code in (None, "", "nonsense", surveys.invite(other.id, 1)[0], "\ud800"):
        with pytest.raises(ReportRefused, match="invitation"):
            surveys.submit(survey.id, number(1), [0, 0], code)
    with pytest.raises(ReportRefused, match="whole number"):  # and the code stays unused
        surveys.submit(survey.id, number(1), [0, 9], one)
    assert surveys.submit(survey.id, number(1), [0, 0], one.upper() + " ")
    assert not surveys.submit(survey.id, number(1), [0, 0], one)
    with pytest.raises(ReportRefused, match="invitation"):
        surveys.submit(survey.id, number(2), [0, 0], one)
    assert surveys.submit(survey.id, number(2), [0, 0], two)
    assert surveys.invitations(survey.id) == (2, 2)
    open_one = surveys.create("ada", "Dam", DAM, epsilon=Decimal(2))
    for survey_id, people in ((open_one.id, 1), (survey.id, 0), (survey.id, 10_001)):
        with pytest.raises(ParameterError):
            surveys.invite(survey_id, people)


def test_a_code_used_by_many_at_once_counts_once(surveys: Surveys) -> None:
    survey = surveys.create("ada", "Dam", DAM, epsilon=Decimal(2), invited=True)
    [code] = surveys.invite(survey.id, 1)

    def send(n: int) -> str:
        try:
            return "counted" if surveys.submit(survey.id, number(n // 2), [0, 0], code) else "replay"
        except ReportRefused:
            return "refused"

    with ThreadPoolExecutor(8) as pool:
        outcomes = Counter(pool.map(send, range(16)))
    assert outcomes == {"counted": 1, "replay": 1, "refused": 14}
    assert surveys.results(survey.id)[0].reports == 1


def test_what_is_kept(surveys: Surveys, url: str) -> None:
    """Noisy reports under digests and a day: no code, no submission number, no time of day, no order of arrival."""
    survey = surveys.create("ada", "Dam", DAM, epsilon=Decimal(2), invited=True)
    codes = surveys.invite(survey.id, 20)
    for n, code in enumerate(codes):
        surveys.submit(survey.id, number(n), [1, 2], code)
    store = Store(url)
    with store.reading() as connection:
        rows = connection.execute(sa.text("SELECT * FROM survey_reports")).mappings().all()
        kept = str(connection.execute(sa.text("SELECT * FROM survey_invitations")).all()) + str(rows)
    store.close()
    assert set(rows[0]) == {"survey", "submission", "day", "reports"}
    assert dt.date.fromisoformat(rows[0]["day"])
    assert not any(code in kept for code in codes)
    assert not any(number(n) in kept for n in range(20))
    if url.startswith("sqlite"):
        assert [r["submission"] for r in rows] == sorted(r["submission"] for r in rows)


def test_estimates_are_those_of_randomised_response_and_hold(surveys: Surveys) -> None:
    survey = surveys.create("ada", "Dam", DAM, epsilon=Decimal(3))
    assert surveys.results(survey.id)[0].estimate is None
    assert surveys.results(survey.id)[0].rows() == []
    truth = [np.repeat([0, 1], [60, 90]), np.repeat([0, 1, 2], [75, 50, 25])]
    bits = SeededBits(5)
    noisy = [q.mechanism.release(t, bits) for q, t in zip(survey.questions, truth, strict=True)]
    for n, reports in enumerate(np.transpose(noisy).tolist()):
        assert surveys.submit(survey.id, number(n), reports)
    for question, reports, answers, result in zip(
        survey.questions, noisy, truth, surveys.results(survey.id), strict=True
    ):
        wanted = question.mechanism.estimate(reports)
        assert np.array_equal(result.estimate.value, wanted.value)
        assert np.array_equal(result.estimate.low, wanted.low)
        shares = np.bincount(answers) / 150
        assert [option for option, *_ in result.rows()] == list(question.options)
        for (_, value, low, high), share in zip(result.rows(), shares, strict=True):
            assert low <= share <= high
            assert low < value < high
        assert math.fsum(value for _, value, _, _ in result.rows()) == pytest.approx(1)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """Of the whole path but the browser: 1000 surveys of 200 people, all of one population."""
    question = draft("ada", "Dam", DAM, epsilon=Decimal(2)).questions[0]
    truth, bits = np.repeat([0, 1], [140, 60]), SeededBits(6)
    estimates = [question.mechanism.estimate(question.mechanism.release(truth, bits)) for _ in range(1000)]
    inside = np.mean([e.low <= 0.3 <= e.high for e in estimates])
    assert inside >= 0.95 - 6 * math.sqrt(0.05 * 0.95 / 1000)
    narrow = np.mean([abs(e.value - 0.3) <= (e.high - e.low) / 8 for e in estimates])
    assert narrow < 0.9
