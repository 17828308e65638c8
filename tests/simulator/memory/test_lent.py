"""Arrays that a kernel only reads are the host's own; who writes has a copy, until it is done."""

from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.execute.prepare import prepare
from simulator.memory.storage.spaces import Allocation

SOURCE = r"""
extern "C" __global__ void again(int* a, const int* one, int n) {
    volatile int* p = a + threadIdx.x;
    for (int i = 0; i < n; ++i) *p = *p + *one;   // read where it was read before, written between
}
extern "C" __global__ void by_two(int* a, int* b, int n) {  // which may be the same array
    for (int i = 0; i < n; ++i) { b[0] = a[0] + 1; a[1] = b[0] + b[1]; }
}
extern "C" __global__ void sums(int* a) { atomicAdd(a + threadIdx.x % 8, 2); }
"""


def kernel(entry: str) -> Kernel:
    return Kernel.from_cuda(SOURCE, entry)


def words(count: int, offset: int = 0) -> Any:
    """Zeros that begin so many bytes behind a multiple of 64."""
    raw = np.zeros(4 * count + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    return raw[start : start + 4 * count].view(np.int32)


@pytest.mark.parametrize("offset", [0, 4, 16])
@pytest.mark.parametrize("count", [32, 35])
@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_written_is_read(count: int, offset: int, workers: int) -> None:
    a, one = words(count, offset), words(8) + 3
    run = simulator.launch(kernel("again"), 1, 32, [a, one, 5], workers=workers)
    assert run.hazards == []
    assert [*a] == [15] * 32 + [0] * (count - 32)
    assert [*one] == [3] * 8


@pytest.mark.parametrize("count", [8, 9])
def test_two_pointers_to_one_array(count: int) -> None:
    a = words(count)
    simulator.launch(kernel("by_two"), 1, 1, [a, a, 3])
    assert [*a[:2]] == [3, 6]


@pytest.mark.parametrize("count", [8, 9])
def test_sums_in_bulk(count: int) -> None:
    a = words(count)
    simulator.launch(kernel("sums"), 2, 32, [a])
    assert [*a[:8]] == [16] * 8


def test_who_fails_has_written_nothing() -> None:
    a = words(8) + 7

    def stop(done: int, blocks: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        simulator.launch(kernel("sums"), 1 << 13, 32, [a], progress=stop)
    assert [*a] == [7] * 8


def test_what_is_only_read_is_not_copied() -> None:
    a, one = words(32), words(8)
    launch = prepare(kernel("again"), 1, 32, [a, one, 5], 0, "lockstep", 1000, False)
    made = launch.allocations()
    assert [np.shares_memory(made[i].buffer, host) for i, host in enumerate((a, one))] == [True] * 2
    made[0].change()
    assert not np.shares_memory(made[0].buffer, a)
    assert made[0].buffer.flags.writeable


def test_nobody_writes_who_has_not_said_so() -> None:
    """A way of writing that is forgotten cannot go unnoticed."""
    for host in (words(8).view(np.uint8), words(9).view(np.uint8)):
        made = Allocation(0, host, "a", True)
        with pytest.raises(ValueError, match="read-only"):
            made.view("u32", 1)[0] = 1
        made.change()
        made.view("u32", 1)[0] = 1
        assert host[0] == 0
