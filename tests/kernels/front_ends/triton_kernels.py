"""Kernels as Triton's tutorials teach them; ``python -m tests.kernels.front_ends.triton_kernels``
writes the PTX beside this file, which stands for Triton where it is not installed."""

import os
from pathlib import Path

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tests.kernels.front_ends.text import short


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Row-major matrices: a tile of the product a program."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    column = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    inner = tl.arange(0, BK)
    left, right = a + row * K + inner[None, :], b + inner[:, None] * N + column
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(left, mask=(row < M) & (inner[None, :] < K - k), other=0.0)
        y = tl.load(right, mask=(inner[:, None] < K - k) & (column < N), other=0.0)
        total = tl.dot(x, y, total)
        left += BK
        right += BK * N
    tl.store(c + row * N + column, total.to(c.dtype.element_ty), mask=(row < M) & (column < N))


@triton.jit
def softmax(out, x, columns, BLOCK: tl.constexpr):
    """A row a program."""
    at = tl.arange(0, BLOCK)
    place = tl.program_id(0) * columns + at
    value = tl.load(x + place, mask=at < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + place, power / tl.sum(power, axis=0), mask=at < columns)


@triton.jit
def layer_norm(out, x, weight, bias, columns, eps, BLOCK: tl.constexpr):
    """A row a program, a block of it at a time."""
    first = tl.program_id(0) * columns
    sums = tl.zeros([BLOCK], dtype=tl.float32)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.load(x + first + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / columns
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + first + at, mask=at < columns, other=0.0).to(tl.float32)
        value = tl.where(at < columns, value - mean, 0.0)
        squares += value * value
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + first + at, mask=at < columns, other=0.0).to(tl.float32)
        w = tl.load(weight + at, mask=at < columns)
        b = tl.load(bias + at, mask=at < columns)
        tl.store(out + first + at, (value - mean) * scale * w + b, mask=at < columns)


@triton.jit
def attention(q, k, v, out, scale, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Some rows of one head a program, with a running maximum and sum; a row sees those before."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    depth = tl.arange(0, D)
    head = tl.program_id(1) * N * D
    mine = head + row[:, None] * D + depth[None, :]
    query = tl.load(q + mine)
    largest = tl.full([BM], -float("inf"), dtype=tl.float32)
    weight = tl.zeros([BM], dtype=tl.float32)
    total = tl.zeros([BM, D], dtype=tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        column = start + tl.arange(0, BN)
        key = tl.load(k + head + column[None, :] * D + depth[:, None])
        score = tl.dot(query, key) * (scale * 1.44269504)
        score = tl.where(row[:, None] >= column[None, :], score, -float("inf"))
        new = tl.maximum(largest, tl.max(score, 1))
        power = tl.math.exp2(score - new[:, None])
        fade = tl.math.exp2(largest - new)
        weight = weight * fade + tl.sum(power, 1)
        value = tl.load(v + head + column[:, None] * D + depth[None, :])
        total = tl.dot(power.to(tl.float16), value, total * fade[:, None])
        largest = new
    tl.store(out + mine, (total / weight[:, None]).to(tl.float16))


@triton.jit
def doubled(x, STEP: tl.constexpr, N: tl.constexpr):
    """In place: each thread its own element, or another's."""
    at = tl.arange(0, N)
    value = tl.load(x + (at + STEP) % N)
    tl.store(x + at, value * 2)


TILE = {"BM": 64, "BN": 32, "BK": 32}
KERNELS = {
    "matmul_fp16": (matmul, "*fp16 *fp16 *fp16 i32 i32 i32", TILE),
    "matmul_fp32": (matmul, "*fp32 *fp32 *fp32 i32 i32 i32", TILE),
    "softmax": (softmax, "*fp32 *fp32 i32", {"BLOCK": 256}),
    "layer_norm": (layer_norm, "*fp16 *fp16 *fp32 *fp32 i32 fp32", {"BLOCK": 256}),
    "attention": (attention, "*fp16 *fp16 *fp16 *fp16 fp32 i32", {"D": 32, "BM": 64, "BN": 32}),
}
"""By name: function, the types of its arguments, its constants."""


def compiled(name: str, arch: int) -> str:
    """The PTX of a kernel."""
    function, types, constants = KERNELS[name]
    names, kinds = function.arg_names, types.split()
    signature = dict(zip(names, kinds, strict=False)) | dict.fromkeys(constants, "constexpr")
    sixteen = {
        (i,): [["tt.divisibility", 16]]
        for i, kind in enumerate(kinds)
        if kind[0] == "*" or (kind == "i32" and function is not layer_norm)
    }
    made = triton.compile(
        ASTSource(fn=function, signature=signature, constexprs=constants, attrs=sixteen),
        target=GPUTarget("cuda", arch, 32),
        options={"num_warps": 4, "num_stages": 3},
    )
    return short(made.asm["ptx"], made.metadata.shared)


if __name__ == "__main__":
    for kernel in KERNELS:
        for target in (80, 90):
            (Path(__file__).parent / f"{kernel}_{target}.ptx").write_text(compiled(kernel, target))
