"""Which NaN a double precision instruction gives: measured on an H200, all pairs of some."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel

MEASURED = json.loads((Path(__file__).parent / "ground_truth" / "nan64.json").read_text())


def kernel(name: str, operands: int) -> Kernel:
    """One instruction on a double from each of some arrays, the result stored to the last."""
    params = ", ".join(f".param .u64 p{i}" for i in range(operands + 1))
    lines = ["mov.u32 %r1, %tid.x;", "mul.wide.u32 %rd1, %r1, 8;"]
    for i in range(operands):
        lines += [
            f"ld.param.u64 %rd2, [p{i}];",
            "add.u64 %rd3, %rd2, %rd1;",
            f"ld.global.f64 %fd{i}, [%rd3];",
        ]
    sources = ", ".join(f"%fd{i}" for i in range(operands))
    lines += [
        f"{name} %fd9, {sources};",
        f"ld.param.u64 %rd2, [p{operands}];",
        "add.u64 %rd3, %rd2, %rd1;",
        "st.global.f64 [%rd3], %fd9;",
        "ret;",
    ]
    registers = ".reg .b32 %r<2>; .reg .b64 %rd<4>; .reg .f64 %fd<10>;"
    body = "\n".join([registers, *lines])
    header = ".version 8.0\n.target sm_90\n.address_size 64\n"
    return Kernel.from_ptx(f"{header}.visible .entry k({params})\n{{\n{body}\n}}\n", "k")


@pytest.mark.parametrize("name", sorted(MEASURED))
def test_every_measured_case(name: str) -> None:
    table = np.array([[int(x, 16) for x in row] for row in MEASURED[name]], np.uint64)
    assert len(table) >= 11
    *inputs, expected = (np.ascontiguousarray(column) for column in table.T)
    for first in range(0, len(expected), 1024):
        part = slice(first, first + 1024)
        out = np.zeros_like(expected[part])
        arrays = [column[part].copy() for column in inputs]
        simulator.launch(kernel(name, len(inputs)), 1, len(out), [*arrays, out])
        assert (out == expected[part]).all()
