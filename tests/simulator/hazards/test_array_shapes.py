"""Indices in a report have the array's own shape; odd numbers are explained."""

from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from kernels.source.array_shapes import declared
from simulator import Hazard

BUILDS = ("device", "source")


def hazards(
    source: str, args: list[Any], build: str = "device", entry: str = "k", block: Any = 32
) -> list[Hazard]:
    return simulator.launch(Kernel.from_cuda(source, entry, build=build), 1, block, args).hazards


def ints(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.int32)


DECLARED = {
    "numbers": ("__shared__ int t[4][8];", "k", (4, 8)),
    "among others": ("__shared__ int a, t[4][8], b[2];", "k", (4, 8)),
    "a macro": ("#define N 8\n__shared__ volatile int t[N / 2][N];", "k", (4, 8)),
    "constants": ("constexpr int R = 2, W = 4 + 2 * R; __shared__ int t[W - 4u][W];", "k", (4, 8)),
    "a template": (
        "template <typename T, int N = 3> __global__ void k(T*) { __shared__ T t[N][2 * N]; }",
        "k<int, 4>", (4, 8),
    ),
    "a shift": ("__shared__ int t[1 << 2][8];", "k", (4, 8)),
    "not known": ("__shared__ int t[blub][8];", "k", None),
    "not shared": ("int t[4][8];", "k", None),
    "in a comment": ("// __shared__ int t[4][8];\nint u[2];", "k", None),
    "an access": ("y = 1; t[4][8] = 3;", "k", None),
}  # fmt: skip


@pytest.mark.parametrize("name", DECLARED)
def test_a_shape_is_read_from_the_declaration(name: str) -> None:
    text, entry, shape = DECLARED[name]
    assert declared({"a.cu": text}, entry, "t", True) == ([shape] if shape else [])


def test_python_declares_arrays_too() -> None:
    text = "N = 16\ndef k(x):\n    t = cuda.shared.array((N, N + 2), float32)\n"
    assert declared({"a.py": text}, "k", "t", True) == [(16, 18)]


SHARED = """
template <int N> __global__ void k(const int* x, int* y, int n) {
    __shared__ int tile[N][N + 2];
    int t = threadIdx.x;
    for (int i = 0; i <= n; i++) tile[i][t % N] = x[t];
    __syncthreads();
    y[t] = tile[0][t % N];
}
"""


@pytest.mark.parametrize("build", BUILDS)
def test_a_shared_array(build: str) -> None:
    found = hazards(SHARED, [ints(32), ints(32), 4], build, "k<4>")
    [hazard] = [h for h in found if h.kind == "out-of-bounds"]
    assert hazard.message == "write out of bounds: shared tile[4][0] (tile has 4 x 6 elements)"
    assert (hazard.variable, hazard.element) == ("tile", 24)
    assert hazard.notes[0] == "32 times"


@pytest.mark.parametrize("build", BUILDS)
def test_a_global_array_has_the_launch_s_shape(build: str) -> None:
    source = "__global__ void k(int* a, int h, int w) { a[h * w + 3] = 1; }"
    [hazard] = hazards(source, [ints(5, 7), 5, 7], build, block=1)
    assert hazard.message == "write out of bounds: a[5][3] (a has 5 x 7 elements)"
    assert hazard.notes[0] == "once"
    source = "__global__ void k(char* a, int h, int w) { a[4 * h * w + 3] = 1; }"
    [hazard] = hazards(source, [ints(5, 7), 5, 7], build, block=1)  # of other elements
    assert hazard.message == "write out of bounds: a[143] (a has 140 elements)"


@pytest.mark.parametrize("build", BUILDS)
def test_a_device_variable(build: str) -> None:
    source = "__device__ int g[3][5]; __global__ void k(int* y, int n) { *y = g[n][1]; }"
    [hazard] = hazards(source, [ints(1), 3], build, block=1)
    assert hazard.message.startswith("read out of bounds: g[3][1] (g has 3 x 5 elements")


LOCAL = """
__global__ void k(const int* x, int* y, int n) {
    int v[4] = {1, 2, 3, 4};
    for (int i = 0; i <= n; ++i) v[i] = x[i];
    y[threadIdx.x] = v[threadIdx.x % 4];
}
"""
TWO = """
struct Pair { int first, second; };
__global__ void k(const int* x, int* y, int n) {
    int w[3][2] = {};
    Pair p[2] = {};
    int v[4] = {};
    for (int i = 0; i <= n; ++i) { v[i] = x[i]; w[i % 3][n & 1] = i; p[i & 1].first = i; }
    y[threadIdx.x] = v[threadIdx.x % 4] + w[threadIdx.x % 3][n & 1] + p[n & 1].first;
}
"""


@pytest.mark.parametrize("build", BUILDS)
def test_a_local_array(build: str) -> None:
    [hazard] = hazards(LOCAL, [ints(32), ints(32), 4], build)
    assert hazard.message == "write out of bounds: local v[4] (v has 4 elements)"


def test_of_several_local_arrays_the_unoptimised_build_knows_which() -> None:
    found = hazards(TWO, [ints(32), ints(32), 4], "source")
    assert "write out of bounds: local v[4] (v has 4 elements)" in {h.message for h in found}


@pytest.mark.parametrize("build", BUILDS)
def test_a_local_element_that_nothing_wrote(build: str) -> None:
    source = """
__global__ void k(const int* x, int* y, int n) {
    int v[2][3];
    for (int i = 0; i < n; ++i) v[i / 3][i % 3] = x[i];
    y[threadIdx.x] = v[n / 3][n % 3];
}
"""
    [hazard] = hazards(source, [ints(32), ints(32), 5], build)
    assert hazard.message == "uninitialised read of local v[1][2]"


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(("row", "said"), [
    (255999, "-2001216256 looks like a 32-bit overflow: 2293751040 does not fit into an int"),
    (-1, ""),
])  # fmt: skip
def test_a_product_that_overflows(build: str, row: int, said: str) -> None:
    source = """
__global__ void k(const unsigned char* table, const long long* rows, unsigned char* y, int n) {
    y[threadIdx.x] = table[(int)rows[0] * n + (int)threadIdx.x];
}
"""
    rows = np.array([row], np.int64)
    args = [np.zeros(1000, np.uint8), rows, np.zeros(32, np.uint8), 8960]
    [hazard] = hazards(source, args, build)
    assert said in hazard.message
    assert ("overflow" in hazard.message) == bool(said)


def test_numbas_arrays_have_their_python_names() -> None:
    pytest.importorskip("numba")
    from numba import cuda, float32
    from numba.types import float32 as of

    def k(x, y):  # type: ignore[no-untyped-def]
        first = cuda.shared.array(32, float32)
        tile = cuda.shared.array((2, 32), float32)
        t = cuda.threadIdx.x
        first[t % 32] = 0
        tile[t // 32, t % 32] = x[t]
        y[t] = tile[1 - t // 32, t % 32] + x[t + 1]

    made = Kernel.from_numba(
        k, (of[:], of[:])
    )  # fmt: skip
    args = [np.zeros(64, np.float32), np.zeros(64, np.float32)]
    found = simulator.launch(made, 1, 64, args).hazards
    assert {h.variable for h in found} == {"first", "tile", "x"}
    assert any(h.title.startswith("Missing barrier: shared `tile` is read") for h in found)


CELLS = """
struct Cell { int key; float value[2]; double weight; };
__global__ void k(const Cell* cells, double* out) {
    __shared__ Cell mine[4][16];
    int t = threadIdx.x;
    mine[t / 16][t % 16].value[1] = cells[t].value[1];
    out[t] = mine[(t + 1) % 64 / 16][(t + 1) % 16].value[1] + cells[t + 1].weight;
}
"""


@pytest.mark.parametrize("build", BUILDS)
def test_members_of_structures_have_their_names(build: str) -> None:
    cells = np.zeros(64 * 24, np.uint8)
    found = hazards(CELLS, [cells, np.zeros(64)], build, block=64)
    beyond = [h.message for h in found if h.kind == "out-of-bounds"]
    assert "cells[64].weight (cells has 64 elements)" in beyond[0]
    raced = [str(h.to_dict()) for h in found if h.kind == "raw-race"]
    assert any("mine[2][0].value" in text for text in raced)
