"""Charges per second of the curator's ledger: one writer, several, and a long ledger; SQLite and PostgreSQL.

python benchmarks/ledger.py [--database URL of an empty PostgreSQL database]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import hubbub as hb
from hubbub.curator import Ledger

SECONDS = 5.0


def charges(ledger: Ledger, name: str, loss: hb.Loss, seconds: float, answer: bool) -> list[float]:
    """How long each of the charges took that fit into so many seconds."""
    took, end = [], time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        key = f"{name} {len(took)}"
        entry = ledger.charge("survey", name, key=key, question=key, loss=loss, delta=1e-12).entry
        if answer:
            ledger.store_answer(entry, '{"rows": [[42.0]]}')
        took.append(time.perf_counter() - begun)
    return took


def measured(ledger: Ledger, name: str, loss: hb.Loss, threads: int = 1, answer: bool = False) -> dict[str, float]:
    """Charges per second of so many threads, and how long one took."""
    took: list[float] = []
    workers = [
        threading.Thread(target=lambda i=i: took.extend(charges(ledger, f"{name} {i}", loss, SECONDS, answer)))
        for i in range(threads)
    ]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    took.sort()
    return {
        "per_second": round(len(took) / SECONDS, 1),
        "p50_ms": round(1000 * statistics.median(took), 2),
        "p99_ms": round(1000 * took[int(0.99 * len(took))], 2),
    }


def main() -> None:
    """Prints a table and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database")
    parser.add_argument("--long", type=int, default=10_000, help="entries of the long ledger, kept in memory")
    options = parser.parse_args()
    found: dict[str, object] = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory() as folder:
        urls = {"sqlite": f"sqlite:///{folder}/ledger.db"}
        if options.database:
            urls["postgresql"] = options.database
        for kind, url in urls.items():
            with closing(Ledger(url)) as ledger:
                ledger.open_dataset("survey", epsilon=10**6, delta=1e-3)
                found[f"{kind}, charge"] = measured(ledger, "one", hb.PureDP(0.001))
                found[f"{kind}, charge and answer"] = measured(ledger, "both", hb.PureDP(0.001), answer=True)
                found[f"{kind}, charge, 8 threads"] = measured(ledger, "eight", hb.PureDP(0.001), threads=8)
                found[f"{kind}, charge of a Gaussian"] = measured(ledger, "gauss", hb.GaussianDP(0.01))
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, closing(Ledger(f"sqlite:///{folder}/l.db")) as ledger:
        ledger.open_dataset("survey", epsilon=10**6)
        took = []
        for i in range(options.long):
            begun = time.perf_counter()
            ledger.charge("survey", "ada", key=str(i), question=str(i), loss=hb.PureDP(0.001))
            took.append(1000 * (time.perf_counter() - begun))
        tenth = options.long // 10
        found["in memory, ms per charge"] = {
            f"first {tenth}": round(statistics.median(took[:tenth]), 3),
            f"last {tenth} of {options.long}": round(statistics.median(took[-tenth:]), 3),
        }
        begun = time.perf_counter()
        ledger.verify("survey")
        found["verify, entries per second"] = round(options.long / (time.perf_counter() - begun))
        begun = time.perf_counter()
        ledger.odometer("survey")
        found["odometer, entries per second"] = round(options.long / (time.perf_counter() - begun))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
