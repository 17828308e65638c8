"""Where diverged lanes meet again, and which barriers stand in divergent code."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.compile.compiler import compile_ptx

UNEVEN = """\
__global__ void uneven(const int* rounds, int* out) {
    __shared__ int sums[64];
    int t = threadIdx.x, sum = 0;
    for (int i = 0; i < rounds[t]; ++i)
        sum += i % 3 == 0 ? i : -i;
    sums[t] = sum;
    __syncthreads();
    out[t] = sums[63 - t];
}
__device__ __noinline__ void meet(int* out, int value) {
    out[threadIdx.x] = value;
    __syncthreads();
}
__global__ void from_two_calls(int* out) {
    if (threadIdx.x < 32) meet(out, 1);
    else meet(out, 2);
}
__global__ void warps_in_rounds(int* out) {
    int w = threadIdx.x / 32;
#pragma unroll 1
    for (int k = 0; k < 2; ++k)
        if (k == w) __syncthreads();
    out[threadIdx.x] = w;
}
__global__ void either(int* out, int n) {
    if (threadIdx.x < 20 || n > 5) __syncthreads();
    out[threadIdx.x] = n;
}
__global__ void nested(const int* rounds, int* out) {
    int t = threadIdx.x, sum = 0;
    for (int k = 0; k < 3; ++k) {
        for (int i = 0; i < rounds[t]; ++i) {
            if (i == 7 * k + t) break;
            sum += i;
        }
        __syncthreads();
    }
    out[t] = sum;
}
"""
ROUNDS = np.arange(64, dtype=np.int32) * 5


@pytest.fixture(scope="module", params=["device", "source"])
def build(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def run(entry: str, build: str, *args: object, schedule: str | int = "lockstep") -> simulator.Run:
    kernel = Kernel.from_cuda(UNEVEN, entry, build=build)
    return simulator.launch(kernel, 1, 64, [*args], schedule=schedule)


@pytest.mark.slow_cases("lockstep", "source", "warps")
@pytest.mark.parametrize("schedule", ["lockstep", "warps", "reverse", 3])
def test_loops_of_uneven_length_before_a_barrier(build: str, schedule: str | int) -> None:
    """Hundreds of rounds apart, and still no barrier in divergent code."""
    out = np.zeros(64, np.int32)
    assert run("uneven", build, ROUNDS, out, schedule=schedule).hazards == []
    sums = [sum(i if i % 3 == 0 else -i for i in range(n)) for n in ROUNDS]
    assert out.tolist() == sums[::-1]
    assert run("nested", build, ROUNDS, out, schedule=schedule).hazards == []


def test_a_condition_of_two_parts_is_one_condition(build: str) -> None:
    """Its first part splits the warp, the whole does not."""
    assert run("either", build, np.zeros(64, np.int32), 6).hazards == []


def test_warps_in_different_rounds(build: str) -> None:
    """Every warp comes whole, and yet the condition is not the same in all the block."""
    out = np.zeros(64, np.int32)
    (found,) = run("warps_in_rounds", build, out).hazards
    assert (found.kind, found.severity) == ("barrier-divergence", "warning")
    assert found.lines == (22,)


def test_a_function_called_from_both_sides() -> None:
    """The branch around the calls decides on the barrier within; nothing is inlined here."""
    (found,) = run("from_two_calls", "source", np.zeros(64, np.int32)).hazards
    assert (found.kind, found.severity) == ("barrier-divergence", "warning")
    assert found.lines == (12, 15)


LAYOUT = """\
.version 9.0
.target sm_90
.address_size 64
.visible .entry exit_first(.param .u64 out)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    mov.u32 %r1, 0;
    bra.uni HEAD;
DONE:
    ret;
BODY:
    add.u32 %r1, %r1, 1;
    bra.uni HEAD;
HEAD:
    setp.lt.u32 %p1, %r1, 9;
    @%p1 bra BODY;
    bra.uni DONE;
}
"""


def test_a_loop_runs_before_what_follows_it() -> None:
    """Whatever the compiler's layout: the last block stands first in this text."""
    blocks = compile_ptx(LAYOUT, "exit_first").blocks
    opcodes = [[ins.opcode for ins in block.block.instructions] for block in blocks]
    assert opcodes == [["mov", "bra"], ["setp", "bra"], ["add", "bra"], ["bra"], ["ret"]]
