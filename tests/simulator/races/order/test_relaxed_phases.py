"""Arrivals and waits at an ``mbarrier`` that are relaxed put nothing in order without a fence.

(PTX ISA, "mbarrier.arrive", "mbarrier.test_wait": ``.relaxed``; to count bytes always is.)
"""

import numpy as np
import pytest

import simulator
from kernels import Kernel

SOURCE = """
#define WAIT(order) for (int over = 0; !over;) \\
    asm volatile("{ .reg .pred p; " \\
                 "mbarrier.test_wait.parity." order ".shared::cta.b64 p, [%1], 0;" \\
                 " selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(bar) : "memory")
#define ARRIVE(order) \\
    asm volatile("{ .reg .b64 s; mbarrier.arrive." order ".shared::cta.b64 s, [%0]; }" \\
                 :: "r"(bar) : "memory")
#define K(name, cluster) extern "C" __global__ void cluster name(int* out)
#define READY(count) \\
    __shared__ unsigned long long word; \\
    __shared__ int data[64]; \\
    unsigned bar = (unsigned)__cvta_generic_to_shared(&word); \\
    int t = threadIdx.x; \\
    if (t == 0) { \\
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(bar), "n"(count) : "memory"); \\
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); \\
    }
K(block, ) {  // 33 threads tell one warp
    READY(33) __syncthreads();
    if (t >= 32) { data[t - 32] = t; BEFORE; ARRIVE(GIVES); }
    else { if (t == 0) { ARRIVE("release.cta"); } WAIT(TAKES); AFTER; out[t] = data[t]; }
}
K(bytes, ) {  // one thread counts bytes, another arrives
    READY(1) __syncthreads();
    if (t == 33) {
        data[1] = 7; BEFORE;
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 0;"
                     :: "r"(bar) : "memory");
        *(volatile int*)&data[5] = 1;
    } else if (t == 40) {
        while (*(volatile int*)&data[5] == 0);
        ARRIVE("release.cta");
    } else if (t < 2) { WAIT("acquire.cta"); out[t] = data[1]; }
}
K(cluster, __cluster_dims__(2, 1, 1)) {  // a warp of one block tells the other
    READY(32)
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    if (blockIdx.x == 0 && t < 32) {
        out[t] = t;
        BEFORE;
        unsigned there;
        asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(there) : "r"(bar));
        asm volatile("mbarrier.arrive." GIVES ".shared::cluster.b64 _, [%0];"
                     :: "r"(there) : "memory");
    } else if (blockIdx.x == 1 && t < 32) {
        WAIT(TAKES); AFTER;
        out[32 + t] = out[31 - t];
    }
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
}
"""
NARROW, WIDE = "__threadfence_block()", "__threadfence()"


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("entry", "gives", "takes", "before", "after", "pairs"),
    [
        ("block", "release.cta", "acquire.cta", "", "", 0),
        ("block", "relaxed.cta", "acquire.cta", "", "", 32),
        ("block", "relaxed.cta", "acquire.cta", NARROW, "", 0),
        ("block", "release.cta", "relaxed.cta", "", "", 32),
        ("block", "release.cta", "relaxed.cta", "", NARROW, 0),
        ("block", "relaxed.cta", "relaxed.cta", NARROW, NARROW, 0),
        ("block", "relaxed.cta", "relaxed.cta", NARROW, "", 32),
        ("bytes", "release.cta", "acquire.cta", "", "", 2),
        ("cluster", "release.cluster", "acquire.cluster", "", "", 0),
        ("cluster", "relaxed.cluster", "acquire.cluster", "", "", 32),
        ("cluster", "relaxed.cluster", "acquire.cluster", NARROW, "", 32),
        ("cluster", "relaxed.cluster", "acquire.cluster", WIDE, "", 0),
        ("cluster", "release.cta", "acquire.cluster", "", "", 32),  # of other blocks: too narrow
        ("cluster", "release.cluster", "acquire.cta", "", "", 32),
        ("cluster", "release.cluster", "relaxed.cluster", "", "", 32),
        ("cluster", "release.cluster", "relaxed.cluster", "", NARROW, 32),
        ("cluster", "release.cluster", "relaxed.cluster", "", WIDE, 0),
    ],
)
def test_what_is_relaxed_takes_a_fence(
    entry: str, gives: str, takes: str, before: str, after: str, pairs: int, build: str
) -> None:
    text = SOURCE.replace("BEFORE", before).replace("AFTER", after)
    text = text.replace("GIVES", f'"{gives}"').replace("TAKES", f'"{takes}"')
    kernel = Kernel.from_cuda(text, entry, build=build, arch="sm_90")
    for schedule in ("lockstep", "warps", "reverse", 1):
        grid, block = (2, 32) if entry == "cluster" else (1, 64)
        run = simulator.launch(kernel, grid, block, [np.zeros(64, np.int32)], schedule=schedule)
        found = [(h.kind, h.count) for h in run.hazards if h.kind.endswith("race")]
        assert found == ([("raw-race", pairs)] if pairs else []), schedule
