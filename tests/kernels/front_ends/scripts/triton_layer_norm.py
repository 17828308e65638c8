"""Layer norm and its gradients, summed under locks; ``--faulty`` lets the lock go too early."""

import sys

import numpy as np
import triton
import triton.language as tl

FAULTY = "--faulty" in sys.argv


@triton.jit
def forward(x, y, w, b, means, scales, stride, N, eps, BLOCK: tl.constexpr):
    """A row a program, a block of it at a time."""
    row = tl.program_id(0)
    y += row * stride
    x += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < N, other=0.0).to(tl.float32)
        value = tl.where(at < N, value - mean, 0.0)
        total += value * value
    scale = 1 / tl.sqrt(tl.sum(total, axis=0) / N + eps)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < N
        value = (tl.load(x + at, mask=inside, other=0.0).to(tl.float32) - mean) * scale
        weight, bias = tl.load(w + at, mask=inside), tl.load(b + at, mask=inside)
        tl.store(y + at, value * weight + bias, mask=inside)


@triton.jit
def gradients(
    dx, dy, dw, db, x, w, means, scales, locks, stride, N, FAULTY: tl.constexpr,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A row's own gradient, and its share of the others' in one of some groups."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < N
    group = row % GROUPS
    lock, count = locks + group, locks + GROUPS + group
    dw += group * N + at
    db += group * N + at
    value = tl.load(x + row * stride + at, mask=inside, other=0).to(tl.float32)
    slope = tl.load(dy + row * stride + at, mask=inside, other=0).to(tl.float32)
    weight = tl.load(w + at, mask=inside).to(tl.float32)
    mean, scale = tl.load(means + row), tl.load(scales + row)
    normal = tl.where(inside, (value - mean) * scale, 0.0)
    steep = tl.where(inside, weight * slope, 0.0)
    c1, c2 = tl.sum(normal * steep, axis=0) / N, tl.sum(steep, axis=0) / N
    tl.store(dx + row * stride + at, (steep - (normal * c1 + c2)) * scale, mask=inside)
    part_w, part_b = slope * normal, slope
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    seen = tl.load(count)
    if seen == 0:
        tl.atomic_xchg(count, 1)
    else:
        part_w += tl.load(dw, mask=inside)
        part_b += tl.load(db, mask=inside)
    tl.store(dw, part_w, mask=inside)
    if FAULTY:
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0)
    tl.store(db, part_b, mask=inside)  # named
    if not FAULTY:
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0)


@triton.jit
def collect(parts, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """The sum of the groups."""
    column = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, M, BM):
        row = start + tl.arange(0, BM)
        inside = (row[:, None] < M) & (column[None, :] < N)
        total += tl.load(parts + row[:, None] * N + column[None, :], mask=inside, other=0.0)
    tl.store(out + column, tl.sum(total, axis=0), mask=column < N)


ROWS, N, GROUPS = 6, 100, 2
rng = np.random.default_rng(8)
x, dy = rng.normal(size=(2, ROWS, N)).astype(np.float32)
w, b = rng.normal(size=(2, N)).astype(np.float32)
y, dx = np.empty_like(x), np.empty_like(x)
means, scales = np.empty((2, ROWS), np.float32)
part_w, part_b = np.zeros((2, GROUPS, N), np.float32)
dw, db = np.empty((2, N), np.float32)
forward[(ROWS,)](x, y, w, b, means, scales, N, N, 1e-5, BLOCK=64)
gradients[(ROWS,)](
    dx, dy, part_w, part_b, x, w, means, scales, np.zeros(2 * GROUPS, np.int32), N, N,
    FAULTY=FAULTY, GROUPS=GROUPS, BLOCK=128, num_warps=2,
)  # fmt: skip
for parts, out in ((part_w, dw), (part_b, db)):
    collect[(triton.cdiv(N, 64),)](parts, out, GROUPS, N, BM=4, BN=64)
if not FAULTY:
    wide = x.astype(np.float64)
    scale = 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    normal, steep = (wide - wide.mean(1, keepdims=True)) * scale, w * dy.astype(np.float64)
    np.testing.assert_allclose(y, normal * w + b, atol=1e-5)
    mean = [(values.mean(1, keepdims=True)) for values in (normal * steep, steep)]
    np.testing.assert_allclose(dx, (steep - normal * mean[0] - mean[1]) * scale, atol=1e-5)
    np.testing.assert_allclose(dw, (dy * normal).sum(0), atol=1e-5)
    np.testing.assert_allclose(db, dy.sum(0), atol=1e-5)
