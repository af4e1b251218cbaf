"""Local noise: a client mod that clips and adds noise before anything leaves, and the strategy that averages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Error, Message, MessageType, RecordDict
from flwr.clientapp.typing import ClientAppCallable

from hubbub.errors import ParameterError, SessionClosed
from hubbub.learning.federated.central import answered, changes, seed_of
from hubbub.learning.federated.compression import Compression
from hubbub.learning.federated.compression import Whole as Everything
from hubbub.learning.federated.course import ARRAYS, UPDATE, Course, Purse
from hubbub.learning.federated.journal import Journal
from hubbub.learning.federated.plan import LocalPlan, Priced
from hubbub.learning.federated.rotation import Floats, chosen
from hubbub.learning.federated.vectors import RADIUS, clipped, length_of
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.numeric.rational import rational
from hubbub.privacy.loss import Loss
from hubbub.randomness.bits import SECURE, Bits

REFUSED = 1001
"""The code of a reply that refuses."""
STATE = "hubbub"
"""The record of a client's context that remembers rounds where no journal is given."""


class Guard(ABC):
    """What mods of clients that trust nobody share: rounds are counted first, and nothing but an update leaves.

    ``journal`` says where to count: a file, or a function of the context that names one (for simulations, in which one
    mod serves many clients); without one, only Flower's context of the run remembers. ``budget`` is charged for the
    whole plan, once.
    """

    def __init__(
        self,
        plan: Priced,
        *,
        journal: str | Path | Callable[[Context], str | Path] | None = None,
        budget: Purse | None = None,
        bits: Bits = SECURE,
    ) -> None:
        self._course, self._where, self._budget, self._bits = plan, journal, budget, bits

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """A private reply to a request to train; all other requests are refused."""
        if message.metadata.message_type != MessageType.TRAIN:
            return Message(Error(REFUSED, "only training is private here"), reply_to=message)
        sent = ArrayRecord(dict(message.content.array_records[ARRAYS]))
        seed, length = seed_of(message), length_of(sent)
        try:
            self._count(context)
        except SessionClosed as closed:
            return Message(Error(REFUSED, str(closed)), reply_to=message)
        try:
            reply = call_next(message, context)
            change = changes(next(iter(reply.content.array_records.values())), sent)
        except (Exception, SystemExit):  # what went wrong is private: it counts as no change
            change = np.zeros(length)
        with np.errstate(all="ignore"):  # whatever the app has set
            report = self._report(change, message, context, seed)
        return answered(message, report)

    @abstractmethod
    def _report(self, change: Floats, message: Message, context: Context, seed: bytes) -> bytes:
        """What leaves: private, whatever the change is."""

    def _count(self, context: Context) -> None:
        """Counts this round before it begins; refuses one beyond the plan."""
        where = self._where(context) if callable(self._where) else self._where
        journal = None if where is None else Journal(where, self._course)
        state = context.state.config_records.get(STATE) or ConfigRecord({"rounds": 0})
        known = journal.rounds if journal else int(state["rounds"])  # type: ignore[arg-type]
        if known >= self._course.rounds:
            raise SessionClosed(f"All {self._course.rounds} rounds of this client's plan are taken.")
        paid = journal.paid if journal else bool(state.get("paid"))
        if self._budget is not None and not paid:
            self._budget.spend(self._course.loss, note=f"federated training, {self._course.tag} noise")
            paid = True
            if journal:
                journal.pay()
        if journal:
            journal.reserve(known + 1)
        context.state.config_records[STATE] = ConfigRecord({"rounds": known + 1, "paid": paid})


class LocalNoise(Guard):
    """A client mod: ``ClientApp(mods=[LocalNoise(plan)])``. Every report is private before it leaves.

    ``mask`` is the public part of the coordinates that a report is about (less noise for those); ``signs`` has their
    signs reported, scaled to the clip norm. ``after`` compresses what has its noise already, for free.

    Claim: what the reports of k rounds tell of this client's data has loss ``plan.spent(k)``, under replace.
    Proof: a report is made of ``Gaussian`` of sensitivity 2 RADIUS on whole steps no longer than RADIUS (``clipped``),
        whatever the app computes, also when it fails; packing is post-processing. A round is counted before it
        begins, and no round beyond the plan's is answered. Other messages are refused before the app sees them.
    Assumes: no other way out of the app; the journal is kept (or the context, which ends with the run).
    """

    def __init__(
        self,
        plan: LocalPlan,
        *,
        mask: float = 1.0,
        signs: bool = False,
        after: Compression | None = None,
        **options: Any,
    ) -> None:
        super().__init__(plan, **options)
        self.plan, self.shape = plan, Shape(mask, signs, after)

    def _report(self, change: Floats, message: Message, context: Context, seed: bytes) -> bytes:  # noqa: ARG002
        part = self.shape.part(change, seed)
        steps = clipped(part, self.plan.clip).steps
        noise = Fraction(self.plan.noise) * RADIUS
        noisy = Gaussian(2 * RADIUS, sigma=noise, neighbours="replace").release(steps, self._bits)
        return self.shape.packing.pack(noisy.astype(np.float64) * (self.plan.clip / RADIUS), seed)


class Shape:
    """Which coordinates a report is about, and how they are packed: the same at clients and server."""

    def __init__(self, mask: float, signs: bool, after: Compression | None) -> None:
        if not 0 < rational("mask", mask) <= 1:
            raise ParameterError("mask", mask, "must lie in (0, 1]", "it is the part of the coordinates that is sent")
        self.mask, self.signs, self.packing = mask, signs, after or Everything()

    def size(self, length: int) -> int:
        """How many coordinates a report has."""
        return max(1, int(-(-rational("mask", self.mask) * length // 1)))

    def part(self, change: Floats, seed: bytes) -> Floats:
        """The coordinates, or their signs, of length 1."""
        part = change[chosen(seed, len(change), self.size(len(change)))] if self.mask < 1 else change
        return np.sign(part) if self.signs else part

    def spread(self, data: bytes, length: int, seed: bytes) -> Floats:
        """A report as a vector of all coordinates; ValueError for what is none."""
        size = self.size(length)
        values = self.packing.unpack(data, size, seed)
        if not np.isfinite(values).all():
            raise ValueError("values")
        return self.placed(values, length, seed)

    def placed(self, values: Floats, length: int, seed: bytes) -> Floats:
        """Values of the chosen coordinates, among zeros."""
        if self.mask >= 1:
            return values
        out = np.zeros(length)
        out[chosen(seed, length, len(values))] = values
        return out


class Local(Course):
    """A Flower strategy that averages private reports: the other end of ``LocalNoise``, with the same shape.

    Every client pays for the rounds it took part in (``loss_of``); ``loss`` is what the one asked most pays, which is
    what all reports together tell of anybody. ``share`` of the connected clients, at least one, is asked in a round.

    Claim: none beyond that of ``LocalNoise``: what is done here is post-processing of private reports.
    Proof: no private data reach it.
    Assumes: the clients' mods have this plan; rounds are counted by their journals, which is what binds.
    """

    def __init__(
        self,
        plan: LocalPlan,
        *,
        mask: float = 1.0,
        signs: bool = False,
        after: Compression | None = None,
        share: float = 1.0,
        **options: Any,
    ) -> None:
        super().__init__(plan, **options)
        if not 0 < rational("share", share) <= 1:
            raise ParameterError("share", share, "must lie in (0, 1]")
        self.plan, self.shape, self.share = plan, Shape(mask, signs, after), share
        self._turn = 0

    @property
    def loss(self) -> Loss:
        """What the rounds so far tell of the node that was asked most often (all of them, after a restart).

        A client that comes back as another node counts for itself: what its own journal says holds.
        """
        return self.plan.spent(self.rounds if self._journal else max(self.asked.values(), default=0))

    def loss_of(self, node: int) -> Loss:
        """What the rounds so far in this process tell of one client."""
        return self.plan.spent(self.asked.get(node, 0))

    def _cohort(self, nodes: Sequence[int]) -> Iterable[int]:
        """In turn, so that all pay about the same."""
        size = max(1, round(self.share * len(nodes))) if nodes else 0
        drawn = [nodes[(self._turn + i) % len(nodes)] for i in range(size)]
        self._turn += size
        return drawn

    def _released(self, contents: Sequence[RecordDict], length: int) -> Floats | None:
        reports = []
        for content in contents:
            try:
                reports.append(self.shape.spread(content.config_records[UPDATE][UPDATE], length, self._seed))  # type: ignore[arg-type]
            except Exception:  # a reply that is no report counts as none
                continue
        if not reports:
            return None
        change: Floats = np.mean(reports, axis=0)
        return change
