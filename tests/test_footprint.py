"""Memory that a launch takes: bounded by its batches and arrays, not by its grid."""

from __future__ import annotations

import tracemalloc

import numpy as np

import simulator
from kernels import Kernel

SOURCE = """\
__global__ void pass_on(const float* in, float* sums, int n) {
    __shared__ float tile[256];
    int t = threadIdx.x;
    tile[t] = in[(blockIdx.x * 256 + t) % n];
    __syncthreads();
    float value = tile[255 - t];
    if (value > 0.5f) value = sqrtf(value);
    atomicAdd(&sums[t], value);
}
"""


def peak(blocks: int) -> int:
    """Bytes that Python and NumPy hold at most during a launch of so many blocks."""
    kernel = Kernel.from_cuda(SOURCE, "pass_on")
    values = np.random.default_rng(0).random(4096, dtype=np.float32)
    args = [values, np.zeros(256, np.float32), len(values)]
    tracemalloc.start()
    try:
        assert simulator.launch(kernel, blocks, 256, args).hazards == []
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_grid() -> None:
    """32 batches take what four take; what is remembered between launches is there by then."""
    peak(1024)
    few, many = peak(1024), peak(8192)
    assert many < 1.1 * few, f"{few:,} bytes for 1,024 blocks, {many:,} for 8,192"
