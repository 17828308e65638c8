"""Stores and atomics of which every lane is off leave an array as the host made it."""

import numpy as np
import pytest

import simulator
from kernels import Kernel, unset
from kernels.arguments.uninitialised import missing_of

WRITES = (
    "st.global.u32 [%d], 1;", "st.global.v2.u32 [%d], {1, 1};", "red.global.add.u32 [%d], 1;",
    "atom.global.exch.b32 %r, [%d], 1;", "atom.global.cas.b32 %r, [%d], 0, 1;",
    "red.global.add.f32 [%d], 0f3F800000;",
)  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
def test_what_no_lane_writes_stays_unset(write: str) -> None:
    text = f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{{
.reg .pred %p; .reg .b32 %r; .reg .b64 %d;
ld.param.u64 %d, [data];
mov.u32 %r, %tid.x;
setp.gt.u32 %p, %r, 40;
@%p {write}
ret;
}}
"""
    for engine in ("numpy", "native"):
        data = unset((8,), np.uint32)
        run = simulator.launch(Kernel.from_ptx(text), 1, 32, [data], checks="races", engine=engine)
        missing = missing_of(data)
        assert missing is not None
        assert missing.all(), run.engine
