"""Noise throughput: hubbub against OpenDP, diffprivlib and numpy's insecure float generator, in one run.

hubbub and numpy draw vectors of a million. OpenDP is given vectors of --peer-n (its time is linear in the length; pass
--peer-n 1000000 for the same vectors, which takes ten minutes) and diffprivlib, which has no vectors, single calls.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from report import seconds, write

import hubbub as hb
from hubbub.randomness import DiscreteGaussian, DiscreteLaplace

SCALES = {"1": Fraction(1), "37/2": Fraction(37, 2), "1000": Fraction(1000), "2^40": Fraction(2**40)}
KINDS = ("discrete Laplace", "discrete Gaussian", "float Laplace", "float Gaussian")


def hubbub_jobs(scale: Fraction, n: int) -> dict[str, Callable[[], object]]:
    laplace, gaussian = DiscreteLaplace(scale), DiscreteGaussian(scale**2)
    float_laplace, float_gaussian = hb.Laplace(1.0, scale=scale), hb.Gaussian(1.0, sigma=scale)
    zeros = np.zeros(n)
    return {
        "discrete Laplace": lambda: laplace.sample(n),
        "discrete Gaussian": lambda: gaussian.sample(n),
        "float Laplace": lambda: float_laplace.release(zeros),
        "float Gaussian": lambda: float_gaussian.release(zeros),
    }


def numpy_jobs(scale: Fraction, n: int) -> dict[str, Callable[[], object]]:
    generator = np.random.default_rng()
    spread = float(scale)
    laplace, gaussian = (lambda: generator.laplace(0, spread, n)), (lambda: generator.normal(0, spread, n))
    return dict(zip(KINDS, (laplace, gaussian, laplace, gaussian), strict=True))


def opendp_jobs(scale: Fraction, n: int) -> dict[str, Callable[[], object]]:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    integers, floats = np.zeros(n, np.int64), np.zeros(n)
    whole = dp.vector_domain(dp.atom_domain(T="i64"))
    real = dp.vector_domain(dp.atom_domain(T="f64", nan=False))
    spread = float(scale)
    measures = (
        (dp.m.make_laplace(whole, dp.l1_distance(T="i64"), scale=spread), integers),
        (dp.m.make_gaussian(whole, dp.l2_distance(T="i64"), scale=spread), integers),
        (dp.m.make_laplace(real, dp.l1_distance(T="f64"), scale=spread), floats),
        (dp.m.make_gaussian(real, dp.l2_distance(T="f64"), scale=spread), floats),
    )
    return {k: (lambda m=m, x=x: m(x)) for k, (m, x) in zip(KINDS, measures, strict=True)}


def diffprivlib_jobs(scale: Fraction, n: int) -> dict[str, Callable[[], object]]:
    from diffprivlib.mechanisms import Gaussian, GaussianDiscrete, Geometric, Laplace

    epsilon = float(1 / scale)
    makers = (
        lambda: Geometric(epsilon=epsilon, sensitivity=1),
        lambda: GaussianDiscrete(epsilon=min(epsilon, 1.0), delta=1e-5, sensitivity=1),
        lambda: Laplace(epsilon=epsilon, delta=0.0, sensitivity=1),
        lambda: Gaussian(epsilon=min(epsilon, 1.0), delta=1e-5, sensitivity=1),
    )
    jobs = {}
    for kind, make in zip(KINDS, makers, strict=True):
        draw, zero = make().randomise, 0 if kind.startswith("discrete") else 0.0
        jobs[kind] = lambda draw=draw, zero=zero: [draw(zero) for _ in range(n)]
    return jobs


def vector_rows(n: int, peer_n: int, repeats: int) -> list[dict[str, Any]]:
    rows = []
    for label, scale in SCALES.items():
        libraries = {
            "hubbub": (hubbub_jobs, n, repeats),
            "numpy": (numpy_jobs, n, repeats),
            "opendp": (opendp_jobs, peer_n, 1),
            "diffprivlib": (diffprivlib_jobs, 300, 1),
        }
        for library, (make, length, times) in libraries.items():
            if library == "diffprivlib" and scale > 1000:
                continue  # its samplers do not end there
            for kind, work in make(scale, length).items():
                try:
                    rate = length / seconds(work, times)
                except Exception as failure:
                    print(f"{library} {kind} at scale {label}: {type(failure).__name__}", file=sys.stderr)
                    continue
                rows.append({"kind": kind, "scale": label, "library": library, "n": length, "per_second": rate})
    return rows


def scalar_rows(repeats: int) -> list[dict[str, Any]]:
    import opendp.prelude as dp

    rows = []
    for kind, ours, theirs, zero in (
        ("integer", hb.Laplace(1, scale=10), dp.atom_domain(T="i64"), 0),
        ("float", hb.Laplace(1.0, scale=10), dp.atom_domain(T="f64", nan=False), 0.0),
    ):
        measure = dp.m.make_laplace(theirs, dp.absolute_distance(T="i64" if kind == "integer" else "f64"), scale=10.0)
        for library, call in (("hubbub", ours.release), ("opendp", measure)):
            rate = 5000 / seconds(lambda call=call, zero=zero: [call(zero) for _ in range(5000)], repeats)
            rows.append({"kind": f"one {kind} release", "scale": "10", "library": library, "n": 1, "per_second": rate})
    return rows


def peak_rows() -> list[dict[str, Any]]:
    """Peak memory of a whole process that releases ten million values."""
    rows = []
    for kind, code in {
        "integers": "hubbub.Laplace(1, epsilon=0.1).release(np.zeros(10**7, np.int64))",
        "floats": "hubbub.Gaussian(1.0, sigma=3).release(np.zeros(10**7))",
    }.items():
        program = (
            f"import resource, hubbub, numpy as np; {code}; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        rows.append({"kind": f"peak MiB, 10^7 {kind}", "library": "hubbub", "mib": int(run.stdout) // 1024})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    rates = {(r["kind"], r["scale"], r["library"]): r["per_second"] for r in rows if "per_second" in r}
    lines = ["| draws | scale | hubbub M/s | of numpy's time | x OpenDP | x diffprivlib |", "|---|---|---|---|---|---|"]
    for kind, scale in dict.fromkeys((k, s) for k, s, _ in rates):
        ours = rates[kind, scale, "hubbub"]

        def ratio(library: str, kind: str = kind, scale: str = scale, ours: float = ours) -> str:
            other = rates.get((kind, scale, library))
            return f"{ours / other:.3g}" if other else "-"

        numpy_rate = rates.get((kind, scale, "numpy"))
        share = f"{numpy_rate / ours:.2f}x" if numpy_rate else "-"
        lines.append(f"| {kind} | {scale} | {ours / 1e6:.3g} | {share} | {ratio('opendp')} | {ratio('diffprivlib')} |")
    lines += [f"\n{r['kind']}: {r['mib']}" for r in rows if "mib" in r]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10**6)
    parser.add_argument("--peer-n", type=int, default=10**5)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rows = vector_rows(options.n, options.peer_n, options.repeats) + scalar_rows(options.repeats) + peak_rows()
    write("samplers", rows, table(rows))


if __name__ == "__main__":
    main()
