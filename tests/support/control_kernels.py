"""PTX of kernels of branches, calls and barriers, run on both machines."""

from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from tests.simulator.isa.harness import MACHINES, kernel

START = [
    ".reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %rd<16>;",
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;",
    "mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %rd0, %r3, 4;",
]
LOAD = ["ld.param.u64 %rd1, [p0]; add.u64 %rd2, %rd1, %rd0; ld.global.u32 %r8, [%rd2];"]
STORE = ["ld.param.u64 %rd1, [p1]; add.u64 %rd2, %rd1, %rd0; st.global.u32 [%rd2], %r9;"]


def launch(machine: Any, k: Kernel, grid: Any, block: Any, *arrays: np.ndarray) -> None:
    result = machine.launch(k, grid, block, list(arrays))
    if machine is simulator:
        assert result.hazards == []


def mapped(lines: list[str], given: np.ndarray, block: int = 64, before: str = "") -> np.ndarray:
    """What a kernel makes of each element: ``%r8`` to ``%r9``."""
    k = kernel([*START, *LOAD, *lines, *STORE, "ret;"], 2, before)
    found = []
    for machine in MACHINES:
        out = np.full(len(given), 0xAAAA, np.uint32)
        launch(machine, k, len(given) // block, block, given, out)
        found.append(out)
    assert all((f == found[0]).all() for f in found)
    return found[0]


SHARED = ".shared .align 4 .b8 room[512]; "
SLOT = "mul.wide.u32 %rd3, %r0, 4; mov.u64 %rd4, room; add.u64 %rd5, %rd4, %rd3;"
