"""Threads that meet as a part of their block hand on what one of them has fenced, or found."""

import numpy as np
import pytest

import simulator
from kernels import Kernel

SOURCE = """
#define K(name) extern "C" __global__ void name(int* data, volatile int* flag, int* out)
K(half) {
    int t = threadIdx.x;
    if (t >= 16) return;
    if (blockIdx.x == 0) { data[t] = t + 1; BEFORE; __syncwarp(0xffff); if (t == 0) *flag = 1; }
    else { if (t == 0) while (*flag == 0); __syncwarp(0xffff); AFTER; out[t] = data[15 - t]; }
}
K(others_have_left) {
    int t = threadIdx.x;
    if (t >= 20) return;
    if (blockIdx.x == 0) { data[t] = t + 1; BEFORE; __syncwarp(); if (t == 0) *flag = 1; }
    else { if (t == 0) while (*flag == 0); __syncwarp(); AFTER; out[t] = data[19 - t]; }
}
K(quarters_and_their_first) {
    int t = threadIdx.x, quarter = t < 4 ? 0xf : 0xf0;
    if (t >= 8) return;
    if (blockIdx.x == 0) {
        data[t] = t + 1;
        BEFORE;
        __syncwarp(quarter);
        if (t % 4 == 0) __syncwarp(0x11);
        if (t == 0) *flag = 1;
    } else {
        if (t == 0) while (*flag == 0);
        if (t % 4 == 0) __syncwarp(0x11);
        __syncwarp(quarter);
        AFTER;
        out[t] = data[7 - t];
    }
}
K(before_they_write) {
    int t = threadIdx.x;
    if (t >= 16) return;
    if (blockIdx.x == 0) { __syncwarp(0xffff); data[t] = t + 1; BEFORE; if (t == 0) *flag = 1; }
    else { if (t == 0) while (*flag == 0); __syncwarp(0xffff); AFTER; out[t] = data[15 - t]; }
}
K(by_one_that_was_not_there) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        if (t < 16) { data[t] = t + 1; BEFORE; __syncwarp(0xffff); }
        if (t == 20) *flag = 1;
    } else if (t < 16) {
        if (t == 0) while (*flag == 0);
        __syncwarp(0xffff);
        AFTER;
        out[t] = data[15 - t];
    }
}
"""
FENCE = "__threadfence()"
AT_MBARRIER = """
__device__ void arrive(unsigned bar) {
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
}
__device__ void wait(unsigned bar, int parity) {
    for (int over = 0; !over;)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2;"
                     " selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(bar), "r"(parity) : "memory");
}
extern "C" __global__ void k(int* data, volatile int* flag, int* out) {
    __shared__ unsigned long long word;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&word);
    int t = threadIdx.x, parity = 0;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(bar) : "memory");
    __syncthreads();
    FIRST
    if (blockIdx.x == 0) {
        data[t] = t + 1;
        BEFORE;
        arrive(bar);
        AFTER;
        wait(bar, parity);
        if (t == 40) *flag = 1;
    } else {
        if (t == 40) { while (*flag == 0); LOOKED; }
        arrive(bar);
        wait(bar, parity);
        out[t] = data[63 - t];
    }
}
"""
OF_WARPS = """
#define K(name) extern "C" __global__ void name(int* data, volatile int* flag, int* out)
#define BARRIER(kind) asm volatile("bar." kind " 1, 64;" ::: "memory")
K(two_of_three) {
    int t = threadIdx.x;
    if (t >= 64) return;
    if (blockIdx.x == 0) { data[t] = t + 1; BEFORE; BARRIER("sync"); if (t == 40) *flag = 1; }
    else { if (t == 40) { while (*flag == 0); LOOKED; } BARRIER("sync"); out[t] = data[63 - t]; }
}
K(one_arrives) {
    int t = threadIdx.x;
    if (t >= 64) return;
    if (blockIdx.x == 1) {
        if (t == 40) { while (*flag == 0); LOOKED; }
        BARRIER("sync");
        out[t] = data[t];
    }
    else if (t < 32) { data[t] = t + 1; BEFORE; BARRIER("arrive"); }
    else { BARRIER("sync"); if (t == 40) *flag = 1; }
}
K(the_others_have_left) {
    int t = threadIdx.x;
    if (t >= 64) return;
    if (blockIdx.x == 0) { data[t] = t + 1; BEFORE; __syncthreads(); if (t == 40) *flag = 1; }
    else { if (t == 40) { while (*flag == 0); LOOKED; } __syncthreads(); out[t] = data[63 - t]; }
}
K(who_arrives_reads_on) {
    int t = threadIdx.x;
    if (t >= 64) return;
    if (blockIdx.x == 0) { data[t] = t + 1; BEFORE; __syncthreads(); if (t == 40) *flag = 1; }
    else if (t >= 32) BARRIER("sync");
    else { while (*flag == 0); BARRIER("arrive"); AFTER; out[t] = data[t]; }
}
K(by_the_third) {
    int t = threadIdx.x;
    if (blockIdx.x == 1) { while (*flag == 0); __threadfence(); if (t < 64) out[t] = data[t]; }
    else if (t < 64) { data[t] = t + 1; BEFORE; BARRIER("sync"); }
    else if (t == 70) *flag = 1;
}
"""


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("entry", "before", "after", "pairs"),
    [
        *((name, FENCE, FENCE, 0)
          for name in ("half", "others_have_left", "quarters_and_their_first")),
        ("half", "", FENCE, 16), ("half", FENCE, "", 16),
        ("others_have_left", "", FENCE, 20), ("quarters_and_their_first", FENCE, "", 8),
        ("before_they_write", FENCE, FENCE, 15),  # the one that sets the flag hands on its own
        ("by_one_that_was_not_there", FENCE, FENCE, 16),
    ],
)  # fmt: skip
def test_a_flag_of_one_is_a_flag_of_those_it_met(
    entry: str, before: str, after: str, pairs: int, build: str
) -> None:
    text = SOURCE.replace("BEFORE", before).replace("AFTER", after)
    kernel = Kernel.from_cuda(text, entry, build=build)
    for schedule in ("lockstep", "warps", "reverse", 1):
        args = [np.zeros(32, np.int32), np.zeros(1, np.int32), np.zeros(32, np.int32)]
        run = simulator.launch(kernel, 2, 32, args, schedule=schedule)
        found = [(h.kind, h.variable, h.count) for h in run.hazards]
        assert found == ([("raw-race", "data", pairs)] if pairs else []), schedule


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("entry", "before", "looked", "after", "pairs"),
    [
        *((name, FENCE, FENCE, "", 0)
          for name in ("two_of_three", "one_arrives", "the_others_have_left")),
        ("two_of_three", "", FENCE, "", 64), ("two_of_three", FENCE, "", "", 64),
        ("one_arrives", "", FENCE, "", 32), ("one_arrives", FENCE, "", "", 32),
        ("the_others_have_left", FENCE, "", "", 64), ("by_the_third", FENCE, "", "", 64),
        ("who_arrives_reads_on", FENCE, "", "", 32), ("who_arrives_reads_on", FENCE, "", FENCE, 0),
    ],
)  # fmt: skip
def test_warps_that_meet_do_so_too(
    entry: str, before: str, looked: str, after: str, pairs: int, build: str
) -> None:
    """Who only arrives has nobody's word for what it reads then."""
    text = OF_WARPS.replace("BEFORE", before).replace("LOOKED", looked).replace("AFTER", after)
    kernel = Kernel.from_cuda(text, entry, build=build)
    for schedule in ("lockstep", "warps", "reverse", 1):
        args = [np.zeros(96, np.int32), np.zeros(1, np.int32), np.zeros(96, np.int32)]
        run = simulator.launch(kernel, 2, 96, args, schedule=schedule)
        found = [(h.variable, h.count) for h in run.hazards if h.kind.endswith("-race")]
        assert found == ([("data", pairs)] if pairs else []), schedule


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("first", ["", "arrive(bar); wait(bar, 0); parity = 1;"])
@pytest.mark.parametrize(
    ("before", "after", "looked", "pairs"),
    [(FENCE, "", FENCE, 0), (FENCE, "", "", 64), ("", "", FENCE, 64), ("", FENCE, FENCE, 63)],
)
def test_so_do_those_of_an_mbarrier(
    before: str, after: str, looked: str, pairs: int, first: str, build: str
) -> None:
    """What is fenced once they have arrived is their own: the flag is set by another one."""
    text = AT_MBARRIER.replace("FIRST", first).replace("BEFORE", before).replace("AFTER", after)
    text = text.replace("LOOKED", looked)
    kernel = Kernel.from_cuda(text, "k", build=build)
    for schedule in ("lockstep", "warps", "reverse", 1):
        args = [np.zeros(64, np.int32), np.zeros(1, np.int32), np.zeros(64, np.int32)]
        run = simulator.launch(kernel, 2, 64, args, schedule=schedule)
        found = [(h.kind, h.variable, h.count) for h in run.hazards]
        assert found == ([("raw-race", "data", pairs)] if pairs else []), schedule
