"""A script for a GPU with Numba; without one: ``tilescope exec numba_pipeline.py [--racy]``.

A histogram in shared memory, then a scan of it; ``--racy`` leaves a barrier out.
"""

import sys

import numpy as np
from numba import cuda, int32

BINS = 64
RACY = "--racy" in sys.argv


@cuda.jit
def histogram(values, counts):
    """How often each value comes, in shared memory first."""
    mine = cuda.shared.array(BINS, int32)
    thread = cuda.threadIdx.x
    if thread < BINS:
        mine[thread] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(mine, values[i], 1)
    if not RACY:
        cuda.syncthreads()
    if thread < BINS:
        cuda.atomic.add(counts, thread, mine[thread])


@cuda.jit
def scan(counts, sums):
    """Running sums, by doubling."""
    buffer = cuda.shared.array((2, BINS), int32)
    thread = cuda.threadIdx.x
    here, step = 0, 1
    buffer[here, thread] = counts[thread]
    cuda.syncthreads()
    while step < BINS:
        there = 1 - here
        value = buffer[here, thread]
        if thread >= step:
            value += buffer[here, thread - step]
        buffer[there, thread] = value
        cuda.syncthreads()
        here, step = there, step * 2
    sums[thread] = buffer[here, thread]


def main() -> None:
    """Count, scan, compare."""
    values = np.random.default_rng(1).integers(0, BINS, 3000).astype(np.int32)
    counts = cuda.to_device(np.zeros(BINS, np.int32))
    sums = cuda.device_array(BINS, np.int32)
    histogram[4, 128](cuda.to_device(values), counts)
    scan[1, BINS](counts, sums)
    cuda.synchronize()
    if not RACY:
        np.testing.assert_array_equal(sums.copy_to_host(), np.bincount(values).cumsum())
    print(f"{sums.copy_to_host()[-1]} values in {BINS} bins")


if __name__ == "__main__":
    main()
