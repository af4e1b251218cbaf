"""Races: many charges at once from several processes, with room for few."""

from __future__ import annotations

import multiprocessing
import threading
import time
from contextlib import closing
from typing import Any

import hubbub as hb
from hubbub.curator import Ledger
from hubbub.errors import BudgetExceeded

PROCESSES, PARALLEL, FITS = 4, 256, 10


def _process(url: str, number: int, orders: Any, found: Any) -> None:
    """Opens the ledger once; for every data set named, so many threads charge at the same moment."""
    with closing(Ledger(url)) as ledger:
        found.put("ready")
        for dataset in iter(orders.get, None):
            won: list[str] = []
            refused: list[str] = []
            failed: list[str] = []
            together = threading.Barrier(PARALLEL // PROCESSES)

            def one(
                i: int, dataset: str = dataset, together: Any = together, ends: Any = (won, refused, failed)
            ) -> None:
                together.wait()
                key = f"{number}-{i}"
                try:
                    entry = ledger.charge(dataset, f"analyst {i % 3}", key=key, question=key, loss=hb.PureDP(0.1)).entry
                    ends[0].append(ledger.store_answer(entry, f"answer to {key}"))
                except BudgetExceeded:
                    ends[1].append(key)
                except Exception as error:
                    ends[2].append(repr(error))

            threads = [threading.Thread(target=one, args=(i,)) for i in range(PARALLEL // PROCESSES)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            found.put((won, len(refused), failed))


def race(url: str, rounds: int) -> float:
    """Runs so many rounds; exactly ten are accepted in each. Charges that were decided per second."""
    context = multiprocessing.get_context("spawn")
    orders, found = [context.Queue() for _ in range(PROCESSES)], context.Queue()
    with closing(Ledger(url)) as ledger:
        workers = [
            context.Process(target=_process, args=(url, n, queue, found), daemon=True) for n, queue in enumerate(orders)
        ]
        for w in workers:
            w.start()
        assert [found.get(timeout=120) for _ in workers] == ["ready"] * PROCESSES
        begun = time.monotonic()
        for r in range(rounds):
            dataset = f"round {r}"
            ledger.open_dataset(dataset, epsilon=1)
            for queue in orders:
                queue.put(dataset)
            told = [found.get(timeout=120) for _ in workers]
            answers = [body for won, _, _ in told for body in won]
            assert [failed for _, _, failed in told] == [[]] * PROCESSES
            assert len(answers) == len(set(answers)) == FITS
            assert sum(refused for _, refused, _ in told) == PARALLEL - FITS
            assert ledger.verify(dataset) == FITS
            assert ledger.remaining(dataset) == 0
            assert {f"answer to {e.key}" for e in ledger.entries(dataset)} == set(answers)
        took = time.monotonic() - begun
        for queue in orders:
            queue.put(None)
        for w in workers:
            w.join()
    return rounds * PARALLEL / took
