"""A product in groups of tiles, with an activation; ``--faulty`` mixes up two strides."""

import sys

import numpy as np
import triton
import triton.language as tl

FAULTY = "--faulty" in sys.argv


@triton.jit
def leaky_relu(x):
    """A slope for what is negative."""
    return tl.where(x >= 0, x, 0.01 * x)


@triton.autotune(
    configs=[
        triton.Config({"BM": 32, "BN": 64, "BK": 32, "GROUP": 2}, num_stages=3, num_warps=4),
        triton.Config({"BM": 64, "BN": 32, "BK": 16, "GROUP": 4}, num_stages=2, num_warps=2),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_kernel(
    a, b, c, M, N, K, a_row, a_column, b_row, b_column, c_row, c_column,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    ACTIVATION: tl.constexpr,
):  # fmt: skip
    """A tile a program, ordered so that neighbours share rows."""
    pid = tl.program_id(axis=0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * tiles_n
    first = pid // in_group * GROUP
    size = min(tiles_m - first, GROUP)
    pid_m = first + pid % in_group % size
    pid_n = pid % in_group // size
    rows = (pid_m * BM + tl.arange(0, BM)) % M
    columns = (pid_n * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    left = a + rows[:, None] * a_row + inner[None, :] * a_column
    right = b + inner[:, None] * b_row + columns[None, :] * b_column
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = tl.load(left, mask=inner[None, :] < K - k * BK, other=0.0)
        y = tl.load(right, mask=inner[:, None] < K - k * BK, other=0.0)
        total = tl.dot(x, y, total)
        left += BK * a_column
        right += BK * b_row
    if ACTIVATION == "leaky_relu":
        total = leaky_relu(total)
    row = pid_m * BM + tl.arange(0, BM)
    column = pid_n * BN + tl.arange(0, BN)
    place = c + c_row * row[:, None] + c_column * column[None, :]
    inside = (row[:, None] < M) & (column[None, :] < N)
    tl.store(place, total.to(tl.float16), mask=inside)  # named


rng = np.random.default_rng(7)
a = rng.integers(-3, 4, (80, 72)).astype(np.float16)
b = rng.integers(-3, 4, (72, 96)).astype(np.float16)
c = np.empty((80, 96), np.float16)
strides = [step // 2 for array in (a, b, c) for step in array.strides]
if FAULTY:
    strides[4] = c.shape[0]
matmul_kernel[lambda meta: (triton.cdiv(80, meta["BM"]) * triton.cdiv(96, meta["BN"]),)](
    a, b, c, 80, 96, 72, *strides, ACTIVATION="leaky_relu"
)
if not FAULTY:
    product = a.astype(np.float32) @ b.astype(np.float32)
    expected = np.where(product >= 0, product, np.float32(0.01) * product).astype(np.float16)
    np.testing.assert_array_equal(c, expected)
