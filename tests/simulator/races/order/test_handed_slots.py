"""A slot that flags hand back and forth: its race is named by the order that they establish."""

import numpy as np
import pytest

import simulator
from kernels import Kernel

SOURCE = """
template <int KIND>
__device__ void hand(int* slot, int* full, int* empty, const int* x, int* y, int n, int who) {
    enum { GOOD, FREED_EARLY, TOLD_EARLY, WRITE_UNFENCED, READ_UNFENCED, NOT_AWAITED };
    if (who == 0) for (int i = 0; i < n; ++i) {
        if (KIND != NOT_AWAITED) while (atomicAdd(empty, 0) < i);
        __threadfence();
        if (KIND == TOLD_EARLY) atomicAdd(full, 1);
        *slot = x[i];
        if (KIND != WRITE_UNFENCED) __threadfence();
        if (KIND != TOLD_EARLY) atomicAdd(full, 1);
        if (KIND == WRITE_UNFENCED) __threadfence();
    }
    if (who == 1) for (int i = 0; i < n; ++i) {
        while (atomicAdd(full, 0) < i + 1);
        __threadfence();
        if (KIND == FREED_EARLY) atomicAdd(empty, 1);
        y[i] = *slot;
        if (KIND != READ_UNFENCED) __threadfence();
        if (KIND != FREED_EARLY) atomicAdd(empty, 1);
    }
}
template <int KIND> __global__ void warps(const int* x, int* y, int n) {
    __shared__ int slot, full, empty;
    if (threadIdx.x == 0) full = empty = 0;
    __syncthreads();
    hand<KIND>(&slot, &full, &empty, x, y, n, threadIdx.x % 32 ? 2 : threadIdx.x / 32);
}
__device__ int slot, full, empty;
template <int KIND> __global__ void blocks(const int* x, int* y, int n) {
    hand<KIND>(&slot, &full, &empty, x, y, n, threadIdx.x ? 2 : blockIdx.x);
}
"""
KINDS = ["", "war-race", "raw-race", "raw-race", "war-race", "war-race"]


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("where", ["warps", "blocks"])
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_slot_that_flags_hand_over(kind: int, where: str, build: str) -> None:
    kernel = Kernel.from_cuda(SOURCE, f"{where}<{kind}>", build=build)
    shape = (2, 32) if where == "blocks" else (1, 64)
    for schedule in ("lockstep", "warps", "reverse", 1, 2):
        args = [np.arange(6, dtype=np.int32), np.zeros(6, np.int32), 6]
        run = simulator.launch(kernel, *shape, args, schedule=schedule)
        found = [h.kind for h in run.hazards if h.variable == "slot"]
        assert found == [KINDS[kind]] * bool(kind), schedule


UNRELATED = """
__global__ void __cluster_dims__(2) through(unsigned* data, unsigned* flag, unsigned* y) {
    unsigned me = blockIdx.x * 32 + threadIdx.x;
    if (me == 0) atomicExch(flag, 1);
    if (me == 32) while (!atomicAdd(flag, 0));
    y[me] = data[me];
    asm volatile("barrier.cluster.arrive.relaxed; barrier.cluster.wait;");
    data[me ^ 31] = 1;
    atomicExch(&data[64 + me], 1);
}
"""


@pytest.mark.parametrize("build", ["device", "source"])
def test_an_atomic_through_another_parameter_is_no_signal(build: str) -> None:
    kernel = Kernel.from_cuda(UNRELATED, "through", build=build)
    for schedule in ("lockstep", "warps", "reverse", 1, 2):
        args = [np.zeros(128, np.uint32), np.zeros(1, np.uint32), np.zeros(64, np.uint32)]
        run = simulator.launch(kernel, 2, 32, args, schedule=schedule)
        assert [h.kind for h in run.hazards] == ["war-race"], schedule
