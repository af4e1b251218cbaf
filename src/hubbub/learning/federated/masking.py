"""Masks that cancel in a sum: every two clients share a key, one adds what the other subtracts; and shares as bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hubbub.errors import ParameterError
from hubbub.learning.federated.plan import DistributedPlan
from hubbub.randomness.thresholds import Integers


def fresh_key() -> tuple[bytes, bytes]:
    """A private key for one round, and its public key."""
    private = X25519PrivateKey.generate()
    return private.private_bytes_raw(), private.public_key().public_bytes_raw()


def mask_of(private: bytes, keys: Sequence[bytes], seed: bytes, plan: DistributedPlan) -> Integers:
    """What one client adds to its share; over all clients of the list it adds up to 0 modulo 2**bits.

    Claim: to whoever knows neither this private key nor that of one other key of the list, the mask is uniform as far
        as AES-256 and X25519 go.
    Proof: it has one stream of that pair, which nobody else can compute, as a summand (BIKMMPRSS17, Section 3).
    Assumes: keys are used for one round; the server relays them unchanged, to all the same.
    """
    own = X25519PrivateKey.from_private_bytes(private)
    public = own.public_key().public_bytes_raw()
    points = {int.from_bytes(key, "little") % (1 << 255) % (2**255 - 19) for key in keys}  # as X25519 reads them
    if len(points) != len(keys) or len(keys) < max(2, plan.needed) or public not in keys:
        raise ParameterError("keys", "of the clients", "are too few, or not all of one client each")
    total = np.zeros(plan.width, np.int64)
    for other in keys:
        if other != public:
            stream = _stream(own.exchange(X25519PublicKey.from_public_bytes(other)), seed, plan)
            total += stream if public < other else -stream
    return np.mod(total, 1 << plan.bits)


def _stream(secret: bytes, seed: bytes, plan: DistributedPlan) -> Integers:
    key = HKDF(SHA256(), 32, None, b"hubbub mask:" + seed).derive(secret)
    data = Cipher(AES256(key), CTR(bytes(16))).encryptor().update(bytes(4 * plan.width))
    return np.frombuffer(data, "<u4").astype(np.int64) & ((1 << plan.bits) - 1)


def joined(shares: Sequence[Integers], bits: int) -> Integers:
    """The sum modulo 2**bits."""
    total = np.zeros_like(shares[0])
    for share in shares:
        total = np.mod(total + share, 1 << bits)
    return total


def packed(values: Integers, bits: int) -> bytes:
    """Whole numbers modulo 2**bits, in so many bits each.

    >>> packed(np.array([1, 2, 3, -1]), 4).hex()
    '123f'
    """
    words = np.mod(values, 1 << bits).astype(">u4")
    rows = np.unpackbits(words.view(np.uint8).reshape(-1, 4), axis=1)[:, 32 - bits :]
    return np.packbits(rows).tobytes()


def unpacked(data: bytes, width: int, bits: int) -> Integers | None:
    """The whole numbers; None for bytes that are not of so many."""
    if len(data) != -(-width * bits // 8):
        return None
    rows = np.zeros((width, 32), np.uint8)
    rows[:, 32 - bits :] = np.unpackbits(np.frombuffer(data, np.uint8))[: width * bits].reshape(width, bits)
    return np.packbits(rows, axis=1).view(">u4").reshape(-1).astype(np.int64)
