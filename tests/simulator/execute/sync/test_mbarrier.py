"""``mbarrier``: its phases, and what is in order by them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simulator
from kernels import Kernel
from simulator.isa.memory import mbarrier
from tests.support.launches import ONE_FIRST, SCHEDULES

OPCODES = {"mbarrier"}
HEAD = r"""
typedef unsigned long long u64;
#define AT(b) "r"((unsigned)__cvta_generic_to_shared(b))
__device__ void init(u64* b, int n) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: AT(b), "r"(n) : "memory");
}
__device__ u64 arrive(u64* b) {
    u64 s;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(s) : AT(b) : "memory");
    return s;
}
__device__ bool over(u64* b, u64 s) {
    int r;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2;"
                 " selp.b32 %0, 1, 0, p; }"
                 : "=r"(r) : AT(b), "l"(s) : "memory");
    return r;
}
__device__ bool parity(u64* b, int s) {
    int r;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2;"
                 " selp.b32 %0, 1, 0, p; }"
                 : "=r"(r) : AT(b), "r"(s) : "memory");
    return r;
}
"""
RING = (
    HEAD
    + r"""
template<int FAULT> __device__ void ring(float* out, const float* in, int n)
{
    __shared__ float s[2][32];
    __shared__ u64 full[2], empty[2];
    int t = threadIdx.x % 32;
    if (threadIdx.x < 2) {
        init(&full[threadIdx.x], FAULT == 4 ? 31 : 32);
        init(&empty[threadIdx.x], 32);
    }
    if (FAULT != 5) __syncthreads();
    float sum = 0;
    for (int i = 0; i < n; ++i) {
        int stage = i & 1, phase = i >> 1 & 1;
        if (threadIdx.x < 32) {
            if (FAULT != 1) while (!parity(&empty[stage], phase ^ 1)) { }
            s[stage][t] = in[32 * i + t];  // WRITE
            arrive(&full[stage]);
        } else {
            if (FAULT != 2) while (!parity(&full[stage], phase)) { }
            sum += s[stage][31 - t];  // READ
            if (FAULT != 3) arrive(&empty[stage]);
        }
    }
    if (threadIdx.x >= 32) out[t] = sum;
}
#define KERNEL(name, fault) extern "C" __global__ void name(float* o, const float* i, int n) \
    { ring<fault>(o, i, n); }
KERNEL(good, 0)
KERNEL(no_wait_for_empty, 1)
KERNEL(no_wait_for_full, 2)
KERNEL(never_empty, 3)
KERNEL(one_arrival_too_few, 4)
KERNEL(no_barrier_after_init, 5)
"""
)
WRITE, READ = (
    next(i for i, line in enumerate(RING.splitlines(), 1) if word in line)
    for word in ("// WRITE", "// READ")
)


def run(entry: str, build: str, schedule: str | int, rounds: int) -> tuple[simulator.Run, bool]:
    data = np.arange(32 * rounds, dtype=np.float32)
    out = np.zeros(32, np.float32)
    kernel = Kernel.from_cuda(RING, entry, build=build)
    ran = simulator.launch(kernel, 1, 64, [out, data, rounds], schedule=schedule, step_limit=20_000)
    return ran, bool((out == data.reshape(rounds, 32)[:, ::-1].sum(axis=0)).all())


@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_ring_of_stages(build: str, schedule: str | int) -> None:
    ran, right = run("good", build, schedule, 9)
    assert right
    assert ran.hazards == []


@pytest.mark.slow_cases("no_wait_for_full")
@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("entry", ["no_wait_for_empty", "no_wait_for_full", "one_arrival_too_few"])
def test_who_does_not_wait_races(entry: str, build: str, schedule: str | int) -> None:
    ran, _ = run(entry, build, schedule, 4)
    found = {h.kind: {line for _, line in h.places} for h in ran.hazards if h.severity == "error"}
    races = [lines for kind, lines in found.items() if kind in ("raw-race", "war-race")]
    assert {WRITE, READ} in races or "livelock" in found or "uninitialised" in found


@pytest.mark.parametrize("build", ONE_FIRST)
def test_a_phase_that_never_ends_is_a_livelock(build: str) -> None:
    ran, _ = run("never_empty", build, "lockstep", 4)
    assert "livelock" in [h.kind for h in ran.hazards]


@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_barrier_is_used_before_others_see_it_made(build: str, schedule: str | int) -> None:
    ran, _ = run("no_barrier_after_init", build, schedule, 2)
    assert [h for h in ran.hazards if h.severity == "error" and "full" in str(h.variable)]


ELECTED = (
    HEAD
    + r"""
extern "C" __global__ void elected(float* out, const float* in)
{
    __shared__ float s[128];
    __shared__ u64 b;
    int t = threadIdx.x;
    if (t == 0) init(&b, 4);
    __syncthreads();
    for (int i = 0; i < 3; ++i) {
        s[t] = in[t] + i;
        SYNC;
        if (t % 32 == 0) arrive(&b);  // one of each warp, for all of it
        while (!parity(&b, i & 1)) { }
        out[t] += s[127 - t];
        __syncthreads();
    }
}
extern "C" __global__ void tokens(float* out, const float* in)
{
    __shared__ float s[128];
    __shared__ u64 b;
    int t = threadIdx.x;
    if (t == 0) init(&b, 128);
    __syncthreads();
    for (int i = 0; i < 3; ++i) {
        s[t] = in[t] + i;
        u64 token = arrive(&b);
        while (!over(&b, token)) { }
        out[t] += s[127 - t];
        token = arrive(&b);
        while (!over(&b, token)) { }
    }
}
"""
)


@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("entry", "sync", "races"),
    [("tokens", "", False), ("elected", "__syncwarp()", False), ("elected", "", True)],
)
def test_one_may_arrive_for_others_that_it_has_met(
    entry: str, sync: str, races: bool, build: str, schedule: str | int
) -> None:
    data = np.arange(128, dtype=np.float32)
    out = np.zeros(128, np.float32)
    kernel = Kernel.from_cuda(ELECTED.replace("SYNC", sync), entry, build=build)
    ran = simulator.launch(kernel, 1, 128, [out, data], schedule=schedule)
    assert bool([h for h in ran.hazards if h.severity == "error"]) == races
    if not races:
        np.testing.assert_array_equal(out, 3 * data[::-1] + 3)


PRIMITIVES = r"""
#include <cuda/barrier>
#include <cuda_pipeline.h>
template<bool WAITS> __device__ void twice(float* out, const float* in)
{
    __shared__ float s[128];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> b;
    if (threadIdx.x == 0) init(&b, 128);
    __syncthreads();
    for (int i = 0; i < 2; ++i) {
        cuda::memcpy_async(&s[threadIdx.x], in + 128 * i + threadIdx.x, sizeof(float), b);
        if (WAITS) b.arrive_and_wait(); else __syncthreads();
        out[threadIdx.x] += s[127 - threadIdx.x];
        b.arrive_and_wait();
    }
}
extern "C" __global__ void waits(float* out, const float* in) { twice<true>(out, in); }
extern "C" __global__ void hurries(float* out, const float* in) { twice<false>(out, in); }
"""


@pytest.mark.slow
@pytest.mark.parametrize("build", ONE_FIRST)
def test_copies_that_arrive(build: str) -> None:
    ptx = Kernel.from_cuda(PRIMITIVES, "waits", build=build).ptx  # seconds to compile, so once
    for waits in (True, False):
        copies_that_arrive(Kernel.from_ptx(ptx, "waits" if waits else "hurries"), waits)


def copies_that_arrive(kernel: Kernel, waits: bool) -> None:
    data = np.arange(256, dtype=np.float32)
    out = np.zeros(128, np.float32)
    ran = simulator.launch(kernel, 1, 128, [out, data])
    errors = [h for h in ran.hazards if h.severity == "error"]
    assert bool(errors) != waits
    if waits:
        np.testing.assert_array_equal(out, data[127::-1] + data[:127:-1])
    else:
        assert "an asynchronous copy that is under way" in errors[0].message


RETIRED = (
    HEAD
    + r"""
__global__ void retired(int* out) {
    __shared__ u64 barrier;
    __shared__ int users, data[64];
    if (threadIdx.x == 0) { init(&barrier, 64); users = 64; }
    __syncthreads();
    data[threadIdx.x] = arrive(&barrier) != 0;
    unsigned peers = COLLECTIVE;
    if (threadIdx.x % 32 == 0) {
        __threadfence_block();
        bool last = atomicSub(&users, __popc(peers)) == __popc(peers);
        __threadfence_block();
        if (last) { LAST }
    }
}
"""
)
END = 'asm volatile("mbarrier.inval.shared.b64 [%0];" :: AT(&barrier) : "memory");'


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize(
    ("collective", "last", "races"),
    [
        ("__match_any_sync(__activemask(), 5)", END, False),
        ("__ballot_sync(~0u, 1)", END, True),
        ("__match_any_sync(~0u, 5)", "*out = data[threadIdx.x ^ 33];", True),
    ],
)
def test_one_lane_ends_a_barrier_for_those_it_counted(
    collective: str, last: str, races: bool, build: str, schedule: str | int
) -> None:
    """As ``cuda::pipeline`` does it; else no collective puts accesses in order."""
    text = RETIRED.replace("COLLECTIVE", collective).replace("LAST", last)
    kernel = Kernel.from_cuda(text, "retired", build=build)
    ran = simulator.launch(kernel, 1, 64, [np.zeros(1, np.int32)], schedule=schedule)
    assert bool(ran.hazards) == races


@given(
    count=st.integers(1, 6),
    steps=st.lists(st.tuples(*(st.integers(0, most) for most in (3, 100, 100))), max_size=30),
)
def test_an_object_is_what_its_operations_make_of_it(
    count: int, steps: list[tuple[int, int, int]]
) -> None:
    state = mbarrier.initial(np.array(count, np.uint32))
    wanted, pending, to_come, parity = count, count, 0, 0
    for arrivals, expected, come in steps:
        arrivals, come = min(arrivals, pending), min(come, to_come + expected)
        drops = arrivals if wanted > arrivals and come % 7 == 0 else 0
        old = state
        numbers = (np.int64(n) for n in (arrivals, expected, come, drops))
        state = mbarrier.arrived(state, *numbers)  # type: ignore[arg-type]
        wanted, pending, to_come = wanted - drops, pending - arrivals, to_come + expected - come
        ended = pending == 0 and to_come == 0
        parity ^= ended
        pending = wanted if ended else pending
        fields = (state & mbarrier.MAX_ARRIVALS, state >> 20 & mbarrier.MAX_ARRIVALS)
        assert [int(field) for field in fields] == [pending, wanted]
        assert int(state >> 40 & (1 << 22) - 1) == to_come
        assert int((old ^ state) >> mbarrier.PARITY & 1) == ended
        assert int(state >> mbarrier.PARITY & 1) == parity
