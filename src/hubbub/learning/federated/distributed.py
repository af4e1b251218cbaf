"""Distributed noise: shares of it added by clients, sums of shares modulo a power of two, and nothing else to be seen.

Two ways to sums: masked shares, of which a server that follows the protocol can read nothing but the sum of all, or a
server that is trusted to add up and forget.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from flwr.serverapp import Grid

from hubbub.errors import ParameterError
from hubbub.learning.federated.central import answered
from hubbub.learning.federated.course import CONFIG, UPDATE, Course
from hubbub.learning.federated.local import Guard, Shape
from hubbub.learning.federated.masking import fresh_key, joined, mask_of, packed, unpacked
from hubbub.learning.federated.plan import DistributedPlan
from hubbub.learning.federated.rotation import Floats, rotated, unrotated
from hubbub.learning.federated.vectors import RADIUS, clipped
from hubbub.randomness.bits import SECURE, Bits
from hubbub.randomness.gaussian import DiscreteGaussian as DiscreteGaussianLaw
from hubbub.randomness.thresholds import Integers

Sums = Literal["masked", "trusted"]
STAGE, KEYS, KEY = "stage", "keys", "hubbub-key"
EXCHANGE = 120.0
"""Seconds in which clients send a key."""
TRIES = 200
"""Roundings tried before a vector is truncated instead, which always fits: each passes with a chance of about 0.4."""


def rounded(values: Floats, radius_squared: int, bits: Bits = SECURE) -> Integers:
    """The values rounded at random to whole numbers beside them, right on average, until they are short enough.

    Claim: the squares of the result add up to at most ``radius_squared``, in whole numbers.
    Proof: it is checked; truncation towards zero, after so many tries, is no longer than the values, and is shortened
        until it passes.
    Assumes: values are finite and below 2**31.
    """
    low = np.floor(values)
    for _ in range(TRIES):
        uniform = (bits.words(len(values)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        found = (low + (uniform < values - low)).astype(np.int64)
        if int(np.dot(found, found)) <= radius_squared:
            return found
    found = np.trunc(values).astype(np.int64)
    while int(np.dot(found, found)) > radius_squared:
        found = np.trunc(found * (1 - 2.0**-10)).astype(np.int64)
    return found


def share_of(plan: DistributedPlan, vector: Floats, seed: bytes, bits: Bits = SECURE) -> Integers:
    """One client's share: its vector clipped, rotated, rounded and with its part of the noise, modulo 2**bits.

    Claim: a whole vector of squared length at most plan.radius_squared, plus discrete Gaussian noise of variance
        parameter plan.share, modulo 2**bits.
    Proof: ``rounded``; the noise is exact.
    Assumes: the vector has plan.length coordinates.
    """
    if len(vector) != plan.length:
        raise ParameterError("length", plan.length, "is not the number of coordinates that are sent")
    unit = clipped(vector, plan.clip)
    turned = rotated(unit.steps.astype(np.float64) * (plan.steps / RADIUS), seed, plan.width)
    whole = rounded(turned, plan.radius_squared, bits)
    noise: Any = DiscreteGaussianLaw(plan.share).sample(plan.width, bits)
    return np.asarray(np.mod(whole + noise, 1 << plan.bits))


def unwrapped(plan: DistributedPlan, total: Integers, seed: bytes) -> Floats:
    """The sum of updates that a sum of shares, modulo 2**bits, stands for, as good as its noise lets it."""
    half = 1 << (plan.bits - 1)
    centred = np.mod(total + half, 2 * half) - half
    return unrotated(centred.astype(np.float64), seed, plan.length) * (plan.clip / plan.steps)


class Sharing(Guard):
    """A client mod: ``ClientApp(mods=[Sharing(plan)])``. What leaves is a share, masked unless sums are "trusted".

    ``mask`` and ``signs`` are as for ``LocalNoise``; the plan's ``length`` is the number of coordinates then sent.

    Claim: what leaves in a round is ``share_of`` some vector, once, whatever the app computes; masked, it is uniform to
        whoever lacks the key that this client has with one of the others.
    Proof: ``Guard`` lets one report out a round; ``share_of``; ``mask_of``, added modulo 2**bits. Fewer keys than the
        plan needs, keys twice, or a list without the client's own are refused.
    Assumes: keys in the list are of that many clients that follow the protocol: a server that makes up clients can
        read a share, which is then private by its own part of the noise only.
    """

    def __init__(
        self,
        plan: DistributedPlan,
        *,
        mask: float = 1.0,
        signs: bool = False,
        sums: Sums = "masked",
        **options: Any,
    ) -> None:
        super().__init__(plan, **options)
        self.plan, self.shape, self.sums = plan, Shape(mask, signs, None), _checked(sums)

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """A key, or a share."""
        if message.metadata.message_type == MessageType.TRAIN and self.sums == "masked":
            told = message.content.config_records[CONFIG]
            if told[STAGE] == KEYS:
                private, public = fresh_key()
                context.state.config_records[KEY] = ConfigRecord({KEY: private})
                return answered(message, public)
        return super().__call__(message, context, call_next)

    def _report(self, change: Floats, message: Message, context: Context, seed: bytes) -> bytes:
        share = share_of(self.plan, self.shape.part(change, seed), seed, self._bits)
        if self.sums == "masked":
            private: Any = context.state.config_records.pop(KEY)[KEY]
            keys: Any = message.content.config_records[CONFIG][KEYS]
            share = np.add(share, mask_of(private, keys, seed, self.plan))
        return packed(share, self.plan.bits)


class Distributed(Course):
    """A Flower strategy that sums shares: the other end of ``Sharing``, with the same shape and sums.

    All connected clients are asked. Masked, a round in which somebody who sent a key then sends no share releases
    nothing, and is paid for all the same.

    Claim: the sequence of models has loss ``plan.spent(rounds)`` towards whoever sees them, and with masked sums
        towards this server too, as far as ``Sharing`` assumes.
    Proof: that of ``DistributedPlan``: a sum of at least plan.needed shares is unwrapped and divided by their number,
        or nothing is released.
    Assumes: what ``DistributedPlan`` assumes; with "trusted" sums, that this server keeps no share.
    """

    def __init__(
        self,
        plan: DistributedPlan,
        *,
        mask: float = 1.0,
        signs: bool = False,
        sums: Sums = "masked",
        **options: Any,
    ) -> None:
        options.setdefault("connected", plan.needed)
        super().__init__(plan, **options)
        self.plan, self.shape, self.sums = plan, Shape(mask, signs, None), _checked(sums)
        self._keyed = 0

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Counts a round, exchanges keys where sums are masked, then asks for shares."""
        messages = list(super().configure_train(server_round, arrays, config, grid))
        if self.sums == "trusted":
            return messages
        stage = ConfigRecord({STAGE: KEYS, "seed": self._seed})
        asking = [
            Message(
                content=RecordDict({CONFIG: stage}),
                message_type=MessageType.TRAIN,
                dst_node_id=message.metadata.dst_node_id,
                group_id=message.metadata.group_id,
            )
            for message in messages
        ]
        keys: dict[int, bytes] = {}
        for reply in grid.send_and_receive(asking, timeout=EXCHANGE):
            key = _update(reply.content) if reply.has_content() else None
            if key is not None and len(key) == 32 and reply.metadata.src_node_id in self._invited:
                keys.setdefault(reply.metadata.src_node_id, key)
                self.received += len(key)
        self._keyed, self._invited = len(keys), set(keys)
        if len(keys) < self.plan.needed:
            self._invited = set()
            return []
        chosen = [message for message in messages if message.metadata.dst_node_id in keys]
        for message in chosen:
            told = message.content.config_records[CONFIG]
            told[STAGE], told[KEYS] = "share", [keys[node] for node in sorted(keys)]
        self.sent += 32 * len(keys) ** 2
        return chosen

    def _cohort(self, nodes: Sequence[int]) -> Iterable[int]:
        return nodes

    def _released(self, contents: Sequence[RecordDict], length: int) -> Floats | None:
        shares = []
        for content in contents:
            data = _update(content)
            share = None if data is None else unpacked(data, self.plan.width, self.plan.bits)
            if share is not None:
                shares.append(share)
        if len(shares) < max(self.plan.needed, self._keyed):
            return None
        values = unwrapped(self.plan, joined(shares, self.plan.bits), self._seed) / len(shares)
        return self.shape.placed(values, length, self._seed)


def _update(content: RecordDict) -> bytes | None:
    """The bytes of a reply, whatever it holds."""
    record = content.config_records.get(UPDATE)
    data = None if record is None else record.get(UPDATE)
    return data if isinstance(data, bytes) else None


def _checked(sums: Sums) -> Sums:
    if sums not in get_args(Sums):
        raise ParameterError("sums", sums, 'must be "masked" or "trusted"', "the word says who reads shares")
    return sums
