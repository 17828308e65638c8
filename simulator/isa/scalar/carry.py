"""Extended precision (PTX ISA, "Extended-Precision Integer Arithmetic Instructions")."""

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ...core.geometry import NO_LANE, Lanes
from ..table import Function, Op, Results, row, scalar_type, unsigned
from .multiply import mul_high

SECTION = "Extended-Precision Integer Arithmetic Instructions"


@row("add", "sub", section=SECTION, forms="cc .s32|u32|s64|u64 : t CC = t t")
@row(
    "addc", "subc", section=SECTION,
    forms="""
        .s32|u32|s64|u64 : t = t t CC
        cc .s32|u32|s64|u64 : t CC = t t CC
    """,
)  # fmt: skip
@row("mad", section=SECTION, forms="lo|hi! cc .s32|u32|s64|u64 : t CC = t t t")
@row(
    "madc", section=SECTION,
    forms="""
        lo|hi! .s32|u32|s64|u64 : t = t t t CC
        lo|hi! cc .s32|u32|s64|u64 : t CC = t t t CC
    """,
)  # fmt: skip
def with_carry(ins: Instruction) -> Op:
    """``add.cc``, ``addc``, ``sub.cc``, ``subc``, ``mad.cc``, ``madc``.

    The carry flag is one more source (where it is read) and one more result
    (where ``.cc`` writes it), of type ``pred``. A subtraction adds the complement, so its
    carry says that nothing was borrowed: NVRTC's own 128-bit division reads it by ``addc``.
    """
    type = scalar_type(ins)
    word = DTYPES[unsigned(type)]
    reads = ins.opcode.endswith("c")
    subtract = ins.opcode.startswith("sub")
    product: Function | None = None
    if ins.opcode.startswith("mad"):
        product = mul_high(type) if ins.has("hi") else np.multiply
    sources = (type,) * (3 if product else 2)

    def apply(*args: Lanes) -> Results:
        *values, carry = args if reads else (*args, NO_LANE)
        if product:
            values = [product(values[0], values[1]), values[2]]
        a, b = (v.view(word) for v in values)
        one = (~carry if subtract and reads else carry).astype(word)
        if subtract:
            first = a - b
            result = first - one
            out = (a >= b) & (first >= one)
        else:
            first = a + b
            result = first + one
            out = (first < a) | (result < first)
        value = result.view(DTYPES[type])
        return (value, out) if ins.has("cc") else value

    outputs = (type, "pred") if ins.has("cc") else (type,)
    return Op(apply, sources + (("pred",) if reads else ()), outputs)
