"""A barrier that is missing inside a macro is put there: its lines end with a backslash."""

from pathlib import Path

import pytest
from test_cures import check

REDUCE = r"""
#define REDUCE(s, t) \
    for (int k = blockDim.x / 2; k > 0; k >>= 1) { \
        if (t < k) s[t] += s[t + k]; \
    }
__global__ void k(float* x) {
    __shared__ float s[128];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    REDUCE(s, threadIdx.x);
    x[threadIdx.x] = s[threadIdx.x];
}
"""
KERNEL = r"""
#define ENDS(s, x) \
    s[threadIdx.x] = x[threadIdx.x]; x[threadIdx.x] = s[127 - threadIdx.x]
#define KERNEL(name, T) \
    __global__ void name(T* x) { \
        __shared__ T s[128]; \
        ENDS(s, x); \
    }
KERNEL(k, float)
"""

STEP = r"""
#define STEP(s, k) \
    do { if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k]; } while (0)
__global__ void k(float* x) {
    __shared__ float s[128];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int k = 64; k > 0; k >>= 1) {
        STEP(s, k);
    }
    x[threadIdx.x] = s[threadIdx.x];
}
"""


@pytest.mark.slow_but("source3...")
@pytest.mark.parametrize(
    ("source", "fixed"),
    [
        (REDUCE, "s[t] += s[t + k]; \\\n        __syncthreads(); \\\n    }\n__global__"),
        (REDUCE.replace("\n", "\r\n"), "s[t + k]; \\\r\n        __syncthreads(); \\\r\n    }"),
        (STEP, "        STEP(s, k);\n        __syncthreads();\n    }\n"),
        (KERNEL, "= x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[127"),
        (
            KERNEL.replace("; x[", "; \\\n    x["),
            "= x[threadIdx.x]; \\\n    __syncthreads(); \\\n    x[threadIdx.x] = s[127",
        ),
    ],
)
def test_a_barrier_goes_into_the_macro_where_none_around_its_call_helps(
    source: str, fixed: str, tmp_path: Path
) -> None:
    file = tmp_path / "my.cu"
    file.write_bytes(source.encode())
    words = (file, "k", "--grid", 1, "--block", 128, "f32[128]=arange")
    assert check(*words, "--fix").exit_code == 0
    assert fixed.encode() in file.read_bytes()
    assert check(*words, "--fail-on", "warning").exit_code == 0
