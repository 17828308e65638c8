"""Waits for an mbarrier that expects more than comes: how many it expects, and how many came."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tilescope.check.builds import merge

LIBRARY = """
#include <cuda/barrier>
__global__ void k(const float* a, float* o, int count, int come) {
    using B = cuda::barrier<cuda::thread_scope_block>;
    __shared__ B bar;
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t == 0) init(&bar, count);
    __syncthreads();
    if (t >= come) return;
    s[t] = a[t];
    bar.arrive_and_wait();  // here
    o[t] = s[come - 1 - t];
}
"""
INTRINSICS = """
#include <cuda_awbarrier_primitives.h>
__global__ void k(const float* a, float* o, int count, int come) {
    __shared__ __mbarrier_t bar;
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t == 0) __mbarrier_init(&bar, count);
    __syncthreads();
    if (t >= come) return;
    for (int i = 0; i < 2; ++i) {
        s[t] = a[t] + i;
        auto token = __mbarrier_arrive(&bar);
        while (!__mbarrier_test_wait(&bar, token)) {}  // here
        o[t] = s[come - 1 - t];
    }
}
"""
BYTES = """
__global__ void k(const float* a, float* o, int count, int come) {
    __shared__ __align__(8) unsigned long long bar;
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at), "r"(1) : "memory");
    __syncthreads();
    if (t == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                     :: "r"(at), "r"(count) : "memory");
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0;\\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");  // here
    o[t] = 1;
}
"""


def told(text: str, build: str, count: int, come: int, **how: object) -> list[simulator.Hazard]:
    kernel = Kernel.from_cuda(text, "k", build=build)
    arrays = [np.ones(64, np.float32), np.zeros(64, np.float32)]
    return simulator.launch(kernel, 1, 64, [*arrays, count, come], **how).hazards


@pytest.mark.slow_cases("device", "library")
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("schedule", ["lockstep", "reverse"])
@pytest.mark.parametrize("text", [LIBRARY, INTRINSICS], ids=["library", "intrinsics"])
@pytest.mark.parametrize(("count", "come"), [(65, 64), (64, 40)])
def test_how_many_are_expected_and_come_is_said(
    text: str, build: str, schedule: str, count: int, come: int
) -> None:
    (found,) = told(text, build, count, come, schedule=schedule)
    assert found.message == "threads wait at an mbarrier for arrivals that never come"
    assert f"it expects {count} arrivals in a phase; {come} have come in this one" in found.notes


@pytest.mark.slow_cases("device")
@pytest.mark.parametrize("build", ["device", "source"])
def test_bytes_that_are_still_to_come_are_told(build: str) -> None:
    (found,) = told(BYTES, build, 96, 0)
    note = "it expects 1 arrivals in a phase; 1 has come in this one, and 96 bytes of copies "
    assert f"{note}are to come" in found.notes


def test_where_all_arrive_nothing_is_said() -> None:
    assert not told(LIBRARY, "device", 64, 64)


AT_ONCE = """
__global__ void k(const float* a, float* o, int count, int come) {
    __shared__ __align__(8) unsigned long long bar;
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (t == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at), "r"(count) : "memory");
    __syncthreads();
    if (t == 0) asm volatile("{ .reg .b64 s; mbarrier.arriveHOW s, [%0]OPERAND; }"
        :: "r"(at), "r"(come) : "memory");
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0;"
                     " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory");
    o[t] = 1;
}
"""
BEFORE = (
    "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1; mbarrier.arrive.shared.b64 s, [%0]"
)
HELD = ".noComplete.shared.b64"
END = ": more arrivals than expected, or .noComplete completing a phase, are undefined"


@pytest.mark.slow_cases("...40-40-note2")
@pytest.mark.parametrize(
    ("how", "count", "come", "note"),
    [
        (".shared.b64", 40, 40, ""),
        (".shared.b64", 40, 42, f"40 arrivals in a phase; 42 have come in this one{END}"),
        (HELD, 40, 40, f"40 have come in this one{END}"),
        (HELD, 40, 39, "it expects 40 arrivals in a phase; 39 have come in this one"),
    ],
)  # fmt: skip
def test_arrivals_for_several(how: str, count: int, come: int, note: str) -> None:
    text = AT_ONCE.replace("HOW", how).replace("OPERAND", ", %1")
    notes = [line for hazard in told(text, "device", count, come) for line in hazard.notes]
    assert any(note in line for line in notes) if note else not notes


def test_bytes_that_nobody_expected_are_told() -> None:
    text = AT_ONCE.replace("mbarrier.arriveHOW s, [%0]OPERAND", BEFORE)
    (found,) = told(text, "device", 1, 32)
    assert any("and 32 bytes of copies too many" in n for n in found.notes)


SHARED_WAIT = """
__device__ void wait(unsigned at) {
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;"
                 " @!p bra WAIT; }" :: "r"(at) : "memory");
}
__global__ void k(const float* a, float* o, int count, int come) {
    __shared__ __align__(8) unsigned long long bars[2];
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(bars);
    if (t == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], %1; mbarrier.init.shared.b64 [%0+8], 9;"
        " mbarrier.arrive.shared.b64 _, [%0], %2; mbarrier.arrive.shared.b64 _, [%0+8], %2;"
        :: "r"(at), "r"(count), "r"(come) : "memory");
    __syncthreads();
    if (t < 32) wait(at);
    else wait(at + 8);
    o[t] = 1;
}
"""


def test_waits_of_one_function_are_told_one_by_one() -> None:
    builds = ("device", "source")
    kernels = [Kernel.from_cuda(SHARED_WAIT, "k", "compute_90", build=build) for build in builds]
    arrays = [np.ones(64, np.float32), np.zeros(64, np.float32)]
    runs = [simulator.launch(kernel, 1, 64, [*arrays, 5, 4]) for kernel in kernels]
    for found in (*(run.hazards for run in runs), merge(runs)):
        assert {hazard.notes[0] for hazard in found} == {
            "it expects 5 arrivals in a phase; 4 have come in this one",
            "it expects 9 arrivals in a phase; 4 have come in this one",
        }
        assert len(found) == 2
