"""What orders accesses without a barrier: locks and flags, with fences at their scope."""

from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.simulator.races.check.test_race_edges import NAMED, SCHEDULES, races

HANDOFF = """\
__global__ void blocks(int* data, int* flag, int* out) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        data[0] = 42;
        asm volatile("PUT" :: "l"(flag), "r"(1) : "memory");
    } else if (blockIdx.x == 1 && threadIdx.x == 0) {
        int seen;
        do { asm volatile("GET" : "=r"(seen) : "l"(flag) : "memory"); } while (!seen);
        out[0] = data[0];
    }
}
__global__ void warps(int* data, int* flag, int* out) {
    if (threadIdx.x == 0) {
        data[0] = 42;
        asm volatile("PUT" :: "l"(flag), "r"(1) : "memory");
    } else if (threadIdx.x == 32) {
        int seen;
        do { asm volatile("GET" : "=r"(seen) : "l"(flag) : "memory"); } while (!seen);
        out[0] = data[0];
    }
}
"""
ACQUIRE = "ld.acquire.{0}.global.u32 %0, [%1];"
PUTS = {
    "st.release.{0}.global.u32 [%0], %1;": ACQUIRE,
    "red.release.{0}.global.add.u32 [%0], %1;": ACQUIRE,
    "fence.acq_rel.{0}; st.relaxed.{0}.global.u32 [%0], %1;": ACQUIRE,
    "fence.sc.{0}; st.volatile.global.u32 [%0], %1;": (
        "ld.volatile.global.u32 %0, [%1]; fence.sc.{0};"
    ),
}


def kinds(run: simulator.Run) -> list[tuple[str, str]]:
    return [(h.kind, h.severity) for h in run.hazards]


def hand_off(entry: str, put: str, get: str) -> simulator.Run:
    kernel = Kernel.from_cuda(HANDOFF.replace("PUT", put).replace("GET", get), entry)
    args = [np.zeros(1, np.int32) for _ in range(3)]
    run = simulator.launch(kernel, 2 if entry == "blocks" else 1, 64, args)
    assert args[2][0] == 42
    return run


@pytest.mark.parametrize("put", PUTS)
@pytest.mark.parametrize(
    ("entry", "scope", "enough"),
    [
        ("blocks", "gpu", True), ("blocks", "sys", True), ("blocks", "cta", False),
        ("blocks", "cluster", False), ("warps", "cluster", True),
        ("warps", "gpu", True), ("warps", "cta", True),
    ],
)  # fmt: skip
def test_a_flag_hands_on_what_was_written(entry: str, scope: str, enough: bool, put: str) -> None:
    run = hand_off(entry, put.format(scope), PUTS[put].format(scope))
    assert set(kinds(run)) == (set() if enough else {("raw-race", "error")})


@pytest.mark.parametrize("entry", ["blocks", "warps"])
def test_a_flag_without_a_fence_hands_on_nothing(entry: str) -> None:
    run = hand_off(entry, "st.relaxed.gpu.global.u32 [%0], %1;", ACQUIRE.format("gpu"))
    assert kinds(run) == [("raw-race", "error")]


LOCKS = """\
__device__ void lock(int* mutex) {
    while (atomicCAS(mutex, 0, 1) != 0) {}
    FENCE;
}
__device__ void unlock(int* mutex) {
    FENCE;
    atomicExch(mutex, 0);
}
__global__ void among_blocks(int* mutex, int* count) {
    if (threadIdx.x % 32 == 0) {
        lock(mutex);
        *count += 1;
        unlock(mutex);
    }
}
__global__ void in_shared_memory(int* out) {
    __shared__ int mutex, count;
    if (threadIdx.x == 0) mutex = count = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        lock(&mutex);
        count += 1;
        unlock(&mutex);
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = count;
}
__global__ void for_the_warp(int* out) {
    __shared__ int tile[32], ready;
    int t = threadIdx.x;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t < 32) {
        tile[t] = t;
        __syncwarp();
        if (t == 0) { FENCE; atomicExch(&ready, 1); }
    } else {
        if (t == 32) { while (atomicAdd(&ready, 0) == 0) {} FENCE; }
        __syncwarp();
        out[t - 32] = tile[63 - t];
    }
}
"""


def launch(entry: str, fence: str, *args: Any, grid: int = 3, threads: int = 96) -> Any:
    kernel = Kernel.from_cuda(LOCKS.replace("FENCE", fence), entry)
    return kinds(simulator.launch(kernel, grid, threads, [*args]))


def test_a_lock_among_blocks() -> None:
    mutex, count = np.zeros(1, np.int32), np.zeros(1, np.int32)
    assert launch("among_blocks", "__threadfence()", mutex, count) == []
    assert count[0] == 9
    for fence in ("__threadfence_block()", ""):
        found = launch("among_blocks", fence, mutex, count)
        assert set(found) == {("war-race", "error"), ("waw-race", "error")}


@pytest.mark.parametrize("fence", ["__threadfence()", "__threadfence_block()"])
def test_a_lock_in_shared_memory(fence: str) -> None:
    out = np.zeros(3, np.int32)
    assert launch("in_shared_memory", fence, out) == []
    assert out.tolist() == [3, 3, 3]


def test_a_lock_without_fences() -> None:
    found = launch("in_shared_memory", "", np.zeros(3, np.int32))
    assert set(found) == {("war-race", "error"), ("waw-race", "error")}


def test_one_lane_releases_and_acquires_for_its_warp() -> None:
    out = np.zeros(32, np.int32)
    assert launch("for_the_warp", "__threadfence_block()", out, grid=1, threads=64) == []
    assert out.tolist() == list(range(31, -1, -1))
    found = launch("for_the_warp", "", out, grid=1, threads=64)
    assert ("raw-race", "error") in found


LAST_BLOCK = """\
__device__ unsigned int count = 0;
__global__ void last_block(const float* in, float* sums, float* total) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = in[blockIdx.x];
        __threadfence();
        last = atomicInc(&count, gridDim.x) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < gridDim.x; ++i) sum += sums[i];
        *total = sum;
        count = 0;
    }
}
"""


@pytest.mark.slow_cases("source")
@pytest.mark.parametrize("build", ["device", "source"])
def test_the_last_block_may_reset_the_counter(build: str) -> None:
    """Its plain write comes after everybody's atomic one, the releasing access itself."""
    args = [np.arange(9, dtype=np.float32), np.zeros(9, np.float32), np.zeros(1, np.float32)]
    kernel = Kernel.from_cuda(LAST_BLOCK, "last_block", build=build)
    assert simulator.launch(kernel, 9, 64, args).hazards == []
    assert args[2][0] == 36
    before, after, rest = LAST_BLOCK.split("__threadfence();")
    unreleased = Kernel.from_cuda(
        f"{before}{after}__threadfence();{rest}", "last_block", build=build
    )
    assert ("raw-race", "error") in kinds(simulator.launch(unreleased, 9, 64, args))
    unacquired = Kernel.from_cuda(
        f"{before}__threadfence();{after}{rest}", "last_block", build=build
    )
    assert kinds(simulator.launch(unacquired, 9, 64, args)) == [("raw-race", "warning")]


COUNTED = {
    "if (atomicAdd(count, 1) == 5) { *count = 0; out[0] = *count + 1; }": "",
    "if (b) *flag = 1; else { while (*flag == 0) ; *count = 0; }": "",
    "if (atomicAdd(count, 1) == 2) *count = 0;": "waw",
    "atomicAdd(count, 1); *count = 0;": "waw",
    "if (atomicAdd_block(count, 1) == 5) *count = 0;": "waw",
    "data[b] = 1; if (atomicAdd(count, 1) == 5) { *count = 0; out[0] = data[3]; }": "raw",
}


@pytest.mark.slow_cases("...0] = *count + 1; }", "...1); *count = 0;")
@pytest.mark.parametrize("body", COUNTED)
def test_what_a_read_finds_comes_before_what_it_decides_with_no_fence(body: str) -> None:
    """Itself alone (PTX ISA, "Causality order"): nothing that its thread had done before."""
    source = "__global__ void k(int* count, int* data, int* out) { int b = blockIdx.x; "
    source += "volatile int* flag = count; "
    for build in ("device", "source"):
        kernel = Kernel.from_cuda(f"{source}{body} }}", "k", build=build)
        for schedule in ("lockstep", "reverse"):
            args = [np.zeros(6, np.int32) for _ in range(3)]
            blocks = 2 if "flag" in body else 6
            run = simulator.launch(kernel, blocks, 1, args, schedule=schedule)
            kinds_of = {kind for kind, severity in kinds(run) if severity == "error"}
            assert kinds_of == ({f"{COUNTED[body]}-race"} if COUNTED[body] else set()), build


BY_ONE_LANE = """
__global__ void k(int* came, int* data, int* out) {
    int t = threadIdx.x, b = blockIdx.x;
    data[b * 32 + t] = b + t;
    __threadfence();
    __syncwarp();
    if (t == 0) { atomicOr(came, 1 << b); while (atomicOr(came, 0) != 7) ; }
    AFTER
    out[b * 32 + t] = data[t] + data[32 + t] + data[64 + t];
}
"""


@pytest.mark.parametrize(
    ("after", "enough"),
    [
        ("__syncwarp(); __threadfence();", True), ("__threadfence(); __syncwarp();", True),
        ("__syncwarp();", False), ("__threadfence();", False),
        ("__syncwarp(); if (t < 16) __threadfence();", False),
        ("__syncwarp(); __threadfence_block();", False),
    ],
)  # fmt: skip
def test_what_a_lane_has_read_any_of_its_warp_may_acquire(after: str, enough: bool) -> None:
    """By a fence behind the barrier of the warp, as a block's (PTX ISA, "Fence-SC order")."""
    kernel = Kernel.from_cuda(BY_ONE_LANE.replace("AFTER", after), "k")
    args = [np.zeros(n, np.int32) for n in (1, 96, 96)]
    assert kinds(simulator.launch(kernel, 3, 32, args)) == [("raw-race", "error")] * (not enough)
    assert (args[2].reshape(3, 32) == 3 + 3 * np.arange(32)).all()


NO_RELEASE = {
    "another's fence": "if (t == 5) d[0] = 1; if (!t) __threadfence(); if (t == 5) f[0] = 1;",
    "a weak store": "if (t == 5) { d[0] = 1; __threadfence(); *(int*)f = 1; }",
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("how", NO_RELEASE)
def test_what_releases_nothing(how: str, schedule: str | int) -> None:
    reads = "if (t == 40) { while (f[0] == 0); __threadfence(); o[0] = d[0]; }"
    source = NAMED.replace("WRITES", NO_RELEASE[how]).replace("READS", reads)
    found = races(source, 2, 64, 1, 1, 1, schedule=schedule)
    assert "d" in {name for hazard in found for name in (hazard.variable, *hazard.also)}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("reader", [0, 1])
def test_a_flag_in_shared_memory_is_its_own_block_s(reader: int, schedule: str | int) -> None:
    source = (
        "(int* d, int* o) { __shared__ int f; int t = threadIdx.x, b = blockIdx.x;"
        " if (!t) f = 0; __syncthreads();"
        " if (!t) { if (!b) d[0] = 1; __threadfence(); atomicExch(&f, 1); }"
        " if (t == 40) { while (*(volatile int*)&f == 0); __threadfence();"
        f" if (b == {reader}) o[0] = d[0]; }} }}"
    )
    found = races(source, 2, 64, 1, 1, schedule=schedule)
    assert bool(found) == bool(reader)
