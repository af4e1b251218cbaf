"""PATE: teachers on disjoint people vote, noise hides every single vote, and a student learns from the labels."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hubbub.errors import ParameterError, SessionClosed
from hubbub.learning.estimating import PrivateEstimator
from hubbub.learning.judging import Accuracy
from hubbub.learning.pate.accounting import ForOwner
from hubbub.learning.pate.aggregators import NOT_ASKED, REFUSED, Aggregator, Interactive, check_aggregator
from hubbub.learning.pate.student import Unlabelled, chances, check_chances, check_unlabelled, teach_student
from hubbub.learning.pate.teachers import Lesson, table_of, teachable
from hubbub.learning.pate.votes import Votes, fingerprint
from hubbub.numeric.rational import Number, count, yes_or_no
from hubbub.privacy.budget import Budget
from hubbub.privacy.loss import check_delta
from hubbub.randomness.bits import SECURE, Bits

Integers = NDArray[np.int64]


class PATE(PrivateEstimator):
    """A student of public rows, labelled by the noisy votes of teachers trained on disjoint parts of the private ones.

    ``teacher`` and ``student`` are anything with ``fit`` and ``predict`` (scikit-learn's models, say) or torch modules;
    of each there is a copy trained on labels 0, 1, … for the ``classes``. ``aggregator`` says how noisy the votes are,
    and who refuses. At most ``answers`` public rows get a label; only those are paid for. ``unlabelled="given"`` shows
    the student all public rows, those without a label marked -1, as scikit-learn's semi-supervised models want it.
    ``votes`` is a file: the teachers' votes are kept in it, for its owner's eyes only, and read from it the next time,
    when X and y are not looked at any more; labels that were drawn once are read, too, and neither paid nor drawn
    again.

    Claim: ``labels_``, the student and all it predicts together cost ``loss_``, under the aggregator's relation.
        ``loss_`` and all else that is shown depend on no vote; what does is behind ``for_owner``.
    Proof: one person changes one teacher (``Lesson.votes``), hence the votes as ``Aggregator`` assumes; the student
        sees labels and public rows only.
    Assumes: what ``Lesson.votes`` assumes; public rows, their order and their number were chosen without the private
        ones; a file of votes is written by one process at a time.
    """

    def __init__(
        self,
        teacher: Any = None,
        student: Any = None,
        *,
        teachers: int = 250,
        aggregator: Aggregator | None = None,
        classes: Any = None,
        answers: int | None = None,
        unlabelled: Unlabelled = "aside",
        key: str | bytes | None = None,
        budget: Budget | None = None,
        jobs: int | None = None,
        progress: bool = False,
        votes: str | Path | None = None,
    ) -> None:
        self.teacher = teacher
        self.student = student
        self.teachers = teachers
        self.aggregator = aggregator
        self.classes = classes
        self.answers = answers
        self.unlabelled = unlabelled
        self.key = key
        self.budget = budget
        self.jobs = jobs
        self.progress = progress
        self.votes = votes

    def fit(
        self,
        X: Any,  # noqa: N803 - scikit-learn's names
        y: Any,
        public: Any,
        *,
        units: Iterable[Any] | None = None,
        bits: Bits = SECURE,
    ) -> Self:
        """Pays, trains the teachers, labels public rows and trains the student. ``units`` says whose each row is."""
        aggregator, student = check_aggregator(self.aggregator), teachable("student", self.student)
        teachable("teacher", self.teacher)
        check_unlabelled(self.unlabelled)
        if isinstance(aggregator, Interactive):
            check_chances(student)
        count("teachers", self.teachers, least=2)
        shown = yes_or_no("progress", self.progress)
        asked = table_of("public", public)
        price = aggregator.loss(len(asked), self.answers)
        most = None if self.answers is None else count("answers", self.answers)
        key = json.dumps([aggregator.to_dict(), len(asked), most], sort_keys=True)
        votes, lesson = self._known(asked, aggregator), None
        if votes is None:
            lesson = Lesson.of(
                self.teacher,
                X,
                y,
                asked,
                teachers=self.teachers,
                classes=self.classes,
                units=units,
                key=self.key,
                neighbours=aggregator.neighbours,
                bits=bits,
            )
        if votes is None or votes.record.get(key, {}).get("labels") is None:
            self._charge(price)  # also where an earlier run paid and died: what it drew, somebody may have seen
        self.loss_ = price
        if lesson:
            votes = lesson.votes(jobs=self.jobs, progress=shown)
        assert votes is not None
        labels = votes.record.get(key, {}).get("labels")
        if labels is None:
            self._keep(votes.noting(key, None))
            labels = self._drawn(aggregator, student, votes, asked, bits)
            votes = votes.noting(key, labels)
            self._keep(votes)
        found = np.asarray(labels, np.int64)
        self.classes_ = votes.classes
        self.answered_ = found >= 0
        self.labels_ = votes.classes[found[self.answered_]]
        self.student_ = teach_student(student, asked, found, self.unlabelled)
        self._votes, self._shape, self._ran, self._most = votes, asked.shape[1:], aggregator, self.answers
        return self

    def _known(self, asked: NDArray[Any], aggregator: Aggregator) -> Votes | None:
        """The votes of the file, if it is there and fits what is asked: public facts alone decide."""
        if self.votes is None or not Path(self.votes).exists():
            return None
        found = Votes.load(self.votes)
        if found.asked != fingerprint(asked) or found.teachers != self.teachers:
            raise ParameterError(
                "votes", str(self.votes), "holds votes on other public rows, or of other teachers", "give a new path"
            )
        if found.keyed and aggregator.neighbours == "replace":
            raise ParameterError(
                "votes",
                str(self.votes),
                "was dealt by a key, which fits add-remove only",
                "deal at random, in a new file",
            )
        return found

    def _keep(self, votes: Votes) -> None:
        if self.votes is not None:
            votes.save(self.votes)

    def _drawn(self, aggregator: Aggregator, student: Any, votes: Votes, asked: NDArray[Any], bits: Bits) -> Integers:
        """The labels: all at once, or in rounds between which a student learns from those before."""
        if not isinstance(aggregator, Interactive):
            return aggregator.labels(votes.counts, answers=self.answers, bits=bits)
        found = np.full(len(asked), NOT_ASKED, np.int64)
        left = len(asked) if self.answers is None else self.answers
        for turn, rows in enumerate(np.array_split(np.arange(len(asked)), aggregator.rounds)):
            if not left:
                break
            expected = None
            if turn and (found >= 0).any():
                learning = teach_student(student, asked, found, self.unlabelled)
                told = chances(learning, asked[rows], len(votes.classes))
                expected = np.rint(np.clip(np.nan_to_num(told), 0, 1) * votes.teachers).astype(np.int64)
            new = aggregator.labels(votes.counts[rows], answers=left, expected=expected, bits=bits)
            left -= int((new >= 0).sum())
            if expected is not None:
                own = (new == REFUSED) & (told.max(axis=1) >= aggregator.sure)
                new = np.where(own, told.argmax(axis=1), new)
            found[rows] = new
        return found

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """What the student says of every row. Costs nothing more."""
        check_is_fitted(self, "student_")
        found: NDArray[Any] = self.classes_[np.asarray(self.student_.predict(self._asked(X)), np.int64)]
        return found

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """What the student thinks of every row: a chance for each class. Costs nothing more."""
        check_is_fitted(self, "student_")
        return chances(self.student_, self._asked(X), len(self.classes_))

    def _asked(self, rows: Any) -> NDArray[Any]:
        table = table_of("X", rows)
        if table.shape[1:] != self._shape:
            raise ParameterError("X", f"rows of shape {table.shape[1:]}", f"must be as the public ones, {self._shape}")
        return table

    def for_owner(self) -> ForOwner:
        """The votes, and what the labels cost given these very votes. Private: never for an analyst."""
        check_is_fitted(self, "student_")
        if self._votes is None:
            raise SessionClosed("the votes stayed with the process that cast them; load them from their file")
        return ForOwner(self._votes, self._ran, self._most)

    def card(self, *, title: str, delta: Number, measured: Accuracy | None = None) -> str:
        """What to publish beside the student: its price, how it was made and how well it does. Made of public facts."""
        check_is_fitted(self, "student_")
        low, high = self.loss_.epsilon_interval(check_delta(delta))
        facts = {name: value for name, value in self._ran.to_dict().items() if name != "neighbours"}
        lines = [
            f"# {title}",
            "",
            "- **Model**: hubbub.learning.pate.PATE",
            f"- **Privacy**: epsilon between {low:.6g} and {high:.6g} at delta {float(delta):g}, "
            f"neighbours: {self.loss_.neighbours}, whatever the votes",
            f"- **Teachers**: {self.teachers}, {type(self.teacher).__name__}, on disjoint people",
            f"- **Student**: {type(self.student).__name__}, unlabelled rows {self.unlabelled}",
            f"- **Votes**: {', '.join(f'{name} {value}' for name, value in facts.items())}",
            f"- **Public rows**: {len(self.answered_)}, of which labelled: {int(self.answered_.sum())}",
        ]
        if measured is not None:
            lines.append(f"- **Accuracy**: {measured}, measured for {measured.loss}")
        return "\n".join(lines)

    def __getstate__(self) -> dict[str, Any]:
        """Without the votes: a copy of the student may be given away."""
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_votes": None} if "_votes" in state else state
