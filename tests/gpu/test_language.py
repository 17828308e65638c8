"""What CUDA C++ has besides arithmetic, on both machines: each equals a model in plain Python.

Variables filled by the host, barriers of a grid, ``malloc``, recursion, calls through pointers,
assertions; the data is random.
"""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import device
import simulator
from kernels import Kernel, Pointer, Surface, Texture

N = 96
"""Threads, of 3 blocks."""
SOURCE = """
#include <cooperative_groups.h>
#define ME int i = blockIdx.x * blockDim.x + threadIdx.x

__constant__ int weights[8];
__device__ unsigned counts[4];
namespace deep { __device__ long long total = 5; }
__global__ void filter(const int* x, int* y, int n) {
    ME;
    int sum = 0;
    for (int k = 0; k < 8; ++k) sum += weights[k] * x[(i + k) % n];
    y[i] = sum;
    atomicAdd(&counts[sum & 3], 1u);
    atomicAdd((unsigned long long*)&deep::total, (unsigned long long)sum);
}

__global__ void rounds(const int* x, int* y, int n) {
    ME;
    auto grid = cooperative_groups::this_grid();
    y[i] = x[i];
    for (int round = 0; round < 3; ++round) {
        grid.sync();
        int other = y[(i + 32) % n];
        grid.sync();
        y[i] = 3 * y[i] + other;
    }
}

struct Node { unsigned value; Node* next; };
__global__ void lists(const int* x, int* y, int n) {
    ME;
    Node* head = nullptr;
    for (int k = 0; k < (x[i] & 7); ++k) head = new Node{unsigned(x[i] + k), head};
    unsigned hash = 1;
    while (head) {
        hash = 31 * hash + head->value;
        Node* next = head->next;
        delete head;
        head = next;
    }
    y[i] = hash;
}

__device__ __noinline__ void sort(int* from, int* to) {
    if (to - from < 2) return;
    int pivot = *from, *low = from;
    for (int* at = from + 1; at < to; ++at)
        if (*at < pivot) { int old = *++low; *low = *at; *at = old; }
    *from = *low;
    *low = pivot;
    sort(from, low);
    sort(low + 1, to);
}
__global__ void sorted(const int* x, int* y, int n) {
    ME;
    int own[16];
    for (int k = 0; k < 16; ++k) own[k] = x[(i + 5 * k) % n];
    sort(own, own + 16);
    unsigned hash = 1;
    for (int k = 0; k < 16; ++k) hash = 31 * hash + own[k];
    y[i] = hash;
}

__device__ __noinline__ int twice(int x, int) { return 2 * x; }
__device__ __noinline__ int plus(int x, int i) { return x + i; }
__device__ __noinline__ int minus(int x, int i) { return x - i; }
__device__ int (*const table[3])(int, int) = {twice, plus, minus};
struct Shape { __device__ virtual int of(int x) { return x; } };
struct Other : Shape { __device__ int of(int x) override { return ~x; } };
__global__ void pointers(const int* x, int* y, int n) {
    ME;
    Shape shape;
    Other other;
    Shape* one = x[i] & 8 ? &shape : &other;
    y[i] = one->of(table[(x[i] & 0xffff) % 3](x[i], i));
}
"""
WORD = 1 << 32
Model = Callable[[list[int], int], int]
"""The data and a thread, to what the thread writes."""


def hashed(values: list[int]) -> int:
    found = 1
    for value in values:
        found = 31 * found + value
    return found


def rounds(x: list[int], i: int, count: int = 3) -> int:
    if not count:
        return x[i]
    return 3 * rounds(x, i, count - 1) + rounds(x, (i + 32) % N, count - 1)


def pointed(x: list[int], i: int) -> int:
    value = (2 * x[i], x[i] + i, x[i] - i)[(x[i] & 0xFFFF) % 3]
    return value if x[i] & 8 else ~value


MODELS: dict[str, Model] = {
    "rounds": rounds,
    "lists": lambda x, i: hashed([x[i] + k for k in reversed(range(x[i] & 7))]),
    "sorted": lambda x, i: hashed(sorted(x[(i + 5 * k) % N] for k in range(16))),
    "pointers": pointed,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "rounds": {"cooperative": True},
    "sorted": {"stack_bytes": 16384},
}
LAUNCHERS = [
    pytest.param(simulator.launch, id="simulator"),
    pytest.param(device.launch, id="device", marks=pytest.mark.gpu),
]
WORDS = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=N, max_size=N)


def wrapped(values: list[int]) -> list[int]:
    return [(value + WORD // 2) % WORD - WORD // 2 for value in values]


@pytest.mark.slow_cases("simulator")
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("launch", LAUNCHERS)
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=3, deadline=None)
@given(WORDS)
def test_each_thread(name: str, launch: Callable[..., Any], build: str, words: list[int]) -> None:
    x, y = np.array(words, np.int32), np.zeros(N, np.int32)
    kernel = Kernel.from_cuda(SOURCE, name, build=build)
    found = launch(kernel, 3, N // 3, [x, y, N], **OPTIONS.get(name, {}))
    assert y.tolist() == wrapped([MODELS[name](words, i) for i in range(N)])
    if isinstance(found, simulator.Run):
        assert found.hazards == []


@pytest.mark.slow_but("device")
@pytest.mark.parametrize("launch", LAUNCHERS)
@settings(max_examples=3, deadline=None)
@given(WORDS, st.lists(st.integers(-9, 9), min_size=8, max_size=8))
def test_variables_that_the_host_fills(
    launch: Callable[..., Any], words: list[int], weights: list[int]
) -> None:
    """They get what the launch leaves there."""
    x, y = np.array(words, np.int32), np.zeros(N, np.int32)
    symbols = {
        "weights": np.array(weights, np.int32),
        "counts": np.array([7, 0, 0, 0], np.uint32),
        "deep::total": np.array([-3], np.int64),
    }
    launch(Kernel.from_cuda(SOURCE, "filter"), 3, N // 3, [x, y, N], symbols=symbols)
    sums = wrapped([sum(w * words[(i + k) % N] for k, w in enumerate(weights)) for i in range(N)])
    assert y.tolist() == sums
    assert symbols["weights"].tolist() == weights
    assert symbols["counts"].tolist() == [
        7 * (k == 0) + sum(value & 3 == k for value in sums) for k in range(4)
    ]
    assert symbols["deep::total"].tolist() == [sum(sums) - 3]


BY_VALUE = """
struct Part { const float *x; float2 scale; int n; };
__constant__ Part part;
__constant__ cudaTextureObject_t picture;
__device__ cudaTextureObject_t layers[2];
__constant__ cudaSurfaceObject_t surface;
__constant__ int most;
__device__ Part parts[2];
extern "C" __global__ void k(float *out) {
    int i = threadIdx.x;
    float there, v = i < part.n ? part.x[i] * part.scale.x + part.scale.y : 0.f;
    surf1Dread(&there, surface, 4 * i);
    v += tex2D<float>(picture, i + .5f, 1.5f) + tex1D<float>(layers[i & 1], i + .5f) + there;
    out[i] = v + (i < most ? 1000 : 0) + parts[1].x[i & 3] * parts[1].n;
}
"""


@pytest.mark.parametrize("launch", LAUNCHERS)
def test_variables_that_are_filled_by_value(launch: Callable[..., Any]) -> None:
    """Structures with pointers, handles of textures and surfaces, numbers, lists of these."""
    x, i, out = np.arange(8, dtype=np.float32), np.arange(8), np.zeros(8, np.float32)
    image, near = np.arange(16, dtype=np.float32).reshape(2, 8) * 128, x / 16
    symbols = {
        "part": (x, (2.0, 0.125), 6), "picture": Texture(image), "surface": Surface(near),
        "layers": [Texture(x * 0 + 0.25), Texture(x * 0 + 0.5)], "most": 3,
        "parts": [(None, (0, 0), 0), (Pointer(x, 2), (0, 0), 7)],
    }  # fmt: skip
    launch(Kernel.from_cuda(BY_VALUE, "k"), 1, 8, [out], symbols=symbols)
    right = np.where(i < 6, x * 2 + 0.125, 0) + image[1] + np.where(i & 1, 0.5, 0.25)
    np.testing.assert_array_equal(out, right + near + np.where(i < 3, 1000, 0) + x[2 + (i & 3)] * 7)


ALONE = """
import sys
import numpy as np
import device, simulator
from kernels import Kernel, Pointer, Surface, Texture

launch = getattr(sys.modules[sys.argv[1]], "launch")
heap = Kernel.from_cuda(
    "__global__ void k(int* x, int n) {"
    "  char* a = (char*)malloc(n); if (a) a[n - 1] = 1; *x = a != nullptr; free(a); }", "k")
deep = Kernel.from_cuda(
    "__device__ __noinline__ int sum(int n, int* up) {"
    "  int own[4] = {n, *up, 1, 2}; return n ? sum(n - 1, own + n % 4) + own[n * n % 4] : *up; }"
    "__global__ void k(int* x, int n) { *x = sum(n, x); }", "k")
x = np.zeros(1, np.int32)
with device.context(0) if sys.argv[1] == "device" else open("/dev/null"):
    launch(heap, 1, 1, [x, 40 << 20], heap_bytes=64 << 20)
    print(x[0])
    launch(heap, 1, 1, [x, 80 << 20], heap_bytes=64 << 20)
    print(x[0])
    launch(deep, 1, 1, [x, 900], stack_bytes=1 << 18)
    print(x[0])
    asserted = Kernel.from_cuda(
        "#include <cassert>\\n__global__ void k(int* x) { assert(*x == -1); *x = 0; }", "k")
    try:
        for hazard in launch(asserted, 1, 1, [x]).hazards:
            print(hazard.kind)
    except device.DeviceError as error:
        print("assert" if error.code == "CUDA_ERROR_ASSERT" else error)
"""


def left(n: int, up: int) -> int:
    own = [n, up, 1, 2]
    return left(n - 1, own[n % 4]) + own[n * n % 4] if n else up


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["simulator", pytest.param("device", marks=pytest.mark.gpu)])
def test_limits_and_an_assertion(machine: str) -> None:
    """In a process of its own: a heap's size is chosen once, and an assertion spoils the GPU."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE, machine], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["1", "0", str(left(900, 0)), "assert"], done.stderr
