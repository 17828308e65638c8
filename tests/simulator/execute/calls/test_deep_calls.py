"""Functions that call themselves twice: equal registers at equal depths are not the same state."""

import numpy as np
import pytest

import simulator
from tests.support.launches import BUILDS, ONE_FIRST, SCHEDULES, compiled

CALLS = """
__device__ int pairs(int n) { return n < 2 ? n : pairs(n - 1) + pairs(n - 2); }
__device__ int moves(int n, int from, int to) {
    if (n == 0) return 0;
    int via = 6 - from - to, first = moves(n - 1, from, via);
    return first + 1 + moves(n - 1, via, to);
}
__device__ int waits(int n, volatile int* flag) {
    if (n == 0) { while (*flag == 0) {} return 1; }
    return waits(n - 1, flag) + waits(n - 1, flag);
}
extern "C" __global__ void count_pairs(int* out) { out[threadIdx.x] = pairs(threadIdx.x + 8); }
extern "C" __global__ void count_moves(int* out) { out[threadIdx.x] = moves(9, 1, 3); }
extern "C" __global__ void count_waits(int* flag) {
    if (blockIdx.x == 0) { for (int i = 0; i < 3000; ++i) flag[1] = i; atomicExch(flag, 1); }
    else atomicAdd(&flag[2], waits(6, flag));
}
extern "C" __global__ void endless(int* flag) { flag[1] = waits(4, flag); }
"""


@pytest.mark.slow_cases("count_pairs-expected0")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("entry", "expected"),
    [("count_pairs", [21, 34, 55, 89, 144, 233, 377, 610]), ("count_moves", [511] * 8)],
)
def test_they_end(entry: str, expected: list[int], schedule: str | int, build: str) -> None:
    out = np.zeros(8, np.int32)
    kernel = compiled(CALLS, entry, build)
    ran = simulator.launch(kernel, 1, 8, [out], schedule=schedule, stack_bytes=1 << 14)
    assert out.tolist() == expected
    assert ran.hazards == []


@pytest.mark.parametrize("build", ONE_FIRST)
def test_who_waits_deep_down(build: str) -> None:
    """Until another block writes; or for ever, if nobody does."""
    flag = np.zeros(3, np.int32)
    kernel = compiled(CALLS, "count_waits", build)
    ran = simulator.launch(kernel, 2, 1, [flag], stack_bytes=1 << 14)
    assert flag[2] == 64
    assert not [h for h in ran.hazards if h.kind in ("livelock", "deadlock")]
    kernel = compiled(CALLS, "endless", build)
    ran = simulator.launch(kernel, 1, 4, [np.zeros(3, np.int32)], stack_bytes=1 << 14)
    assert [h.kind for h in ran.hazards] == ["livelock"]
