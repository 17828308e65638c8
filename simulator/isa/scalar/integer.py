"""Sums and comparisons of integers (PTX ISA, "Integer Arithmetic Instructions")."""

import numpy as np

from kernels.ptx.module import Instruction

from ...core.geometry import Lanes
from ..table import Function, Op, row, scalar_type, signed
from . import half

SECTION = "Integer Arithmetic Instructions"
SIMPLE = (
    "xor", "and", "or", "not", "shl", "shr", "shf", "lop3", "add", "sub", "min", "max", "popc",
)  # fmt: skip
"""What mostly stays one instruction of a GPU's integer pipe, where it is not merged."""


def saturated(fn: Function) -> Function:
    """Return an operation on ``.s32`` that clamps."""

    def apply(*args: Lanes) -> Lanes:
        wide = fn(*(a.astype(np.int64) for a in args))
        return np.clip(wide, -(2**31), 2**31 - 1).astype(np.int32)

    return apply


_PACKED = {"s16x2": np.dtype(np.int16), "u16x2": np.dtype(np.uint16)}


def _packed(ins: Instruction) -> Op | None:
    """``add``, ``min`` and ``max`` on two 16-bit integers in a word."""
    name = next((m for m in ins.modifiers if m in _PACKED), None)
    if name is None:
        return None
    dtype = _PACKED[name]
    fn: Function = {"add": np.add, "min": np.minimum, "max": np.maximum}[ins.opcode]

    def apply(*words: Lanes) -> Lanes:
        result = fn(*(w.view(dtype) for w in words))
        if ins.has("relu"):
            result = np.maximum(result, dtype.type(0))
        return result.view(np.uint16)

    return Op(half.lanes(apply, "x2"), ("b32", "b32"), ("b32",))


_SUM = """
    sat? .s32 : t = t t
    .s16|u16|u32|s64|u64 : t = t t
"""
"""What ``add`` and ``sub`` share."""


@row("add", section=SECTION, forms=f"{_SUM}\n.s16x2|u16x2 @90 : t = t t", of_address="sum")
@row("sub", section=SECTION, forms=_SUM, of_address="difference")
def add_sub(ins: Instruction) -> Op:
    """``d = a ± b``, wrapping; ``.sat`` clamps (s32 only)."""
    packed = _packed(ins)
    if packed:
        return packed
    type = scalar_type(ins)
    fn = np.add if ins.opcode == "add" else np.subtract
    if ins.has("sat"):
        return Op(saturated(fn), ("s32", "s32"), ("s32",))
    type = signed(type)
    return Op(fn, (type, type), (type,))


@row("abs", "neg", section=SECTION, forms=".s16|s32|s64 : t = t")
def sign(ins: Instruction) -> Op:
    """``|a|`` and ``-a``; the most negative number stays as it is."""
    type = scalar_type(ins)
    return Op(np.abs if ins.opcode == "abs" else np.negative, (type,), (type,))


@row(
    "min", "max", section=SECTION,
    forms="""
        .s16|u16|s32|u32|s64|u64 : t = t t
        .s16x2|u16x2 @90 : t = t t
        relu .s32|s16x2 @90 : t = t t
    """,
)  # fmt: skip
def min_max(ins: Instruction) -> Op:
    """The lesser or greater of two; ``.relu`` clamps at zero."""
    packed = _packed(ins)
    if packed:
        return packed
    type = scalar_type(ins)
    fn: Function = np.minimum if ins.opcode == "min" else np.maximum
    if ins.has("relu"):
        return Op(lambda a, b: np.maximum(fn(a, b), np.int32(0)), (type, type), (type,))
    return Op(fn, (type, type), (type,))


@row("sad", section=SECTION, forms=".s16|u16|s32|u32|s64|u64 : t = t t t")
def sad(ins: Instruction) -> Op:
    """``d = c + |a - b|``."""
    type = scalar_type(ins)

    def apply(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        return c + np.where(a < b, b - a, a - b)

    return Op(apply, (type, type, type), (type,))
