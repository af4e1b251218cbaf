"""Surveys in the local model: what is kept are reports that the respondents' own devices have randomised."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import sqlalchemy as sa

from hubbub.curator.questionnaire import (
    LONGEST_INTRODUCTION,
    LONGEST_TITLE,
    Question,
    Survey,
    line,
    questions,
    shortest,
)
from hubbub.curator.store import TABLES, Store
from hubbub.errors import ParameterError, ReportRefused, UnknownSurvey
from hubbub.mechanisms.response import Estimate
from hubbub.numeric.rational import Number, count

SURVEYS = sa.Table(
    "surveys",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("introduction", sa.Text, nullable=False),
    sa.Column("questions", sa.JSON, nullable=False),
    sa.Column("epsilon", sa.Text, nullable=False),
    sa.Column("invited", sa.Boolean, nullable=False),
    sa.Column("open", sa.Boolean, nullable=False),
    sa.Column("made", sa.Text, nullable=False),
)
INVITATIONS = sa.Table(
    "survey_invitations",
    TABLES,
    sa.Column("survey", sa.Text, sa.ForeignKey("surveys.id"), primary_key=True),
    sa.Column("code", sa.Text, primary_key=True),
    sa.Column("used", sa.Boolean, nullable=False),
    sqlite_with_rowid=False,
)
REPORTS = sa.Table(
    "survey_reports",
    TABLES,
    sa.Column("survey", sa.Text, sa.ForeignKey("surveys.id"), primary_key=True),
    sa.Column("submission", sa.Text, primary_key=True),
    sa.Column("day", sa.Text, nullable=False),
    sa.Column("reports", sa.JSON, nullable=False),
    sqlite_with_rowid=False,
)
"""Noisy reports, by the digest of a random number: no address, no invitation, no time finer than a day, no order."""

IDENTIFIER = re.compile(r"[a-z2-7]{26}")
SUBMISSION = re.compile(r"[0-9a-f]{32}")
MOST_INVITATIONS = 10_000


@dataclass(frozen=True)
class Result:
    """What a question's reports say so far; no estimate before the first."""

    question: Question
    reports: int
    estimate: Estimate | None

    def rows(self) -> list[tuple[str, float, float, float]]:
        """(option, estimated share, low, high) for every option; of a yes/no question both shares add up to 1."""
        if self.estimate is None:
            return []
        e = self.estimate
        if len(self.question.options) == 2:
            value, low, high = float(e.value), float(e.low), float(e.high)
            mirrored = (self.question.options[0], 1 - value, 1 - high, 1 - low)
            return [mirrored, (self.question.options[1], value, low, high)]
        columns = (np.asarray(part).tolist() for part in (e.value, e.low, e.high))
        return list(zip(self.question.options, *columns, strict=True))


class Surveys:
    """The surveys beside a ledger, in the same database. Their epsilons are the respondents' own, not the ledger's."""

    def __init__(self, url: str) -> None:
        self._store = Store(url)

    def create(
        self,
        owner: str,
        title: str,
        asked: Sequence[tuple[str, Sequence[str]]],
        *,
        epsilon: Decimal,
        weights: Sequence[Decimal] | None = None,
        introduction: str = "",
        invited: bool = False,
    ) -> Survey:
        """Makes a survey; its questions and their shares of epsilon never change afterwards."""
        return self.keep(
            draft(owner, title, asked, epsilon=epsilon, weights=weights, introduction=introduction, invited=invited)
        )

    def keep(self, survey: Survey) -> Survey:
        """Keeps a survey that was drafted, open for answers."""
        values = {
            "id": survey.id,
            "owner": survey.owner,
            "title": survey.title,
            "introduction": survey.introduction,
            "questions": [[q.text, list(q.options), str(q.epsilon)] for q in survey.questions],
            "epsilon": str(survey.epsilon),
            "invited": survey.invited,
            "open": True,
            "made": dt.datetime.now(dt.UTC).isoformat(),
        }
        with self._store.writing() as connection:
            connection.execute(sa.insert(SURVEYS).values(**values))
        return survey

    def find(self, survey: str) -> Survey:
        """The survey with this id."""
        with self._store.reading() as connection:
            return _survey(self._row(connection, survey))

    def of_owner(self, owner: str) -> list[Survey]:
        """The surveys somebody has made, the newest first."""
        query = sa.select(SURVEYS).where(SURVEYS.c.owner == owner).order_by(SURVEYS.c.made.desc())
        with self._store.reading() as connection:
            return [_survey(row) for row in connection.execute(query).mappings()]

    def close_survey(self, survey: str) -> None:
        """No more answers from now on."""
        with self._store.writing() as connection:
            self._row(connection, survey, hold=True)
            connection.execute(sa.update(SURVEYS).where(SURVEYS.c.id == survey).values(open=False))

    def invite(self, survey: str, people: int) -> list[str]:
        """New invitation codes, each good for one submission; they are kept as digests and cannot be shown again."""
        if count("people", people) > MOST_INVITATIONS:
            raise ParameterError("people", people, f"must be at most {MOST_INVITATIONS} at a time")
        codes = [_random_text(12) for _ in range(people)]
        with self._store.writing() as connection:
            if not self._row(connection, survey, hold=True)["invited"]:
                raise ParameterError("survey", survey, "is open to everybody", "make one with invitations")
            new = [{"survey": survey, "code": _digest(code), "used": False} for code in codes]
            connection.execute(sa.insert(INVITATIONS), new)
        return codes

    def invitations(self, survey: str) -> tuple[int, int]:
        """(issued, used)."""
        query = sa.select(INVITATIONS.c.used).where(INVITATIONS.c.survey == survey)
        with self._store.reading() as connection:
            used = list(connection.execute(query).scalars())
        return len(used), sum(used)

    def submit(self, survey: str, submission: str, reports: Sequence[int], invitation: str | None = None) -> bool:
        """Counts one person's reports, once: False when this submission was counted before. Refused as ReportRefused.

        ``submission`` is 32 hexadecimal digits drawn at random by the respondent's device.
        """
        if not isinstance(submission, str) or not SUBMISSION.fullmatch(submission):
            raise ReportRefused("malformed")
        with self._store.writing() as connection:
            found = _survey(self._row(connection, survey, hold=True))
            well_formed = len(reports) == len(found.questions) and all(
                type(report) is int and 0 <= report < len(question.options)
                for report, question in zip(reports, found.questions, strict=True)
            )
            if not well_formed:
                raise ReportRefused("malformed")
            name = _digest(submission)
            same = (REPORTS.c.survey == survey) & (REPORTS.c.submission == name)
            if connection.execute(sa.select(REPORTS.c.day).where(same)).scalar() is not None:
                return False
            if not found.open:
                raise ReportRefused("closed")
            if found.invited:
                code = (INVITATIONS.c.survey == survey) & (
                    INVITATIONS.c.code == _digest(str(invitation).strip().lower())
                )
                unused = code & sa.not_(INVITATIONS.c.used)
                if connection.execute(sa.update(INVITATIONS).where(unused).values(used=True)).rowcount != 1:
                    raise ReportRefused("invitation")
            today = dt.datetime.now(dt.UTC).date().isoformat()
            values = {"survey": survey, "submission": name, "day": today, "reports": list(reports)}
            connection.execute(sa.insert(REPORTS).values(**values))
        return True

    def results(self, survey: str, confidence: Number = 0.95) -> list[Result]:
        """What all reports say so far, question by question: post-processing, free however often it is looked at."""
        query = sa.select(REPORTS.c.reports).where(REPORTS.c.survey == survey)
        with self._store.reading() as connection:
            found = _survey(self._row(connection, survey))
            rows = list(connection.execute(query).scalars())
        table = np.array(rows, np.int64).reshape(len(rows), len(found.questions))
        return [
            Result(q, len(rows), q.mechanism.estimate(column, confidence) if len(rows) else None)
            for q, column in zip(found.questions, table.T, strict=True)
        ]

    def close(self) -> None:
        """Lets go of the database."""
        self._store.close()

    def _row(self, connection: Any, survey: str, hold: bool = False) -> Any:
        query = sa.select(SURVEYS).where(SURVEYS.c.id == survey)
        if not isinstance(survey, str) or not IDENTIFIER.fullmatch(survey):
            raise UnknownSurvey
        row = connection.execute(query.with_for_update() if hold else query).mappings().first()
        if row is None:
            raise UnknownSurvey
        return row


def draft(
    owner: str,
    title: str,
    asked: Sequence[tuple[str, Sequence[str]]],
    *,
    epsilon: Decimal,
    weights: Sequence[Decimal] | None = None,
    introduction: str = "",
    invited: bool = False,
) -> Survey:
    """A survey that is checked and priced but not kept, for planning; its id is not guessable."""
    words = line("introduction", introduction, LONGEST_INTRODUCTION) if introduction.strip() else ""
    asks = questions(epsilon, asked, weights)
    return Survey(_random_text(16), owner, line("title", title, LONGEST_TITLE), words, asks, shortest(epsilon), invited)


def _survey(row: Any) -> Survey:
    asked = tuple(Question(text, tuple(options), Decimal(share)) for text, options, share in row["questions"])
    return Survey(
        row["id"],
        row["owner"],
        row["title"],
        row["introduction"],
        asked,
        Decimal(row["epsilon"]),
        row["invited"],
        row["open"],
    )


def _random_text(size: int) -> str:
    """So many bytes from the operating system."""
    return base64.b32encode(os.urandom(size)).decode().rstrip("=").lower()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
