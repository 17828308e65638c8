"""What the order of locks, flags and grid barriers costs: in calls, not in seconds.

Each strong access and each question is worth a few calls, however many threads there are: nothing
is asked pair by pair.
"""

import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.races.check.shadow_check import ShadowChecker
from simulator.races.order.release_acquire import ReleaseAcquireTracker
from simulator.races.shadow import shadow_memory
from simulator.rerun import driver

CALLS = 40
"""Calls in ``races`` for each lane of a strong access or of an access that is looked up."""
SOURCE = """\
__device__ void waits(int* flag, int value) {
    while (atomicAdd(flag, 0) < value) __threadfence();
    __threadfence();
}
__global__ void spinners(int* flag, int* data) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t == 0) data[0] = 1;
    __threadfence();
    atomicAdd(flag, 1);
    waits(flag, gridDim.x * blockDim.x);
    USE;
}
__global__ void ticket(int* lock, int* data) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, mine = atomicAdd(lock, 1);
    for (bool done = false; !done;)
        if (atomicAdd(lock + 1, 0) == mine) {
            __threadfence();
            USE;
            FENCE;
            atomicAdd(lock + 1, 1);
            done = true;
        }
}
__global__ void lock(int* lock, int* data) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (bool done = false; !done;)
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            USE;
            FENCE;
            atomicExch(lock, 0);
            done = true;
        }
}
__global__ void grid_barrier(int* count, int* data) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 1; round <= 2; ++round) {
        USE;
        __syncthreads();
        if (threadIdx.x == 0) {
            FENCE;
            atomicAdd(count, 1);
            waits(count, round * gridDim.x);
        }
        __syncthreads();
    }
    LAST;
}
"""
RIGHT = {"spinners": "data[t + 1] = data[0]", "ticket": "data[0] += t", "lock": "data[0] += t",
         "grid_barrier": "data[8 + t] = t"}  # fmt: skip
"""What threads do that are in order; where they are not, all write to a few places."""


def work(entry: str, racing: bool, grid: int, block: int) -> tuple[simulator.Run, int, int]:
    """A launch, the calls of functions in ``races``, and the lanes that are worth some."""
    calls = lanes = 0

    def count(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal calls, lanes
        if event == "call" and "races" in frame.f_code.co_filename:
            calls += 1
            if frame.f_code is ReleaseAcquireTracker.access.__code__:
                lanes += len(frame.f_locals["threads"])
            elif frame.f_code is ShadowChecker.check_and_record.__code__:
                lanes += len(frame.f_locals["thread"])

    source = SOURCE.replace("FENCE", "" if racing else "__threadfence()")
    source = source.replace("LAST", "data[t % 8] = 0" if racing else "data[8 + 5 * t % T] += t")
    source = source.replace("T]", "(gridDim.x * blockDim.x)]")
    source = source.replace("USE", "data[t % 7] = t" if racing else RIGHT[entry])
    kernel = Kernel.from_cuda(source, entry)
    args = [np.zeros(2, np.int32), np.zeros(grid * block + 8, np.int32)]
    with pytest.MonkeyPatch.context() as patch:
        # Runs in other orders take one warp at a time: their cost has a bound of its own.
        patch.setattr(driver, "find_races_in_other_orders", lambda *_: None)
        sys.setprofile(count)
        try:
            run = simulator.launch(kernel, grid, block, args)
        finally:
            sys.setprofile(None)
    return run, calls, lanes


@pytest.mark.slow_but("spinners-1-1024-False")
@pytest.mark.parametrize("racing", [False, True])
@pytest.mark.parametrize(
    ("entry", "grid", "block"),
    [("spinners", 1, 1024), ("ticket", 2, 20), ("lock", 2, 20), ("grid_barrier", 64, 256)],
)
def test_each_access_costs_a_few_calls(entry: str, racing: bool, grid: int, block: int) -> None:
    run, calls, lanes = work(entry, racing, grid, block)
    assert bool(run.hazards) == racing
    assert calls < CALLS * lanes


@pytest.mark.slow_cases("lock", "ticket")
@pytest.mark.parametrize("racing", [False, True])
@pytest.mark.parametrize("entry", RIGHT)
def test_one_is_asked_for_all_that_are_alike(
    entry: str, racing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    for many in (0, 1 << 60):
        monkeypatch.setattr(shadow_memory, "_MANY", many)
        told.append([str(hazard) for hazard in work(entry, racing, 4, 6)[0].hazards])
    assert told[0] == told[1]
