"""Causal attention with a running maximum; ``--faulty`` gives two programs the same rows."""

import sys

import numpy as np
import triton
import triton.language as tl

FAULTY = "--faulty" in sys.argv


@triton.jit
def inner(
    total, weight, largest, query, k, v, row, low, high, scale,
    D: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """The columns of one stage."""
    depth = tl.arange(0, D)
    for start in range(low, high, BN):
        start = tl.multiple_of(start, BN)
        column = start + tl.arange(0, BN)
        key = tl.load(k + column[None, :] * D + depth[:, None])
        score = tl.dot(query, key) * scale
        if MASKED:
            score = tl.where(row[:, None] >= column[None, :], score, -1.0e6)
        new = tl.maximum(largest, tl.max(score, 1))
        power = tl.math.exp2(score - new[:, None])
        fade = tl.math.exp2(largest - new)
        weight = weight * fade + tl.sum(power, 1)
        value = tl.load(v + column[:, None] * D + depth[None, :])
        total = tl.dot(power.to(tl.float16), value, total * fade[:, None])
        largest = new
    return total, weight, largest


@triton.jit
def attention(
    q, k, v, out, logs, scale, Z, H, N, FAULTY: tl.constexpr, D: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Some rows of one head a program: what lies before them, then the diagonal."""
    block, head = tl.program_id(0), tl.program_id(1)
    row = block * BM + tl.arange(0, BM)
    depth = tl.arange(0, D)
    base = head * N * D
    query = tl.load(q + base + row[:, None] * D + depth[None, :])
    largest = tl.zeros([BM], dtype=tl.float32) - float("inf")
    weight = tl.zeros([BM], dtype=tl.float32) + 1.0
    total = tl.zeros([BM, D], dtype=tl.float32)
    scale *= 1.44269504
    total, weight, largest = inner(
        total, weight, largest, query, k + base, v + base, row, 0, block * BM, scale,
        D, BN, False,
    )  # fmt: skip
    total, weight, largest = inner(
        total, weight, largest, query, k + base, v + base, row, block * BM, (block + 1) * BM,
        scale, D, BN, True,
    )  # fmt: skip
    if FAULTY:
        row = row % BM
    tl.store(logs + head * N + row, largest + tl.math.log2(weight))
    result = (total / weight[:, None]).to(tl.float16)
    tl.store(out + base + row[:, None] * D + depth[None, :], result)  # named


Z, H, N, D = 1, 2, 128, 32
rng = np.random.default_rng(9)
q, k, v = rng.normal(size=(3, Z, H, N, D)).astype(np.float16)
out, logs = np.empty_like(q), np.empty((Z, H, N), np.float32)
attention[(N // 64, Z * H)](
    q, k, v, out, logs, 0.25, Z, H, N, FAULTY=FAULTY, D=D, BM=64, BN=32, num_warps=4, num_stages=2
)
if not FAULTY:
    score = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) * 0.25
    power = np.where(np.tri(N) > 0, np.exp(score), 0)
    expected = power / power.sum(-1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(out, expected, atol=2.0**-10 * abs(v).max())
