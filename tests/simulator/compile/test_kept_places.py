"""Values that are kept in shared memory come back from where they are, and from nowhere else."""

from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.analysis.influence import ForwardSlices
from simulator.compile.compiler import compile_ptx

BUILDS = ("device", "source")
LOOK = """
extern __shared__ int first[];
extern __shared__ int same[];
__global__ void look(const int* in, int* out, volatile int* val, volatile int* flag) {
    __shared__ int pre, other[4];
    int l = threadIdx.x;
    TILE
    int v = in[tile * 32 + l];
    if (l == 31) {
        int sum = 0;
        if (tile) { while (!flag[tile - 1]) ; sum = val[tile - 1]; }
        KEEP
        val[tile] = v + sum;
        flag[tile] = 1;
    }
    __syncthreads();
    out[tile * 32 + l] = v + USE;
}
"""
BLOCK = "int tile = blockIdx.x;"
KEPT = "if (l == 0) other[AT] = blockIdx.x; __syncthreads(); int tile = other[AT];"


def hazards(build: str, tile: str, keep: str, use: str, schedule: Any = "lockstep") -> list[Any]:
    source = LOOK.replace("TILE", tile).replace("KEEP", keep).replace("USE", use)
    kernel = Kernel.from_cuda(source, "look", build=build)
    args = [np.zeros(n, np.int32) for n in (160, 160, 5, 5)]
    args[0][:] = 1
    result = simulator.launch(kernel, 5, 32, args, 64, schedule=schedule)
    if not any(h.severity == "error" for h in result.hazards):
        assert (args[1] == 1 + np.repeat(np.arange(5), 32)).all()
    return result.hazards


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("schedule", ["lockstep", "warps"])
@pytest.mark.parametrize(
    ("tile", "keep", "use"),
    [
        (BLOCK, "pre = sum;", "pre"),
        (KEPT.replace("AT", "2"), "pre = sum;", "pre"),
        (KEPT.replace("AT", "l / 40"), "pre = sum;", "pre"),
        (KEPT.replace("AT", "l / 40"), "first[3] = sum;", "first[3]"),
    ],
)
def test_a_value_is_no_flag_for_what_another_variable_decides(
    build: str, schedule: str, tile: str, keep: str, use: str
) -> None:
    """What was read is kept in one variable; the tile, on which a branch depends, in another."""
    found = hazards(build, tile, keep, use, schedule)
    assert [(h.variable, h.severity) for h in found] == [("val", "warning")]


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(
    ("keep", "use"),
    [
        ("pre = sum;", "pre; if (pre < 0) out[0] = l"),
        ("first[l / 8] = sum;", "first[3]; if (same[l / 40 + 3] < 0) out[0] = l"),
        ("first[3] = sum;", "first[3]; if (same[3] < 0) out[0] = l"),
        ("other[l / 8] = sum;", "other[3]; if (other[3] < 0) out[0] = l"),
        ("other[3] = sum;", "other[3]; if (other[l / 40 + 3] < 0) out[0] = l"),
        ("int* p = l > 3 ? &pre : other; *p = sum;", "pre; if (pre < 0) out[0] = l"),
    ],
)
def test_what_comes_back_is_looked_at(build: str, keep: str, use: str) -> None:
    """Out of the same variable, or by another name for it, or through a pointer."""
    assert not [h for h in hazards(build, BLOCK, keep, use) if h.severity == "error"]
    source = LOOK.replace("TILE", BLOCK).replace("KEEP", keep).replace("USE", use)
    kernel = Kernel.from_cuda(source, "look", build=build)
    program = compile_ptx(kernel.ptx, kernel.entry)
    steering = ForwardSlices(program)
    sites = [s for s in program.sites if s.volatile and s.access == "load"]
    assert len(sites) >= 2
    assert all(steering.is_polled(s) for s in sites)
