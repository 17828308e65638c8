"""Warps of a warpgroup: one thread tells a producer that all of them have read, as in CUTLASS."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.support.launches import SCHEDULES

PIPELINE = r"""
typedef unsigned long long u64;
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64* b, int n) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
__device__ void arrive(u64* b) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at(b)) : "memory"); }
__device__ void wait(u64* b, int parity) {
    int over = 0;
    while (!over)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2;"
                     " selp.b32 %0, 1, 0, p; }" : "=r"(over) : "r"(at(b)), "r"(parity) : "memory");
}
__device__ void copy(void* to, const void* from, u64* b) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" :: "r"(at(b)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], 256, [%2];" :: "r"(at(to)), "l"(from), "r"(at(b)) : "memory"); }
#define FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(n) : "memory")
__device__ void product(float (&d)[4], const unsigned (&a)[4], const void* b) {
    u64 tile = (u64)(at(b) >> 4 & 0x3FFF) | 8ull << 16 | 16ull << 32;
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3},"
        " {%4, %5, %6, %7}, %8, 1, 1, 1, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tile) : "memory");
}
const int STAGES = 2, GROUPS = 2;
extern "C" __global__ void k(float* out, const char* in, int n) {
    __shared__ __align__(128) char tiles[STAGES][256];
    __shared__ u64 full[STAGES], empty[STAGES];
    int t = threadIdx.x, warp = t / 32;
    if (t == 0)
        for (int i = 0; i < STAGES; ++i) { init(&full[i], 1); init(&empty[i], COUNT); }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    if (warp == 4 * GROUPS) {
        if (t % 32 == 0)
            for (int k = 0; k < n; ++k) {
                wait(&empty[k % STAGES], k / STAGES % 2 ^ 1);
                copy(tiles[k % STAGES], in + 256 * k, &full[k % STAGES]);
            }
        return;
    }
    unsigned a[4] = {0x3C003C00, 0x3C003C00, 0x3C003C00, 0x3C003C00};
    float d[4] = {0, 0, 0, 0};
    for (int k = 0; k < n; ++k) {
        int s = k % STAGES;
        wait(&full[s], k / STAGES % 2);
        FENCE(); product(d, a, tiles[s]); COMMIT();
        STEP
    }
    WAIT(0);
    for (int i = 0; i < 4; ++i) out[t + 128 * GROUPS * i] = d[i];
}
"""
ARRIVE = "if (t % 128 == {}) arrive(&empty[s]);"
PIPELINES = {
    # What each warpgroup does after its product, how many arrive; whether that is right.
    "one of the first warp": (f"WAIT(0); {ARRIVE.format(0)}", "GROUPS", True),
    "one of the last warp": (f"WAIT(0); {ARRIVE.format(127)}", "GROUPS", True),
    "one of each warp": ("WAIT(0); if (t % 32 == 0) arrive(&empty[s]);", "4 * GROUPS", True),
    "a stage behind": ("WAIT(1); if (t % 128 == 0 && k) arrive(&empty[s ^ 1]);", "GROUPS", True),
    "waits at two places": (
        f"if (warp % 4) {{ WAIT(0); {ARRIVE.format(127)} }} else WAIT(0);",
        "GROUPS",
        True,
    ),
    "no wait": (ARRIVE.format(0), "GROUPS", False),
    "waits behind": (f"{ARRIVE.format(0)} WAIT(0);", "GROUPS", False),
    "waits for too few": (f"WAIT(1); {ARRIVE.format(0)}", "GROUPS", False),
    "but the one that arrives waits": (
        f"if (warp % 4) WAIT(0); {ARRIVE.format(0)}",
        "GROUPS",
        False,
    ),
    "one of the other warpgroup": ("WAIT(0); if (t == 0) arrive(&empty[s]);", "1", False),
    "reads it afterwards": (
        f"WAIT(0); {ARRIVE.format(0)} d[0] += tiles[s][t % 4];",
        "GROUPS",
        False,
    ),
    "others read it": (f"WAIT(0); d[0] += tiles[s][t % 4]; {ARRIVE.format(0)}", "GROUPS", False),
}


@pytest.mark.slow_but("no wait")
@pytest.mark.parametrize("name", PIPELINES)
def test_one_thread_may_arrive_for_a_warpgroup(name: str) -> None:
    """As in CUTLASS: who has waited for a product knows that all four warps' reads are done."""
    step, count, right = PIPELINES[name]
    source = PIPELINE.replace("COUNT", count).replace("STEP", step)
    kernel = Kernel.from_cuda(source, "k", "compute_90a")
    data, found = (np.arange(3 * 128) % 13).astype(np.float16), []
    for schedule in ("lockstep", "warps", 2)[: 2 + right]:
        out = np.zeros(1024, np.float32)
        ran = simulator.launch(kernel, 1, 288, [out, data, 3], schedule=schedule)
        races = {hazard.kind for hazard in ran.hazards} & {"raw-race", "war-race"}
        assert bool(races) != right, schedule
        found.append(out)
    if right:
        assert found[0].any()
        assert all((out == found[0]).all() for out in found)


REFILLED = (
    PIPELINE[: PIPELINE.index("const int STAGES")]
    + r"""
extern "C" __global__ void k(float* out, const half_t* in, int n) {
    __shared__ __align__(128) half_t tile[128];
    int t = threadIdx.x;
    unsigned a[4] = {0x3C003C00, 0x3C003C00, 0x3C003C00, 0x3C003C00};
    float d[4] = {0, 0, 0, 0};
    for (int k = 0; k < n; ++k) {
        if (t < 128) tile[t] = in[128 * k + t];
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        FENCE(); product(d, a, tile); COMMIT();
        STEP
    }
    WAIT(0);
    for (int i = 0; i < 4; ++i) out[t + blockDim.x * i] = d[i];
}
"""
).replace("half_t", "unsigned short")


@pytest.mark.slow_but("WAIT(0); __syncthreads...")
@pytest.mark.parametrize(
    ("step", "threads", "right"),
    [("WAIT(0);", 128, True), ("", 128, False), ("WAIT(1);", 128, False), ("WAIT(0);", 256, False),
     ("WAIT(0); __syncthreads();", 256, True)],
)  # fmt: skip
def test_who_has_waited_may_refill_what_its_warpgroup_read(
    step: str, threads: int, right: bool
) -> None:
    """No barrier is needed among its warps, as ThunderKittens has it; another group needs one."""
    kernel = Kernel.from_cuda(REFILLED.replace("STEP", step), "k", "compute_90a")
    data = np.arange(3 * 128, dtype=np.uint16) % 13
    for schedule in SCHEDULES:
        out = np.zeros(4 * threads, np.float32)
        ran = simulator.launch(kernel, 1, threads, [out, data, 3], schedule=schedule)
        races = [hazard for hazard in ran.hazards if "race" in hazard.kind]
        assert bool(races) != right, schedule


ALIGNED = """
extern "C" __global__ void k(int* out, const int* in, int n) {
    __shared__ unsigned s[8 * 32];
    int t = threadIdx.x;
    unsigned a = 0, sum = 0;
    for (int i = t / 32; i < 8; i += 2) s[32 * i + t % 32] = i;
    __syncthreads();
    for (int k = 0; k < n; ++k) {
        if (t % 32 == k % 32) atomicAdd(&out[0], in[k]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(a)
            : "r"((unsigned)__cvta_generic_to_shared(&s[4 * (t % 32)])) : "memory");
        sum += a;
    }
    out[1 + t] = sum;
}
"""


def test_a_warp_comes_together_at_an_aligned_instruction() -> None:
    """Lanes that a branch leaves behind are waited for: none of the schedules goes without them."""
    kernel, found = Kernel.from_cuda(ALIGNED, "k"), []
    for schedule in SCHEDULES:
        out = np.zeros(65, np.int32)
        ran = simulator.launch(kernel, 1, 64, [out, np.ones(40, np.int32), 40], schedule=schedule)
        assert ran.hazards == []
        found.append(out)
    assert all((out == found[0]).all() for out in found)
