"""A mean of neighbours through a tile with a border; ``--faulty`` reads it too early."""

import sys

import numpy as np
from numba import cuda, float32

FAULTY = "--faulty" in sys.argv
BLOCK, REACH = 64, 3
TILE = BLOCK + 2 * REACH


@cuda.jit
def smooth(x, out):
    """The mean of up to seven neighbours."""
    tile = cuda.shared.array(TILE, float32)
    start = cuda.grid(1)
    here = cuda.threadIdx.x + REACH
    tile[here] = x[start] if start < x.size else 0
    if cuda.threadIdx.x < REACH:
        left, right = start - REACH, start + BLOCK
        tile[here - REACH] = x[left] if left >= 0 else 0
        tile[here + BLOCK] = x[right] if right < x.size else 0
    if not FAULTY:
        cuda.syncthreads()
    total = float32(0)
    for i in range(-REACH, REACH + 1):
        total += tile[here + i]  # named
    if start < x.size:
        out[start] = total / float32(2 * REACH + 1)


signal = np.random.default_rng(4).integers(0, 50, 150).astype(np.float32)
stream = cuda.stream()
with stream.auto_synchronize():
    there = cuda.to_device(signal, stream=stream)
    smoothed = cuda.device_array_like(there, stream=stream)
    smooth[3, BLOCK, stream](there, smoothed)
    result = smoothed.copy_to_host(stream=stream)
if not FAULTY:
    np.testing.assert_allclose(result, np.convolve(signal, np.ones(7) / 7, "same"), rtol=1e-6)
