"""What a race is said to be: lanes of one instruction, lanes in step, an update that is lost."""

import numpy as np
import pytest

import simulator
from tests.support.launches import BUILDS, SCHEDULES, compiled

FILES = {
    "unrolled": "(float* o) { for (int j = 0; j < 2; ++j) o[threadIdx.x + j] = threadIdx.x; }",
    "ragged": "(float* o) { int t = threadIdx.x;\n#pragma unroll 1\n"
    "for (int i = t; i < 40; ++i) o[i] = t; }",
    "one place": "(float* o) { o[threadIdx.x / 4] = threadIdx.x; }",
    "loop at one place": "(float* o) { for (int j = 0; j < 3; ++j) o[j] = threadIdx.x; }",
    "turns": "(int* o) { if (threadIdx.x < 4) { while (atomicCAS(o + 40, 0, 1)) {}"
    " o[0] = threadIdx.x; atomicExch(o + 40, 0); } }",
    "sum": "(float* o) { o[0] += threadIdx.x; }",
}


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("name", "severity", "note"),
    [
        ("unrolled", "warning", "__syncwarp()"),
        ("ragged", "warning", "__syncwarp()"),
        ("one place", "error", "lanes of one instruction"),
        ("loop at one place", "error", "lanes of one instruction"),
        ("turns", "error", "lanes of one instruction"),
        ("sum", "error", "an update is lost"),
    ],
)
def test_lanes_of_a_warp(
    name: str, severity: str, note: str, schedule: str | int, build: str
) -> None:
    out = np.zeros(72, np.int32 if name == "turns" else np.float32)
    ran = simulator.launch(compiled(FILES[name], build=build), 1, 32, [out], schedule=schedule)
    (told,) = (h for h in ran.hazards if h.kind == "waw-race")
    assert told.severity == severity
    assert any(note in text for text in told.notes), told.notes


@pytest.mark.parametrize("build", BUILDS)
def test_who_loses_nothing_is_not_said_to(build: str) -> None:
    """Of two writes only one was made of what stood there."""
    kernel = compiled(
        "(int* o, int n) { __shared__ int s; if (threadIdx.x == 40) s = n;"
        " if (threadIdx.x == 0) s = s + 5; __syncthreads(); o[threadIdx.x] = s; }", build=build
    )  # fmt: skip
    ran = simulator.launch(kernel, 1, 64, [np.zeros(64, np.int32), 3])
    (told,) = (h for h in ran.hazards if h.kind == "waw-race")
    assert told.severity == "error"
    assert not any("lost" in note for note in told.notes)


COPIES = """#include <cuda_pipeline.h>
extern "C" __global__ void k(float* o, const float* a, int n) {
    __shared__ alignas(16) float s[4][64];
    int t = threadIdx.x, next = 0;
    float v = 0;
    for (int i = 0; i < n; ++i) {
        for (; next <= i + AHEAD; ++next) {
            if (next < n && t < 16)
                __pipeline_memcpy_async(&s[next % 4][t * 4], &a[next * 64 + t * 4], 16);
            __pipeline_commit();
        }
        __pipeline_wait_prior(AHEAD);
        __syncthreads();
        v += s[i % 4][63 - t];
        if (AHEAD < 4) __syncthreads();
    }
    o[t] = v;
}"""


@pytest.mark.slow_cases("4")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("ahead", [3, 4])
def test_a_copy_comes_before_who_reads_what_it_writes(ahead: int, build: str) -> None:
    """Wherever they stand: five tiles in four places are written while they are read."""
    kernel = compiled(COPIES.replace("AHEAD", str(ahead)), build=build)
    data = np.arange(512, dtype=np.float32)
    ran = simulator.launch(kernel, 1, 64, [np.zeros(64, np.float32), data, 8])
    told = {h.kind for h in ran.hazards if h.severity == "error"}
    assert told == (set() if ahead == 3 else {"waw-race", "raw-race"})
