"""Which programs may wait for other warps: only these get fairness."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.execute.machine import flow_map
from simulator.execute.prepare import prepare

LOOPS = {
    "a counter": ("for (int r = 0; r < n; r++) a[i] += r;", False),
    "a bound in memory": ("for (int r = 0; r < a[9]; r++) { a[i] = r; AGAIN; }", False),
    "an atomic inside": ("for (int r = 0; r < n; r++) atomicAdd(a, r);", False),
    "a bound from another loop": (
        "int m = 0; for (int r = 0; r < n; r++) m += a[r]; while (m > 9) { a[i] += m; m -= 3; }",
        False,
    ),
    "a flag": ("while (((volatile int*)a)[0] == 0) a[i + 1] += n;", True),
    "a lock": ("while (atomicCAS(a, 0, 1)) ; a[i + 1] = n; atomicExch(a, 0);", True),
    "a flag, and a counter": (
        "for (int r = 0; r < n && !((volatile int*)a)[0]; r++) a[i + 1] = r;",
        True,
    ),
    "a counter in memory": ("while (a[i] < n) { a[i] += 1; AGAIN; }", True),
    "a counter now and then": (
        "for (int r = 0; r < n; ) { if (a[i] != a[i + 1]) r++; AGAIN; }",
        True,
    ),
    "other lanes": ("while (__any_sync(~0u, i++ < n)) a[i] = n;", True),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_may_wait(name: str) -> None:
    body, waits = LOOPS[name]
    body = body.replace("AGAIN", 'asm volatile("" ::: "memory")')  # memory is read again
    text = f'extern "C" __global__ void k(int* a, int n) {{ int i = threadIdx.x; {body} }}'
    args = [np.zeros(99, np.int32), 5]
    made = prepare(Kernel.from_cuda(text, "k"), 1, 32, args, 0, "lockstep", 1000, False)
    assert made.program.analysis(flow_map).may_wait == waits


@pytest.mark.parametrize(
    ("end", "is_fair"), [("", False), ("if (((volatile int*)b)[0]) break;", True)]
)
def test_only_loops_that_may_wait_let_later_warps_go_first(end: str, is_fair: bool) -> None:
    """The first warp's loop is long: the other one comes to the atomic meanwhile."""
    text = f"""extern "C" __global__ void k(int* a, int* b, int n) {{
        int i = threadIdx.x; float x = i; if (i >= 32) n = 1;
        for (int r = 0; r < n; r++) {{ {end} x = x * 0.5f + r; if (r % 3 == i % 3) x += 1; }}
        a[i] = x; a[64 + i] = atomicAdd(a + 128, 1); }}"""
    args = [np.zeros(129, np.int32), np.zeros(1, np.int32), 500]
    simulator.launch(Kernel.from_cuda(text, "k"), 1, 64, args, engine="numpy")
    assert (args[0][64] == 0) == (not is_fair), args[0][64:128]
