"""L2 and DRAM: traffic that can be counted by hand, and when blocks run."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator import Prediction
from simulator.caches.block_timeline import ALONE, turns
from simulator.caches.footprint import Footprint, StridedFootprint
from simulator.caches.shared_level import DeviceMemory, device_memory


def _sweep(kibibytes: int, partitions: int, shared: bool) -> DeviceMemory:
    """All blocks read all of an array, or each its own part, four times over."""
    units, blocks = (kibibytes << 10) // 64, 64
    each = units if shared else units // blocks
    step = 0 if shared else 2 * each
    phases = np.repeat(np.arange(4) * 8, each)
    sectors = np.tile(2 * np.arange(each), 4)
    trail = StridedFootprint(np.array([step, 0, 0]), sectors, phases)
    return device_memory(Footprint([trail], []), (blocks, 1, 1), 32, 2, 4 << 20, partitions)


@pytest.mark.slow
def test_what_both_halves_of_l2_read_is_there_twice() -> None:
    """Of 4 MiB in two partitions, 3 that all read do not fit, nor do they of one half each."""
    assert _sweep(1536, 2, True).cold.read == pytest.approx(1536 << 10, rel=0.05)
    assert _sweep(3072, 1, True).cold.read == pytest.approx(3 << 20, rel=0.05)
    assert _sweep(3072, 2, True).cold.read > 1.5 * (3 << 20)


@pytest.mark.slow
def test_what_is_written_stays_until_there_is_no_room() -> None:
    def written(mebibytes: int) -> DeviceMemory:
        units = (mebibytes << 20) // 64 // 4096
        trail = StridedFootprint(
            np.array([2 * units, 0, 0]), np.arange(2 * units), np.zeros(2 * units, int)
        )
        return device_memory(Footprint([], [trail]), (4096, 1, 1), 128, 4, 16 << 20, 2)

    assert written(8).cold.written == 0
    assert written(8).warm.written == 0, "and is written over there"
    large = written(64)
    # Half of it passes the other half of L2 as well: an H200 keeps a third of L2 of a copy's.
    assert large.cold.written == pytest.approx((64 - 16 / 1.5) * (1 << 20), rel=0.05)
    assert large.warm.written == pytest.approx(64 << 20, rel=0.02)
    assert large.cold.read == 0


def test_the_oldest_block_is_served_first() -> None:
    """Of two that begin together, as an H200's: 0.75 and 1.12 of a block's time; then evenly."""
    found = turns(64, 1, 2)
    ends = found.begins + found.takes
    assert ends[0] == pytest.approx(ALONE, rel=0.1)
    assert ends[1] == pytest.approx((1 + ALONE) * 5 / 8, rel=0.1)
    assert np.diff(found.begins[30:60]) == pytest.approx(0.5, abs=0.1)


GLOBAL = """
extern "C" __global__ void in_order(int* sums) {
    atomicAdd(sums + blockIdx.x * blockDim.x + threadIdx.x, 1);
}
extern "C" __global__ void anywhere(const int* where, int* sums) {
    atomicMax(sums + where[blockIdx.x * blockDim.x + threadIdx.x], 7);
}
extern "C" __global__ void after_a_store(int* sums) {
    int* own = sums + blockIdx.x * blockDim.x + threadIdx.x;
    *own = 1;
    atomicAdd(own, 1);
}
extern "C" __global__ void store(const int* where, int* sums) {
    sums[where[blockIdx.x * blockDim.x + threadIdx.x]] = 7;
}
extern "C" __global__ void some(const int* in, int* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = in[i];
}
extern "C" __global__ void both(const int* where, const int* a, const int* b, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = 16 * where[i];
    out[i] = a[at] + b[at];
}
extern "C" __global__ void moved(const int* where, const int* a, int* out) {
    int at = 16 * where[blockIdx.x * blockDim.x + threadIdx.x];
    out[at] = a[at];
}
"""
MANY = 1 << 18


def _predicted(entry: str, count: int, *arrays: np.ndarray, **options: str) -> Prediction:
    kernel = Kernel.from_cuda(GLOBAL, entry)
    return simulator.predict(kernel, count // 256, 256, arrays, **options)


def _anywhere(count: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(count).astype(np.int32)


@pytest.mark.slow_but("in_order-1")
@pytest.mark.parametrize(
    ("entry", "arrays"), [("in_order", 1), ("anywhere", 2), ("after_a_store", 0), ("store", 1)]
)
def test_what_atomics_find_is_read_from_dram(entry: str, arrays: int) -> None:
    """As an H200 does: `scatter_add` and `hash_insert` of docs/predicted.md."""
    sums = np.zeros(MANY, np.int32)
    args = [_anywhere(MANY), sums] if entry in ("anywhere", "store") else [sums]
    found = _predicted(entry, MANY, *args)
    assert found.dram_read_bytes == pytest.approx(arrays * sums.nbytes, rel=0.02)
    assert found.l2_hit_rate in (0, None), "what atomics read is no load's"


def test_what_atomics_left_in_l2_is_not_read() -> None:
    assert (
        _predicted("in_order", MANY, np.zeros(MANY, np.int32), caches="warm").dram_read_bytes == 0
    )


@pytest.mark.parametrize(("count", "block"), [(1025, 1024), (1000, 96), (3000, 1024)])
def test_a_last_block_reads_no_more_than_is_left(count: int, block: int) -> None:
    args = [np.zeros(count, np.int32), np.zeros(count, np.int32), count]
    found = simulator.predict(Kernel.from_cuda(GLOBAL, "some"), -(-count // block), block, args)
    assert found.dram_read_bytes == -(-4 * count // 64) * 64


@pytest.mark.slow
def test_each_array_is_read_for_itself() -> None:
    """Two that follow no line: 64 bytes of each for every thread."""
    count = MANY // 4
    where, a, out = _anywhere(count), np.zeros(16 * count, np.int32), np.zeros(16 * count, np.int32)
    both = _predicted("both", count, where, a, a.copy(), out).dram_read_bytes
    assert both == pytest.approx((4 + 64 + 64) * count, rel=0.03)
    moved = _predicted("moved", count, where, a, out).dram_read_bytes
    assert moved == pytest.approx((4 + 64) * count, rel=0.03)


FEW = """.version 9.0
.target sm_90
.entry k(.param .u64 a, .param .u32 n)
{
.reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<9>;
ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; shl.b32 %r4, %r3, 8; add.s32 %r5, %r4, %r2;
setp.ge.s32 %p, %r5, %r1;
@%p bra END;
cvta.to.global.u64 %rd2, %rd1;
MID:
add.s64 %rd4, %rd2, %rd3;
ld.global.u8 %r6, [%rd4];
END:
}
"""


def test_next_to_no_memory() -> None:
    """One sector, of one of two blocks: the model of L2 sees none of it (a seed of the nets)."""
    args = [np.arange(96, dtype=np.uint8), np.int32(3)]
    assert simulator.predict(Kernel.from_ptx(FEW), 2, 40, args).time_ms > 0
