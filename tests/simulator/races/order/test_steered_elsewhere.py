"""Who waits at a barrier for a thread that looks at a flag has looked at it, in another branch."""

import numpy as np
import pytest

import simulator
from kernels import Kernel

SOURCE = """
#define K(name) extern "C" __global__ void name(int* data, volatile int* flag, int* out)
#define BARRIER(kind, number) asm volatile("bar." kind " " #number ", 64;" ::: "memory")
__device__ void arrive(unsigned bar) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(bar) : "memory");
}
__device__ void wait(unsigned bar) {
    for (int over = 0; !over;)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0;"
                     " selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(bar) : "memory");
}
#define GIVES if (blockIdx.x == 0) { \\
    data[t] = t + 1; __syncthreads(); if (t == 3) { __threadfence(); *flag = 1; } return; }
#define READS out[t] = data[95 - t]
K(named) {
    int t = threadIdx.x;
    GIVES
    if (t < 32) { LOOK; BARRIER("sync", 1); }
    else if (t < 64) { BARRIER("sync", 1); READS; }
}
K(only_arrives) {
    int t = threadIdx.x;
    GIVES
    if (t < 32) { LOOK; BARRIER("arrive", 2); }
    else if (t < 64) { BARRIER("sync", 2); READS; }
}
K(passed_on) {
    int t = threadIdx.x;
    GIVES
    if (t < 32) { LOOK; BARRIER("sync", 1); }
    else if (t < 64) { BARRIER("sync", 1); BARRIER("arrive", 2); }
    else { BARRIER("sync", 2); READS; }
}
K(at_an_mbarrier) {
    __shared__ unsigned long long word;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&word);
    int t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: "r"(bar) : "memory");
    __syncthreads();
    GIVES
    if (t < 32) { LOOK; arrive(bar); }
    else if (t < 64) { wait(bar); READS; }
}
K(another_barrier) {  // those who have looked are told nobody of it
    int t = threadIdx.x;
    GIVES
    if (t < 32) { BARRIER("sync", 1); LOOK; BARRIER("sync", 3); }
    else if (t < 64) { BARRIER("sync", 1); READS; BARRIER("sync", 3); }
}
"""
LOOKED = "while (*flag == 0); __threadfence()"
NOT_LOOKED = "out[t] = *flag; __threadfence()"


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("entry", "look", "pairs"),
    [
        *((name, LOOKED, 0) for name in ("named", "only_arrives", "passed_on", "at_an_mbarrier")),
        *((name, NOT_LOOKED, 32) for name in ("named", "only_arrives", "at_an_mbarrier")),
        ("passed_on", NOT_LOOKED, 32), ("another_barrier", LOOKED, 32),
        ("named", "while (*flag == 0)", 32),  # no barrier is an acquire
    ],
)  # fmt: skip
def test_the_flag_is_looked_at_for_those_who_wait(
    entry: str, look: str, pairs: int, build: str
) -> None:
    kernel = Kernel.from_cuda(SOURCE.replace("LOOK;", look + ";"), entry, build=build)
    for schedule in ("lockstep", "warps", "reverse", 1):
        args = [np.zeros(96, np.int32), np.zeros(1, np.int32), np.zeros(96, np.int32)]
        run = simulator.launch(kernel, 2, 96, args, schedule=schedule)
        found = [(h.kind, h.variable, h.count) for h in run.hazards if h.variable == "data"]
        assert found == ([("raw-race", "data", pairs)] if pairs else []), schedule
