"""Atomic operations and local memory of one warp, in patterns of lanes, as an H200 counts them."""

import json
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.support.paths import GROUND_TRUTH

FOLDER = GROUND_TRUTH
TRUTH: dict[str, Any] = json.loads((FOLDER / "one_warp_h200.json").read_text())
LOOPS = {"sh_fadd", "sh_add64"}
"""Of these operations ptxas makes loops of compare-and-swap (docs/counters.md)."""
METRICS = {
    "global_atomic.requests": ("", "l1tex__t_requests_pipe_lsu_mem_global_op_{}"),
    "global_atomic.sectors": ("", "l1tex__t_sectors_pipe_lsu_mem_global_op_{}"),
    "shared_atomic.requests": ("", "smsp__inst_executed_op_shared_atom"),
    "shared_atomic.wavefronts": ("", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom"),
    "shared_atomic.bank_conflicts": ("", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom"),
    "local_load.requests": ("", "l1tex__t_requests_pipe_lsu_mem_local_op_ld"),
    "local_store.requests": ("", "l1tex__t_requests_pipe_lsu_mem_local_op_st"),
    "local_load.sectors": ("", "l1tex__t_sectors_pipe_lsu_mem_local_op_ld"),
    "local_store.sectors": ("", "l1tex__t_sectors_pipe_lsu_mem_local_op_st"),
}
KERNELS = sorted({row["kernel"] for row in TRUTH["readings"]})


@pytest.mark.parametrize("name", KERNELS)
def test_one_warp(name: str) -> None:
    kernel = Kernel.from_cuda(FOLDER / "one_warp.cu", name)
    held = 0
    for row in (row for row in TRUTH["readings"] if row["kernel"] == name):
        index = np.array(TRUTH["patterns"][row["pattern"]], np.int32)
        args = [index, np.zeros(16384, np.uint32), 5]
        counters = simulator.launch(kernel, 1, 32, args, checks="none").counters
        for ours, (_, metric) in METRICS.items():
            group, _, one = ours.partition(".")
            theirs = row[metric.format("atom")] + ("{}" in metric and row[metric.format("red")])
            if name in LOOPS and group == "shared_atomic":
                continue
            assert getattr(getattr(counters, group), one) == theirs, (row["pattern"], ours)
            held += 1
    assert held >= 16 * 6
