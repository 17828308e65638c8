"""Labels and names of nested scopes."""

from __future__ import annotations

import numpy as np
import pytest
from launches import BUILDS, SCHEDULES, compiled
from test_live_values import launched

import simulator
from kernels.errors import PtxError


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_branch_in_a_nested_scope_means_the_label_of_that_scope(schedule: str | int) -> None:
    """Wherever the label stands in it, and whatever else has its name."""
    body = """
mov.u32 %r3, 0;
{ @%p1 bra A; add.u32 %r3, %r3, 1; A: add.u32 %r3, %r3, 10;
  { @%p1 bra A; add.u32 %r3, %r3, 100; A: add.u32 %r3, %r3, 1000; }
  bra B; add.u32 %r3, %r3, 500; B: }
{ .reg .b32 %r3; mov.u32 %r3, 0;
  A: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 4; @%p2 bra A;
  mov.u32 %r4, %r3; @%p1 bra OUT; }
A: add.u32 %r4, %r4, 20000;
OUT: add.u32 %r3, %r3, %r4; st.global.u32 [%d2], %r3; ret;
"""
    assert launched(body, 16, schedule=schedule) == [1014] * 16 + [21115] * 16


def test_a_jump_table_in_a_nested_scope() -> None:
    body = """
{ and.b32 %r2, %r0, 1; WAYS: .branchtargets A, B; brx.idx %r2, WAYS;
  A: mov.u32 %r3, 10; bra E; B: mov.u32 %r3, 11; E: st.global.u32 [%d2], %r3; }
A: ret;
"""
    assert launched(body) == [10 + t % 2 for t in range(32)]


@pytest.mark.parametrize(
    "body", ["{ A: A: ret; }", "{ .reg .b32 A; A: ret; }", "{ A: .reg .b32 A; ret; }", "A: A: ret;"]
)
def test_a_name_is_declared_once_in_a_scope(body: str) -> None:
    with pytest.raises(PtxError, match="'A' is declared twice"):
        launched(body)


@pytest.mark.parametrize("build", BUILDS)
def test_inline_assembly_that_waits(build: str) -> None:
    """A loop with its way out in front of the label, in a function that is used twice."""
    source = """
__device__ int count(int n) {
    int i;
    asm volatile("{ .reg .pred P; mov.u32 %0, 0;\\n AGAIN: setp.ge.s32 P, %0, %1;\\n"
                 "@P bra DONE;\\n add.s32 %0, %0, 1; bra AGAIN;\\n DONE: }" : "=&r"(i) : "r"(n));
    return i;
}
__global__ void k(int* out, int n) { out[threadIdx.x] = 100 * count(threadIdx.x % 3) + count(n); }
"""
    out = np.zeros(32, np.int32)
    run = simulator.launch(compiled(source, "k", build), 1, 32, [out, 5])
    assert run.hazards == []
    assert out.tolist() == [100 * (t % 3) + 5 for t in range(32)]
