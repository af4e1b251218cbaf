"""Composition: hubbub's certified interval against dp_accounting, prv_accountant, Opacus and autodp, in one run.

(a) a Poisson-sampled Gaussian of sigma 1 at rate 0.01, 10**3 to 10**6 steps; (b) 500 Laplace releases of epsilon 0.1;
(c) 100 different mechanisms; (d) groups of (a). Epsilon at delta 1e-5. What is timed, for every library, is all from
the parameters to epsilon: hubbub and prv_accountant give a lower and an upper bound, the others an upper one only.
Times are medians after a warm-up, with hubbub's caches emptied before every call; a call of more than five seconds is
timed once, and steps that would take a library over a minute, judged by the case before, are skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from report import warm_seconds, write

import hubbub as hb

DELTA = 1e-5
POWERS = (3, 4, 5, 6)
GROUPS = (2, 10)
ONCE, LONGEST = 5.0, 60.0
"""A call of more seconds than the first is its own measurement; one that would take more than the second is skipped."""

Jobs = dict[str, Callable[[], Any]]
"""A case's name and the work that answers with an upper bound, or with (lower, upper)."""


@dataclass(frozen=True)
class Library:
    """A library's way of accounting.

    ``tight`` if it is by loss distributions, which Renyi divergences are not; ``growth`` is how many times as long ten
    times the steps take, roughly.
    """

    name: str
    jobs: Jobs
    tight: bool
    growth: int


def different() -> Iterator[tuple[str, int]]:
    """34 Gaussians, 33 Laplaces and 33 randomised responses."""
    return ((("gauss", "laplace", "response")[k % 3], k) for k in range(100))


def deviation(k: int) -> float:
    return 5 + k / 10


def scale(k: int) -> float:
    return 10 + k / 5


def price(k: int) -> float:
    return 0.05 + k / 1000


def hubbub_jobs() -> Jobs:
    def many() -> hb.Loss:
        kinds: dict[str, Callable[[int], hb.Loss]] = {
            "gauss": lambda k: hb.GaussianDP(1 / deviation(k)),
            "laplace": lambda k: hb.LaplaceDP(1 / scale(k)),
            "response": lambda k: hb.PureDP(price(k)),
        }
        return hb.compose(kinds[kind](k) for kind, k in different())

    step = hb.SampledGaussian(1, 0.01)
    return {
        **{f"a T=1e{k}": lambda k=k: (step * 10**k).epsilon_interval(DELTA) for k in POWERS},
        "b 500 Laplace": lambda: (hb.LaplaceDP(0.1) * 500).epsilon_interval(DELTA),
        "c 100 different": lambda: many().epsilon_interval(DELTA),
        **{
            f"d group of {size}": lambda size=size: (step * 1000).group(size).epsilon_interval(DELTA) for size in GROUPS
        },
    }


def dp_accounting_pld_jobs() -> Jobs:
    from dp_accounting.pld import privacy_loss_distribution as pld

    def many() -> float:
        kinds: dict[str, Callable[[int], Any]] = {
            "gauss": lambda k: pld.from_gaussian_mechanism(deviation(k)),
            "laplace": lambda k: pld.from_laplace_mechanism(scale(k)),
            "response": lambda k: pld.from_randomized_response(2 / (1 + math.exp(price(k))), 2),
        }
        total = None
        for kind, k in different():
            one = kinds[kind](k)
            total = one if total is None else total.compose(one)
        return total.get_epsilon_for_delta(DELTA)

    def repeated(one: Any, times: int) -> float:
        return one.self_compose(times).get_epsilon_for_delta(DELTA)

    def group(size: int) -> Any:
        chances = [math.comb(size, j) * 0.01**j * 0.99 ** (size - j) for j in range(size + 1)]
        return pld.from_mixture_gaussian_mechanism(1.0, list(range(size + 1)), chances)

    return {
        **{
            f"a T=1e{k}": lambda k=k: repeated(pld.from_gaussian_mechanism(1.0, sampling_prob=0.01), 10**k)
            for k in POWERS
        },
        "b 500 Laplace": lambda: repeated(pld.from_laplace_mechanism(10.0), 500),
        "c 100 different": many,
        **{f"d group of {size}": lambda size=size: repeated(group(size), 1000) for size in GROUPS},
    }


def dp_accounting_rdp_jobs() -> Jobs:
    import dp_accounting as dp
    from dp_accounting import rdp

    def repeated(event: Any, times: int) -> float:
        account = rdp.RdpAccountant()
        account.compose(dp.SelfComposedDpEvent(event, times))
        return account.get_epsilon(DELTA)

    step = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0))
    return {
        **{f"a T=1e{k}": lambda k=k: repeated(step, 10**k) for k in POWERS},
        "b 500 Laplace": lambda: repeated(dp.LaplaceDpEvent(10.0), 500),
    }


def prv_jobs() -> Jobs:
    import prv_accountant as prv

    def run(mechanisms: list[Any], times: list[int]) -> tuple[float, float]:
        account = prv.PRVAccountant(
            prvs=mechanisms, max_self_compositions=times, eps_error=0.1, delta_error=DELTA / 1000
        )
        low, _, high = account.compute_epsilon(delta=DELTA, num_self_compositions=times)
        return low, high

    def sampled() -> Any:
        return prv.PoissonSubsampledGaussianMechanism(noise_multiplier=1.0, sampling_probability=0.01)

    def many() -> tuple[float, float]:
        kinds: dict[str, Callable[[int], Any]] = {
            "gauss": lambda k: prv.GaussianMechanism(noise_multiplier=deviation(k)),
            "laplace": lambda k: prv.LaplaceMechanism(mu=1 / scale(k)),
            "response": lambda k: prv.PureDPMechanism(eps=price(k)),
        }
        return run([kinds[kind](k) for kind, k in different()], [1] * 100)

    return {
        **{f"a T=1e{k}": lambda k=k: run([sampled()], [10**k]) for k in POWERS},
        "b 500 Laplace": lambda: run([prv.LaplaceMechanism(mu=0.1)], [500]),
        "c 100 different": many,
    }


def opacus_jobs(name: str) -> Jobs:
    from opacus.accountants import create_accountant

    def run(steps: int) -> float:
        account = create_accountant(name)
        account.history = [(1.0, 0.01, steps)]
        return float(account.get_epsilon(delta=DELTA))

    return {f"a T=1e{k}": lambda k=k: run(10**k) for k in POWERS}


def autodp_jobs() -> Jobs:
    from autodp import mechanism_zoo, transformer_zoo

    def composed(mechanisms: list[Any], times: list[int]) -> float:
        return float(transformer_zoo.Composition()(mechanisms, times).get_approxDP(DELTA))

    def sampled() -> Any:
        gaussian = mechanism_zoo.ExactGaussianMechanism(sigma=1.0)
        gaussian.replace_one = False
        amplified = transformer_zoo.AmplificationBySampling(PoissonSampling=True)
        return amplified(gaussian, 0.01, improved_bound_flag=True)

    def many() -> float:
        kinds: dict[str, Callable[[int], Any]] = {
            "gauss": lambda k: mechanism_zoo.ExactGaussianMechanism(sigma=deviation(k)),
            "laplace": lambda k: mechanism_zoo.LaplaceMechanism(b=scale(k)),
            "response": lambda k: mechanism_zoo.RandresponseMechanism(p=1 / (1 + math.exp(-price(k)))),
        }
        return composed([kinds[kind](k) for kind, k in different()], [1] * 100)

    return {
        **{f"a T=1e{k}": lambda k=k: composed([sampled()], [10**k]) for k in POWERS},
        "b 500 Laplace": lambda: composed([mechanism_zoo.LaplaceMechanism(b=10.0)], [500]),
        "c 100 different": many,
    }


def libraries() -> list[Library]:
    """hubbub first."""
    return [
        Library("hubbub", hubbub_jobs(), tight=True, growth=5),
        Library("dp_accounting PLD", dp_accounting_pld_jobs(), tight=True, growth=5),
        Library("prv_accountant ±0.1", prv_jobs(), tight=True, growth=25),
        Library("Opacus PRV", opacus_jobs("prv"), tight=True, growth=15),
        Library("dp_accounting RDP", dp_accounting_rdp_jobs(), tight=False, growth=1),
        Library("Opacus RDP", opacus_jobs("rdp"), tight=False, growth=1),
        Library("autodp RDP", autodp_jobs(), tight=False, growth=1),
    ]


def forget() -> None:
    """Empties every cache hubbub keeps."""
    for name, module in list(sys.modules.items()):
        if name.startswith("hubbub"):
            for thing in list(vars(module).values()):
                if hasattr(thing, "cache_clear"):
                    thing.cache_clear()


def measured(work: Callable[[], Any], repeats: int) -> dict[str, Any]:
    """The answer and its time, or the name of the error."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # autodp prints its search
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            answer = work()
            first = time.perf_counter() - start
            took = first if first > ONCE else warm_seconds(work, repeats, before=forget)
    except Exception as failure:  # a peer that cannot answer is a result
        return {"skipped": type(failure).__name__}
    return {"answer": [float(end) for end in answer] if isinstance(answer, tuple) else float(answer), "seconds": took}


def compared(every: list[Library], repeats: int) -> Iterator[dict[str, Any]]:
    """A row for every case and library that has it; libraries take turns, so that a busy machine is busy for all."""
    last = dict.fromkeys((library.name for library in every), 0.0)
    for case in every[0].jobs:
        for library in every:
            if case not in library.jobs:
                continue
            if case.startswith("a") and library.growth * last[library.name] > LONGEST:
                result: dict[str, Any] = {"skipped": "over a minute"}
            else:
                result = measured(library.jobs[case], repeats)
                last[library.name] = result.get("seconds", 0.0)
            yield {"case": case, "library": library.name, **result}


def upper(row: dict[str, Any]) -> float:
    answer = row["answer"]
    return answer[1] if isinstance(answer, list) else answer


def table(rows: list[dict[str, Any]], every: list[Library]) -> str:
    ours, *peers = every
    found = {(row["case"], row["library"]): row for row in rows}
    heads = [
        "case",
        "hubbub [lower, upper]",
        "width",
        "ms",
        *(peer.name for peer in peers),
        "least speed-up (PLD, PRV)",
    ]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    looser, contradicted = [], []
    for case in dict.fromkeys(row["case"] for row in rows):
        mine = found[case, ours.name]
        low, high = mine["answer"]
        cells = [case, f"[{low:.4f}, {high:.4f}]", f"{(high - low) / high:.0e}", f"{1000 * mine['seconds']:.3g}"]
        gains = []
        for peer in peers:
            row = found.get((case, peer.name))
            if row is None or "skipped" in row:
                cells.append(f"skipped: {row['skipped']}" if row else "-")
                continue
            gain = row["seconds"] / mine["seconds"]
            gains += [gain] if peer.tight else []
            ends = (
                f"[{row['answer'][0]:.3f}, {upper(row):.3f}]"
                if isinstance(row["answer"], list)
                else f"{upper(row):.4f}"
            )
            cells.append(f"{ends} ({gain:.3g}x)")
            if upper(row) < low:
                contradicted.append(f"{case}: {peer.name} {upper(row):.6g} < {low:.6g}")
            elif upper(row) < high:
                looser.append(f"{case}: {peer.name} {upper(row):.6g} < {high:.6g} (by {high / upper(row) - 1:.1e})")
        lines.append("| " + " | ".join([*cells, f"{min(gains):.3g}x" if gains else "-"]) + " |")
    return "\n".join(
        [
            *lines,
            "",
            "In brackets: how many times faster hubbub is (below 1: slower). RDP answers are upper bounds, not tight.",
            f"looser than: {'; '.join(looser) or 'none'}",
            f"peers below hubbub's certified lower end (one of the two is wrong): {'; '.join(contradicted) or 'none'}",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    every = libraries()
    rows = list(compared(every, repeats))
    write("accounting", rows, table(rows, every))


if __name__ == "__main__":
    main()
