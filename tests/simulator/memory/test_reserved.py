"""The system's part of shared memory, where cooperative groups of several warps meet."""

import numpy as np
import pytest

import simulator
from tests.support.launches import ONE_FIRST, SCHEDULES, compiled

TILES = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
template <int SIZE> __device__ void sums(int* out, const int* in) {
    extern __shared__ int kept[];
    __shared__ cg::block_tile_memory<128> scratch;
    auto block = cg::this_thread_block(scratch);
    auto tile = cg::tiled_partition<SIZE>(block);
    int t = threadIdx.x;
    kept[t] = in[t];
    block.sync();
    int sum = cg::reduce(tile, in[t], cg::plus<int>());
    int last = tile.shfl(kept[t], SIZE - 1);
    tile.sync();
    kept[t] += sum;
    tile.sync();
    out[t] = kept[t / SIZE * SIZE] + last + tile.all(in[t] >= 0);
}
extern "C" __global__ void of_64(int* out, const int* in) { sums<64>(out, in); }
extern "C" __global__ void of_128(int* out, const int* in) { sums<128>(out, in); }
"""
WHERE = """(unsigned* out) {
    __shared__ unsigned own[5];
    extern __shared__ unsigned more[];
    unsigned v;
#define READ(i, name) asm volatile("mov.u32 %0, %%" #name ";" : "=r"(v)); out[i] = v;
    READ(0, reserved_smem_offset_begin) READ(1, reserved_smem_offset_end)
    READ(2, reserved_smem_offset_cap) READ(3, reserved_smem_offset_0)
    READ(4, reserved_smem_offset_1) READ(5, total_smem_size) READ(6, dynamic_smem_size)
    READ(7, aggr_smem_size)
    own[threadIdx.x] = more[0] = 1;
    out[8] = __cvta_generic_to_shared(own); out[9] = __cvta_generic_to_shared(more);
}"""


@pytest.mark.slow_but("1")
@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("size", [64, pytest.param(128, marks=pytest.mark.slow)])
def test_tiles_of_several_warps(size: int, schedule: str | int, build: str) -> None:
    data = np.arange(128, dtype=np.int32) * 3
    out = np.zeros(256, np.int32)
    kernel = compiled(TILES, f"of_{size}", build)
    ran = simulator.launch(kernel, 1, 128, [out, data], shared_bytes=512, schedule=schedule)
    tiles = data.reshape(-1, size)
    expected = tiles[:, :1] + tiles.sum(axis=1, keepdims=True) + tiles[:, -1:] + 1
    assert (out[:128].reshape(-1, size) == expected).all()
    assert [h.message for h in ran.hazards if "kept" in h.message] == []
    assert {h.kind for h in ran.hazards} <= {"raw-race", "waw-race"}  # its own
    assert ran.shared_bytes <= 512 + 1100


@pytest.mark.parametrize(
    ("dynamic", "total", "aggregate"), [(4, 128, 1060), (100, 256, 1156), (5000, 5120, 6056)]
)
def test_where_it_is(dynamic: int, total: int, aggregate: int) -> None:
    """As an H200 says."""
    out = np.zeros(10, np.uint32)
    simulator.launch(compiled(WHERE), 1, 1, [out], shared_bytes=dynamic)
    assert out.tolist() == [0, 288, 1024, 0, 0, total, dynamic, aggregate, 1024, 1056]
