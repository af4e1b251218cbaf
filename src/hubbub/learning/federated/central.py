"""Central noise: a strategy that clips every client's update and adds one noise to the sum, and a compressing mod."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.clientapp.typing import ClientAppCallable

from hubbub.errors import ParameterError
from hubbub.learning.federated.compression import Compression
from hubbub.learning.federated.course import ARRAYS, CONFIG, UPDATE, Course
from hubbub.learning.federated.plan import CentralPlan
from hubbub.learning.federated.rotation import Floats
from hubbub.learning.federated.vectors import RADIUS, Whole, clipped, flat, noisy_sum
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.numeric.rational import rational
from hubbub.randomness.choice import Bernoulli, permutation

TARGET, LEARNING_RATE = 0.5, 0.2
"""Adaptive clipping: the share of updates to be left whole, and how fast the norm follows (ATMR21)."""


class Central(Course):
    """A Flower strategy with central noise: ``Central(plan).start(grid, arrays)``; the server is trusted.

    Client apps are plain ones: they train the model they are sent, by as many local steps as they like, and reply with
    it (FedAvg), or after one step (FedSGD). With ``compression``, they carry ``Compressing`` of the same.

    Claim: the sequence of models after each round has loss ``plan.spent(rounds)``, under ``plan.neighbours``.
    Proof: updates reach the model only through ``combined``: clipped, summed exactly, one noise for the sum, divided by
        a constant; all that follows is post-processing. Cohorts are drawn by secure coins; who does not answer, sends
        what is not finite or does not fit counts as zero, and nobody takes the place. A round is counted before it
        begins. Nothing else that clients send is passed on.
    Assumes: what ``CentralPlan`` assumes; only models leave the server (who was asked, who answered and how many bytes
        came are private); the model was not made from private data.
    """

    def __init__(self, plan: CentralPlan, *, compression: Compression | None = None, **options: Any) -> None:
        super().__init__(plan, **options)
        if plan.sampling == "fixed":
            assert plan.clients is not None
            self.connected = max(self.connected, plan.clients)
        self.plan, self.compression, self.clip = plan, compression, plan.clip
        self._registered: list[int] = []

    def _cohort(self, nodes: Sequence[int]) -> Iterable[int]:
        """By a coin for each registered client, connected or not; or a fixed number of them."""
        self._registered += [node for node in nodes if node not in set(self._registered)]
        if self.plan.sampling == "fixed":
            del self._registered[self.plan.clients :]
            size = round(self.plan.cohort)
            drawn = [self._registered[i] for i in permutation(len(self._registered), self._bits)[:size]]
        else:
            coins = Bernoulli(rational("rate", self.plan.rate)).sample(len(self._registered), self._bits)
            drawn = [node for node, heads in zip(self._registered, coins, strict=True) if heads]
        return set(drawn) & set(nodes)

    def _released(self, contents: Sequence[RecordDict], length: int) -> Floats:
        return self.combined([self._vector(content, length) for content in contents], length)

    def _vector(self, content: RecordDict, length: int) -> Floats:
        try:
            if self.compression is not None:
                data = content.config_records[UPDATE][UPDATE]
                return (
                    self.compression.unpack(data, length, self._seed) if isinstance(data, bytes) else np.zeros(length)
                )
            return changes(next(iter(content.array_records.values())), self._arrays)
        except Exception:  # whatever an untrusted reply makes fail
            return np.zeros(length)

    def combined(self, vectors: Sequence[Floats], length: int) -> Floats:
        """The noisy sum of clipped vectors, one of each client that takes part, over the plan's cohort.

        Claim: GaussianDP(1/plan.noise) for one vector more or less, at the clip norm of this round.
        Proof: ``noisy_sum``; where clipping adapts, the count's part of the noise is in ``plan.sum_noise``.
        Assumes: one vector for a client.
        """
        wholes = [clipped(vector, self.clip) for vector in vectors]
        total = noisy_sum([w.steps for w in wholes], length, self.plan.sum_noise, self._bits)
        step = self.clip / RADIUS
        if self.plan.clipping == "adaptive":
            self._adapt(wholes)
        return total.astype(np.float64) * (step / self.plan.cohort)

    def _adapt(self, wholes: Sequence[Whole]) -> None:
        """Moves the clip norm towards the target quantile, by a noisy count of halves: +1 if within, else -1."""
        halves = sum(1 if whole.within else -1 for whole in wholes)
        noise = 2 * Fraction(self.plan.count_noise)
        share = Gaussian(1, sigma=noise).release(halves, self._bits) / 2 / self.plan.cohort + 0.5
        self.clip *= math.exp(-LEARNING_RATE * (min(1.0, max(0.0, share)) - TARGET))

    def _state(self) -> dict[str, Any]:
        return {"clip": self.clip}

    def _restore(self, state: dict[str, Any]) -> None:
        self.clip = float(state["clip"])


def changes(reply: ArrayRecord, sent: ArrayRecord) -> Floats:
    """The reply's model minus the one that was sent."""
    with np.errstate(all="ignore"):
        return flat(reply, sent) - flat(sent, sent)


class Compressing:
    """A client mod that sends a compressed update in place of the model: ``ClientApp(mods=[Compressing(Signs())])``.

    Before a trusted server that clips and adds noise to every coordinate, any compression is free.
    """

    def __init__(self, compression: Compression) -> None:
        self.compression = compression

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """The reply with the update in few bytes, and nothing else."""
        if message.metadata.message_type != MessageType.TRAIN:
            return call_next(message, context)
        sent = ArrayRecord(dict(message.content.array_records[ARRAYS]))
        seed = seed_of(message)
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        change = changes(next(iter(reply.content.array_records.values())), sent)
        return answered(message, self.compression.pack(change, seed))


def seed_of(message: Message) -> bytes:
    """The public seed of the round."""
    seed = message.content.config_records[CONFIG]["seed"]
    if not isinstance(seed, bytes):
        raise ParameterError("seed", type(seed).__name__, "must be bytes", "use a strategy of hubbub")
    return seed


def answered(message: Message, data: bytes) -> Message:
    """A reply that holds these bytes only."""
    return Message(RecordDict({UPDATE: ConfigRecord({UPDATE: data})}), reply_to=message)
