"""A grid in one process, and client apps that behave or do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.supercore.task_identity import TaskIdentity

Mod = Callable[..., Message]
Train = Callable[[np.ndarray, Context], np.ndarray]

TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1


def model(length: int = 4, kind: type = np.float64) -> ArrayRecord:
    return ArrayRecord({"w": Array(np.zeros(length, kind))})


def app_of(train: Train, *mods: Mod) -> ClientApp:
    """A plain Flower app that replies with a trained model, and with a metric that nobody should pass on."""
    app = ClientApp(mods=list(mods))

    @app.train()
    def _(message: Message, context: Context) -> Message:
        trained = train(message.content.array_records["arrays"]["w"].numpy(), context)
        metrics = MetricRecord({"num-examples": 7, "secret": 0.125})
        return Message(RecordDict({"arrays": ArrayRecord({"w": Array(trained)}), "m": metrics}), reply_to=message)

    @app.evaluate()
    def _(message: Message, _: Context) -> Message:
        return Message(RecordDict({"m": MetricRecord({"secret": 0.125})}), reply_to=message)

    return app


def adding(change: Any) -> Train:
    return lambda w, _: (w + np.asarray(change)).astype(w.dtype)


class Here:
    """Nodes of one process; ``behave`` may drop, change or repeat what a node replies."""

    def __init__(
        self, app: ClientApp, nodes: int, behave: Callable[[int, Message], list[Message]] | None = None
    ) -> None:
        self.app, self.nodes = app, list(range(10, 10 + nodes))
        self.behave = behave or (lambda _, reply: [reply])
        self.contexts = {n: Context(1, n, {"partition-id": n - 10}, RecordDict(), {}) for n in self.nodes}
        self.asked: list[list[int]] = []
        self.replies: list[Message] = []

    def get_node_ids(self) -> Iterable[int]:
        return self.nodes

    def send_and_receive(self, messages: Iterable[Message], **_: Any) -> Iterable[Message]:
        found = []
        asked = []
        for number, message in enumerate(messages):
            node = message.metadata.dst_node_id
            asked.append(node)
            message.metadata.__dict__["_message_id"] = str(number)
            try:
                reply = self.app(message, self.contexts[node])
            except Exception:
                continue
            found += self.behave(node, reply)
        self.asked.append(asked)
        self.replies += found
        return found
