"""Tiles of several warps: what cooperative_groups does in its own memory is no hazard of ours."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.support.launches import every_other

SOURCE = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
    __shared__ cg::block_tile_memory<256> memory;
    __shared__ int s[256];
    auto block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<128>(block);
    int t = threadIdx.x;
    BODY
}
"""
RIGHT = {
    "reduce": "out[t] = cg::reduce(tile, in[t], cg::plus<int>());",
    "scan": "out[t] = cg::inclusive_scan(tile, in[t], cg::plus<int>());",
    "shuffle": "out[t] = tile.shfl(in[t], 77) + tile.any(in[t] == 3);",
    "sync": "s[t] = in[t]; tile.sync(); out[t] = s[t ^ 64];",
}
WRONG = {
    "no sync": "s[t] = in[t]; out[t] = s[t ^ 64];",
    "two copies": """
        cg::memcpy_async(block, s, in, 512);
        cg::memcpy_async(block, s, in + 8, 512);
        cg::wait(block);
        out[t] = t < 128 ? s[t] : 0;""",
}
BUILDS = ("device", "source")


def errors(body: str, build: str, schedule: str | int) -> list[str]:
    kernel = Kernel.from_cuda(SOURCE.replace("BODY", body), "k", build=build)
    args = [np.arange(256, dtype=np.int32), np.zeros(256, np.int32)]
    run = simulator.launch(kernel, 1, 256, args, schedule=schedule)
    return [str(hazard) for hazard in run.hazards]


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["lockstep", 1])
@pytest.mark.parametrize("way", RIGHT)
def test_right(way: str, schedule: str | int) -> None:
    for build in BUILDS:
        assert errors(RIGHT[way], build, schedule) == []


@pytest.mark.slow
@pytest.mark.parametrize("way", every_other([*WRONG]))
def test_wrong(way: str) -> None:
    for build in BUILDS:
        assert errors(WRONG[way], build, "lockstep")
