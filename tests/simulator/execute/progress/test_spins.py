"""Waits that are the whole of a loop's head: compilers make one loop of it and of what is about."""

import numpy as np
import pytest

import simulator
from tests.support.launches import BUILDS, compiled

WAITS = (
    "#include <cuda/atomic>\n"
    + r"""
using Word = cuda::atomic_ref<int, cuda::thread_scope_device>;
extern "C" __global__ void lock(int* taken, int* sum, int n, int fences) {
    for (int i = 0; i < n; ++i) {
        while (atomicCAS(taken, 0, 1)) {}
        if (fences) __threadfence();
        *sum += i;
        if (fences) __threadfence();
        atomicExch(taken, 0);
    }
}
extern "C" __global__ void lock_of_warps(int* out, int* unused, int n, int fences) {
    __shared__ int taken, sum;
    if (threadIdx.x == 0) taken = sum = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        for (int i = 0; i < n; ++i) {
            while (atomicCAS(&taken, 0, 1) != 0) {}
            if (fences) __threadfence_block();
            sum += i;
            if (fences) __threadfence_block();
            atomicExch(&taken, 0);
        }
    __syncthreads();
    if (threadIdx.x == 0) *out = sum;
}
extern "C" __global__ void turns(int* flag, int* data, int n, int right) {
    Word word(*flag);
    for (int i = 0; i < n; ++i)
        if (blockIdx.x == 0) {
            data[i] = 3 * i;
            word.store(i + 1, right ? cuda::memory_order_release : cuda::memory_order_relaxed);
        } else {
            while (word.load(cuda::memory_order_acquire) <= i) {}
            atomicAdd(&data[n], data[i]);
        }
}
extern "C" __global__ void polls(int* flag, int* data, int n, int right) {
    Word word(*flag);
    if (blockIdx.x == 0) {
        for (int i = 0; i < n; ++i) {
            data[i] = i + 7;
            if (right) __threadfence();
            word.store(i + 1, cuda::memory_order_relaxed);
        }
        return;
    }
    for (int i = 0, seen; i < n; ++i) {
        do seen = word.load(cuda::memory_order_relaxed); while (seen < i + 1);
        if (right) __threadfence();
        data[n + i] = data[i];
    }
}
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("right", [1, 0], ids=["right", "wrong"])
@pytest.mark.parametrize("entry", ["lock", "lock_of_warps", "turns", "polls"])
def test_a_wait_that_heads_its_loop(entry: str, right: int, build: str) -> None:
    kernel = compiled(WAITS, entry, build)
    arrays = [np.zeros(1, np.int32), np.zeros(16, np.int32)]
    block = 96 if entry == "lock_of_warps" else 1
    for schedule in ("lockstep", "warps", 1):
        for array in arrays:
            array[:] = 0
        ran = simulator.launch(kernel, 2, block, [*arrays, 4, right], schedule=schedule)
        told = {h.kind for h in ran.hazards if h.severity == "error"}
        assert bool(told) != bool(right), (schedule, ran.hazards)


def test_who_looks_and_goes_on_has_not_waited() -> None:
    """``continue`` leads back to the head as well, but no look at the flag has to be right."""
    kernel = compiled(
        "(int* flag, int* data, int* out, int n) {"
        "if (blockIdx.x == 0) { *data = 5; __threadfence(); atomicExch(flag, 1); return; }"
        "int hits = 0;"
        "for (int i = 0; i < n; ++i) { if (atomicAdd(flag, 0) == 0) continue; hits += i; }"
        "__threadfence(); out[0] = hits + *data; }"
    )
    arrays = [np.zeros(1, np.int32) for _ in range(3)]
    ran = simulator.launch(kernel, 2, 1, [*arrays, 3])
    assert "raw-race" in {h.kind for h in ran.hazards if h.severity == "error"}
