"""Uninitialised bytes that bulk copies or surfaces bring to where they are used."""

import numpy as np
import pytest

import simulator
from kernels import Kernel, Surface, TensorMap

BUILDS = ("device", "source")
KERNEL = """
#include <cuda.h>
#include <cuda/ptx>
namespace ptx = cuda::ptx;
#define WAIT(phase) while (!ptx::mbarrier_try_wait_parity(&bar, phase)) {}
#define DONE ptx::cp_async_bulk_commit_group(); ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
#define SEEN asm volatile("fence.proxy.async;"); __syncthreads();
__device__ void arrives(unsigned long long* bar) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar, 256);
}
__global__ void HEAD k(
    int* out, cudaSurfaceObject_t surface, const __grid_constant__ CUtensorMap map
) {
    __shared__ alignas(128) int s[64], d[64];
    __shared__ unsigned long long bar;
    int t = threadIdx.x;
    if (t == 0) ptx::mbarrier_init(&bar, 1);
    if (t MISSING) s[t] = 4 * t;
    BODY
}
"""
OUT = """
    SEEN
    if (t == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, s, 256);
        DONE
    }"""
GROUPS = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
FAR = """
    auto cluster = cg::this_cluster();
    asm volatile("fence.proxy.async;");
    cluster.sync();
    if (t == 0) {
        int other = cluster.block_rank() ^ 1;
        arrives(&bar);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, cluster.map_shared_rank(d, other),
                           s, 256, (uint64_t*)cluster.map_shared_rank(&bar, other));
    }
    WAIT(0)
    USE
    cluster.sync();"""
TMA = """
    SEEN
    if (t == 0) {
        asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];"
            :: "l"(&map), "r"(AT), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory");
        DONE
    }"""
LOAD = """
    if (t == 0) {
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
            " [%0], [%1, {%2}], [%3];" :: "r"((unsigned)__cvta_generic_to_shared(d)), "l"(&map),
            "r"(48), "r"((unsigned)__cvta_generic_to_shared(&bar)) : "memory");
        arrives(&bar);
    }
    __syncthreads();
    WAIT(0)
    int seen = t < 32 ? d[t] + d[t + 32] : s[t];
    if (t != 37) out[t] = seen;"""
USED = {
    "a copy out": OUT,
    "a sum out": OUT.replace("cp_async_bulk(", "cp_reduce_async_bulk(").replace(
        "space_shared, out", "space_shared, ptx::op_add, out"
    ),
    "a copy to another block": FAR.replace("USE", "out[blockIdx.x * 64 + t] = d[t];"),
    "a copy to another block steers": FAR.replace(
        "USE", "if (d[t] > 5) out[blockIdx.x * 64 + t] = 1;"
    ),
    "a box out": TMA.replace("AT", "0"),
    "a surface": "__syncthreads(); surf1Dwrite(s[t ^ 1], surface, t * 4);",
    "a place on a surface": "__syncthreads(); if (t == 36) surf1Dwrite(t, surface, s[37]);",
    "how much is copied": OUT.replace("s, 256", "s, s[37] & 128"),
}
UNUSED = {
    "a copy to another block": FAR.replace("USE", "if (t != 37) out[blockIdx.x * 64 + t] = d[t];"),
    "a copy that is overwritten": OUT + "__syncthreads(); out[t] = t;",
    "a box beyond the array": TMA.replace("AT", "48"),
    "a box that is filled": LOAD,
}


def kinds(body: str, build: str, missing: bool) -> list[str]:
    blocks = 2 if "cluster.sync" in body else 1
    source = KERNEL.replace("BODY", body).replace("MISSING", "!= 37" if missing else ">= 0")
    source = source.replace("HEAD", "__cluster_dims__(2, 1, 1)" * (blocks > 1))
    kernel = Kernel.from_cuda(GROUPS * (blocks > 1) + source, "k", build=build, arch="sm_90")
    array = np.zeros(64, np.int32)
    args = [np.zeros(128, np.int32), Surface(np.zeros(64, np.int32)), TensorMap(array, (64,))]
    return [hazard.kind for hazard in simulator.launch(kernel, blocks, 64, args).hazards]


@pytest.mark.slow_but("a place on a surface")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("way", USED)
def test_it_is_told_where_it_counts(way: str, build: str) -> None:
    assert kinds(USED[way], build, missing=True) == ["uninitialised"]
    assert kinds(USED[way], build, missing=False) == []


@pytest.mark.slow_but("a box beyond the array")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("way", UNUSED)
def test_what_nobody_uses_may_be_copied(way: str, build: str) -> None:
    assert kinds(UNUSED[way], build, missing=True) == []
