"""Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions")."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from . import floating, half
from .table import (
    INTEGERS,
    Op,
    Unsupported,
    require,
    row,
    scalar_type,
    signed,
    unsigned,
    width,
)

SECTION = "Integer Arithmetic Instructions"
_WIDER = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}


def _saturated(fn: Any) -> Any:
    def apply(*args: Any) -> Any:
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
    fn: Any = {"add": np.add, "min": np.minimum, "max": np.maximum}.get(ins.opcode)
    if fn is None:
        raise Unsupported(f"type .{name}")

    def apply(*words: Any) -> Any:
        result = fn(*(w.view(dtype) for w in words))
        if ins.has("relu"):
            result = np.maximum(result, dtype.type(0))
        return result.view(np.uint16)

    return Op(half.lanes(apply, "x2"), ("b32", "b32"), ("b32",))


_SUM_LATER = """
        rn|rz|rm|rp? sat? .f32 .f16|bf16 : mixed precision
        rn|rz|rm|rp? ftz? .f32x2 : pairs of .f32
    """
_SUM = """
        sat? .s32 : t = t t
        .s16|u16|u32|s64|u64 : t = t t
        rn|rz|rm|rp? ftz? sat? .f32 : t = t t
        rn|rz|rm|rp? .f64 : t = t t
        rn? ftz? sat? .f16|f16x2 : t = t t
        rn? .bf16|bf16x2 : t = t t
    """
"""What ``add`` and ``sub`` share."""


@row("add", section=SECTION, later=_SUM_LATER, forms=f"{_SUM}\n.s16x2|u16x2 @90 : t = t t")
@row("sub", section=SECTION, later=_SUM_LATER, forms=_SUM)
def add_sub(ins: Instruction) -> Op:
    """``d = a ± b``, wrapping; ``.sat`` clamps (s32 only)."""
    packed = _packed(ins)
    if packed:
        return packed
    kind = scalar_type(ins)
    if kind.startswith(("f", "bf")):
        return floating.add_sub(ins)
    require(ins, *INTEGERS)
    fn = np.add if ins.opcode == "add" else np.subtract
    if ins.has("sat"):
        if kind != "s32":
            raise Unsupported(".sat on a type other than .s32")
        return Op(_saturated(fn), ("s32", "s32"), ("s32",))
    kind = signed(kind)
    return Op(fn, (kind, kind), (kind,))


def mul_high(kind: str) -> Any:
    """The upper half of the double-width product."""
    if kind in ("s64", "u64"):
        return _mul_high_64(kind == "s64")
    wide = DTYPES[_WIDER[kind]]
    bits, out = width(kind), DTYPES[kind]
    return lambda a, b: ((a.astype(wide) * b.astype(wide)) >> bits).astype(out)


def _mul_high_64(is_signed: bool) -> Any:
    low, thirty_two = np.uint64(0xFFFFFFFF), np.uint64(32)

    def apply(a: Any, b: Any) -> Any:
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


def _product(ins: Instruction) -> tuple[Any, str, str]:
    """The product of ``mul``/``mad``: function, source type, result type."""
    kind = require(ins, *INTEGERS)
    if ins.has("wide"):
        if kind not in _WIDER:
            raise Unsupported(".wide of a 64-bit type")
        wide = DTYPES[_WIDER[kind]]
        return (lambda a, b: a.astype(wide) * b.astype(wide)), kind, _WIDER[kind]
    if ins.has("hi"):
        return mul_high(kind), kind, kind
    if ins.has("lo"):
        return np.multiply, signed(kind), signed(kind)
    raise Unsupported("one of .lo, .hi, .wide is needed")


@row(
    "mul", section=SECTION,
    later="""
        rn|rz|rm|rp? ftz? .f32x2 : pairs of .f32
    """,
    forms="""
        lo|hi! .s16|u16|s32|u32|s64|u64 : t = t t
        wide! .s16|u16|s32|u32 : 2t = t t
        rn|rz|rm|rp? ftz? sat? .f32 : t = t t
        rn|rz|rm|rp? .f64 : t = t t
        rn? ftz? sat? .f16|f16x2 : t = t t
        rn? .bf16|bf16x2 : t = t t
    """,
)  # fmt: skip
def mul(ins: Instruction) -> Op:
    """``d = a * b``: low half, high half, or all of it (``.wide``)."""
    if scalar_type(ins).startswith(("f", "bf")):
        return floating.mul(ins)
    fn, source, result = _product(ins)
    return Op(fn, (source, source), (result,))


@row(
    "mad", section=SECTION,
    forms="""
        lo|hi! .s16|u16|s32|u32|s64|u64 : t = t t t
        hi! sat .s32 : t = t t t
        wide! .s16|u16|s32|u32 : 2t = t t 2t
        rn|rz|rm|rp ftz? sat? .f32 : t = t t t
        rn|rz|rm|rp .f64 : t = t t t
    """,
)  # fmt: skip
def mad(ins: Instruction) -> Op:
    """``d = a * b + c`` on the half that is asked for; ``.hi.sat.s32`` clamps."""
    if scalar_type(ins).startswith("f"):
        return floating.fma(ins)
    product, source, result = _product(ins)
    if ins.has("sat"):
        if not ins.has("hi") or result != "s32":
            raise Unsupported(".sat needs .hi.s32")
        add = _saturated(np.add)
        return Op(lambda a, b, c: add(product(a, b), c), (source, source, result), (result,))
    return Op(lambda a, b, c: product(a, b) + c, (source, source, result), (result,))


def _product_24(ins: Instruction) -> tuple[Any, str]:
    kind = require(ins, "s32", "u32")
    wide = DTYPES[_WIDER[kind]]
    # The operands' low 24 bits, as signed or unsigned 24-bit numbers.
    shift = wide.type(40)
    high = wide.type(16 if ins.has("hi") else 0)

    def narrow(a: Any) -> Any:
        return (a.astype(wide) << shift) >> shift

    return (lambda a, b: ((narrow(a) * narrow(b)) >> high).astype(DTYPES[kind])), kind


@row(
    "mul24", section=SECTION,
    forms="""
        lo|hi! .s32|u32 : t = t t
    """,
)  # fmt: skip
@row(
    "mad24", section=SECTION,
    forms="""
        lo|hi! .s32|u32 : t = t t t
        hi! sat .s32 : t = t t t
    """,
)  # fmt: skip
def mul24(ins: Instruction) -> Op:
    """24-bit product: bits 0 to 31 (``.lo``) or 16 to 47 (``.hi``)."""
    product, kind = _product_24(ins)
    if ins.opcode == "mul24":
        return Op(product, (kind, kind), (kind,))
    add: Any = _saturated(np.add) if ins.has("sat") else np.add
    return Op(lambda a, b, c: add(product(a, b), c), (kind, kind, kind), (kind,))


@row(
    "sad", section=SECTION,
    forms="""
        .s16|u16|s32|u32|s64|u64 : t = t t t
    """,
)  # fmt: skip
def sad(ins: Instruction) -> Op:
    """``d = c + |a - b|``."""
    kind = require(ins, *INTEGERS)

    def apply(a: Any, b: Any, c: Any) -> Any:
        return c + np.where(a < b, b - a, a - b)

    return Op(apply, (kind, kind, kind), (kind,))


@row(
    "div", section=SECTION,
    forms="""
        .s16|u16|s32|u32|s64|u64 : t = t t
        approx|rn|rz|rm|rp ftz? .f32 : t = t t
        full! ftz? .f32 : t = t t
        rn|rz|rm|rp .f64 : t = t t
    """,
)  # fmt: skip
def div(ins: Instruction) -> Op:
    """Quotient towards zero; by zero gives all ones, as NVIDIA's GPUs do."""
    if scalar_type(ins).startswith("f"):
        return floating.div(ins)
    kind = require(ins, *INTEGERS)
    return Op(_divide(kind), (kind, kind), (kind,))


@row(
    "rem", section=SECTION,
    forms="""
        .s16|u16|s32|u32|s64|u64 : t = t t
    """,
)  # fmt: skip
def rem(ins: Instruction) -> Op:
    """``a - (a / b) * b``; by zero gives all ones (measured on an H200)."""
    kind = require(ins, *INTEGERS)
    ones = _ones(kind)

    def unsigned_rest(a: Any, b: Any) -> Any:
        if b.ndim == 0 and b:
            return np.remainder(a, b)
        return np.where(b == 0, ones, np.remainder(a, np.where(b == 0, np.ones_like(b), b)))

    def signed_rest(a: Any, b: Any) -> Any:
        safe = np.where((b == 0) | (b == -1), np.ones_like(b), b)
        return np.where(b == 0, ones, np.where(b == -1, np.zeros_like(a), np.fmod(a, safe)))

    return Op(unsigned_rest if kind.startswith("u") else signed_rest, (kind, kind), (kind,))


def _ones(kind: str) -> Any:
    """All bits one."""
    return (
        DTYPES[kind].type(-1) if kind.startswith("s") else DTYPES[kind].type(2 ** width(kind) - 1)
    )


def _divide(kind: str) -> Any:
    ones = _ones(kind)

    def unsigned_quotient(a: Any, b: Any) -> Any:
        if b.ndim == 0 and b:
            return np.floor_divide(a, b)
        return np.where(b == 0, ones, np.floor_divide(a, np.where(b == 0, np.ones_like(b), b)))

    def signed_quotient(a: Any, b: Any) -> Any:
        # Through magnitudes: NumPy's floor division rounds down and its MIN / -1 is not the GPU's.
        word = DTYPES[unsigned(kind)]
        ua, ub = np.abs(a).view(word), np.abs(b).view(word)
        quotient = np.floor_divide(ua, np.where(ub == 0, np.ones_like(ub), ub)).view(DTYPES[kind])
        return np.where(b == 0, ones, np.where((a < 0) != (b < 0), -quotient, quotient))

    return unsigned_quotient if kind.startswith("u") else signed_quotient


@row(
    "abs", section=SECTION,
    forms="""
        .s16|s32|s64 : t = t
        ftz? .f32|f16|f16x2 : t = t
        .f64|bf16|bf16x2 : t = t
    """,
)  # fmt: skip
def absolute(ins: Instruction) -> Op:
    """``|a|``; the most negative number stays as it is."""
    if scalar_type(ins).startswith(("f", "bf")):
        return floating.sign_bit(ins)
    kind = require(ins, "s16", "s32", "s64")
    return Op(np.abs, (kind,), (kind,))


@row(
    "neg", section=SECTION,
    forms="""
        .s16|s32|s64 : t = t
        ftz? .f32|f16|f16x2 : t = t
        .f64|bf16|bf16x2 : t = t
    """,
)  # fmt: skip
def negate(ins: Instruction) -> Op:
    """``-a``."""
    if scalar_type(ins).startswith(("f", "bf")):
        return floating.sign_bit(ins)
    kind = require(ins, "s16", "s32", "s64")
    return Op(np.negative, (kind,), (kind,))


@row(
    "min", "max", section=SECTION,
    forms="""
        .s16|u16|s32|u32|s64|u64 : t = t t
        .s16x2|u16x2 @90 : t = t t
        relu .s32|s16x2 @90 : t = t t
        ftz? NaN? .f32|f16|f16x2 : t = t t
        ftz? NaN? xorsign abs .f32|f16|f16x2 : t = t t
        .f64 : t = t t
        NaN? .bf16|bf16x2 : t = t t
        NaN? xorsign abs .bf16|bf16x2 : t = t t
        ftz? NaN? abs? .f32 @100 : t = t t t
    """,
)  # fmt: skip
def min_max(ins: Instruction) -> Op:
    """The lesser or greater of two; ``.relu`` clamps at zero."""
    packed = _packed(ins)
    if packed:
        return packed
    if scalar_type(ins).startswith(("f", "bf")):
        return floating.min_max(ins)
    kind = require(ins, *INTEGERS)
    fn: Any = np.minimum if ins.opcode == "min" else np.maximum
    if ins.has("relu"):
        if kind != "s32":
            raise Unsupported(".relu on a type other than .s32")
        return Op(lambda a, b: np.maximum(fn(a, b), np.int32(0)), (kind, kind), (kind,))
    return Op(fn, (kind, kind), (kind,))


@row(
    "dp4a", section=SECTION,
    forms="""
        .u32|s32 .u32|s32 : i32 = t0 t i32
    """,
)  # fmt: skip
@row(
    "dp2a", section=SECTION,
    forms="""
        lo|hi! .u32|s32 .u32|s32 : i32 = t0 t i32
    """,
)  # fmt: skip
def dot_product(ins: Instruction) -> Op:
    """Four-way byte or two-way half-word dot product, accumulated in 32 bits."""
    types = ins.types
    if len(types) != 2 or set(types) - {"s32", "u32"}:
        raise Unsupported("types other than .u32 and .s32")
    out = "s32" if "s32" in types else "u32"
    high = 2 if ins.has("hi") else 0

    def part(x: Any, kind: str, byte: int, size: int) -> Any:
        # The element of `size` bits at byte offset `byte`, in 64 bits.
        wide = x.astype(np.int64)
        shift = np.int64(64 - size)
        moved = wide << np.int64(64 - size - byte * 8)
        return (
            moved >> shift
            if kind == "s32"
            else (moved.view(np.uint64) >> np.uint64(64 - size)).view(np.int64)
        )

    def apply(a: Any, b: Any, c: Any) -> Any:
        total = c.astype(np.int64)
        for i in range(4 if ins.opcode == "dp4a" else 2):
            if ins.opcode == "dp4a":
                total = total + part(a, types[0], i, 8) * part(b, types[1], i, 8)
            else:
                total = total + part(a, types[0], 2 * i, 16) * part(b, types[1], i + high, 8)
        return total.astype(DTYPES[out])

    return Op(apply, (types[0], types[1], out), (out,))
