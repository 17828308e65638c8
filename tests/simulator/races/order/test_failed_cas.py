"""A comparison that fails writes nothing: its thread has taken no lock."""

from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.support.launches import BUILDS, SCHEDULES

MAIL = """
__global__ void k(int* flag, int* x, int* out) {{
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {{
        if (atomicCAS(flag, 7, 1) != 7) {{ x[0] = 6; {fence} atomicCAS(flag, 0, 1); }}
    }} else {{
        while ({poll}) {{}}
        __threadfence();
        out[0] = x[0];
    }}
}}
"""
STACK = """
__global__ void k(int* head, int* next, int* out) {{
    if (threadIdx.x >= 4) return;
    if (blockIdx.x == 0) {{
        int old = *(volatile int*)head, seen;
        do {{
            seen = old;
            next[threadIdx.x] = seen;
            {fence}
            old = atomicCAS(head, seen, threadIdx.x);
        }} while (old != seen);
    }} else if (threadIdx.x == 0) {{
        int top;
        while ((top = atomicExch(head, -1)) == -1) {{}}
        __threadfence();
        out[0] = next[top];
    }}
}}
"""
POLLS = ("atomicExch(flag, 0) == 0", "atomicCAS(flag, 1, 0) != 1", "atomicAdd(flag, 0) == 0")
PROGRAMS = {**{poll: MAIL.replace("{poll}", poll) for poll in POLLS}, "stack": STACK}


def errors(name: str, fence: str, build: str, schedule: Any) -> set[str]:
    kernel = Kernel.from_cuda(PROGRAMS[name].format(fence=fence), "k", build=build)
    first = np.full(1, -1 if name == "stack" else 0, np.int32)
    args = [first, np.zeros(4, np.int32), np.zeros(1, np.int32)]
    return {h.kind for h in simulator.launch(kernel, 2, 32, args, schedule=schedule).hazards}


@pytest.mark.slow_cases("source", "stack")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_who_failed_before_and_hands_on_well(name: str, build: str) -> None:
    for schedule in SCHEDULES:
        assert errors(name, "__threadfence();", build, schedule) == set()
        assert errors(name, "", build, schedule) & {"raw-race", "war-race"}
