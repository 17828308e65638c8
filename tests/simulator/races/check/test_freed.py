"""``free`` ends what is there for everybody: who may still use it has to be done."""

from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator import Hazard

BUILDS = ("device", "source")
SCHEDULES = ("lockstep", "warps", "reverse", 1)
HEAD = """
__global__ void k(int* out, int n) {
    __shared__ int* p;
    int t = threadIdx.x;
    if (t == 0) { p = (int*)malloc(64 * sizeof(int)); for (int i = 0; i < 64; i++) p[i] = i; }
    __syncthreads();
"""


def hazards(source: str, build: str, schedule: Any, threads: int = 64, **more: Any) -> list[Hazard]:
    kernel = Kernel.from_cuda(source, "k", build=build)
    args = [np.zeros(256, np.int32), 5]
    return simulator.launch(kernel, 1, threads, args, schedule=schedule, **more).hazards


@pytest.mark.slow_cases("warps-source")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "body",
    [
        "out[t] = p[t]; if (t == 0) free(p);",
        "if (t == 0) free(p); else if (t >= 32) out[t] = p[t];",
        "p[t] = t; __syncwarp(); if (t == 32) free(p);",
        "if (t == 40) delete p; atomicAdd(p + t % 4, 1);",
        'if (t >= 32) out[t] = p[t]; asm volatile("bar.arrive 1, 64;"); if (t == 0) free(p);',
    ],
)
def test_still_in_use(build: str, schedule: Any, body: str) -> None:
    """Who comes first is the schedule's business: a race, or an access to what is gone."""
    found = hazards(HEAD + body + "}", build, schedule)
    errors = {h.kind for h in found if h.severity == "error"}
    assert errors
    assert errors <= {"war-race", "waw-race", "out-of-bounds"}


@pytest.mark.slow_cases("source")
@pytest.mark.parametrize("build", BUILDS)
def test_the_use_is_named_before_it_is_freed(build: str) -> None:
    for body in ("out[t] = p[t];\nif (t == 0)\nfree(p);", "if (t == 0)\nfree(p);\nout[t] = p[t];"):
        for schedule in SCHEDULES:
            for hazard in hazards(HEAD + body + "}", build, schedule):
                if hazard.kind == "out-of-bounds" or hazard.severity == "warning":
                    continue
                assert (hazard.kind, hazard.case) == ("war-race", "freed")
                assert [part.role for part in hazard.involved] == ["read", "write"]
                assert any("free() takes the memory from all" in note for note in hazard.notes)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "body",
    [
        "out[t] = p[t]; __syncthreads(); if (t == 0) free(p);",
        "out[t] = p[t]; __syncthreads(); if (t == 63) { p[3] = 1; free(p); }",
        "__shared__ int left; if (t == 0) left = 64; __syncthreads(); out[t] = p[t];"
        "__threadfence(); if (atomicSub(&left, 1) == 1) { __threadfence(); free(p); }",
    ],
)
def test_in_order(build: str, schedule: Any, body: str) -> None:
    assert not hazards(HEAD + body + "}", build, schedule)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_address_that_is_given_again_is_new(build: str, schedule: Any) -> None:
    """A small heap: threads of both warps get what others had and freed."""
    source = """
    __global__ void k(int* out, int n) {
        for (int i = 0; i < n; i++) {
            volatile int* p = (int*)malloc(40);
            if (p) { for (int j = 0; j < 10; j++) p[j] = j; out[threadIdx.x] += p[i]; }
            free((void*)p);
        }
    }"""
    kernel = Kernel.from_cuda(source, "k", build=build)
    out = np.zeros(64, np.int32)
    heap = 64 * 48 + 512
    result = simulator.launch(kernel, 1, 64, [out, 5], schedule=schedule, heap_bytes=heap)
    assert not result.hazards
    assert (out == 10).all()
