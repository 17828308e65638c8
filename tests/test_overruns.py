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


@pytest.mark.parametrize("build", BUILDS)
def test_one_verdict_whatever_the_lanes(build: str) -> None:
    """Few lanes at work are gathered: they are judged as all are."""
    body = "if (t == 5) for (int i = 0; i < 32 + n; i++) out[t] += s[i]; out[t] += q[t];"
    found = hazards(body, build)
    assert [(h.variable, h.element, h.count) for h in found] == [("s", 32, 1)]
    assert found[0].thread == (5, 0, 0)
