"""An element's result does not depend on how many elements there are.

NumPy takes other loops for whole vectors, for what is left over and for single numbers, and
``np.fmax`` does otherwise with signalling NaNs in each of them.
"""

from typing import Any

import numpy as np
import pytest

from kernels.ptx.module import Imm, Instruction, Pair, Reg
from simulator.isa import DTYPES
from simulator.isa.decoded import roles
from tests.fuzz.rows import Form, forms

EDGES = {
    2: (0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0x3C00, 0x7F80, 0x7F81,
        0xFFC0, 0x0080),
    4: (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0xC2F70000, 0x7F800000, 0xFF800000,
        0x7F800001, 0xFFA00000, 0x7FC00000, 0x00400000, 0x4F000000),
    8: (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 0x3FF << 52, 0xC0DE << 48, 0x7FF << 52,
        0xFFF << 52, 0x7FF0800000000000, 0xFFF0000000000001, 0x7FF8 << 48, 1 << 51, 0x43E << 52),
}  # fmt: skip
"""Bits of integers and of floating-point numbers: zeros, infinities, NaNs of both kinds."""
PIECES = ((0, 1), (9, 3), (24, 7), (70, 13), (97, 33), (131, 65))
"""First elements, and how many."""


def instruction(form: Form) -> Instruction:
    """The form with registers, and an immediate where it has to be one."""
    results: list[Any] = [Reg("d") for _ in form.results]
    first = Pair(*results) if len(results) > 1 else results[0]
    sources = [Imm("int", 0x6A) if s == "i" else Reg("s") for s in form.sources]
    opcode, *modifiers = form.name.split(".")
    return Instruction(opcode, tuple(modifiers), (first, *sources), None, 1, None)


def operand(kind: str, place: int) -> Any:
    """All edges, in an order of the operand's own: pairs of operands meet in many ways."""
    dtype = DTYPES[kind]
    if dtype == np.bool_:
        return np.arange(196) % 3 == place % 3
    edges = EDGES.get(dtype.itemsize, (0, 1, 0x7F, 0x80, 0xFF))
    n = len(edges)
    order = [edges[i % n] if place == 0 else edges[(i // n + i * (place - 1)) % n]
             for i in range(196)]  # fmt: skip
    return np.array(order, f"u{dtype.itemsize}").view(dtype)


def bits(value: Any) -> Any:
    value = np.asarray(value)
    return value if value.dtype == np.bool_ else value.view(f"u{value.dtype.itemsize}")


def results(op: Any, operands: list[Any]) -> list[Any]:
    with np.errstate(all="ignore"):
        found = op.fn(*operands)
    return [bits(x) for x in (found if len(op.outputs) > 1 else (found,))]


@pytest.mark.slow_cases("cvt", "set", "setp")
@pytest.mark.parametrize("opcode", sorted(forms()))
def test_lengths(opcode: str) -> None:
    for form in forms()[opcode]:
        ins = instruction(form)
        build = roles(ins).row.build
        assert build
        op = build(ins)
        operands = [operand(kind, i) for i, kind in enumerate(op.inputs)]
        whole = results(op, operands)
        for at, n in PIECES:
            parts = results(op, [x[at : at + n] for x in operands])
            for want, got in zip(whole, parts, strict=True):
                want = np.broadcast_to(want, 196)[at : at + n]
                assert (np.broadcast_to(got, n) == want).all(), (form.name, at, n)
        for at in range(3, 196, 23):
            for want, got in zip(whole, results(op, [x[at] for x in operands]), strict=True):
                assert got == np.broadcast_to(want, 196)[at], (form.name, at)
