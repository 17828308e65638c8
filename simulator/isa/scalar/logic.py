"""Logic and shifts (PTX ISA, "Logic and Shift Instructions")."""

from typing import cast

import numpy as np

from kernels.ptx.module import Imm, Instruction
from kernels.ptx.types import DTYPES

from ...core.geometry import Lanes
from ..table import Function, Op, Results, row, scalar_type, unsigned, width

SECTION = "Logic and Shift Instructions"


@row("and", "or", "xor", section=SECTION, forms=".pred|b16|b32|b64 : t = t t")
def logic(ins: Instruction) -> Op:
    """Bitwise, or logical on predicates."""
    type = scalar_type(ins)
    fn = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[ins.opcode]
    return Op(fn, (type, type), (type,))


@row("not", section=SECTION, forms=".pred|b16|b32|b64 : t = t")
def invert(ins: Instruction) -> Op:
    """One's complement."""
    type = scalar_type(ins)
    return Op(np.invert, (type,), (type,))


@row("cnot", section=SECTION, forms=".b16|b32|b64 : t = t")
def logical_not(ins: Instruction) -> Op:
    """1 where zero, else 0."""
    type = scalar_type(ins)
    return Op(lambda a: (a == 0).astype(DTYPES[type]), (type,), (type,))


@row(
    "lop3", section=SECTION,
    forms="""
        .b32 : t* = t t t imm
        or|and .b32 : t*|pred = t t t imm pred
    """,
)  # fmt: skip
def lop3(ins: Instruction) -> Op:
    """Lanes function of three bits, by its truth table (an immediate operand).

    ``.or``/``.and`` give a predicate too: whether the result is not zero, joined with ``q``.
    """
    table = ins.operands[4]
    assert isinstance(table, Imm)
    zero = cast(Lanes, np.int32(0))

    def apply(a: Lanes, b: Lanes, c: Lanes, _: Lanes) -> Lanes:
        result = zero
        for i in range(8):
            if table.value >> i & 1:
                term = (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
                result = result | term
        return result

    words = ("b32", "b32", "b32", "b32")
    if not ins.has("or", "and"):
        return Op(apply, words, ("b32",))
    join: Function = np.logical_or if ins.has("or") else np.logical_and

    def with_predicate(a: Lanes, b: Lanes, c: Lanes, lut: Lanes, q: Lanes) -> Results:
        result = apply(a, b, c, lut)
        return result, join(result != 0, q)

    return Op(with_predicate, (*words, "pred"), ("b32", "pred"))


@row("shl", section=SECTION, forms=".b16|b32|b64 : t = t i32")
def shift_left(ins: Instruction) -> Op:
    """Shift amounts past the width give zero."""
    type = scalar_type(ins)
    dtype, bits = DTYPES[type], width(type)
    zero = dtype.type(0)
    amount = ins.operands[-1]
    if isinstance(amount, Imm) and 0 <= amount.value < bits:
        by = dtype.type(amount.value)
        return Op(lambda a, _: np.left_shift(a, by), (type, "u32"), (type,))

    def apply(a: Lanes, n: Lanes) -> Lanes:
        return np.where(n < bits, np.left_shift(a, np.minimum(n, bits - 1).astype(dtype)), zero)

    return Op(apply, (type, "u32"), (type,))


@row("shr", section=SECTION, forms=".b16|b32|b64|s16|u16|s32|u32|s64|u64 : t = t i32")
def shift_right(ins: Instruction) -> Op:
    """Sign-filling for ``.s``; amounts past the width count as the width."""
    type = scalar_type(ins)
    type = type if type.startswith("s") else unsigned(type)
    dtype, bits = DTYPES[type], width(type)
    amount = ins.operands[-1]
    if isinstance(amount, Imm) and 0 <= amount.value < bits:
        by = dtype.type(amount.value)
        return Op(lambda a, _: np.right_shift(a, by), (type, "u32"), (type,))

    def apply(a: Lanes, n: Lanes) -> Lanes:
        shifted = np.right_shift(a, np.minimum(n, bits - 1).astype(dtype))
        return shifted if type.startswith("s") else np.where(n < bits, shifted, dtype.type(0))

    return Op(apply, (type, "u32"), (type,))


@row("shf", section=SECTION, forms="l|r! clamp|wrap .b32 : t = t t i32")
def funnel_shift(ins: Instruction) -> Op:
    """The upper (``.l``) or lower (``.r``) word of the pair ``b:a`` shifted; clamp or wrap."""
    is_left, wrap = ins.has("l"), ins.has("wrap")

    def apply(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        n = (c & 31) if wrap else np.minimum(c, 32)
        pair = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
        if is_left:  # shifting by 32 - n to the right shows the same word
            n = 32 - n
        return (pair >> n.astype(np.uint64)).astype(np.uint32)

    return Op(apply, ("u32", "u32", "u32"), ("u32",))
