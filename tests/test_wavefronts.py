"""Bank conflicts: the rule against patterns measured on an H200."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.observe.banks import wavefronts

MEASURED = json.loads((Path(__file__).parent / "ground_truth" / "banks.json").read_text())
WIDTHS = {"f4": 16, "f2": 8, "f1": 4, "s1": 2}


@pytest.mark.parametrize("kernel", sorted({m["kernel"] for m in MEASURED}))
def test_every_measured_pattern(kernel: str) -> None:
    operation, element = kernel.split("_")
    width = WIDTHS[element]
    cases = [m for m in MEASURED if m["kernel"] == kernel]
    assert cases
    for case in cases:
        index = np.array([case["index"]], np.int64)
        lanes = np.where(index < 0, np.int64(2**62), index * width)
        found = wavefronts(lanes, width, operation == "ld")
        assert found == (case["wavefronts"], case["bank_conflicts"]), case


def test_requests_add_up() -> None:
    index = np.array([m["index"] for m in MEASURED if m["kernel"] == "ld_f4"], np.int64)
    lanes = np.where(index < 0, np.int64(2**62), index * 16)
    total = sum(m["wavefronts"] for m in MEASURED if m["kernel"] == "ld_f4")
    assert wavefronts(lanes, 16, True)[0] == total


def test_loads_and_stores_of_one_pattern_are_judged_apart() -> None:
    source = (
        'extern "C" __global__ void both(float4* out) {\n'
        "  __shared__ float4 s[16];\n"
        "  s[threadIdx.x & 1] = out[0];\n"
        "  __syncthreads();\n"
        "  out[threadIdx.x] = s[threadIdx.x & 1];\n"
        "}\n"
    )
    out = np.zeros((32, 4), np.float32)
    run = simulator.launch(Kernel.from_cuda(source, "both"), 1, 32, [out], checks="none")
    # Lanes two apart agree: the load joins quarter warps, the store does not.
    assert run.counters.shared_store.wavefronts == 4
    assert run.counters.shared_load.wavefronts == 2
