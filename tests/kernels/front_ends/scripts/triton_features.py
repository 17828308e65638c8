"""What Triton's documents show besides: atomics, scans, descriptors, small tensors and so on."""

import numpy as np
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def atomics(x, out, n, BLOCK: tl.constexpr):
    """Sums and the like, over programs."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(out, tl.sum(value, 0))
    tl.atomic_max(out + 1, tl.max(value, 0))
    tl.atomic_add(out + 2 + at % 4, value, mask=at < n)
    tl.atomic_cas(out + 6, 0, 9)


@triton.jit
def locked(x, out, lock, BLOCK: tl.constexpr):
    """Programs add to one place in turn; fewer elements than threads."""
    at = tl.arange(0, BLOCK)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + at, tl.load(out + at) + tl.load(x + tl.program_id(0) * BLOCK + at))
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def axes(x, rows, columns, M: tl.constexpr, N: tl.constexpr):
    """Over either axis of a block."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    value = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(rows + i, tl.sum(value, axis=1))
    tl.store(columns + j, tl.max(value, axis=0))


@triton.jit
def larger(a, b):
    """For a scan."""
    return tl.maximum(a, b)


@triton.jit
def scans(x, sums, ordered, largest, N: tl.constexpr):
    """Running sums, a sort, running maxima."""
    at = tl.arange(0, N)
    value = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(value, 0))
    tl.store(ordered + at, tl.sort(value))
    tl.store(largest + at, tl.associative_scan(value, 0, larger))


@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def thrice(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """In place, with a mask where it is needed."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at) if EVEN else tl.load(x + at, mask=at < n)
    tl.device_assert(value > -1, "positive")
    tl.store(x + at, value * 3, mask=at < n)


@triton.jit
def narrow(x, out, N: tl.constexpr):
    """Through types of eight bits."""
    value = tl.load(x + tl.arange(0, N))
    tl.store(out + tl.arange(0, N), value.to(tl.float8e4nv).to(tl.float32))
    tl.device_print("first", tl.load(x))


@triton.jit
def described(a, b, c, M, N, BLOCK: tl.constexpr):
    """A descriptor of the host's, and two that are made here."""
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    shape: tl.constexpr = [BLOCK, BLOCK]
    there = tl.make_tensor_descriptor(b, [M, N], [N, 1], shape)
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], shape)
    out.store([row, column], a.load([row, column]) + there.load([row, column]))


rng = np.random.default_rng(2)
whole, found = rng.integers(0, 50, 300).astype(np.int32), np.zeros(7, np.int32)
atomics[(3,)](whole, found, 300, BLOCK=128)
quarters = [whole[i::4].sum() for i in range(4)]
np.testing.assert_array_equal(found, [whole.sum(), whole.max(), *quarters, 9])

shares, total = np.ones((5, 32), np.float32), np.zeros(32, np.float32)
locked[(5,)](shares, total, np.zeros(1, np.int32), BLOCK=32)
assert (total == 5).all()

x = rng.random((16, 64), np.float32)
rows, columns = np.zeros(16, np.float32), np.zeros(64, np.float32)
axes[(1,)](x, rows, columns, M=16, N=64)
np.testing.assert_allclose(rows, x.sum(1), rtol=1e-5)
np.testing.assert_array_equal(columns, x.max(0))

line = rng.random(256, np.float32)
sums, ordered, largest = np.zeros((3, 256), np.float32)
scans[(1,)](line, sums, ordered, largest, N=256)
np.testing.assert_allclose(sums, line.cumsum(), rtol=1e-4)
np.testing.assert_array_equal(ordered, np.sort(line))
np.testing.assert_array_equal(largest, np.maximum.accumulate(line))

for n in (256, 300):
    some = rng.random(n, np.float32)
    wanted = some * 3
    thrice[(triton.cdiv(n, 128),)](some, n, BLOCK=128)
    np.testing.assert_array_equal(some, wanted)

rounded = np.zeros(256, np.float32)
narrow[(1,)](line, rounded, N=256)
assert 0 < abs(rounded - line).max() <= 2.0**-4

a, b = rng.random((2, 50, 64), np.float32)
c = np.zeros_like(a)
described[(2, 2)](TensorDescriptor(a, [50, 64], [64, 1], [32, 32]), b, c, 50, 64, BLOCK=32)
np.testing.assert_array_equal(c, a + b)
