"""A sum by halves in shared memory, then over blocks; ``--faulty`` has its barrier outside."""

import sys

import numpy as np
from numba import cuda, int64

FAULTY = "--faulty" in sys.argv
THREADS = 128


@cuda.jit
def array_sum(data, result):
    """Each thread its elements, each block one atomic addition."""
    tid = cuda.threadIdx.x
    part = cuda.shared.array(THREADS, int64)
    mine = int64(0)
    for i in range(cuda.grid(1), data.size, cuda.gridsize(1)):
        mine += data[i]
    part[tid] = mine
    cuda.syncthreads()
    step = THREADS // 2
    while step:
        if tid < step:
            part[tid] += part[tid + step]  # named
        if not FAULTY:
            cuda.syncthreads()
        step //= 2
    if tid == 0:
        cuda.atomic.add(result, 0, part[0])


values = cuda.to_device(np.arange(1003))
total = cuda.to_device(np.zeros(1, np.int64))
array_sum[3, THREADS](values, total)
if not FAULTY:
    assert total.copy_to_host()[0] == 1003 * 1002 // 2
