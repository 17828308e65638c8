"""The table's functions on every mixture of shapes that registers have.

The other tests' operands vary from thread to thread. A register may also be one number
(a NumPy scalar), a value a thread or a value a block; the results must be the same, of
the type that the row states, and operands must not change.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from kernels.ptx.module import Instruction
from simulator.isa import DTYPES, Op, carry_op
from simulator.isa.reading import parse
from simulator.isa.roles import roles

from . import test_bits, test_compare, test_convert, test_half, test_integer
from .harness import Case, build, rows_of

SHAPES: tuple[tuple[int, ...], ...] = ((), (1, 1, 4, 1), (1, 1, 1, 3), (1, 1, 4, 3), (2, 1, 1, 1))


def instructions(case: Case) -> list[Instruction]:
    """What is under test in a case's kernel."""
    function = parse(build(case).ptx).functions["k"]
    function.load()
    body = function.body
    return [
        ins for ins in body
        if ins.name.startswith(case.name)
        and (row := roles(ins).row).build and row.waits == "nobody"
        and str(ins.operands[0]).count("%o") == len(case.out)
    ]  # fmt: skip


CASES = [
    case
    for module in (test_integer, test_bits, test_compare, test_convert, test_half)
    for case in module.CASES
    if not case.code and "mov" not in case.opcodes
]


def bits(value: Any) -> Any:
    """Comparable contents, NaN included."""
    return value if value.dtype == np.bool_ else value.view(f"u{value.dtype.itemsize}")


def operand(kind: str, shape: tuple[int, ...], patterns: list[int]) -> Any:
    """An operand of a carrier's type, its values taken in turn."""
    dtype = DTYPES[kind]
    count = int(np.prod(shape, dtype=int))
    values = [patterns[i % len(patterns)] for i in range(count)]
    if dtype == np.bool_:
        made = np.array([bool(v & 1) for v in values])
    else:
        mask = (1 << 8 * dtype.itemsize) - 1
        made = np.array([v & mask for v in values], f"u{dtype.itemsize}").view(dtype)
    return made.reshape(shape)[()]


def check(op: Op, columns: list[list[int]]) -> None:
    """All mixtures of shapes give what whole arrays give."""
    for shapes in itertools.product(
        SHAPES[: 5 if len(op.inputs) < 3 else 3], repeat=len(op.inputs)
    ):
        mixed = [operand(k, s, c) for k, s, c in zip(op.inputs, shapes, columns, strict=True)]
        shape = np.broadcast_shapes(*shapes)
        full = [np.ascontiguousarray(np.broadcast_to(m, (2, 1, 4, 3))) for m in mixed]
        before = [np.array(m, copy=True) for m in mixed]
        with np.errstate(all="ignore"):
            found, wanted = op.fn(*mixed), op.fn(*full)
        if len(op.outputs) == 1:
            found, wanted = (found,), (wanted,)
        for got, want, kind in zip(found, wanted, op.outputs, strict=True):
            assert got.dtype == want.dtype == DTYPES[kind]
            # Smaller is right as well: a result that does not depend on an operand.
            assert np.broadcast_shapes(np.shape(got), shape) == shape
            whole = np.broadcast_to(bits(np.asarray(got)), (2, 1, 4, 3))
            assert (whole == bits(np.broadcast_to(want, (2, 1, 4, 3)))).all()
        for old, now in zip(before, mixed, strict=True):
            assert (bits(old) == bits(np.asarray(now))).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shapes(case: Case) -> None:
    (ins,) = instructions(case)[-1:]
    row = roles(ins).row
    assert row.build is not None
    op = row.build(ins)
    rows = rows_of(case)[:: max(1, len(rows_of(case)) // 24)]
    columns = [list(c) for c in zip(*rows, strict=True)]
    columns += [[i] for i in range(len(op.inputs) - len(columns))]  # immediates
    check(op, columns)


def test_carries() -> None:
    """Extended precision, whose rows have a hidden operand."""
    for opcode, arity in (("addc", 2), ("subc", 2), ("madc", 3)):
        for half in ("lo", "hi") if opcode == "madc" else ("",):
            modifiers = tuple(filter(None, (half, "cc", "u32")))
            op = carry_op(Instruction(opcode, modifiers, (), None, 1, None))
            assert len(op.inputs) == arity + 1
            check(
                op,
                [[0, 1, 0xFFFFFFFF, 0x80000000], [0xFFFFFFFF, 0, 5], [1, 7], [1, 0]][: arity + 1],
            )
