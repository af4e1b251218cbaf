"""What clients of the federated benchmark do: train a linear classifier on their own pictures (a plain Flower app)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def chances(scores: Floats) -> Floats:
    grown = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(grown / grown.sum(1, keepdims=True))


def trained(weights: Floats, rows: Floats, labels: NDArray[np.int64], steps: int, rate: float) -> Floats:
    """Full-batch gradient steps of logistic regression with ten classes."""
    wanted = np.eye(10)[labels]
    for _ in range(steps):
        weights = weights - rate * rows.T @ (chances(rows @ weights) - wanted) / len(rows)
    return weights


def client_app(folder: Path, mods: Sequence[Callable[..., Message]] = ()) -> ClientApp:
    """The client whose pictures are in the file of its partition."""
    app = ClientApp(mods=list(mods))

    @app.train()
    def train(message: Message, context: Context) -> Message:
        config: Any = message.content.config_records["config"]
        with np.load(folder / f"{context.node_config['partition-id']}.npz") as own:
            rows, labels = own["rows"], own["labels"]
        weights = message.content.array_records["arrays"]["w"].numpy().astype(np.float64)
        found = trained(weights, rows, labels, int(config["steps"]), float(config["rate"]))
        arrays = ArrayRecord({"w": Array(found.astype(np.float32))})
        return Message(
            RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": len(rows)})}), reply_to=message
        )

    return app
