"""Traps that NVRTC puts where it finds undefined behaviour, and those that a program has."""

import numpy as np
import pytest

import simulator
from kernels import Kernel

CONST = """\
__constant__ int tab[32];
__global__ void k(int* o) {
    int* p = (int*)tab;
    p[threadIdx.x] = 1;
}
"""
TEMPLATE = """\
namespace a {
__constant__ int tab[32];
template <int n>
__global__ void __launch_bounds__(32) k(int* o) { ((int*)tab)[n] = 1; }
}
"""
NULL = """\
__global__ void k(int* o) {
    o[threadIdx.x] = 7;
    if (o[1] == 7)
        *(int*)nullptr = 3;
    o[2] = 4;
}
"""
OWN = """\
__device__ void stop() { __trap(); }
__global__ void k(int* o) {
    o[threadIdx.x] = 7;
    if (o[1] == 7) stop();
}
"""
PUT = "the compiler put a trap at undefined behaviour"


def traps(text: str, entry: str, build: str) -> list[simulator.Hazard]:
    kernel = Kernel.from_cuda(text, entry, build=build)
    run = simulator.launch(kernel, 1, 32, [np.zeros(32, np.int32)])
    return [hazard for hazard in run.hazards if hazard.kind == "trap"]


@pytest.mark.slow_cases("const")
@pytest.mark.parametrize(
    ("text", "entry", "line"),
    [(CONST, "k", 2), (TEMPLATE, "a::k<3>", 4)],
    ids=["const", "template"],
)
def test_a_kernel_of_which_a_trap_is_left_is_named_by_its_line(
    text: str, entry: str, line: int
) -> None:
    (trap,) = traps(text, entry, "device")
    assert trap.message == PUT
    assert trap.notes == (f"nothing else is left of the kernel, kernel.cu:{line}",)


def test_a_trap_with_a_line_has_it() -> None:
    (trap,) = traps(NULL, "k", "device")
    assert (trap.message, trap.lines, trap.notes) == (PUT, (4,), ())


@pytest.mark.parametrize("build", ["device", "source"])
def test_a_trap_of_the_program_is_its_own(build: str) -> None:
    (trap,) = traps(OWN, "k", build)
    assert (trap.message, trap.notes) == ("the kernel executed a trap", ())
