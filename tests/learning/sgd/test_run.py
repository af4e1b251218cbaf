"""Runs: paid before anything is read, counted before each step, the same after a crash or a save; and models learn."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from learning.sgd import crashing
from learning.sgd.toys import cross_entropies, line, one_by_one, plan, points
from support import SeededBits
from torch import nn

import hubbub as hb
from hubbub.errors import BudgetExceeded, ParameterError, SessionClosed
from hubbub.learning.sgd import Batch, Run
from hubbub.learning.sgd.clipping import SINGLE
from hubbub.learning.sgd.journal import AHEAD, Journal
from hubbub.privacy.budget import Budget

DELTA = 1e-5
QUIET = {"noise": 1e-7}
"""No privacy, but sums can be seen."""


def sgd(model: nn.Module, lr: float = 0.1) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr)


def batch(*parts: Any) -> Batch:
    """Of the tensors of each part."""
    return Batch([lambda p=p: (p, None) for p in parts])  # type: ignore[misc]


def gradient(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def made(model: nn.Module | None = None, **options: Any) -> Run:
    model = model or line()
    given = {"losses": cross_entropies, "plan": plan(), "optimizer": sgd(model), "bits": SeededBits(0)} | options
    return Run(model, **given)


# paying and counting


def test_paid_before_anything_is_read() -> None:
    class Untouched:
        def __len__(self) -> int:
            raise AssertionError("read")

    budget = Budget(epsilon=50, delta=DELTA)
    run = made(budget=budget)
    assert budget.spent.epsilon(DELTA) >= plan().loss.epsilon(DELTA)
    assert run.loss.epsilon(DELTA) == 0
    small = Budget(epsilon=0.01, delta=DELTA)
    with pytest.raises(BudgetExceeded):
        made(budget=small).batches(Untouched())
    assert small.spent.epsilon(DELTA) == 0


def test_steps_are_counted_before_they_run() -> None:
    def failing(*_: Any) -> Any:
        raise RuntimeError("half way")

    run = made(losses=failing)
    with pytest.raises(RuntimeError):
        run.step(batch(points(4)))
    assert run.steps == 1
    assert run.epsilon(DELTA) == plan().spent(1).epsilon(DELTA) > 0


def test_no_step_after_the_last() -> None:
    run = made()
    spent = []
    for b in run.batches(points()):
        run.step(b)
        spent.append(run.epsilon(DELTA))
    assert spent == sorted(spent)
    assert len(spent) == 8
    assert run.loss.epsilon(DELTA) == plan().loss.epsilon(DELTA) == spent[-1]
    before = run.model.weight.clone()
    with pytest.raises(SessionClosed):
        run.step(Batch([]))
    assert torch.equal(before, run.model.weight)
    assert list(run.batches(points())) == []


def test_empty_batches_step() -> None:
    run = made(plan=plan(rate=1e-6))
    for b in run.batches(points()):
        before = run.model.weight.clone()
        run.step(b)
        assert not b.parts
        assert not torch.equal(before, run.model.weight)
    assert run.steps == 8


def test_a_pass_left_is_a_pass_paid() -> None:
    """Else a record could be in two batches of what is counted as one pass."""
    stated = plan(sampling="shuffled", neighbours="replace", steps=9)
    run = made(plan=stated)
    begun = run.batches(points())
    run.step(next(begun))
    assert run.epsilon(DELTA) == stated.spent(4).epsilon(DELTA)
    again = run.batches(points())
    run.step(next(again))
    assert run.steps == 5
    assert run.epsilon(DELTA) == stated.spent(8).epsilon(DELTA)
    run.batches(points())
    assert len(list(run.batches(points()))) == 1


# what a step does


@pytest.mark.parametrize("many", [1, 5, 40])
def test_sums_are_divided_by_the_plans_constant(many: int) -> None:
    model, (x, y) = line(), points(many)
    run = made(model, plan=plan(**QUIET, clip=0.5))
    wanted = one_by_one(model, cross_entropies, (x, y), 0.5 * (1 - SINGLE.slack))
    run.step(batch((x, y)))
    assert torch.allclose(16 * gradient(model), torch.cat([w.flatten() for w in wanted]), atol=1e-4)


def test_parts_are_clipped_one_example_at_a_time() -> None:
    x, y = points(10)
    found = []
    for parts in ([(x, y)], [(x[:3], y[:3]), (x[3:], y[3:])], [(x[i : i + 1], y[i : i + 1]) for i in range(10)]):
        run = made(plan=plan(**QUIET, clip=0.1))
        run.step(batch(*parts))
        found.append(gradient(run.model))
    assert torch.allclose(found[0], found[1], atol=1e-5)
    assert torch.allclose(found[0], found[2], atol=1e-5)


def test_rows_that_do_not_count() -> None:
    x, y = points(10)
    run = made(plan=plan(**QUIET))
    run.step(Batch([lambda: ((x, y), torch.arange(10) < 4)]))
    other = made(plan=plan(**QUIET))
    other.step(batch((x[:4], y[:4])))
    assert torch.allclose(gradient(run.model), gradient(other.model), atol=1e-5)


def test_views_are_those_of_one_record() -> None:
    """The second dimension holds them; what has none is repeated; two records never become one."""
    x, y = points(6)
    views = torch.stack([x, -x], 1)
    run = made(plan=plan(**QUIET, clip=0.1), views=2)
    run.step(batch((views, y)))
    both = (views.flatten(0, 1), y.repeat_interleave(2))
    wanted = one_by_one(line(), cross_entropies, both, 0.1, views=2)
    assert torch.allclose(16 * gradient(run.model), torch.cat([w.flatten() for w in wanted]), atol=1e-3)
    repeated = made(plan=plan(**QUIET, clip=0.1), views=2)
    repeated.step(batch((x[:5], y[:5])))
    single = made(plan=plan(**QUIET, clip=0.1))
    single.step(batch((x[:5], y[:5])))
    assert torch.allclose(gradient(repeated.model), gradient(single.model), atol=1e-5)


def test_the_clip_norm_adapts() -> None:
    """To the median length, whatever it began with, within what noise allows."""
    x = torch.randn(4000, 3, generator=torch.Generator().manual_seed(0))
    for start in (0.01, 100.0):
        stated = plan(clipping="adaptive", rate=1.0, batch=4000.0, noise=0.1, steps=80, clip=start)
        model = nn.Linear(3, 1, bias=False)
        run = made(model, plan=stated, optimizer=sgd(model, 0.0), losses=lambda m, x: m(x)[:, 0])
        for b in run.batches(x):
            run.step(b)
        assert 0.8 < run.clip / float(x.norm(dim=1).median()) < 1.25


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # its compiler uses what it says not to use
@pytest.mark.parametrize(("compiled", "value"), [(False, math.nan), (False, math.inf), (False, 1e30), (True, math.nan)])
def test_hostile_examples_in_a_run(compiled: bool, value: float) -> None:
    x, y = points(8)
    bad = x.clone()
    bad[3] = value
    run = made(plan=plan(**QUIET, clip=0.2), part=4, compiled=compiled)
    run.step(batch((bad[:4], y[:4]), (bad[4:], y[4:])))
    others = torch.arange(8) != 3
    clean = made(plan=plan(**QUIET, clip=0.2))
    clean.step(batch((x[others], y[others])))
    assert bool(gradient(run.model).isfinite().all())
    assert float((gradient(run.model) - gradient(clean.model)).norm()) * 16 <= 0.2 * (1 + 1e-5)


# optimisers


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "momentum"])
def test_any_optimizer_and_schedule(kind: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    parameters = list(model.parameters())
    optimizer = (
        torch.optim.SGD(parameters, 0.5, momentum=0.9)
        if kind == "momentum"
        else getattr(torch.optim, kind)(parameters, 0.1)
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60)
    x, y = points(600)
    run = made(model, optimizer=optimizer, plan=plan(rows=600, batch=150.0, steps=60, noise=1.0))
    before = cross_entropies(model, x, y).mean().item()
    for b in run.batches((x, y)):
        run.step(b)
        schedule.step()
    assert cross_entropies(model, x, y).mean().item() < 0.6 * before


def test_strangers_in_an_optimizer_are_refused() -> None:
    model, other = line(), line()
    with pytest.raises(ParameterError, match="optimizer"):
        made(model, optimizer=torch.optim.SGD([*model.parameters(), *other.parameters()], 0.1))
    model.bias.requires_grad_(False)
    with pytest.raises(ParameterError, match="optimizer"):
        made(model, optimizer=sgd(model))
    made(model, optimizer=torch.optim.SGD([model.weight], 0.1)).step(batch(points(4)))


def test_half_precision_models_step() -> None:
    run = made(line().bfloat16())
    run.step(batch((points(4)[0].bfloat16(), points(4)[1])))
    run.step(Batch([]))
    assert run.model.weight.grad.dtype == torch.bfloat16


def test_full_parts_need_a_size() -> None:
    with pytest.raises(ParameterError, match="part"):
        made().batches(points(), full=True)
    with pytest.raises(ParameterError, match="average"):
        made(average=1.0)
    with pytest.raises(ParameterError, match="average"):
        _ = made().averaged


# saving


@pytest.mark.parametrize("clipping", ["flat", "adaptive"])
def test_a_saved_run_goes_on_as_if_nothing_had_been(clipping: str, tmp_path: Path) -> None:
    def started(seed: int) -> Run:
        model = line()
        adam = torch.optim.Adam(model.parameters(), 0.05)
        return made(model, optimizer=adam, plan=plan(clipping=clipping), average=0.9, bits=SeededBits(seed))

    run = started(0)
    for k in range(4):
        run.step(batch(points(5 + k)))
    torch.save(run.state_dict(), tmp_path / "saved")
    other = started(1)
    other.load_state_dict(torch.load(tmp_path / "saved"))
    assert (other.steps, other.clip) == (4, run.clip)
    for each in (run, other):
        each._bits = SeededBits(7)
        for k in range(4):
            each.step(batch(points(5 + k)))
    assert torch.equal(run.model.weight, other.model.weight)
    assert all(torch.equal(run.averaged[n], other.averaged[n]) for n in ("weight", "bias"))
    assert run.clip == other.clip
    assert (run.clip != 1.0) == (clipping == "adaptive")
    line().load_state_dict(run.averaged)


def test_the_state_of_another_plan_is_refused() -> None:
    state = made().state_dict()
    with pytest.raises(ParameterError, match="plan"):
        made(plan=plan(noise=2.5)).load_state_dict(state)


def test_steps_taken_later_stay_counted() -> None:
    run = made()
    state = run.state_dict()
    run.step(Batch([]))
    run.load_state_dict(state)
    assert run.steps == 1


# journals


def test_a_journal_counts_ahead(tmp_path: Path) -> None:
    stated = plan(steps=40)
    run = made(plan=stated, journal=tmp_path / "steps", budget=Budget(epsilon=50, delta=DELTA))
    run.step(Batch([]))
    assert json.loads((tmp_path / "steps").read_text())["steps"] == AHEAD
    unspent = Budget(epsilon=0.001, delta=DELTA)  # it was paid for by the first
    again = made(plan=stated, journal=tmp_path / "steps", budget=unspent)
    assert again.steps == AHEAD
    for _ in range(40 - AHEAD):
        again.step(Batch([]))
    with pytest.raises(SessionClosed):
        made(plan=stated, journal=tmp_path / "steps").step(Batch([]))
    assert Journal(tmp_path / "steps", stated).steps == 40


def test_two_runs_of_one_journal_do_not_both_count(tmp_path: Path) -> None:
    one, other = (made(plan=plan(steps=40), journal=tmp_path / "steps") for _ in range(2))
    one.step(Batch([]))
    with pytest.raises(SessionClosed, match="meanwhile"):
        other.step(Batch([]))
    assert Journal(tmp_path / "steps", plan(steps=40)).steps == AHEAD


def test_journals_of_others_are_refused(tmp_path: Path) -> None:
    made(journal=tmp_path / "steps").step(Batch([]))
    with pytest.raises(ParameterError, match="another plan"):
        made(plan=plan(noise=3.0), journal=tmp_path / "steps")
    for text in ("", "{}", "[]", '{"plan": {}, "steps": 1}'):
        (tmp_path / "steps").write_text(text)
        with pytest.raises(ParameterError, match="not a journal"):
            made(journal=tmp_path / "steps")


def test_no_crash_forgets_a_step(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, crashing.__file__, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(root), str(Path(hb.__file__).parents[1])])},
        capture_output=True,
        text=True,
        check=False,
    )
    left = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(left) == len(crashing.WAYS), done.stderr
    whole = crashing.PLAN.loss.epsilon(DELTA)
    for (way, last), found in zip(crashing.WAYS, left, strict=True):
        assert found["died"]
        assert found["released"] == (last if way == "step" else last - 1)
        assert found["released"] <= found["counted"] < found["released"] + AHEAD + 1
        assert found["counted"] + found["more"] == crashing.STEPS
        assert crashing.PLAN.spent(found["released"]).epsilon(DELTA) <= found["epsilon"] <= whole
