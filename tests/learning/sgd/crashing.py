"""Trainings that die: forks a child for each way to, and prints what it left behind. Run by test_run.py.

python tests/learning/sgd/crashing.py folder
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from learning.sgd.toys import cross_entropies, line, plan, points
from support import SeededBits

from hubbub.learning.sgd import Run, journal

STEPS = 60
PLAN = plan(steps=STEPS)
WAYS = [("rename", 17), ("losses", 1), ("losses", 23), ("step", 16), ("step", 40), ("written", 33)]
"""Where the child dies, and before which step."""


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def train(folder: Path, way: str, last: int) -> None:
    """Trains, noting each step that was released; dies in the given way."""
    model = line()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    released = os.open(folder / "released", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def losses(model: Any, *tensors: Any) -> Any:
        if way == "losses" and run.steps == last:
            die()
        return cross_entropies(model, *tensors)

    def note(*_: Any) -> None:
        os.write(released, b".")
        if way == "step" and run.steps == last:
            die()

    run = Run(model, optimizer, PLAN, losses, journal=folder / "steps", bits=SeededBits(0))
    optimizer.register_step_post_hook(note)
    for batch in run.batches(points()):
        if run.steps == last - 1:
            if way == "rename":
                Path.replace = die  # type: ignore[method-assign,assignment]
            if way == "written":
                journal.os.fsync = die  # type: ignore[assignment]
        run.step(batch)


def main(folder: Path) -> None:
    for place, (way, last) in enumerate(WAYS):
        own = folder / str(place)
        own.mkdir()
        child = os.fork()
        if not child:
            train(own, way, last)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        again = Run(
            model := line(), torch.optim.SGD(model.parameters(), 0.1), PLAN, cross_entropies, journal=own / "steps"
        )
        counted = again.steps
        more = 0
        for batch in again.batches(points()):
            again.step(batch)
            more += 1
        print(
            json.dumps(
                {
                    "died": os.WIFSIGNALED(status),
                    "released": len((own / "released").read_bytes()),
                    "counted": counted,
                    "more": more,
                    "epsilon": PLAN.spent(counted).epsilon(1e-5),
                }
            )
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
