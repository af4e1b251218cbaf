"""Teachers: models trained on disjoint people, in parallel, each asked for one class of every public row."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone

from hubbub.errors import FitFailure, ParameterError, ParameterTypeError
from hubbub.learning.estimating import declared_classes
from hubbub.learning.given import labels_of, numbers, places
from hubbub.learning.pate.dealing import deal
from hubbub.learning.pate.seeds import own_chance, seeded
from hubbub.learning.pate.votes import Votes, fingerprint
from hubbub.numeric.rational import count
from hubbub.privacy.loss import Neighbours
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.choice import uniform_below

Integers = NDArray[np.int64]
FARTHEST = 1e9
"""What stands for infinity in a row."""
ROUND = 8
"""Teachers a worker is given between two steps of the progress bar."""


@dataclass(frozen=True, eq=False, repr=False)
class Lesson:
    """What teachers are to learn, checked: nothing has been read but types, shapes and labels that count as public."""

    model: Any
    rows: NDArray[Any]
    place: Integers
    public: NDArray[Any]
    classes: NDArray[Any]
    teachers: int
    part: Integers
    keyed: bool
    seeds: tuple[int, ...]

    @classmethod
    def of(
        cls,
        teacher: Any,
        X: Any,  # noqa: N803 - scikit-learn's names
        y: Any,
        public: Any,
        *,
        teachers: int,
        classes: Any,
        units: Iterable[Any] | None = None,
        key: str | bytes | None = None,
        neighbours: Neighbours = "add-remove",
        bits: Bits = SECURE,
    ) -> Lesson:
        """The lesson, or an error that tells of no row."""
        model, many = teachable("teacher", teacher), count("teachers", teachers, least=2)
        table, asked = table_of("X", X), table_of("public", public)
        if asked.shape[1:] != table.shape[1:]:
            raise ParameterError("public", f"rows of shape {asked.shape[1:]}", f"must be as X, {table.shape[1:]}")
        if y is None:
            raise ParameterError("y", None, "must be given: one label for each row of X")
        labels = labels_of(y)
        if len(labels) != len(table):
            raise ParameterError("y", "…", "must have one label for each row of X")
        known = declared_classes(classes, labels)
        if len(known) < 2:
            raise ParameterError("classes", "…", "must be at least two")
        part = deal(len(table), many, units=units, key=key, neighbours=neighbours, bits=bits)
        seeds = uniform_below(2**32, many, bits).tolist()
        return cls(model, table, places(known, labels), asked, known, many, part, key is not None, tuple(seeds))

    def votes(self, *, jobs: int | None = None, progress: bool = False) -> Votes:
        """Trains the teachers and counts their votes on the public rows. Private: nothing is released.

        Runs on joblib, with ``jobs`` processes, or wherever ``joblib.parallel_config`` says: Dask, Ray, Spark.

        Claim: one person changes at most one teacher, whose vote on every public row is one class.
        Proof: ``deal``; a copy is made of its own rows, its own seed and the public rows alone. One that fails, or says
            anything else than one class for each row, votes for the first class; one that saw a single class, for that.
        Assumes: training does not depend on any shared state of the program beyond the generators of ``own_chance``;
            the public rows were not chosen from the private ones; the model was not made from private rows.
        """
        taught = np.where(self.place >= 0, self.part, self.teachers)
        order, ends = np.argsort(taught, kind="stable"), np.cumsum(np.bincount(taught, minlength=self.teachers + 1))

        def tasks() -> Iterator[Any]:
            for k in range(self.teachers):
                own = order[ends[k - 1] if k else 0 : ends[k]]
                rows, place = self.rows[own], self.place[own]
                yield delayed(opinion)(self.model, rows, place, self.public, len(self.classes), self.seeds[k])

        counts = np.zeros((len(self.public), len(self.classes)), np.int64)
        every = np.arange(len(self.public))
        for told in _in_parallel(tasks(), self.teachers, jobs, progress):
            counts[every, told] += 1
        return Votes(counts, self.teachers, self.classes, fingerprint(self.public), self.keyed)


def opinion(
    model: Any, rows: NDArray[Any], place: Integers, asked: NDArray[Any], classes: int, seed: int
) -> NDArray[np.int32]:
    """One teacher's vote on every public row, whatever happens."""
    first = int(place.min()) if len(place) else 0
    constant = np.full(len(asked), first if len(place) and first == place.max() else 0, np.int32)
    if not len(place) or first == place.max():
        return constant
    try:
        with own_chance(seed), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # what a teacher says of its rows stays unsaid
            told = np.asarray(seeded(clone(model), seed).fit(rows, place).predict(asked.copy()))
            said = told.reshape(len(asked)).astype(np.float64)
            fine = (said >= 0) & (said < classes) & (said == np.floor(said))
            return np.where(fine, said, 0).astype(np.int32)
    except (Exception, SystemExit):  # whatever it was, it may tell of a row
        return np.zeros(len(asked), np.int32)


def _in_parallel(tasks: Iterator[Any], many: int, jobs: int | None, shown: bool) -> Iterator[Any]:
    """What every task gives, a round of them at a time; an error says nothing of any."""
    runner = Parallel(n_jobs=jobs)
    step, done = _bar(many, shown)
    size = ROUND * max(1, effective_n_jobs(jobs))
    try:
        for start in range(0, many, size):
            batch = [next(tasks) for _ in range(min(size, many - start))]
            try:
                found = runner(batch)
            except Exception:  # a worker that died, say
                raise FitFailure("the teachers could not be trained") from None
            yield from found
            step(len(batch))
    finally:
        done()


def _bar(many: int, shown: bool) -> tuple[Callable[[int], object], Callable[[], object]]:
    """What to call after so many teachers, and at the end."""
    if not shown:
        return (lambda _: None), (lambda: None)
    try:
        from rich.progress import Progress
    except ImportError as missing:  # pragma: no cover
        from hubbub.errors import MissingExtra

        raise MissingExtra("cli") from missing
    bar = Progress()
    task = bar.add_task("teaching", total=many)
    bar.start()
    return (lambda n: bar.advance(task, n)), bar.stop


def teachable(role: str, model: Any) -> Any:
    """A model with fit and predict, of which scikit-learn makes copies; a torch module becomes one."""
    if all(hasattr(model, name) for name in ("fit", "predict", "get_params")):
        return model
    if any(kind.__module__.startswith("torch.") and kind.__name__ == "Module" for kind in type(model).__mro__):
        from hubbub.learning.pate.networks import Network

        return Network(model)
    raise ParameterTypeError(role, type(model).__name__, "must have fit, predict and get_params, or be a torch module")


def table_of(name: str, rows: Any) -> NDArray[Any]:
    """Rows as finite numbers of any shape, in single precision if they come so; what is not finite counts by rule."""
    found = rows if isinstance(rows, np.ndarray) and rows.dtype in (np.float32, np.float64) else numbers(name, rows)
    if found.ndim < 2 or 0 in found.shape[1:]:
        raise ParameterError(name, f"{found.ndim} dimensions", "must be a table: one row a person, with features")
    return np.nan_to_num(found, nan=0.0, posinf=FARTHEST, neginf=-FARTHEST)
