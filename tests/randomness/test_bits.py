"""No two processes or threads ever see the same words, and nothing outside can steer them."""

import concurrent.futures
import multiprocessing
import os
import random

import numpy as np
import pytest

from hubbub.mechanisms import Laplace
from hubbub.randomness import SECURE
from hubbub.randomness import bits as bits_module


def draws(_: int = 0) -> list[int]:
    """Words read one at a time, in bulk, and a release: what a worker would use."""
    return [*[SECURE.word() for _ in range(8)], *SECURE.words(8).tolist()]


def releases(_: int = 0) -> tuple[int, ...]:
    return tuple(Laplace(1, epsilon=1e-9).release(np.zeros(8, np.int64)).tolist())


def test_forked_workers_never_repeat() -> None:
    draws()  # the parent's streams and pool exist before the fork
    context = multiprocessing.get_context("fork")
    with context.Pool(64) as pool:
        results = [*pool.map(draws, range(64), chunksize=1), draws()]
    words = [w for r in results for w in r]
    assert len(set(words)) == len(words)


def test_plain_fork_without_python_helpers() -> None:
    draws()
    seen = set(draws())
    for _ in range(8):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, np.array(draws(), np.uint64).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        words = set(np.frombuffer(os.read(reader, 4096), np.uint64).tolist())
        assert len(words) == 16
        assert not words & seen
        seen |= words
    assert not set(draws()) & seen


def test_spawned_workers_never_repeat() -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        results = [*pool.map(releases, range(3), chunksize=1), releases()]
    assert len(set(results)) == 4


def test_threads_never_repeat() -> None:
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        results = list(pool.map(draws, range(400)))
    words = [w for r in results for w in r]
    assert len(set(words)) == len(words)


def test_a_stream_is_keyed_afresh_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bits_module, "REKEY_AFTER_BYTES", 1 << 18)
    stream = bits_module._Stream()
    words = stream.words(200_000)
    assert len(np.unique(words)) == 200_000
    assert abs(np.mean(words * 2.0**-64) - 0.5) < 6.5 / np.sqrt(12 * 200_000)


def test_a_process_id_change_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    draws()
    inherited = bits_module._streams.stream
    monkeypatch.setattr(os, "getpid", lambda: -1)
    SECURE.word()
    assert bits_module._streams.stream is not inherited


def test_no_seed_reaches_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    for _ in range(20):
        random.seed(1)
        np.random.seed(1)
        for name in ("PYTHONHASHSEED", "HUBBUB_SEED", "SEED"):
            monkeypatch.setenv(name, "1")
        seen.add(releases())
    assert len(seen) == 20
