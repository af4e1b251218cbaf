"""Two workers that train together: prints what each ends with. Run by test_distributed.py.

python tests/learning/sgd/working.py folder
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
from learning.sgd.toys import cross_entropies, line, plan, points
from support import SeededBits
from torch import distributed, nn

from hubbub.errors import ParameterError
from hubbub.learning.sgd import Batch, Run

MANY = 100_000


def loud(rank: int) -> dict[str, float]:
    """The noise of one step on examples whose gradients are 0."""
    stated = plan(noise=1.5, clip=0.5, clipping="adaptive")
    model = nn.Linear(MANY, 1, bias=False)
    run = Run(
        model, torch.optim.SGD(model.parameters(), 0.0), stated, lambda m, x: 0 * m(x)[:, 0], bits=SeededBits(rank)
    )
    run.step(Batch([lambda: ((torch.ones(2 + rank, MANY),), None)]))
    assert model.weight.grad is not None
    got = (model.weight.grad * stated.batch).double()
    return {"share": float(got.std()) / (stated.gradient_noise * 0.5), "first": float(got[0, 0]), "clip": run.clip}


def quiet(rank: int) -> list[float]:
    """The parameters after steps with hardly any noise, on own records; the workers begin with different models."""
    x, y = points(8)
    model = line()
    if rank:
        nn.init.ones_(model.weight)
    run = Run(model, torch.optim.SGD(model.parameters(), 0.5), plan(noise=1e-7, clip=0.2), cross_entropies)
    own = slice(0, 3) if rank == 0 else slice(3, 8)
    run.step(Batch([lambda: ((x[own], y[own]), None)]))
    run.step(Batch([lambda: ((x[own], y[own]), None)] if rank else []))
    found: list[float] = torch.cat([model.weight.flatten(), model.bias]).tolist()
    return found


def refused() -> bool:
    """Whether samples that workers cannot draw alone are refused."""
    model = line()
    try:
        Run(
            model,
            torch.optim.SGD(model.parameters(), 0.5),
            plan(sampling="fixed", neighbours="replace"),
            cross_entropies,
        )
    except ParameterError:
        return True
    return False


def work(rank: int, folder: Path) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    found = {"loud": loud(rank), "quiet": quiet(rank), "refused": refused()}
    (folder / f"{rank}.json").write_text(json.dumps(found))
    distributed.barrier()


if __name__ == "__main__":
    children = []
    for rank in (0, 1):
        child = os.fork()
        if not child:
            try:
                work(rank, Path(sys.argv[1]))
            except BaseException as wrong:
                print(repr(wrong), file=sys.stderr, flush=True)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
