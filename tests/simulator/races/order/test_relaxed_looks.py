"""A relaxed read of a flag and a barrier are no acquire: what a weak read behind them needs."""

import numpy as np
import pytest

import simulator
from kernels import Kernel

SOURCE = """
#include <cuda/atomic>
#include <cooperative_groups.h>
typedef cuda::atomic_ref<int, cuda::thread_scope_device> flag_ref;
__device__ void ptx_acquire(int* flag) {
    int v;
    do asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    while (!v);
}
__device__ void ptx_relaxed(int* flag) {
    int v;
    do asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    while (!v);
}
__device__ int ptx_cg(int* data) {
    int v;
    asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(v) : "l"(data) : "memory");
    return v;
}
extern "C" __global__ void k(int* data, int* flag, int* out) {
    int t = threadIdx.x, sum = 0;
    if (blockIdx.x == 0) {
        if (t < 4) data[t] = t + 1;
        __threadfence();
        __syncthreads();
        if (t == 0) atomicExch(flag, 1);
        return;
    }
    BEFORE;
    __syncthreads();
    if (t == 32) { LOOK; BEHIND; }
    MEET;
    READ;
    out[t] = sum;
}
"""
MET, MINE = "__syncthreads()", "if (t != 32) return"
WEAK, HOLD = "sum += data[t % 4]", "if (t == 40) sum = data[6]"
COUNTED, VOLATILE = "while (atomicAdd(flag, 0) == 0)", "while (*(volatile int*)flag == 0)"
FENCE = "__threadfence()"
CASES = {
    # looked at by one thread, a barrier, a weak read of what the block may have loaded before
    **{
        f"{look}, {meet}": ("error", HOLD, look, "", meet, WEAK)
        for look in (
            COUNTED, VOLATILE, "ptx_relaxed(flag)", "while (atomicCAS(flag, 2, 3) == 0)",
            "while (!flag_ref(*flag).load(cuda::memory_order_relaxed))",
        )
        for meet in (MET, 'asm volatile("bar.sync 1, 64;" ::: "memory")', "__syncthreads_or(t)")
    },
    "by itself": ("error", HOLD, COUNTED, "", MINE, WEAK),
    "nothing is held": ("warning", "", COUNTED, "", MET, WEAK),
    "another sector is held": (
        "warning", "if (t == 40) sum = data[8]", COUNTED, "", MET, WEAK
    ),
    "loaded past L1": ("warning", "if (t == 40) sum = ptx_cg(data + 6)", COUNTED, "", MET, WEAK),
    "loaded by a volatile read": (
        "warning", "if (t == 40) sum = *(volatile int*)&data[6]", COUNTED, "", MET, WEAK
    ),
    "read past L1": ("warning", HOLD, COUNTED, "", MET, "sum += ptx_cg(data + t % 4)"),
    "a fence of the block": ("error", HOLD, COUNTED, "__threadfence_block()", MET, WEAK),
    "a fence before the look": ("error", HOLD, f"{FENCE}; {COUNTED}", "", MET, WEAK),
    "a fence of others behind the barrier": (
        "error", HOLD, COUNTED, "", f"{MET}; if (t == 0) {FENCE}", WEAK
    ),
    # acquires
    "a fence behind the look": ("", HOLD, COUNTED, FENCE, MET, WEAK),
    "a fence of the system": ("", HOLD, COUNTED, "__threadfence_system()", MET, WEAK),
    "fence.acq_rel": (
        "", HOLD, COUNTED, 'asm volatile("fence.acq_rel.gpu;" ::: "memory")', MET, WEAK
    ),
    "a fence of cuda::": (
        "", HOLD, "while (!flag_ref(*flag).load(cuda::memory_order_relaxed))",
        "cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device)", MET,
        WEAK,
    ),
    "ld.acquire": ("", HOLD, "ptx_acquire(flag)", "", MET, WEAK),
    "cuda::atomic_ref": ("", HOLD, "while (!flag_ref(*flag).load())", "", MET, WEAK),
    "an acquire by the last look": (
        "", HOLD, f"{COUNTED}; flag_ref(*flag).load(cuda::memory_order_acquire)", "", MET, WEAK
    ),
    "wait of cuda::": ("", HOLD, "flag_ref(*flag).wait(0)", "", MET, WEAK),
    "a fence of each reader": ("", HOLD, COUNTED, "", f"{MET}; {FENCE}", WEAK),
    "a fence of one, and a barrier": (
        "", HOLD, COUNTED, "", f"{MET}; if (t == 0) {FENCE}; {MET}", WEAK
    ),
    "a fence by itself": ("", HOLD, COUNTED, FENCE, MINE, WEAK),
    # strong reads, and writes
    "volatile data": ("", HOLD, COUNTED, "", MET, "sum += ((volatile int*)data)[t % 4]"),
    "atomic data": ("", HOLD, COUNTED, "", MET, "sum += atomicAdd(&data[t % 4], 0)"),
    "relaxed data": (
        "", HOLD, COUNTED, "", MET, "sum += flag_ref(data[t % 4]).load(cuda::memory_order_relaxed)"
    ),
    "volatile data, by itself": (
        "", HOLD, VOLATILE, "", MINE, "sum += ((volatile int*)data)[t % 4]"
    ),
    "a strong read orders no weak one": (
        "error", HOLD, COUNTED, "", MET, "sum += ((volatile int*)data)[0]; sum += data[1]"
    ),
    "written over": ("", HOLD, COUNTED, "", MET, "if (t < 4) data[t] = t"),
}  # fmt: skip


def launched(kernel: Kernel, schedule: str | int, blocks: int = 2) -> list[tuple[str, str]]:
    args = [np.zeros(16, np.int32), np.zeros(1, np.int32), np.zeros(64, np.int32)]
    run = simulator.launch(kernel, blocks, 64, args, schedule=schedule, checks={"races"})
    return [(h.severity, h.case) for h in run.hazards if h.variable == "data"]


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("name", CASES)
def test_what_a_read_behind_a_relaxed_read_needs(name: str, build: str) -> None:
    severity, *parts = CASES[name]
    text = SOURCE
    for word, part in zip(("BEFORE", "LOOK", "BEHIND", "MEET", "READ"), parts, strict=True):
        text = text.replace(f" {word};", f" {part};")
    kernel = Kernel.from_cuda(text, "k", build=build)
    for schedule in ("lockstep", "warps", "reverse", 1):
        found = launched(kernel, schedule)
        assert [one for one, _ in found] == [severity] * bool(severity), schedule
        assert all(case.startswith("unacquired") for _, case in found)
