"""Over the end of one shared array into the next: the text tells which one is meant."""

from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator import Hazard

BUILDS = ("device", "source")
HEAD = """
struct Node { Node* next; float value; };
__device__ __noinline__ float at(const float* p, int i) { return p[i]; }
__global__ void k(float* out, int n) {
    __shared__ float s[32], q[32];
    __shared__ Node list[4], first;
    int t = threadIdx.x;
    s[t] = t; q[t] = 100 + t;
    if (t < 4) list[t] = {t < 3 ? list + t + 1 : nullptr, 1};
    if (t == 0) first = {list, 1};
    __syncthreads();
"""


def hazards(body: str, build: str, n: int = 1, **more: Any) -> list[Hazard]:
    kernel = Kernel.from_cuda(HEAD + body + "}", "k", build=build)
    args = [np.zeros(32, np.float32), n]
    return simulator.launch(kernel, 1, 32, args, checks=["memory"], **more).hazards


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(
    ("body", "variable", "element"),
    [
        ("out[t] = s[t + n] + q[t];", "s", 32),
        ("out[t] = s[t] + q[t - n];", "q", -1),
        ("s[t + n] = q[t]; out[t] = s[t] + q[t];", "s", 32),
        ("float sum = 0; for (int i = 0; i <= 31 + n; i++) sum += s[i]; out[t] = sum + q[t];",
         "s", 32),
        ("const float* p = s; for (int i = 0; i < 32 + n; i++, p++) out[t] += *p + q[t];", "s", 32),
        ("int m = t / 2 * 8; out[t] = s[(m & 24) + 8 + t % 8] + q[t];", "s", 38),
        ("int i = __shfl_sync(~0u, t * 2 + n, t); if (i < 34) out[t] = s[i] + q[t];", "s", 33),
        ("int i = (int)q[t] - 67; out[t] = s[i - 1 + n];", "s", 33),
    ],
)  # fmt: skip
def test_into_the_next_array(build: str, body: str, variable: str, element: int) -> None:
    [hazard] = hazards(body, build)
    assert (hazard.kind, hazard.severity) == ("out-of-bounds", "error")
    assert (hazard.variable, hazard.element) == (variable, element)
    assert f"({variable} has 32 elements; " in hazard.message
    assert "is there)" in hazard.message


def test_an_atomic_operation() -> None:
    """In the source build it is a function of NVIDIA's header, which is given any pointer."""
    body = "int old = atomicAdd((int*)&s[t + n], 1); out[t] = s[t] + q[t] + old;"
    [hazard] = hazards(body, "device")
    assert (hazard.variable, hazard.element) == ("s", 32)


@pytest.mark.parametrize("build", BUILDS)
def test_what_is_done_is_what_a_gpu_does(build: str) -> None:
    kernel = Kernel.from_cuda(HEAD + "out[t] = s[t + n] + q[t];}", "k", build=build)
    out = np.zeros(32, np.float32)
    result = simulator.launch(kernel, 1, 32, [out, 32], checks=["memory"])
    [hazard] = result.hazards
    assert hazard.count == 32
    assert (out == 200 + 2 * np.arange(32)).all()


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(
    "body",
    [
        "out[t] = s[(t + n) % 32] + q[t];",
        "const float* p = t & n ? s : q; out[t] = p[t];",  # one of two
        "const float* p = s; for (int i = 0; i < 4; i++) { out[t] += p[t]; p = p == s ? q : s; }",
        "for (Node* p = &first; p; p = p->next) out[t] += p->value;",  # read out of memory
        "out[t] = at(s, t) + at(q, t);",  # given by a caller
        "const float* p = n > 5 ? out : s; out[t] = p[t] + q[t];",
        "long d = (char*)q - (char*)s; out[t] = *(const float*)((char*)(s + t) + d);",  # reckoned
        "unsigned i = (unsigned)(size_t)&first; out[t] = s[(i + t) % 32] + q[t];",
        "volatile float* p = n ? s + 40 : q; p -= 8 + t; out[t] = p[0] + q[t];",
    ],
)
def test_what_may_be_meant_is_clean(build: str, body: str) -> None:
    assert not hazards(body, build)


FOUND = """
__device__ __noinline__ float* pick(float* a, float* b, int n) { return n ? a : b; }
__global__ void k(float* out, int n) {
    __shared__ float a[64], b[64], c[64];
    __shared__ float* table[3];
    int t = threadIdx.x;
    a[t] = a[t + 32] = b[t] = b[t + 32] = c[t] = c[t + 32] = t;
    if (t == 0) { table[0] = a; table[1] = b; table[2] = c; }
    __syncthreads();
    const float* p = a;
    while (*p != t) p++;
    int at = p - a;
"""


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(
    "body",
    [
        "table[n][at] = 5;",
        "pick(b, a, n)[at + 32] = 5;",
        "unsigned m = __ballot_sync(~0u, p < a + 16); table[n][__popc(m) + 40] = t;",
        "unsigned i = (unsigned)(size_t)p; out[t] = table[n][i % 64];",
        "out[t] = table[n][(((size_t)p) >> 2) & 63];",
        "out[t] = table[2 * n][at * 2 + 1 - at];",
        "unsigned long long both = (unsigned long long)__cvta_generic_to_shared(a) << 32"
        " | (unsigned)__cvta_generic_to_shared(table[n]); both = __shfl_sync(~0u, both, t);"
        ' float f; asm volatile("ld.shared.f32 %0, [%1];" : "=f"(f) : "r"((unsigned)both + 252));'
        " out[t] = f;",
        "float* to = table[n]; to -= a - p; *to = 5;",
        "const float* q = p - a + table[n]; out[t] = q[63 - at];",
        "struct It { float *b, *e; }; __shared__ It its[2]; its[t & 1] = {table[n], table[n] + 64};"
        " __syncwarp(); its[1].b[at] = 5;",
    ],
)
def test_a_distance_is_no_address(build: str, body: str) -> None:
    """What is found in one array is an index into another, whose address nobody knows."""
    kernel = Kernel.from_cuda(FOUND + body + "}", "k", build=build)
    out = np.zeros(32, np.float32)
    assert not simulator.launch(kernel, 1, 32, [out, 1], checks=["memory"]).hazards


@pytest.mark.parametrize("build", BUILDS)
def test_one_verdict_whatever_the_lanes(build: str) -> None:
    """Few lanes at work are gathered: they are judged as all are."""
    body = "if (t == 5) for (int i = 0; i < 32 + n; i++) out[t] += s[i]; out[t] += q[t];"
    found = hazards(body, build)
    assert [(h.variable, h.element, h.count) for h in found] == [("s", 32, 1)]
    assert found[0].thread == (5, 0, 0)
