"""The noise of ``noise.py`` in one kernel on an NVIDIA GPU: ChaCha20, Box and Muller, the sum and its rounding."""

from __future__ import annotations

import os
import struct

import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from torch import Tensor

from hubbub.learning.sgd import noise
from hubbub.randomness.lazy import rounded_sum

try:
    import triton
    from triton import language as tl

    _jit, READY = triton.jit, True
except ImportError:  # it comes with torch where there is a GPU for it
    _jit, READY = (lambda kernel: kernel), False

BLOCK = 256
MOST = 1 << 30
"""Coordinates of one call: places are 32-bit numbers."""
NORMALS = 8
"""Of one block of the cipher: sixteen words, eight uniform numbers of 64 bits, four pairs."""


@_jit
def _rotated(x, by: tl.constexpr):
    return (x << by) | (x >> (32 - by))


@_jit
def _quarter(a, b, c, d):
    a = a + b
    d = _rotated(d ^ a, 16)
    c = c + d
    b = _rotated(b ^ c, 12)
    a = a + b
    d = _rotated(d ^ a, 8)
    c = c + d
    b = _rotated(b ^ c, 7)
    return a, b, c, d


@_jit
def _uniform(low, high):
    """(high 2**32 + low + 1/2) / 2**64 as a double."""
    return (high.to(tl.float64) * 4294967296.0 + low.to(tl.float64) + 0.5) * 5.421010862427522e-20


@_jit
def _release(
    out,
    doubts,
    size,
    at,
    x,
    z,
    squared,
    u,
    step,
    spread,
    sure: tl.constexpr,
    rather: tl.constexpr,
    common_radius: tl.constexpr,
    least_radius: tl.constexpr,
    common_uniform: tl.constexpr,
    least_uniform: tl.constexpr,
):
    mask = at < size
    total = x / step + z * spread
    whole = tl.floor(total + 0.5)
    off = tl.where((squared > common_radius) & (u > common_uniform), sure * spread, rather * spread)
    vague = (squared <= least_radius) | (u <= least_uniform)
    doubtful = vague | (tl.abs(total - whole) + tl.abs(total) * 8.881784197001252e-16 > 0.5 - off)
    tl.store(out + at, whole * step, mask=mask)
    tl.store(doubts + at, doubtful.to(tl.int8), mask=mask)


@_jit
def _kernel(
    totals,
    out,
    doubts,
    secret,
    scales,
    size,
    blocks,
    lanes: tl.constexpr,
    sure: tl.constexpr,
    rather: tl.constexpr,
    common_radius: tl.constexpr,
    least_radius: tl.constexpr,
    common_uniform: tl.constexpr,
    least_uniform: tl.constexpr,
):
    at = tl.program_id(0) * lanes + tl.arange(0, lanes)
    step, spread = tl.load(scales), tl.load(scales + 1)
    counter = at.to(tl.uint32)
    zero = counter * 0
    c0, c1, c2, c3 = zero + 0x61707865, zero + 0x3320646E, zero + 0x79622D32, zero + 0x6B206574
    k0 = tl.load(secret + 0).to(tl.uint32, bitcast=True) + zero
    k1 = tl.load(secret + 1).to(tl.uint32, bitcast=True) + zero
    k2 = tl.load(secret + 2).to(tl.uint32, bitcast=True) + zero
    k3 = tl.load(secret + 3).to(tl.uint32, bitcast=True) + zero
    k4 = tl.load(secret + 4).to(tl.uint32, bitcast=True) + zero
    k5 = tl.load(secret + 5).to(tl.uint32, bitcast=True) + zero
    k6 = tl.load(secret + 6).to(tl.uint32, bitcast=True) + zero
    k7 = tl.load(secret + 7).to(tl.uint32, bitcast=True) + zero
    n0 = tl.load(secret + 8).to(tl.uint32, bitcast=True) + zero
    n1 = tl.load(secret + 9).to(tl.uint32, bitcast=True) + zero
    n2 = tl.load(secret + 10).to(tl.uint32, bitcast=True) + zero
    w0, w1, w2, w3, w4, w5, w6, w7 = c0, c1, c2, c3, k0, k1, k2, k3
    w8, w9, wa, wb, wc, wd, we, wf = k4, k5, k6, k7, counter, n0, n1, n2
    for _ in range(10):
        w0, w4, w8, wc = _quarter(w0, w4, w8, wc)
        w1, w5, w9, wd = _quarter(w1, w5, w9, wd)
        w2, w6, wa, we = _quarter(w2, w6, wa, we)
        w3, w7, wb, wf = _quarter(w3, w7, wb, wf)
        w0, w5, wa, wf = _quarter(w0, w5, wa, wf)
        w1, w6, wb, wc = _quarter(w1, w6, wb, wc)
        w2, w7, w8, wd = _quarter(w2, w7, w8, wd)
        w3, w4, w9, we = _quarter(w3, w4, w9, we)
    w0, w1, w2, w3 = w0 + c0, w1 + c1, w2 + c2, w3 + c3
    w4, w5, w6, w7 = w4 + k0, w5 + k1, w6 + k2, w7 + k3
    w8, w9, wa, wb = w8 + k4, w9 + k5, wa + k6, wb + k7
    wc, wd, we, wf = wc + counter, wd + n0, we + n1, wf + n2
    for j in tl.static_range(4):
        if j == 0:
            u, v = _uniform(w0, w1), _uniform(w2, w3)
        elif j == 1:
            u, v = _uniform(w4, w5), _uniform(w6, w7)
        elif j == 2:
            u, v = _uniform(w8, w9), _uniform(wa, wb)
        else:
            u, v = _uniform(wc, wd), _uniform(we, wf)
        squared = -2.0 * tl.log(u)
        radius = tl.sqrt(squared)
        angle = v * 6.283185307179586
        here = tl.where(at < blocks, 2 * j * blocks + at, size)
        x = tl.load(totals + here, mask=here < size, other=0.0).to(tl.float64)
        _release(
            out,
            doubts,
            size,
            here,
            x,
            radius * tl.cos(angle),
            squared,
            u,
            step,
            spread,
            sure,
            rather,
            common_radius,
            least_radius,
            common_uniform,
            least_uniform,
        )
        there = tl.where(at < blocks, (2 * j + 1) * blocks + at, size)
        x = tl.load(totals + there, mask=there < size, other=0.0).to(tl.float64)
        _release(
            out,
            doubts,
            size,
            there,
            x,
            radius * tl.sin(angle),
            squared,
            u,
            step,
            spread,
            sure,
            rather,
            common_radius,
            least_radius,
            common_uniform,
            least_uniform,
        )


def noisy_on_device(flat: Tensor, stddev: float) -> Tensor:
    """``noise.noisy`` of a flat sum on the GPU that holds it, under a key that is used for this once.

    Claim: that of ``noise.noisy``.
    Proof: the same; uniform numbers are the keystream of ChaCha20 under a fresh key from the operating system.
    Assumes: the GPU's elementary functions of doubles keep to the errors stated there (CUDA documents 2 units in the
        last place at most); ChaCha20 is a pseudorandom function.
    """
    step = noise.grid_of(stddev)
    spread = stddev / step
    size = flat.numel()
    blocks = -(-size // NORMALS)
    key, nonce = os.urandom(32), os.urandom(12)
    secret = _sent(torch.tensor(struct.unpack("<11i", key + nonce), dtype=torch.int32), flat.device)
    scales = _sent(torch.tensor([step, spread], dtype=torch.float64), flat.device)  # as arguments they would be 32-bit
    out = torch.empty_like(flat)
    doubts = torch.empty(size, dtype=torch.int8, device=flat.device)
    _kernel[(triton.cdiv(blocks, BLOCK),)](
        flat, out, doubts, secret, scales, size, blocks, BLOCK,
        noise.SURE, noise.RATHER_SURE, noise.COMMON_RADIUS, noise.LEAST_RADIUS,
        noise.COMMON_UNIFORM, noise.LEAST_UNIFORM,
    )  # fmt: skip
    if bool(doubts.any()):
        for i in doubts.nonzero().flatten().tolist():
            order, block = divmod(i, blocks)
            radial, angular = words_of(key, nonce, block)[order // 2]
            decided = rounded_sum(float(flat[i]) / step, spread, radial, angular, cosine=order % 2 == 0)
            out[i] = decided * step
    return out


def _sent(values: Tensor, device: torch.device) -> Tensor:
    """The same on the device, without waiting for what it has to do before."""
    return values.pin_memory().to(device, non_blocking=True)


def words_of(key: bytes, nonce: bytes, block: int) -> list[tuple[int, int]]:
    """The four pairs of 64-bit numbers of one block of the keystream."""
    stream = Cipher(algorithms.ChaCha20(key, struct.pack("<I", block) + nonce), mode=None).encryptor()
    numbers = struct.unpack("<8Q", stream.update(bytes(64)))
    return [(numbers[2 * j], numbers[2 * j + 1]) for j in range(4)]
