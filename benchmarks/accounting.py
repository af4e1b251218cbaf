"""Composition: hubbub's certified interval against dp_accounting (PLD and RDP) and prv_accountant, in one run.

(a) a Poisson-sampled Gaussian of sigma 1 at rate 0.01, 10**3 to 10**6 steps; (b) 500 Laplace releases of epsilon 0.1;
(c) 100 different mechanisms; (d) groups of (a). Times are medians with caches emptied.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from report import seconds, write

import hubbub as hb
from hubbub.privacy import accountant, gaussian

DELTA = 1e-5


def different() -> list[tuple[str, float]]:
    """34 Gaussians, 33 Laplaces and 33 randomised responses."""
    return [(("gauss", "laplace", "response")[k % 3], k) for k in range(100)]


def ours(make: Callable[[], hb.Loss]) -> Callable[[], tuple[float, float]]:
    def run() -> tuple[float, float]:
        for cached in (accountant.epsilon_interval, gaussian.epsilon_upper, gaussian.delta_upper):
            cached.cache_clear()
        return make().epsilon_interval(DELTA)

    return run


def different_losses() -> hb.Loss:
    kinds = {
        "gauss": lambda k: hb.GaussianDP(1 / (5 + k / 10)),
        "laplace": lambda k: hb.LaplaceDP(1 / (10 + k / 5)),
        "response": lambda k: hb.PureDP(0.05 + k / 1000),
    }
    return hb.compose(kinds[kind](k) for kind, k in different())


def hubbub_jobs() -> dict[str, Callable[[], Any]]:
    jobs = {f"a T=1e{k}": ours(lambda k=k: hb.SampledGaussian(1, 0.01) * 10**k) for k in (3, 4, 5, 6)}
    jobs["b 500 Laplace"] = ours(lambda: hb.LaplaceDP(0.1) * 500)
    jobs["c 100 different"] = ours(different_losses)
    for size in (2, 10):
        jobs[f"d group of {size}"] = ours(lambda size=size: (hb.SampledGaussian(1, 0.01) * 1000).group(size))
    return jobs


def dp_accounting_jobs() -> dict[str, Callable[[], Any]]:
    from dp_accounting.pld import privacy_loss_distribution as pld

    def sampled(steps: int) -> float:
        one = pld.from_gaussian_mechanism(1.0, sampling_prob=0.01, value_discretization_interval=1e-4)
        return one.self_compose(steps).get_epsilon_for_delta(DELTA)

    def many() -> float:
        total = None
        for kind, k in different():
            if kind == "gauss":
                one = pld.from_gaussian_mechanism(5 + k / 10)
            elif kind == "laplace":
                one = pld.from_laplace_mechanism(10 + k / 5)
            else:
                one = pld.from_randomized_response(2 / (1 + math.exp(0.05 + k / 1000)), 2)
            total = one if total is None else total.compose(one)
        return total.get_epsilon_for_delta(DELTA)

    def group(size: int) -> float:
        chances = [math.comb(size, j) * 0.01**j * 0.99 ** (size - j) for j in range(size + 1)]
        one = pld.from_mixture_gaussian_mechanism(1.0, list(range(size + 1)), chances)
        return one.self_compose(1000).get_epsilon_for_delta(DELTA)

    jobs: dict[str, Callable[[], Any]] = {f"a T=1e{k}": (lambda k=k: sampled(10**k)) for k in (3, 4, 5, 6)}
    jobs["b 500 Laplace"] = lambda: pld.from_laplace_mechanism(10.0).self_compose(500).get_epsilon_for_delta(DELTA)
    jobs["c 100 different"] = many
    for size in (2, 10):
        jobs[f"d group of {size}"] = lambda size=size: group(size)
    return jobs


def prv_jobs() -> dict[str, Callable[[], Any]]:
    import prv_accountant as prv

    def run(mechanism: Any, steps: int, error: float) -> tuple[float, float]:
        account = prv.PRVAccountant(
            prvs=[mechanism], max_self_compositions=[steps], eps_error=error, delta_error=DELTA / 1000
        )
        low, _, high = account.compute_epsilon(delta=DELTA, num_self_compositions=[steps])
        return low, high

    sampled = prv.PoissonSubsampledGaussianMechanism(noise_multiplier=1.0, sampling_probability=0.01)
    jobs: dict[str, Callable[[], Any]] = {f"a T=1e{k}": (lambda k=k: run(sampled, 10**k, 0.1)) for k in (3, 4, 5)}
    jobs["b 500 Laplace"] = lambda: run(prv.LaplaceMechanism(mu=0.1), 500, 0.1)
    return jobs


def table(rows: list[dict[str, Any]]) -> str:
    found = {(r["case"], r["library"]): r for r in rows}
    lines = [
        "| case | hubbub [lower, upper] | width | dp_accounting PLD | x faster | prv (±0.1) | x faster |",
        "|---" * 7 + "|",
    ]
    for case in dict.fromkeys(r["case"] for r in rows):
        mine = found[case, "hubbub"]
        low, high = mine["answer"]
        cells = [case, f"[{low:.4f}, {high:.4f}]", f"{(high - low) / high:.1e}"]
        for library in ("dp_accounting", "prv_accountant"):
            other = found.get((case, library))
            if other is None:
                cells += ["-", "-"]
                continue
            answer = other["answer"]
            cells.append(f"[{answer[0]:.3f}, {answer[1]:.3f}]" if isinstance(answer, list | tuple) else f"{answer:.4f}")
            cells.append(f"{other['seconds'] / mine['seconds']:.1f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    rows = []
    for library, jobs in (
        ("hubbub", hubbub_jobs()),
        ("dp_accounting", dp_accounting_jobs()),
        ("prv_accountant", prv_jobs()),
    ):
        for case, work in jobs.items():
            answer = work()
            rows.append({"case": case, "library": library, "answer": answer, "seconds": seconds(work, repeats)})
    write("accounting", rows, table(rows))


if __name__ == "__main__":
    main()
