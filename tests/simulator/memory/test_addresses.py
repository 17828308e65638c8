"""Addresses outside of what they belong to are named after it: ``a[-1]``, never a neighbour."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator import Hazard
from tests.support.paths import DEFECTS

DEFECTS = DEFECTS / "run"
BUILDS = ("device", "source")


def floats(n: int) -> Any:
    return np.zeros(n, np.float32)


def hazards(source: str | Path, args: list[Any], build: str, **more: Any) -> list[Hazard]:
    """What one block of 32 threads does wrong in memory."""
    kernel = Kernel.from_cuda(source, "k", build=build)
    return simulator.launch(kernel, 1, 32, args, checks=["memory"], **more).hazards


def told(hazard: Hazard) -> tuple[str, str, int | None]:
    return hazard.kind, hazard.variable, hazard.element


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("file", ["neg_index.cu", "neg_index2.cu"])
def test_in_front_of_an_array_whatever_the_order(file: str, build: str) -> None:
    [hazard] = hazards(DEFECTS / file, [floats(64), floats(64)], build)
    assert told(hazard) == ("out-of-bounds", "a", -1)
    assert hazard.message == "read out of bounds: a[-1] (a has 64 elements)"
    assert hazard.thread == (0, 0, 0)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("reach", [1, 2, 2**20, 2**31 - 200])
def test_far_in_front_and_behind(build: str, reach: int) -> None:
    source = (
        "__global__ void k(double* a, double* b, double* c, int n) {"
        " b[(int)threadIdx.x - n] = 1;\n b[64 + n] = 1; }"
    )
    arrays = [np.zeros(64) for _ in range(3)]
    before, behind = hazards(source, [*arrays, reach + 31], build)
    assert {told(before), told(behind)} == {
        ("out-of-bounds", "b", -reach - 31),
        ("out-of-bounds", "b", 64 + reach + 31),
    }


SHARED = """
__global__ void k(float* out, int n) {
    __shared__ float s[32], q[32];
    s[threadIdx.x] = q[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = INDEX;
}
"""


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(
    ("index", "variable", "element"),
    [
        ("s[(int)threadIdx.x - 1] + q[threadIdx.x]", "s", -1),
        ("s[(int)threadIdx.x + n] + q[threadIdx.x]", "s", -1),
        ("s[threadIdx.x] + q[(int)threadIdx.x - 40]", "q", -40),
        ("s[threadIdx.x] + q[threadIdx.x * 2]", "q", 32),
    ],
)
def test_shared(build: str, index: str, variable: str, element: int) -> None:
    [hazard] = hazards(SHARED.replace("INDEX", index), [floats(32), -1], build)
    assert told(hazard) == ("out-of-bounds", variable, element)
    assert hazard.space == "shared"
    assert f"shared {variable}[{element}] ({variable} has 32 elements)" in hazard.message


@pytest.mark.parametrize("build", BUILDS)
def test_shared_through_a_function(build: str) -> None:
    source = (
        "__device__ __noinline__ float at(float* p, int i) { return p[i]; }"
        "__global__ void k(float* out, int n) { __shared__ float s[32]; s[threadIdx.x] = 1;"
        " __syncthreads(); out[threadIdx.x] = at(s, n); }"
    )
    [hazard] = hazards(source, [floats(32), -1], build)
    assert told(hazard) == ("out-of-bounds", "s", -1)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("given", [0, 16])
def test_too_little_dynamic_shared_memory_names_the_option(build: str, given: int) -> None:
    source = (
        "__global__ void k(float* out) { extern __shared__ float s[];"
        " s[threadIdx.x] = 1; out[threadIdx.x] = s[threadIdx.x]; }"
    )
    found = hazards(source, [floats(32)], build, shared_bytes=given)
    assert {told(h) for h in found} == {("out-of-bounds", "s", given // 4)}
    for hazard in found:
        assert f"the launch gave {given} bytes: --shared, shared_bytes" in hazard.message


@pytest.mark.parametrize("build", BUILDS)
def test_constants_and_variables_of_the_module(build: str) -> None:
    source = (
        "__constant__ int c[4] = {1, 2, 3, 4}; namespace deep { __device__ int g[3]; }"
        "__global__ void k(int* out, int n) { int t = (int)threadIdx.x + n;"
        " out[threadIdx.x] = c[t] + deep::g[t]; }"
    )
    found = hazards(source, [np.zeros(32, np.int32), -2], build)
    assert {told(h) for h in found} == {("out-of-bounds", "c", -2), ("out-of-bounds", "g", -2)}


@pytest.mark.slow_cases("...read-only const")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(
    ("access", "said"),
    [
        ("c[t + n]", "out-of-bounds const"),
        ("*(double*)(c + n + (t & 6))", "misaligned const"),
        ("atomicAdd((in ? (int*)c : g) + t, n)", "read-only const"),
        ("s.a[t + n]", "out-of-bounds param"),
        ("*(int*)((char*)s.a + n)", "misaligned param"),
        ("((int*)s.a)[t & n] = n", "read-only param"),
        ("(in ? g : c)[t + n]", "out-of-bounds global"),
        ("(in ? l : c)[t + n]", "out-of-bounds local"),
        ("(in ? h : c)[t + n]", "out-of-bounds shared"),
    ],
)
def test_a_hazard_has_the_space_of_the_variable(build: str, access: str, said: str) -> None:
    """Not of the instruction, which is generic in the source build."""
    source = (
        "struct S { int a[2]; }; __constant__ int c[32] = {1}; __device__ int g[32];"
        "__global__ void k(int* out, __grid_constant__ const S s, int n, bool in) {"
        " __shared__ int h[32]; int l[32]; int t = threadIdx.x; h[t] = 1; __syncthreads();"
        " for (int i = 0; i < 32; i++) l[i * n & 31] = i;"
        f" out[t] = (int)({access}) + h[0] + l[n]; }}"
    )
    struct = np.zeros(1, np.dtype([("a", "i4", 2)]))[0]
    found = hazards(source, [np.zeros(32, np.int32), struct, 1, True], build)
    assert {f"{h.kind} {h.space}" for h in found} == {said}


@pytest.mark.parametrize("build", BUILDS)
def test_an_unsigned_index_that_went_below_zero_is_explained(build: str) -> None:
    source = "__global__ void k(int* a, unsigned n) { a[threadIdx.x - n] = 1; }"
    [hazard] = hazards(source, [np.zeros(32, np.int32), 1], build)
    assert told(hazard) == ("out-of-bounds", "a", 2**32 - 1)
    assert "4294967295 is -1 as an unsigned int" in hazard.message


@pytest.mark.parametrize("build", BUILDS)
def test_local_structs_and_odd_bytes(build: str) -> None:
    local = (
        "__global__ void k(int* out, int n) { int l[8]; for (int i = 0; i < 8; i++) l[i] = out[i];"
        " l[out[3] + 2] = 4; out[threadIdx.x] = l[out[5] + n]; }"
    )
    [hazard] = hazards(local, [np.zeros(32, np.int32), -1], build)
    assert "local l[-1] (l has 8 elements)" in hazard.message
    assert hazard.space == "local"
    struct = (
        "struct P { float x, y, z; };"
        "__global__ void k(P* p, int n) { if (threadIdx.x == 0) { p[n].x = 1;\n"
        " *(float*)((char*)p - 8 + n) = 1; } }"
    )
    found = hazards(struct, [floats(96), -1], build)
    assert ("out-of-bounds", "p", -3) in {told(h) for h in found}
    [odd] = [h for h in found if h.element is None]
    assert odd.message == "write out of bounds: p at byte -9 (p has 384 bytes)"


@pytest.mark.parametrize("build", BUILDS)
def test_lanes_outside_of_two_arrays_are_two_findings(build: str) -> None:
    source = "__global__ void k(float* p, float* q) { *(threadIdx.x & 1 ? p - 1 : q + 70) = 1; }"
    found = hazards(source, [floats(32), floats(64)], build)
    assert {told(h) for h in found} == {("out-of-bounds", "p", -1), ("out-of-bounds", "q", 70)}
    assert {h.count for h in found} == {16}


def test_in_front_of_a_null_pointer() -> None:
    [hazard] = hazards("__global__ void k(float* p) { p[-1] = 1; }", [None], "device")
    assert hazard.message == "write outside any array, at address -0x4 (a null pointer?)"


def test_what_a_call_gives_back_is_named_by_its_caller() -> None:
    """It stands where the callee's result does, wherever the caller's other variables are."""
    text = """
    .version 8.5
    .target sm_90
    .address_size 64
    .func (.param .align 8 .b8 given[16]) f(.param .align 8 .b8 q[8], .param .b32 s) {
        .reg .b64 %d<3>; mov.u64 %d1, 7; st.param.b64 [given], %d1; st.param.b64 [given+8], %d1;
        ret;
    }
    .visible .entry k(.param .u64 po) {
        .reg .b64 %d<6>; .reg .b32 %r<3>; .local .b64 own[2];
        ld.param.u64 %d1, [po]; mov.u32 %r1, 1; st.local.u32 [own], %r1;
        { .param .align 8 .b8 pad[8]; .param .b32 b; .param .align 8 .b8 got[16];
          st.param.b32 [b], %r1; st.param.b64 [pad], %d1; call (got), f, (pad, b);
          ld.param.v2.b64 {%d2, %d3}, [got]; }
        st.global.v2.b64 [%d1], {%d2, %d3}; ret;
    }"""
    kernel = Kernel.from_ptx(text.strip(), "k")
    found = simulator.launch(kernel, 1, 1, [np.zeros(4, np.int64)], checks=["memory"]).hazards
    assert [h.message for h in found] == [
        "misaligned read of local got[0]: not a multiple of 16 bytes"
    ]
