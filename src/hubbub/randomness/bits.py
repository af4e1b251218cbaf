"""Secure random bits in bulk: an AES-256-CTR keystream per thread, keyed by the operating system.

There is no seed and no switch. Each thread owns its stream; a forked child forgets every stream it inherited
and keys its own. Tests and audits may hand another ``Bits`` to a sampler, in-process, as an argument.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

Words = NDArray[np.uint64]

POOL_WORDS = 256
"""Words drawn ahead for one-at-a-time use."""
REKEY_AFTER_BYTES = 1 << 30
"""A stream is keyed afresh after this much output, far below any bound on AES-CTR."""

_ZEROS = memoryview(bytes(1 << 18))


class Bits(Protocol):
    """A source of independent uniform 64-bit words."""

    def words(self, count: int) -> Words:
        """``count`` words as an array the caller may overwrite."""
        ...

    def word(self) -> int:
        """One word, as a Python int below 2**64."""
        ...


class _Stream:
    """One thread's keystream. Never shared, never copied into another process."""

    def __init__(self) -> None:
        self.pool: list[int] = []
        self._left = 0
        self._keystream: CipherContext

    def words(self, count: int) -> Words:
        out = np.empty(count + 2, np.uint64)  # the cipher wants up to one spare block behind its output
        view = out.view(np.uint8).data
        start, end = 0, 8 * count
        while start < end:
            piece = min(len(_ZEROS), end - start)
            if self._left < piece:
                self._key()
            self._keystream.update_into(_ZEROS[:piece], view[start:])
            self._left -= piece
            start += piece
        return out[:count]

    def _key(self) -> None:
        self._keystream = Cipher(AES256(os.urandom(32)), CTR(os.urandom(16))).encryptor()
        self._left = REKEY_AFTER_BYTES


class _Streams(threading.local):
    """The streams of one process: a thread sees its own."""

    def __init__(self) -> None:
        self.stream = _Stream()
        self.process = os.getpid()


_streams = _Streams()


def _forget_streams() -> None:
    global _streams
    _streams = _Streams()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_streams)


def _current() -> _Stream:
    if _streams.process != os.getpid():  # a fork that bypassed Python's hooks
        _forget_streams()
    return _streams.stream


class SecureBits:
    """The bits that protect people: what every sampler uses unless a test hands it another source.

    Claim: words are the keystream of AES-256-CTR under a key and counter from the operating system, fresh for
        each thread, each process and each GiB; no two processes or threads share a stream.
    Proof: a stream lives in a thread-local; fork replaces the thread-local before user code runs in the child
        (os.register_at_fork, and a process-id check on every draw); spawn starts from nothing.
    Assumes: os.urandom is a secure generator, AES-256 is a pseudorandom permutation, no virtual machine is cloned
        from a snapshot taken while the process runs, and a fork either runs Python's hooks or changes the process
        id.

    >>> SecureBits().words(3).shape
    (3,)
    """

    def words(self, count: int) -> Words:
        """``count`` words as an array the caller may overwrite."""
        return _current().words(count)

    def word(self) -> int:
        """One word, as a Python int below 2**64."""
        stream = _current()
        if not stream.pool:
            stream.pool = stream.words(POOL_WORDS).tolist()
        return stream.pool.pop()


SECURE = SecureBits()

# The cipher library sets itself up on first use: done here, so that no fork finds another thread in the middle of it.
_Stream().words(1)
