"""Races that follow from a member mask which leaves lanes out."""

import numpy as np
import pytest

import simulator
from kernels import Kernel

SOURCE = """
extern "C" __global__ void swap(const float *in, float *out, unsigned mask) {
    __shared__ float s[64], other[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncwarp(mask);
    out[t] = s[t ^ 16];
    if (OTHER) {
        other[t] = in[t];
        out[t] += other[t ^ 1];
    }
}
"""


@pytest.mark.parametrize(
    ("mask", "other", "found"),
    [
        (0x0000FFFF, 0, {"bad-mask": ["raw-race"]}),
        (0x0000FFFF, 1, {"bad-mask": ["raw-race"], "raw-race": []}),
        (0xFFFFFFFF, 0, {}),
        (0xFFFFFFFF, 1, {"raw-race": []}),
    ],
)
def test_a_race_follows_if_a_wider_mask_removes_it(
    mask: int, other: int, found: dict[str, list[str]]
) -> None:
    kernel = Kernel.from_cuda(SOURCE, "swap", options=(f"-DOTHER={other}",))
    args = np.ones(64, np.float32), np.zeros(64, np.float32), mask
    run = simulator.launch(kernel, 1, 64, args)
    assert {h.kind: [one.kind for one in h.follows] for h in run.hazards} == found
    assert all(hazard.variable == "other" for hazard in run.hazards if hazard.kind == "raw-race")
