"""One fault is told once, whichever build tells of it."""

from pathlib import Path
from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from tilescope.check.builds import merge

BUILDS = ("device", "source")


def runs(source: str, grid: int, block: int, sizes: list[int], **more: Any) -> list[Any]:
    """A launch of each build."""
    return [
        simulator.launch(
            Kernel.from_cuda(source, "k", build=build), grid, block,
            [np.zeros(n, np.int32) for n in sizes], **more,
        )
        for build in BUILDS
    ]  # fmt: skip


def test_loops_that_are_unrolled_leave_one_order_of_two() -> None:
    """Buffers swap in a loop with no barrier; each array is only read first, or written first."""
    source = """
    __global__ void k(const int* in, int* o) {
        __shared__ int a[64], c[64];
        int t = threadIdx.x, *p = a, *q = c;
        a[t] = in[t];
        __syncthreads();
        for (int i = 0; i < 2; ++i) {
            q[t] = p[63 - t] + 1;
            int* x = p; p = q; q = x;
        }
        __syncthreads();
        o[t] = p[t];
    }"""
    both = runs(source, 1, 64, [64, 64])
    found = merge(both)
    assert all(h.builds == BUILDS for h in found)
    assert [(h.kind, h.variable) for h in found] == [(h.kind, h.variable) for h in both[0].hazards]


def test_one_severity_the_worse() -> None:
    """Lanes that lose an update in one instruction take turns in unoptimised code."""
    source = """
    struct Both { unsigned a : 4, b : 4; };
    __global__ void k(unsigned* o) {
        __shared__ Both x;
        int t = threadIdx.x;
        if (t == 0) x.a = x.b = 0;
        __syncthreads();
        if (t == 0) x.a = 3; else x.b = 5;
        __syncthreads();
        if (t == 0) *o = x.a | x.b << 4;
    }"""
    device, plain = runs(source, 1, 2, [1])
    for order in ([device, plain], [plain, device]):
        found = merge(order)
        assert [h.severity for h in found if h.kind == "waw-race"] == ["error"]
        assert all(set(h.builds) == set(BUILDS) for h in found if h.kind == "waw-race")


def test_where_a_value_is_used_belongs_to_the_read() -> None:
    """Unoptimised code copies first, and uses later: one fault, and the longer story of it."""
    source = """
    struct Part { char c; int i; };
    __global__ void k(int* o) {
        __shared__ Part s[32];
        int t = threadIdx.x;
        s[t].c = t; if (t % 2 == 0) s[t].i = t * 2;
        __syncthreads();
        Part q = s[31 - t];
        o[t] = q.c + q.i;
    }"""
    for order in (1, -1):
        [hazard] = merge(runs(source, 1, 32, [32])[::order])
        assert set(hazard.builds) == set(BUILDS)
        assert [part.role for part in hazard.involved] == ["read", "used"]


def test_what_one_build_has_alone_is_said_to_be_seen_there(tmp_path: Path) -> None:
    """One run is no proof that the optimiser did it."""
    source = "__global__ void k(int* o) { __shared__ int s; s = 1; if (o[0]) s = threadIdx.x; }"
    found = merge(runs(source, 1, 64, [1]))
    assert found
    assert all(any("seen in the source build alone" in n for n in h.notes) for h in found)


def test_a_constant_is_told_once_whoever_reads_it() -> None:
    """Optimised code reads its parts where they are used, the source where it is copied."""
    source = """
    struct State { int h[4]; int g[4]; };
    __constant__ State start;
    __global__ void k(int* out) {
        State s = start;
        for (int i = 0; i < 4; ++i) s.h[i] += out[i];
        for (int i = 0; i < 4; ++i) out[4 + i] = s.h[i] + s.g[i];
    }
    """
    made = runs(source, 1, 1, [8])
    for run in made:
        assert [h.kind for h in run.hazards] == ["unset-constant"]
    (hazard,) = merge(made)
    assert hazard.builds == BUILDS
    assert len({part.source.line for part in hazard.involved}) == len(hazard.involved)


def test_a_loop_without_end_is_told_once_whichever_line_a_build_names() -> None:
    source = """
    __global__ void k(unsigned* state) {
        unsigned slot = threadIdx.x;
        while (true) {
            unsigned before = atomicCAS(&state[slot & 15], 9u, 1u);
            if (before == 9u || before == 5u) return;
            slot = slot + 1;
        }
    }
    """
    (hazard,) = merge(runs(source, 1, 32, [16], step_limit=3000))
    assert hazard.row.is_endless
    assert hazard.builds == BUILDS
