"""Pairs of threads that race, where they are more than can be listed."""

from __future__ import annotations

import pytest
from test_race_edges import cuda, ints

import simulator
from kernels import Kernel

SHARED = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k() {
.reg .pred %p; .reg .b32 %r0;
.shared .align 4 .b8 s[4];
mov.u32 %r0, %tid.x; setp.lt.u32 %p, %r0, 512;
BODY
ret;
}
"""


def writers(run: simulator.Run) -> dict[str, tuple[int, bool]]:
    """By distance: pairs of threads that write the same word, and whether there may be more."""
    found = {}
    for hazard in run.hazards:
        assert hazard.kind == "waw-race"
        distance = next(d for d in ("lane", "warp", "block") if f"another {d}" in hazard.message)
        found[distance] = hazard.count, hazard.notes[0].startswith("at least")
    return found


def pairs_of(threads: int) -> dict[str, int]:
    """Of a block all of whose threads race with each other."""
    lanes = threads // 32 * (32 * 31 // 2)
    return {"lane": lanes, "warp": threads * (threads - 1) // 2 - lanes}


def test_pairs_that_are_too_many_to_list_are_counted_where_nothing_orders_any() -> None:
    kernel = Kernel.from_ptx(SHARED.replace("BODY", "st.shared.u32 [s], %r0;"))
    found = writers(simulator.launch(kernel, 3, 1024, []))
    assert found == {distance: (3 * n, False) for distance, n in pairs_of(1024).items()}


@pytest.mark.parametrize("space", ["shared", "global"])
def test_a_barrier_takes_some_of_the_pairs_away(space: str) -> None:
    """Those that are left are too many to list: what is said holds, and says "at least"."""
    if space == "shared":
        body = "@%p st.shared.u32 [s], %r0; bar.sync 0; @!%p st.shared.u32 [s], %r0;"
        kernel = Kernel.from_ptx(SHARED.replace("BODY", body))
    else:
        kernel = cuda(
            "(int* o) { int t = threadIdx.x; if (t < 512) o[blockIdx.x] = t;"
            " __syncthreads(); if (t >= 512) o[blockIdx.x] = t; }"
        )
    args = [ints(5)] if space == "global" else []
    found = writers(simulator.launch(kernel, 5, 1024, args))
    true = {distance: 10 * n for distance, n in pairs_of(512).items()}
    assert found["lane"] == (true["lane"], False)
    count, more = found["warp"]
    assert more
    assert 1 << 20 <= count <= true["warp"]


def test_a_flag_takes_some_of_the_pairs_away() -> None:
    """One thread of the second block waits for the first block; the third waits for nobody."""
    source = (
        "(volatile int* f, int* o) { int i = blockIdx.x * blockDim.x + threadIdx.x;"
        " if (blockIdx.x == 1) { if (threadIdx.x) return; while (f[0] == 0); __threadfence(); }"
        " o[0] = i; if (blockIdx.x == 0) { __threadfence(); __syncthreads();"
        " if (threadIdx.x == 0) f[0] = 1; } }"
    )
    found = writers(simulator.launch(cuda(source), 3, 1024, [ints(1), ints(1)]))
    count, more = found["block"]
    assert more
    assert 1 << 20 <= count <= (1024 + 1) * 1024
