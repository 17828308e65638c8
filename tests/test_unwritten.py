"""Reads of shared memory that nothing wrote: a hazard of their own, or part of a race."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import simulator
from kernels import Kernel

WARP = 'asm volatile("bar.sync 1, 32;" ::: "memory");'
KERNELS = {
    # What is between a thread's read of its neighbour's element and the write of its own.
    "nothing": ("", "s[63 - t]", "war-race"),
    "a warp barrier, the neighbour in the warp": ("__syncwarp();", "s[t ^ 1]", "uninitialised"),
    "a warp barrier, the neighbour beyond": ("__syncwarp();", "s[63 - t]", "war-race"),
    "a barrier of one warp each": (
        'asm volatile("bar.sync %0, 32;" :: "r"(1 + t / 32) : "memory");', "s[t ^ 1]",
        "uninitialised",
    ),
    "a barrier of the first warp": (f"if (t < 32) {{ {WARP} }}", "s[63 - t]", "war-race"),
    "a barrier of all": ("__syncthreads();", "s[63 - t]", "uninitialised"),
}  # fmt: skip


@functools.cache
def kernel(name: str, build: str) -> Kernel:
    between, read, _ = KERNELS[name]
    return Kernel.from_cuda(
        f'extern "C" __global__ void k(int* out) {{ __shared__ int s[64]; int t = threadIdx.x;'
        f"int v = {read}; {between} s[t] = t; __syncthreads(); out[t] = v + s[t]; }}",
        "k", build=build,
    )  # fmt: skip


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("name", KERNELS)
def test_one_hazard_whatever_the_schedule(name: str, build: str) -> None:
    for schedule in ("lockstep", "warps", "reverse", 1):
        out = np.zeros(64, np.int32)
        run = simulator.launch(kernel(name, build), 1, 64, [out], schedule=schedule)
        (hazard,) = run.hazards
        assert (hazard.kind, hazard.severity) == (KERNELS[name][2], "error"), schedule
        assert hazard.count == (64 if hazard.kind == "uninitialised" else 32), schedule


LOCKED = """extern "C" __global__ void k(int* out) {
    __shared__ int lock, s[4];
    int t = threadIdx.x;
    if (t == 0) lock = 0;
    __syncthreads();
    if (t == 96) s[3] = 1;
    if (t % 32 == 0 && t < 64) {
        while (atomicCAS(&lock, 0, 1) != 0);
        __threadfence();
        if (t == 0) out[0] = s[1]; else s[1] = 5;
        __threadfence();
        atomicExch(&lock, 0);
    }
}"""


@pytest.mark.parametrize("schedule", ["lockstep", "warps", "reverse", 1])
def test_a_lock_says_not_who_comes_first(schedule: str | int) -> None:
    """A read that may find the other's write: not told under some schedules alone."""
    built = Kernel.from_cuda(LOCKED, "k", build="source")
    run = simulator.launch(built, 1, 128, [np.zeros(1, np.int32)], schedule=schedule)
    assert run.hazards == []
