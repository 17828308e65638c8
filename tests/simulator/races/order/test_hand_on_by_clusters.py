"""Blocks of a cluster hand on what one of them has fenced, or found: by a flag of one thread.

Clusters of two blocks of 32 threads; those of the first one write, of the second one read.
"""

import numpy as np
import pytest

import simulator
from kernels import Kernel

SOURCE = """
#define CLUSTER __cluster_dims__(2, 1, 1)
#define K(name) extern "C" __global__ void CLUSTER name(int* data, volatile int* flag, int* out)
#define ARRIVE(kind) asm volatile("barrier.cluster.arrive" kind ";" ::: "memory")
#define WAIT asm volatile("barrier.cluster.wait;" ::: "memory")
#define I int t = threadIdx.x, r = blockIdx.x % 2, i = 32 * r + t; bool writes = blockIdx.x < 2
#define HERE(rank) (r == rank && t == 5)
__device__ unsigned at(unsigned bar, int rank) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(bar), "r"(rank));
    return there;
}
__device__ void arrive(unsigned far) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                 :: "r"(far) : "memory");
}
__device__ void wait(unsigned bar, int parity = 0) {
    for (int over = 0; !over;)
        asm volatile("{ .reg .pred p; "
                     "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
                     " selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(bar), "r"(parity) : "memory");
}
K(barrier) {
    I;
    if (writes) {
        data[i] = i + 1;
        BEFORE; ARRIVE(KIND); WAIT;
        if (HERE(0)) { ONE; *flag = 1; }
    } else {
        if (HERE(0)) { while (*flag == 0); AFTER; }
        ARRIVE(READS); WAIT; BEHIND;
        out[i] = data[63 - i];
    }
}
K(between) {  // what a thread does there, those of its own block have not seen either
    I;
    if (writes) {
        ARRIVE(""); data[i] = i + 1; BEFORE; WAIT;
        if (HERE(0)) *flag = 1;
    } else if (r == 0) {
        if (t == 0) while (*flag == 0);
        __syncthreads();
        AFTER;
        out[t] = data[31 - t];
        ARRIVE(""); WAIT;
    } else { ARRIVE(""); WAIT; }
}
K(then_by_the_block) {  // one of the second block fences what the first block's did, another tells
    I;
    if (writes) {
        if (r == 0) data[t] = t + 1;
        ARRIVE(""); WAIT;
        if (HERE(1)) BEFORE;
        if (r == 1) { __syncthreads(); if (t == 7) *flag = 1; }
    } else if (r == 0) {
        while (*flag == 0);
        AFTER;
        out[t] = data[31 - t];
    }
}
K(mbarrier) {  // one thread of the first block tells the second one's, which sets the flag
    __shared__ unsigned long long word;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&word);
    I;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    ARRIVE(""); WAIT;
    if (writes && r == 0) {
        data[t] = t + 1;
        BEFORE;
        __syncthreads();
        if (t == 9) TELL;
    } else if (writes) {
        if (HERE(1)) { wait(bar); ONE; *flag = 1; }
    } else if (r == 0) {
        if (t == 9) { while (*flag == 0); AFTER; TELL; }
    } else {
        wait(bar);
        out[t] = data[31 - t];
    }
    ARRIVE(""); WAIT;
}
K(one_fences) {  // what it has seen of its block, a relaxed arrival hands on with its own
    I;
    if (writes) {
        if (r == 0) data[t] = t + 1;
        __syncwarp();
        if (HERE(0)) BEFORE;
        __syncwarp();
        ARRIVE(".relaxed"); WAIT;
        if (r == 1) out[t] = data[31 - t];
    } else { ARRIVE(""); WAIT; }
}
K(many_waits) {  // in between others of the block wait often: who has waited once knows it still
    __shared__ unsigned long long once, ring;
    unsigned first = (unsigned)__cvta_generic_to_shared(&once);
    unsigned bar = (unsigned)__cvta_generic_to_shared(&ring);
    I;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(first) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    ARRIVE(""); WAIT;
    if (writes && r == 0) {
        if (t == 0) { data[0] = 7; arrive(at(first, 1)); }
        __syncwarp();
        for (int p = 0; t == 1 && p < 20; ++p) { arrive(at(bar, 1)); wait(bar, p & 1); }
    } else if (writes) {
        if (t == 0) wait(first);
        __syncwarp();
        for (int p = 0; t == 1 && p < 20; ++p) { wait(bar, p & 1); arrive(at(bar, 0)); }
        if (t == 0) out[0] = data[0];
    }
    ARRIVE(""); WAIT;
}
"""
FENCE = "__threadfence()"
TELL = (
    'asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"'
    ' :: "r"(at(bar, 1)) : "memory")'
)
NAMES = ("BEFORE", "AFTER", "BEHIND", "ONE", "KIND", "READS", "TELL")


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("entry", "given", "pairs"),
    [
        ("barrier", {}, 64),
        ("barrier", {"BEFORE": FENCE}, 0),
        ("barrier", {"ONE": FENCE}, 0),
        ("barrier", {"ONE": FENCE, "AFTER": FENCE, "BEHIND": FENCE}, 0),
        ("barrier", {"BEFORE": "__threadfence_block()"}, 64),
        ("barrier", {"ONE": "__threadfence_block()"}, 64),
        # Relaxed, an arrival hands on what its thread has fenced itself.
        ("barrier", {"BEFORE": FENCE, "KIND": ".relaxed"}, 0),
        ("barrier", {"ONE": FENCE, "KIND": ".relaxed"}, 63),
        ("barrier", {"ONE": FENCE, "AFTER": FENCE, "READS": ".relaxed"}, 0),
        ("barrier", {"ONE": FENCE, "BEHIND": FENCE, "READS": ".relaxed"}, 63),
        ("between", {"BEFORE": FENCE, "AFTER": FENCE}, 31),
        ("then_by_the_block", {"BEFORE": FENCE, "AFTER": FENCE}, 0),
        ("then_by_the_block", {"AFTER": FENCE}, 32),
        ("then_by_the_block", {"BEFORE": FENCE}, 32),
        ("one_fences", {"BEFORE": FENCE}, 0), ("one_fences", {}, 32), ("many_waits", {}, 0),
        ("mbarrier", {"ONE": FENCE, "AFTER": FENCE, "TELL": TELL}, 0),
        ("mbarrier", {"BEFORE": FENCE, "TELL": TELL}, 0),
        ("mbarrier", {"TELL": TELL}, 32),
    ],
)  # fmt: skip
def test_what_one_block_has_fenced_another_hands_on(
    entry: str, given: dict[str, str], pairs: int, build: str
) -> None:
    text = SOURCE
    for name in NAMES:
        text = text.replace(name, given.get(name, '""' if name in ("KIND", "READS") else ""))
        if name in ("KIND", "READS") and name in given:
            text = text.replace(f"ARRIVE({given[name]})", f'ARRIVE("{given[name]}")')
    kernel = Kernel.from_cuda(text, entry, build=build, arch="sm_90")
    for schedule in ("lockstep", "warps", "reverse", 1):
        args = [np.zeros(64, np.int32), np.zeros(1, np.int32), np.zeros(64, np.int32)]
        run = simulator.launch(kernel, 4, 32, args, schedule=schedule)
        found = [(h.kind, h.variable, h.count) for h in run.hazards]
        assert found == ([("raw-race", "data", pairs)] if pairs else []), schedule
