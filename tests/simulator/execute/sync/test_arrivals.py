"""Arrivals that are counted, and a count that the last who comes sets back: that is no lock."""

import numpy as np
import pytest

import simulator
from kernels import Kernel

BUILDS = ("device", "source")
FOLD = """
__global__ void fold(int* part, int* total, unsigned* count, unsigned* gen, int* out) {
    int b = blockIdx.x, t = threadIdx.x;
    for (int round = 1; round <= 3; round++) {
        if (t == 0) part[b] = b + round;
        __syncthreads();
        if (t == 0) {
            unsigned old = *(volatile unsigned*)gen;
            BEFORE
            if (atomicAdd(count, 1) == gridDim.x - 1) {
                __threadfence();
                int sum = 0;
                for (int i = 0; i < gridDim.x; i++) sum += part[i];
                *total = sum;
                RESET;
                AFTER
                atomicAdd(gen, 1);
            } else {
                while (*(volatile unsigned*)gen == old) {}
            }
            __threadfence();
        }
        __syncthreads();
        out[b * 32 + t] = out[b * 32 + t] * 100 + *total;
    }
}
"""
RESETS = ("*count = 0", "atomicExch(count, 0)", "*(volatile unsigned*)count = 0")
FENCE = "__threadfence();"
SENSE = """
#include <cuda/atomic>
using Word = cuda::atomic_ref<int, cuda::thread_scope_block>;
__device__ void meet(int* left, int* phase, int* sum) {
    Word count(*left), turn(*phase);
    int old = turn.load(cuda::memory_order_relaxed);
    if (count.fetch_sub(1, cuda::memory_order_acq_rel) == 1) {
        *sum += 5;
        count.store(blockDim.x, cuda::memory_order_relaxed);
        turn.store(old + 1, cuda::memory_order_ORDER);
    } else {
        while (turn.load(cuda::memory_order_acquire) == old) {}
    }
}
__global__ void twice(int* out) {
    __shared__ int left, phase, sum;
    int t = threadIdx.x;
    if (t == 0) { left = blockDim.x; phase = 0; sum = 1; }
    __syncthreads();
    meet(&left, &phase, &sum);
    out[t] = sum;
    meet(&left, &phase, &sum);
    out[t] = out[t] * 100 + sum;
}
"""
COMPLETION = """
#include <cuda/barrier>
struct Done { int* n; __device__ void operator()() noexcept { *n += 1; } };
using Barrier = cuda::barrier<cuda::thread_scope_block, Done>;
__global__ void phases(int* out) {
    __shared__ int n;
    __shared__ alignas(Barrier) char room[sizeof(Barrier)];
    Barrier* barrier = (Barrier*)room;
    int t = threadIdx.x;
    if (t == 0) { n = 0; new (barrier) Barrier(blockDim.x, Done{&n}); }
    __syncthreads();
    barrier->arrive_and_wait();
    out[t] = n;
    barrier->arrive_and_wait();
    out[t] = out[t] * 100 + n;
}
"""


def folded(reset: str, before: str, after: str, build: str) -> tuple[list[str], np.ndarray]:
    source = FOLD.replace("RESET", reset).replace("BEFORE", before).replace("AFTER", after)
    kernel = Kernel.from_cuda(source, "fold", build=build)
    args = [np.zeros(n, kind) for n, kind in ((4, "i4"), (1, "i4"), (1, "u4"), (1, "u4"))]
    out = np.zeros(128, np.int32)
    run = simulator.launch(kernel, 4, 32, [*args, out], cooperative=True)
    return [hazard.kind for hazard in run.hazards if hazard.severity == "error"], out


@pytest.mark.slow_but("atomicExch(count, 0)")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("reset", RESETS)
def test_the_last_block_folds_and_sets_back(reset: str, build: str) -> None:
    kinds, out = folded(reset, FENCE, FENCE, build)
    assert kinds == []
    assert (out == 10_14_18).all()


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(("before", "after"), [("", FENCE), (FENCE, "")])
def test_a_missing_fence_is_found(before: str, after: str, build: str) -> None:
    for reset in RESETS:
        assert folded(reset, before, after, build)[0]


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["lockstep", "warps", 3])
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(("order", "found"), [("release", False), ("relaxed", True)])
def test_a_barrier_of_ones_own(order: str, found: bool, build: str, schedule: str | int) -> None:
    kernel = Kernel.from_cuda(SENSE.replace("ORDER", order), "twice", build=build)
    out = np.zeros(64, np.int32)
    run = simulator.launch(kernel, 1, 64, [out], schedule=schedule)
    assert bool(run.hazards) == found
    assert (out == 611).all()


@pytest.mark.slow
def test_what_runs_when_a_barrier_is_complete() -> None:
    kernel, out = Kernel.from_cuda(COMPLETION, "phases"), np.zeros(64, np.int32)
    assert simulator.launch(kernel, 1, 64, [out]).hazards == []
    assert (out == 102).all()
