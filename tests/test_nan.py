"""Which NaN a double precision instruction gives: measured on an H200, all pairs of some."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests import interpreter

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


ADDED = {
    "global": [
        (0x3FF0000000000000, 0xFFF4000000000777, 0xFFF4000000000777),
        (0x7FF0000000012345, 0x3FF0000000000000, 0x7FF0000000012345),
        (0x7FF8000000000000, 0xFFF4000000000777, 0xFFF4000000000777),
        (0xFFF8000000012345, 0x7FF8000000000000, 0x7FF8000000000000),
        (0x7FF0000000000000, 0xFFF0000000000000, 0xFFF8000000000000),
    ],
    "shared": [
        (0x3FF0000000000000, 0xFFF4000000000777, 0xFFFC000000000777),
        (0x7FF0000000012345, 0x3FF0000000000000, 0x7FF8000000012345),
        (0x7FF8000000000000, 0xFFF4000000000777, 0xFFFC000000000777),
        (0xFFF8000000012345, 0x7FF8000000000000, 0x7FF8000000000000),
        (0x7FF0000000000000, 0xFFF0000000000000, 0xFFF8000000000000),
    ],
}
"""What ``atom.add.f64`` makes of memory and operand on an H200, JIT level 0, 2026-11-21."""


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("space", sorted(ADDED))
@pytest.mark.parametrize("name", ["atom", "red"])
def test_nan_of_atomic_sums(name: str, space: str, generic: bool) -> None:
    before, added, expected = np.array(ADDED[space], np.uint64).T.copy()
    shared = space == "shared"
    word = "" if generic else f".{space}"
    ptx = f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p0, .param .u64 p1)
{{
.reg .b32 %r<2>; .reg .b64 %rd<6>; .reg .f64 %fd<4>;
.shared .align 8 .b8 s[64];
mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 8;
ld.param.u64 %rd2, [p0]; add.u64 %rd2, %rd2, %rd1;
ld.param.u64 %rd4, [p1]; add.u64 %rd4, %rd4, %rd1;
{"mov.u64 %rd3, s; add.u64 %rd3, %rd3, %rd1;" if shared else "mov.u64 %rd3, %rd2;"}
ld.global.f64 %fd0, [%rd2]; ld.global.f64 %fd1, [%rd4];
{"st.shared.f64 [%rd3], %fd0;" if shared else ""}
{"cvta.shared.u64 %rd3, %rd3;" if shared and generic else ""}
{name}{word}.add.f64 {"%fd2, " if name == "atom" else ""}[%rd3], %fd1;
{f"ld{word}.f64 %fd3, [%rd3]; st.global.f64 [%rd2], %fd3;" if shared else ""}
ret;
}}
"""
    found = before.copy()
    simulator.launch(Kernel.from_ptx(ptx, "k"), 1, len(found), [found, added])
    assert [hex(x) for x in found] == [hex(x) for x in expected]
    given = [bytearray(before.tobytes()), bytearray(added.tobytes())]
    assert interpreter.run(ptx, "k", (1,), (len(found),), given)[0] == expected.tobytes()


def test_nan_that_many_threads_add_to() -> None:
    """The sums of one place, one after the other: the last NaN added is left (an H200's rule)."""
    added = np.ones(100)
    added.view(np.uint64)[[17, 80]] = 0x7FF4000000000001, 0xFFF4000000000002
    total = np.zeros(1)
    ptx = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p0, .param .u64 p1)
{
.reg .b32 %r<2>; .reg .b64 %rd<6>; .reg .f64 %fd<4>;
mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 8;
ld.param.u64 %rd2, [p0];
ld.param.u64 %rd4, [p1]; add.u64 %rd4, %rd4, %rd1;
ld.global.f64 %fd1, [%rd4];
red.global.add.f64 [%rd2], %fd1;
ret;
}
"""
    simulator.launch(Kernel.from_ptx(ptx, "k"), 1, 100, [total, added], schedule="lockstep")
    assert total.view(np.uint64)[0] == 0xFFF4000000000002
