"""Asynchronous copies that functions begin, and wait for, that are called."""

import numpy as np
import pytest

import simulator
from kernels import Kernel

HELPERS = """
#include <cuda_pipeline.h>
__device__ __noinline__ void bring(float* to, const float* from)
{
    __pipeline_memcpy_async(to, from, 4);
    __pipeline_commit();
}
__device__ __noinline__ void wait() { __pipeline_wait_prior(0); }
extern "C" __global__ void k(float* out, const float* in)
{
    __shared__ float s[128];
    bring(s + threadIdx.x, in + threadIdx.x);
    WAIT
    out[threadIdx.x] = s[127 - threadIdx.x];
}
"""


@pytest.mark.slow_cases("source")
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("wait", "cases"),
    [
        ("", ["copy"]), ("wait();", [""]),
        pytest.param("__syncthreads();", ["copy"], marks=pytest.mark.slow),
        ("__syncthreads(); wait();", [""]), ("wait(); __syncthreads();", []),
    ],
)  # fmt: skip
def test_a_copy_and_a_wait_in_functions_of_their_own(
    wait: str, cases: list[str], build: str
) -> None:
    for schedule in ("lockstep", "reverse"):
        arrays = np.zeros(128, np.float32), np.zeros(128, np.float32)
        kernel = Kernel.from_cuda(HELPERS.replace("WAIT", wait), "k", build=build)
        ran = simulator.launch(kernel, 1, 128, arrays, schedule=schedule)
        assert [h.case for h in ran.hazards if h.space == "shared"] == cases
