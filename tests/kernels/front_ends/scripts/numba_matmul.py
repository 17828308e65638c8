"""Matrices multiplied tile by tile through shared memory; ``--faulty`` forgets a barrier."""

import sys

import numpy as np
from numba import cuda, float32

FAULTY = "--faulty" in sys.argv
TPB = 16


@cuda.jit
def fast_matmul(a, b, c):
    """A thread an element, a block a tile."""
    a_tile = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    b_tile = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for i in range((a.shape[1] + TPB - 1) // TPB):
        a_tile[ty, tx] = 0
        b_tile[ty, tx] = 0
        if y < a.shape[0] and tx + i * TPB < a.shape[1]:
            a_tile[ty, tx] = a[y, tx + i * TPB]
        if x < b.shape[1] and ty + i * TPB < b.shape[0]:
            b_tile[ty, tx] = b[ty + i * TPB, x]
        cuda.syncthreads()
        for j in range(TPB):
            total += a_tile[ty, j] * b_tile[j, tx]  # named
        if not FAULTY:
            cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


rng = np.random.default_rng(2)
a_host = rng.integers(-3, 4, (33, 20)).astype(np.float32)
b_host = rng.integers(-3, 4, (20, 41)).astype(np.float32)
a_there, b_there = cuda.to_device(a_host), cuda.to_device(b_host)
c_there = cuda.device_array((33, 41), np.float32)
fast_matmul[(3, 3), (TPB, TPB)](a_there, b_there, c_there)
if not FAULTY:
    np.testing.assert_array_equal(c_there.copy_to_host(), a_host @ b_host)
