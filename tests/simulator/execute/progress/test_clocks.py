"""Loops that look at a clock: those with a limit end, others are told."""

import numpy as np
import pytest

import simulator
from tests.support.launches import BUILDS, SCHEDULES, compiled

WAITS = """
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init
extern "C" __global__ void meets(int* out, int more) {
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    if (threadIdx.x == 0) init(&all, blockDim.x + more);
    __syncthreads();
    all.arrive_and_wait();
    out[threadIdx.x] = 1;
}
extern "C" __global__ void gives_up(volatile int* out, int more) {
    long long start = clock64();
    while (out[0] == 0 && clock64() - start < 1LL << 41) {}
    out[threadIdx.x] = 1;
}
extern "C" __global__ void gives_up_32(volatile int* out, int more) {
    unsigned start = clock();
    while (out[0] == 0 && clock() - start < 900000000u) __nanosleep(100);
    out[threadIdx.x] = 1;
}
extern "C" __global__ void naps(volatile int* out, int more) {
    for (unsigned ns = 8; out[0] == 0 || more; ns = ns < 256 ? ns * 2 : ns) {
        if (clock64() % 2 < 2) __nanosleep(ns);
        if (blockIdx.x == 0 && threadIdx.x == 0 && !more) out[0] = 1;
    }
    out[threadIdx.x] = 1;
}
"""


@pytest.mark.slow_but("gives_up-0-True-warps-device")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("schedule", SCHEDULES[:2])
@pytest.mark.parametrize(
    ("entry", "more", "ends"),
    [
        ("meets", 0, True), ("meets", 1, False), ("gives_up", 0, True), ("gives_up_32", 0, True),
        ("naps", 0, True), ("naps", 1, False),
    ],
)  # fmt: skip
def test_who_looks_at_a_clock(
    entry: str, more: int, ends: bool, schedule: str | int, build: str
) -> None:
    out = np.zeros(32, np.int32)
    kernel = compiled(WAITS, entry, build)
    ran = simulator.launch(
        kernel, 1, 32, [out, more], schedule=schedule, checks={"barriers"}, step_limit=200_000
    )
    assert [h.kind for h in ran.hazards] == ([] if ends else ["livelock"])
    assert ends or ran.hazards[0].case in ("repeats", "short")
    assert out.tolist() == [int(ends)] * 32
