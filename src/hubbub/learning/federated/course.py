"""The course of a federated training: what strategies for central, local and distributed noise share."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from hubbub.errors import ParameterError, SessionClosed
from hubbub.learning.federated.journal import Journal
from hubbub.learning.federated.plan import Priced
from hubbub.learning.federated.rotation import Floats
from hubbub.learning.federated.vectors import length_of, moved
from hubbub.numeric.rational import Number, count
from hubbub.privacy.loss import Loss, check_delta
from hubbub.randomness.bits import SECURE, Bits

SEED_WORDS = 4
"""Words in the public seed of a round."""
PATIENCE = 600.0
"""Seconds in which clients connect."""
ARRAYS, CONFIG, UPDATE = "arrays", "config", "update"
"""Names of the records in messages."""


class Purse(Protocol):
    """What a training is paid from: a ``Budget``, or the curator's ledger (``LedgerBudget``)."""

    def spend(self, loss: Loss, note: str = "") -> Any:
        """Takes the loss out, or raises with nothing spent."""
        ...


class Course(Strategy):
    """A Flower strategy that counts rounds before they begin, is paid for once, and can be resumed.

    Clients get the model under "arrays" and, under "config", "server-round" and a public "seed". Nothing that they
    send but updates is looked at: neither metrics nor evaluations are asked for or passed on, since they are private.
    Evaluate on public rows with ``evaluate_fn``. ``rate`` and ``momentum`` are the server's. ``connected`` is how many
    clients are waited for before the first round.
    """

    def __init__(
        self,
        plan: Priced,
        *,
        rate: float = 1.0,
        momentum: float = 0.0,
        delta: Number = 1e-5,
        connected: int = 1,
        budget: Purse | None = None,
        journal: str | Path | None = None,
        bits: Bits = SECURE,
    ) -> None:
        if not (np.isfinite(rate) and rate > 0):
            raise ParameterError("rate", rate, "must be > 0")
        if not 0 <= momentum < 1:
            raise ParameterError("momentum", momentum, "must lie in [0, 1)")
        self.rate, self.momentum, self.delta = float(rate), float(momentum), float(check_delta(delta))
        self.connected, self.budget, self._bits = count("connected", connected), budget, bits
        self._course = plan
        self._journal = Journal(journal, plan) if journal is not None else None
        self.rounds = self._journal.rounds if self._journal else 0
        self._paid = bool(self._journal and self._journal.paid)
        self._velocity: Floats | None = None
        self._arrays = ArrayRecord()
        self._invited: set[int] = set()
        self._round, self._seed = 0, b""
        self.asked: dict[int, int] = {}
        """In how many rounds each client, by its node id, was asked to take part: private where cohorts are."""
        self.sent = self.received = 0
        """Bytes of all messages so far, as measured."""

    # what was spent

    @property
    def loss(self) -> Loss:
        """What the rounds so far tell of any one client."""
        return self._course.spent(self.rounds)

    @property
    def loss_(self) -> Loss:
        """What the whole plan costs, for ``hubbub.learning.card``."""
        return self._course.loss

    def epsilon(self, delta: Number | None = None) -> float:
        """What the rounds so far cost, at this delta."""
        return self.loss.epsilon(self.delta if delta is None else delta)

    def loss_of(self, node: int) -> Loss:  # noqa: ARG002
        """What the rounds so far tell of one client."""
        return self.loss

    def get_params(self, deep: bool = False) -> dict[str, Any]:  # noqa: ARG002
        """The settings that numbers and words can tell, for ``hubbub.learning.card``."""
        mine = {"server rate": self.rate, "server momentum": self.momentum, "delta": self.delta}
        return {name.replace("_", " "): value for name, value in self._course.to_dict().items()} | mine

    # Flower's rounds

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int | None = None,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Runs the rounds that are left of the plan, or ``num_rounds`` if that is fewer; resumed where a journal says.

        ``evaluate_fn`` is called with the number of rounds in this process.
        """
        arrays = self._resumed(initial_arrays)
        left = self._course.rounds - self.rounds
        some = left if num_rounds is None else min(left, count("num_rounds", num_rounds))
        found = super().start(grid, arrays, some, timeout, train_config, evaluate_config, evaluate_fn)
        if not len(found.arrays):
            found.arrays = arrays
        return found

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Counts a round, then asks clients for updates of the model."""
        if self.rounds >= self._course.rounds:
            raise SessionClosed(
                f"All {self._course.rounds} rounds of the plan are taken; make a plan with more and pay for it."
            )
        self._pay()
        nodes = self._nodes(grid)
        self._round = self.rounds + 1
        if self._journal:
            self._journal.reserve(self._round)
        self.rounds = self._round
        self._arrays, self._seed = arrays, self._bits.words(SEED_WORDS).tobytes()
        told = ConfigRecord({**config, "server-round": server_round, "round": self._round, "seed": self._seed})
        for name, value in self._instructions().items():
            told[name] = value
        content = RecordDict({ARRAYS: arrays, CONFIG: told})
        self._invited = set(self._cohort(sorted(set(nodes))))
        for node in self._invited:
            self.asked[node] = self.asked.get(node, 0) + 1
        self.sent += len(self._invited) * _bytes(content)
        group = str(self._round)
        return [
            Message(content=content, message_type=MessageType.TRAIN, dst_node_id=node, group_id=group)
            for node in sorted(self._invited)
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The model after this round, and what all rounds so far cost; None for a round that releases nothing."""
        del server_round
        contents: dict[int, RecordDict] = {}
        for reply in replies:
            node = reply.metadata.src_node_id
            if node in self._invited and node not in contents and reply.metadata.group_id == str(self._round):
                contents[node] = reply.content if reply.has_content() else RecordDict()
                self.received += _bytes(contents[node])
        self._invited = set()
        length = length_of(self._arrays)
        change = self._released([contents[node] for node in sorted(contents)], length)
        price = MetricRecord({"epsilon": self.epsilon(), "delta": self.delta, "round": self._round})
        if change is None:
            return None, price
        if self.momentum:
            before = np.zeros(length) if self._velocity is None else self._velocity
            self._velocity = change = self.momentum * before + change
        arrays = moved(self._arrays, self.rate * change)
        self._keep(arrays)
        return arrays, price

    def configure_evaluate(
        self,
        server_round: int,  # noqa: ARG002
        arrays: ArrayRecord,  # noqa: ARG002
        config: ConfigRecord,  # noqa: ARG002
        grid: Grid,  # noqa: ARG002
    ) -> Iterable[Message]:
        """Nobody is asked: evaluations by clients are private."""
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:  # noqa: ARG002
        """Nothing."""
        return None

    def summary(self) -> None:
        """Nothing beside what Flower logs itself."""

    # what strategies decide

    @abstractmethod
    def _cohort(self, nodes: Sequence[int]) -> Iterable[int]:
        """Who of the connected clients takes part."""

    @abstractmethod
    def _released(self, contents: Sequence[RecordDict], length: int) -> Floats | None:
        """The private change of the model, from what clients have sent: one content each, none of them trusted."""

    def _instructions(self) -> dict[str, Any]:
        """What clients are told beside the round and the seed."""
        return {}

    def _state(self) -> dict[str, Any]:
        """Further released numbers that a later process needs."""
        return {}

    def _restore(self, state: dict[str, Any]) -> None:
        """Takes up what ``_state`` gave."""

    # durability

    def _pay(self) -> None:
        if self.budget is not None and not self._paid:
            self.budget.spend(self._course.loss, note=f"federated training, {self._course.tag} noise")
            self._paid = True
            if self._journal:
                self._journal.pay()

    def _nodes(self, grid: Grid) -> list[int]:
        """The connected clients, once they are as many as are waited for."""
        end = time.monotonic() + PATIENCE
        while len(nodes := list(grid.get_node_ids())) < (self.connected if not self.asked else 0):
            if time.monotonic() > end:
                raise ParameterError("connected", self.connected, "clients have not come", "start them, then this")
            time.sleep(0.2)
        return nodes

    def _keep(self, arrays: ArrayRecord) -> None:
        if self._journal is None:
            return
        kept = {f"array:{name}": array.numpy() for name, array in arrays.items()}
        if self._velocity is not None:
            kept["velocity"] = self._velocity
        self._journal.keep(kept | {f"state:{name}": np.asarray(value) for name, value in self._state().items()})

    def _resumed(self, arrays: ArrayRecord) -> ArrayRecord:
        kept = self._journal.kept() if self._journal else None
        if kept is None:
            return arrays
        self._velocity = kept.get("velocity")
        self._restore({n.removeprefix("state:"): v.item() for n, v in kept.items() if n.startswith("state:")})
        names = [n for n in kept if n.startswith("array:")]
        return ArrayRecord({n.removeprefix("array:"): Array(kept[n]) for n in names})


def _bytes(content: RecordDict) -> int:
    total = 0
    for record in content.values():
        try:
            total += record.count_bytes()
        except Exception:  # Flower cannot count every record that a client can send
            continue
    return total
