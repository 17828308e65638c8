"""Which NaN a double precision instruction gives: measured on an H200, all pairs of some."""

import json

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.oracles import interpreter
from tests.support.launches import entry
from tests.support.paths import GROUND_TRUTH

MEASURED = json.loads((GROUND_TRUTH / "nan64.json").read_text())


def kernel(name: str, operands: int) -> Kernel:
    """One instruction on a double from each of some arrays, the result stored to the last."""
    place = "ld.param.u64 %d2, [p{0}]; add.u64 %d3, %d2, %d1;".format
    lines = ["mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 8;"]
    lines += [f"{place(i)} ld.global.f64 %fd{i}, [%d3];" for i in range(operands)]
    sources = ", ".join(f"%fd{i}" for i in range(operands))
    lines += [f"{name} %fd9, {sources};", f"{place(operands)} st.global.f64 [%d3], %fd9;"]
    return entry("\n".join(lines), ", ".join(f".param .u64 p{i}" for i in range(operands + 1)))


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


PAIR = ".param .u64 p0, .param .u64 p1"
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
    body = f"""
.shared .align 8 .b8 s[64];
mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 8;
ld.param.u64 %d2, [p0]; add.u64 %d2, %d2, %d1;
ld.param.u64 %d4, [p1]; add.u64 %d4, %d4, %d1;
{"mov.u64 %d3, s; add.u64 %d3, %d3, %d1;" if shared else "mov.u64 %d3, %d2;"}
ld.global.f64 %fd0, [%d2]; ld.global.f64 %fd1, [%d4];
{"st.shared.f64 [%d3], %fd0;" if shared else ""}
{"cvta.shared.u64 %d3, %d3;" if shared and generic else ""}
{name}{word}.add.f64 {"%fd2, " if name == "atom" else ""}[%d3], %fd1;
{f"ld{word}.f64 %fd3, [%d3]; st.global.f64 [%d2], %fd3;" if shared else ""}
"""
    found = before.copy()
    k = entry(body, PAIR)
    simulator.launch(k, 1, len(found), [found, added])
    assert [hex(x) for x in found] == [hex(x) for x in expected]
    given = [bytearray(before.tobytes()), bytearray(added.tobytes())]
    assert interpreter.run(k.ptx, "k", (1,), (len(found),), given)[0] == expected.tobytes()


def test_nan_that_many_threads_add_to() -> None:
    """The sums of one place, one after the other: the last NaN added is left (an H200's rule)."""
    added = np.ones(100)
    added.view(np.uint64)[[17, 80]] = 0x7FF4000000000001, 0xFFF4000000000002
    total = np.zeros(1)
    body = """
mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 8; ld.param.u64 %d2, [p0]; ld.param.u64 %d4, [p1];
add.u64 %d4, %d4, %d1; ld.global.f64 %fd1, [%d4]; red.global.add.f64 [%d2], %fd1;
"""
    simulator.launch(entry(body, PAIR), 1, 100, [total, added], schedule="lockstep")
    assert total.view(np.uint64)[0] == 0xFFF4000000000002
