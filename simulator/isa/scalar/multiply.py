"""Products, quotients and remainders of integers (PTX ISA, "Integer Arithmetic Instructions")."""

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ...core.geometry import Lanes
from ..table import Function, Op, row, scalar_type, signed, unsigned, width
from .integer import saturated

SECTION = "Integer Arithmetic Instructions"
_WIDER = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}


def mul_high(type: str) -> Function:
    """Return the upper half of the double-width product."""
    if type in ("s64", "u64"):
        return _mul_high_64(type == "s64")
    wide = DTYPES[_WIDER[type]]
    bits, out = width(type), DTYPES[type]
    return lambda a, b: ((a.astype(wide) * b.astype(wide)) >> bits).astype(out)


def _mul_high_64(is_signed: bool) -> Function:
    low, thirty_two = np.uint64(0xFFFFFFFF), np.uint64(32)

    def apply(a: Lanes, b: Lanes) -> Lanes:
        x, y = a.view(np.uint64), b.view(np.uint64)
        x0, x1, y0, y1 = x & low, x >> thirty_two, y & low, y >> thirty_two
        middle = ((x0 * y0) >> thirty_two) + (x1 * y0 & low) + x0 * y1
        # x0*y1 <= (2**32-1)**2, and the two other terms are below 2**32 each: no overflow
        high = x1 * y1 + ((x1 * y0) >> thirty_two) + (middle >> thirty_two)
        if not is_signed:
            return high
        s = high.view(np.int64)
        return s - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)

    return apply


def _product(ins: Instruction) -> tuple[Function, str, str]:
    """Return the product of ``mul``/``mad``: function, source type, result type."""
    type = scalar_type(ins)
    if ins.has("wide"):
        wide = DTYPES[_WIDER[type]]
        return (lambda a, b: a.astype(wide) * b.astype(wide)), type, _WIDER[type]
    if ins.has("hi"):
        return mul_high(type), type, type
    return np.multiply, signed(type), signed(type)


@row(
    "mul", section=SECTION,
    forms="""
        lo|hi! .s16|u16|s32|u32|s64|u64 : t = t t
        wide! .s16|u16|s32|u32 : 2t = t t
    """,
)  # fmt: skip
def mul(ins: Instruction) -> Op:
    """``d = a * b``: low half, high half, or all of it (``.wide``)."""
    fn, source, result = _product(ins)
    return Op(fn, (source, source), (result,))


@row(
    "mad", section=SECTION, of_address="addend",
    forms="""
        lo|hi! .s16|u16|s32|u32|s64|u64 : t = t t t
        hi! sat .s32 : t = t t t
        wide! .s16|u16|s32|u32 : 2t = t t 2t
    """,
)  # fmt: skip
def mad(ins: Instruction) -> Op:
    """``d = a * b + c`` on the half that is asked for; ``.hi.sat.s32`` clamps."""
    product, source, result = _product(ins)
    if ins.has("sat"):
        add = saturated(np.add)
        return Op(lambda a, b, c: add(product(a, b), c), (source, source, result), (result,))
    return Op(lambda a, b, c: product(a, b) + c, (source, source, result), (result,))


def _product_24(ins: Instruction) -> tuple[Function, str]:
    type = scalar_type(ins)
    wide = DTYPES[_WIDER[type]]
    # The operands' low 24 bits, as signed or unsigned 24-bit numbers.
    shift = wide.type(40)
    high = wide.type(16 if ins.has("hi") else 0)

    def narrow(a: Lanes) -> Lanes:
        return (a.astype(wide) << shift) >> shift

    return (lambda a, b: ((narrow(a) * narrow(b)) >> high).astype(DTYPES[type])), type


@row("mul24", section=SECTION, forms="lo|hi! .s32|u32 : t = t t")
@row(
    "mad24", section=SECTION,
    forms="""
        lo|hi! .s32|u32 : t = t t t
        hi! sat .s32 : t = t t t
    """,
)  # fmt: skip
def mul24(ins: Instruction) -> Op:
    """24-bit product: bits 0 to 31 (``.lo``) or 16 to 47 (``.hi``)."""
    product, type = _product_24(ins)
    if ins.opcode == "mul24":
        return Op(product, (type, type), (type,))
    add: Function = saturated(np.add) if ins.has("sat") else np.add
    return Op(lambda a, b, c: add(product(a, b), c), (type, type, type), (type,))


@row("dp4a", section=SECTION, forms=".u32|s32 .u32|s32 : i32 = t0 t i32")
@row("dp2a", section=SECTION, forms="lo|hi! .u32|s32 .u32|s32 : i32 = t0 t i32")
def dot_product(ins: Instruction) -> Op:
    """Four-way byte or two-way half-word dot product, accumulated in 32 bits."""
    types = ins.types
    out = "s32" if "s32" in types else "u32"
    high = 2 if ins.has("hi") else 0

    def part(x: Lanes, type: str, byte: int, size: int) -> Lanes:
        # The element of `size` bits at byte offset `byte`, in 64 bits.
        wide = x.astype(np.int64)
        shift = np.int64(64 - size)
        moved = wide << np.int64(64 - size - byte * 8)
        return (
            moved >> shift
            if type == "s32"
            else (moved.view(np.uint64) >> np.uint64(64 - size)).view(np.int64)
        )

    def apply(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        total = c.astype(np.int64)
        for i in range(4 if ins.opcode == "dp4a" else 2):
            if ins.opcode == "dp4a":
                total = total + part(a, types[0], i, 8) * part(b, types[1], i, 8)
            else:
                total = total + part(a, types[0], 2 * i, 16) * part(b, types[1], i + high, 8)
        return total.astype(DTYPES[out])

    return Op(apply, (types[0], types[1], out), (out,))


@row("div", section=SECTION, forms=".s16|u16|s32|u32|s64|u64 : t = t t")
def div(ins: Instruction) -> Op:
    """Quotient towards zero; by zero gives all ones, as NVIDIA's GPUs do."""
    type = scalar_type(ins)
    return Op(_divide(type), (type, type), (type,))


@row("rem", section=SECTION, forms=".s16|u16|s32|u32|s64|u64 : t = t t")
def rem(ins: Instruction) -> Op:
    """``a - (a / b) * b``; by zero gives all ones (measured on an H200)."""
    type = scalar_type(ins)
    ones = _ones(type)

    def unsigned_rest(a: Lanes, b: Lanes) -> Lanes:
        if b.ndim == 0 and b:
            return np.remainder(a, b)
        return np.where(b == 0, ones, np.remainder(a, np.where(b == 0, np.ones_like(b), b)))

    def signed_rest(a: Lanes, b: Lanes) -> Lanes:
        safe = np.where((b == 0) | (b == -1), np.ones_like(b), b)
        return np.where(b == 0, ones, np.where(b == -1, np.zeros_like(a), np.fmod(a, safe)))

    return Op(unsigned_rest if type.startswith("u") else signed_rest, (type, type), (type,))


def _ones(type: str) -> Lanes:
    """Return all bits one."""
    return (
        DTYPES[type].type(-1) if type.startswith("s") else DTYPES[type].type(2 ** width(type) - 1)
    )


def _divide(type: str) -> Function:
    ones = _ones(type)

    def unsigned_quotient(a: Lanes, b: Lanes) -> Lanes:
        if b.ndim == 0 and b:
            return np.floor_divide(a, b)
        return np.where(b == 0, ones, np.floor_divide(a, np.where(b == 0, np.ones_like(b), b)))

    def signed_quotient(a: Lanes, b: Lanes) -> Lanes:
        # Through magnitudes: NumPy's floor division rounds down and its MIN / -1 is not the GPU's.
        word = DTYPES[unsigned(type)]
        ua, ub = np.abs(a).view(word), np.abs(b).view(word)
        quotient = np.floor_divide(ua, np.where(ub == 0, np.ones_like(ub), ub)).view(DTYPES[type])
        return np.where(b == 0, ones, np.where((a < 0) != (b < 0), -quotient, quotient))

    return unsigned_quotient if type.startswith("u") else signed_quotient
