"""``fence.mbarrier_init``: it hands on that mbarriers were initialised, and nothing else."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.support.launches import ONE_FIRST

START = r"""
#include <cooperative_groups.h>
__global__ void k(int* out) {
    __shared__ __align__(16) int s[64];
    __shared__ unsigned long long barrier;
    auto cluster = cooperative_groups::this_cluster();
    int t = threadIdx.x, next = cluster.block_rank() ^ 1;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 2;" :: "r"(at) : "memory");
    WRITE
    asm volatile(FENCE ::: "memory");
    asm volatile("barrier.cluster.arrive.relaxed; barrier.cluster.wait;" ::: "memory");
    USE
    cluster.sync();
}
"""
INITS, ALL = '"fence.mbarrier_init.release.cluster;"', '"fence.acq_rel.cluster;"'
DATA = "s[t] = t;", "out[blockIdx.x * 64 + t] = cluster.map_shared_rank(s, next)[63 - t];"
TELL = (
    "",
    'if (t == 0) asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %1;'
    ' mbarrier.arrive.shared::cluster.b64 _, [a]; }" :: "r"(at), "r"(next) : "memory");',
)


@pytest.mark.slow_cases(
    '""-used4-kinds4', '"fence.acq_rel.cluster;"-used3-kinds3',
    '...fence.mbarrier_init.release.cluster;"-used0-kinds0', "lockstep",
)  # fmt: skip
@pytest.mark.parametrize("schedule", ["lockstep", "reverse"])
@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize(
    ("fence", "used", "kinds"),
    [
        (INITS, TELL, set()),
        (INITS, DATA, {"raw-race"}),
        (ALL, TELL, set()),
        (ALL, DATA, set()),
        ('""', TELL, {"waw-race"}),
    ],
)
def test_what_is_handed_on(
    fence: str, used: tuple[str, str], kinds: set[str], build: str, schedule: str
) -> None:
    text = START.replace("FENCE", fence).replace("WRITE", used[0]).replace("USE", used[1])
    kernel = Kernel.from_cuda(text, "k", "compute_90", build=build)
    out = np.zeros(128, np.int32)
    run = simulator.launch(kernel, 2, 64, [out], cluster=2, schedule=schedule)
    assert {hazard.kind for hazard in run.hazards} == kinds
