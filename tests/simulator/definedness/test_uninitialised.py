"""Uninitialised reads: a hazard of their own, or part of a race."""

import itertools
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import simulator
from kernels import unset
from kernels.arguments.argument_copies import copies
from tests.fuzz import unset as unset_net
from tests.fuzz.compare import Launch
from tests.support.launches import BUILDS, SCHEDULES, compiled, ints
from tilescope.cli.main import main

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


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", KERNELS)
def test_one_hazard_whatever_the_schedule(name: str, build: str) -> None:
    between, read, kind = KERNELS[name]
    source = (
        "(int* out) { __shared__ int s[64]; int t = threadIdx.x;"
        f" int v = {read}; {between} s[t] = t; __syncthreads(); out[t] = v + s[t]; }}"
    )
    for schedule in SCHEDULES:
        run = simulator.launch(compiled(source, "k", build), 1, 64, ints(64), schedule=schedule)
        (hazard,) = run.hazards
        assert (hazard.kind, hazard.severity) == (kind, "error"), schedule
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


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_lock_says_not_who_comes_first(schedule: str | int) -> None:
    """A read that may find the other's write: not told under some schedules alone."""
    run = simulator.launch(compiled(LOCKED, "k", "source"), 1, 128, ints(1), schedule=schedule)
    assert run.hazards == []


# -- global memory as cudaMalloc leaves it --------------------------------------------------------

SOURCE = """\
extern "C" __global__ void add(float* y, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
extern "C" __global__ void fill(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = i;
}
extern "C" __global__ void pairs(const float2* y, float* out) {
    out[threadIdx.x] = y[threadIdx.x].x + y[threadIdx.x].y;
}
extern "C" __global__ void count(int* y) { atomicAdd(&y[threadIdx.x], 1); }
"""


def found(entry: str, args: list[Any], build: str = "device", **more: Any) -> list[Any]:
    run = simulator.launch(compiled(SOURCE, entry, build), 2, 32, args, **more)
    return [(h.kind, h.severity, h.space, h.variable, h.element, h.count) for h in run.hazards]


@pytest.mark.parametrize("build", BUILDS)
def test_an_element_that_nothing_wrote(build: str) -> None:
    y, x = unset(64), np.ones(64, np.float32)
    assert found("add", [y, x, 64], build) == [("uninitialised", "error", "global", "y", 0, 64)]


def test_what_the_host_sets_is_set() -> None:
    y, x = unset(64), np.ones(64, np.float32)
    y[:60] = 0
    assert found("add", [y, x, 64]) == [("uninitialised", "error", "global", "y", 60, 4)]
    assert found("add", [y, x, 64]) == []  # the first launch wrote the rest
    assert y[:60].tolist() == [2.0] * 60


def test_what_a_kernel_writes_is_set() -> None:
    y, x = unset((8, 8)), np.ones(64, np.float32)
    assert found("fill", [y, 40]) == []
    assert found("add", [y, x, 40]) == []
    assert found("add", [y, x, 41]) == [("uninitialised", "error", "global", "y", 40, 1)]


def test_half_of_a_vector() -> None:
    y, out = unset(128), np.zeros(64, np.float32)
    y[::2] = 0
    hazards = simulator.launch(compiled(SOURCE, "pairs"), 1, 64, [y, out]).hazards
    assert [(h.kind, h.variable, h.element, h.count) for h in hazards] == [
        ("uninitialised", "y", 1, 64)
    ]


def test_an_atomic_reads() -> None:
    assert found("count", [unset(32, np.int32)])[0][:4] == ("uninitialised", "error", "global", "y")


def test_it_can_be_turned_off_and_copies_are_unset_too() -> None:
    y, x = unset(64), np.ones(64, np.float32)
    assert found("add", [copies([y])[0], x, 64], checks={"races"}) == []
    assert found("add", [copies([y])[0], x, 64]) != []
    assert found("add", [y + 1, x, 64]) == []


def test_on_the_command_line(tmp_path: Any) -> None:
    file = tmp_path / "add.cu"
    file.write_text(SOURCE)
    words = ["check", str(file), "add", "--grid", "2", "--block", "32", "--no-fix-search"]
    result = CliRunner().invoke(main, [*words, "f32[64]=unset", "f32[64]", "64"])
    assert result.exit_code == 1
    assert "uninitialised read of global y[0]" in result.stdout
    assert CliRunner().invoke(main, [*words, "f32[64]", "f32[64]", "64"]).exit_code == 0


ATOMIC = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %a<8>; .shared .align 16 .b8 s[64];
ld.param.u64 %a0, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %a0, %r0, 8, %a0;
mov.u64 %a1, s; mad.wide.u32 %a1, %r0, 8, %a1; mov.b16 %h0, 5;
FIRST
red.shared.OPERATION [%a1], OPERAND;
ld.shared.LOAD; st.global.u16 [%a0], %h1; ret; }
"""


@pytest.mark.slow_but("inc.u32")
@pytest.mark.parametrize("operation", ["add.u32", "min.s32", "max.u32", "inc.u32", "or.b32"])
def test_what_an_atomic_makes_of_words_that_are_set_in_part(operation: str) -> None:
    """Sums carry, and the lesser of two is one of them: as the scalar interpreter has it."""
    firsts = ("", "st.shared.u16 [%a1], %h0;", "st.shared.u16 [%a1+2], %h0;")
    loads = ("u16 %h1, [%a1]", "u16 %h1, [%a1+2]")
    text = ATOMIC.replace("OPERATION", operation)
    for first, load, number in itertools.product(firsts, loads, ("1", "65536")):
        ptx = text.replace("FIRST", first).replace("LOAD", load).replace("OPERAND", number)
        launch = Launch(ptx, "k", (1,), (2,), [np.zeros(2, np.uint64)])
        assert unset_net.judged(launch, "lockstep") is None, (first, load, number)
