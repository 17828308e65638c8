"""Logic, shifts and bit fields (PTX ISA, "Logic and Shift Instructions" and bit operations)."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.ptx.module import Imm, Instruction
from kernels.ptx.types import DTYPES

from .table import (
    BITS,
    Op,
    Unsupported,
    require,
    row,
    scalar_type,
    unsigned,
    width,
)

LOGIC = "Logic and Shift Instructions"
INTEGER = "Integer Arithmetic Instructions"


@row(
    "and", "or", "xor", section=LOGIC,
    forms="""
        .pred|b16|b32|b64 : t = t t
    """,
)  # fmt: skip
def logic(ins: Instruction) -> Op:
    """Bitwise, or logical on predicates."""
    kind = require(ins, "pred", *BITS)
    fn = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[ins.opcode]
    return Op(fn, (kind, kind), (kind,))


@row(
    "not", section=LOGIC,
    forms="""
        .pred|b16|b32|b64 : t = t
    """,
)  # fmt: skip
def invert(ins: Instruction) -> Op:
    """One's complement."""
    kind = require(ins, "pred", *BITS)
    return Op(np.invert, (kind,), (kind,))


@row(
    "cnot", section=LOGIC,
    forms="""
        .b16|b32|b64 : t = t
    """,
)  # fmt: skip
def logical_not(ins: Instruction) -> Op:
    """1 where zero, else 0."""
    kind = require(ins, *BITS)
    return Op(lambda a: (a == 0).astype(DTYPES[kind]), (kind,), (kind,))


@row(
    "lop3", section=LOGIC,
    forms="""
        .b32 : t = t t t imm
        or|and .b32 : t|pred = t t t imm pred
    """,
)  # fmt: skip
def lop3(ins: Instruction) -> Op:
    """Any function of three bits, by its truth table (an immediate operand).

    ``.or``/``.and`` give a predicate too: whether the result is not zero, joined with ``q``.
    """
    require(ins, "b32")
    table = ins.operands[4] if len(ins.operands) > 4 else None
    if not isinstance(table, Imm):
        raise Unsupported("a truth table that is not an immediate")

    def apply(a: Any, b: Any, c: Any, _: Any) -> Any:
        result = np.int32(0)
        for i in range(8):
            if table.value >> i & 1:
                term = (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
                result = result | term
        return result

    words = ("b32", "b32", "b32", "b32")
    if not ins.has("or", "and"):
        return Op(apply, words, ("b32",))
    join: Any = np.logical_or if ins.has("or") else np.logical_and

    def with_predicate(a: Any, b: Any, c: Any, lut: Any, q: Any) -> Any:
        result = apply(a, b, c, lut)
        return result, join(result != 0, q)

    return Op(with_predicate, (*words, "pred"), ("b32", "pred"))


@row(
    "shl", section=LOGIC,
    forms="""
        .b16|b32|b64 : t = t i32
    """,
)  # fmt: skip
def shift_left(ins: Instruction) -> Op:
    """Shift amounts past the width give zero."""
    kind = require(ins, *BITS)
    dtype, bits = DTYPES[kind], width(kind)
    zero = dtype.type(0)
    amount = ins.operands[-1]
    if isinstance(amount, Imm) and 0 <= amount.value < bits:
        by = dtype.type(amount.value)
        return Op(lambda a, _: np.left_shift(a, by), (kind, "u32"), (kind,))

    def apply(a: Any, n: Any) -> Any:
        return np.where(n < bits, np.left_shift(a, np.minimum(n, bits - 1).astype(dtype)), zero)

    return Op(apply, (kind, "u32"), (kind,))


@row(
    "shr", section=LOGIC,
    forms="""
        .b16|b32|b64|s16|u16|s32|u32|s64|u64 : t = t i32
    """,
)  # fmt: skip
def shift_right(ins: Instruction) -> Op:
    """Sign-filling for ``.s``; amounts past the width count as the width."""
    kind = require(ins, *BITS, "s16", "u16", "s32", "u32", "s64", "u64")
    kind = kind if kind.startswith("s") else unsigned(kind)
    dtype, bits = DTYPES[kind], width(kind)
    amount = ins.operands[-1]
    if isinstance(amount, Imm) and 0 <= amount.value < bits:
        by = dtype.type(amount.value)
        return Op(lambda a, _: np.right_shift(a, by), (kind, "u32"), (kind,))

    def apply(a: Any, n: Any) -> Any:
        shifted = np.right_shift(a, np.minimum(n, bits - 1).astype(dtype))
        return shifted if kind.startswith("s") else np.where(n < bits, shifted, dtype.type(0))

    return Op(apply, (kind, "u32"), (kind,))


@row(
    "shf", section=LOGIC,
    forms="""
        l|r! clamp|wrap .b32 : t = t t i32
    """,
)  # fmt: skip
def funnel_shift(ins: Instruction) -> Op:
    """The upper (``.l``) or lower (``.r``) word of the pair ``b:a`` shifted; clamp or wrap."""
    require(ins, "b32")
    left, wrap = ins.has("l"), ins.has("wrap")

    def apply(a: Any, b: Any, c: Any) -> Any:
        n = (c & 31) if wrap else np.minimum(c, 32)
        pair = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
        if left:  # shifting by 32 - n to the right shows the same word
            n = 32 - n
        return (pair >> n.astype(np.uint64)).astype(np.uint32)

    return Op(apply, ("u32", "u32", "u32"), ("u32",))


@row(
    "popc", section=INTEGER,
    forms="""
        .b32|b64 : i32 = t
    """,
)  # fmt: skip
def population_count(ins: Instruction) -> Op:
    """Number of one bits."""
    kind = unsigned(require(ins, "b32", "b64"))
    return Op(lambda a: np.bitwise_count(a).astype(np.int32), (kind,), ("b32",))


def highest_bit(a: Any) -> Any:
    """Position of the highest one bit of an unsigned array, -1 where there is none."""
    wide = a.astype(np.uint64)
    for shift in (1, 2, 4, 8, 16, 32):
        wide = wide | (wide >> np.uint64(shift))
    return np.bitwise_count(wide).astype(np.int32) - np.int32(1)


@row(
    "clz", section=INTEGER,
    forms="""
        .b32|b64 : i32 = t
    """,
)  # fmt: skip
def leading_zeros(ins: Instruction) -> Op:
    """Zeros above the highest one bit."""
    kind = unsigned(require(ins, "b32", "b64"))
    top = np.int32(width(kind) - 1)
    return Op(lambda a: top - highest_bit(a), (kind,), ("b32",))


@row(
    "bfind", section=INTEGER,
    forms="""
        shiftamt? .s32|u32|s64|u64 : i32 = t
    """,
)  # fmt: skip
def find_bit(ins: Instruction) -> Op:
    """Highest bit that is not the sign; 0xffffffff where there is none."""
    kind = require(ins, "u32", "s32", "u64", "s64")
    top = np.int32(width(kind) - 1)
    word = DTYPES[unsigned(kind)]

    def apply(a: Any) -> Any:
        magnitude = np.where(a < 0, ~a, a).view(word) if kind.startswith("s") else a
        found = highest_bit(magnitude)
        if ins.has("shiftamt"):
            return np.where(found < 0, found, top - found)
        return found

    return Op(apply, (kind,), ("b32",))


@row(
    "brev", section=INTEGER,
    forms="""
        .b32|b64 : t = t
    """,
)  # fmt: skip
def bit_reverse(ins: Instruction) -> Op:
    """Bits in reverse order."""
    kind = unsigned(require(ins, "b32", "b64"))
    dtype, bits = DTYPES[kind], width(kind)
    steps = []
    shift = bits // 2
    while shift:
        pattern = sum(((1 << shift) - 1) << i for i in range(0, bits, 2 * shift))
        steps.append((dtype.type(shift), dtype.type(pattern)))
        shift //= 2

    def apply(a: Any) -> Any:
        for by, mask in steps:
            a = ((a & mask) << by) | ((a >> by) & mask)
        return a

    return Op(apply, (kind,), (kind,))


def _field(x: Any, bits: int) -> Any:
    """A bit position or length: 32-bit forms take the low byte, 64-bit ones all of the word.

    PTX ISA says the low byte for both; an H200 clamps the whole word in the 64-bit forms.
    """
    return x & np.uint32(255) if bits == 32 else np.minimum(x, np.uint32(255))


@row(
    "bfe", section=INTEGER,
    forms="""
        .s32|u32|s64|u64 : t = t d8 d8
    """,
)  # fmt: skip
def bit_field_extract(ins: Instruction) -> Op:
    """``c`` bits of ``a`` from bit ``b``, zero- or sign-filled."""
    kind = require(ins, "u32", "s32", "u64", "s64")
    bits, dtype = width(kind), DTYPES[kind]

    def apply(a: Any, b: Any, c: Any) -> Any:
        position, length = _field(b, bits), _field(c, bits)
        if kind.startswith("u"):
            field = np.where(
                position < bits, a >> np.minimum(position, bits - 1).astype(dtype), dtype.type(0)
            )
            ones = np.where(
                length < bits,
                (dtype.type(1) << np.minimum(length, bits - 1).astype(dtype)) - dtype.type(1),
                dtype.type(2**bits - 1),
            )
            return field & ones
        # Signed: past the top, every bit is the field's sign, which is bit
        # min(position + length - 1, bits - 1) of a.
        sign_at = np.minimum(position + length - 1, bits - 1)
        shift_up = (bits - 1 - sign_at.astype(np.int64)).astype(dtype)
        upper = a << np.clip(shift_up, 0, bits - 1).astype(dtype)
        down = np.minimum(position.astype(np.int64) + shift_up, bits - 1).astype(dtype)
        return np.where(length == 0, dtype.type(0), upper >> down)

    return Op(apply, (kind, "u32", "u32"), (kind,))


@row(
    "bfi", section=INTEGER,
    forms="""
        .b32|b64 : t = t t d8 d8
    """,
)  # fmt: skip
def bit_field_insert(ins: Instruction) -> Op:
    """The low ``d`` bits of ``a`` into ``b`` at bit ``c``."""
    kind = unsigned(require(ins, "b32", "b64"))
    bits, dtype = width(kind), DTYPES[kind]

    def apply(a: Any, b: Any, c: Any, d: Any) -> Any:
        position, length = _field(c, bits), _field(d, bits)
        ones = np.where(
            length < bits,
            (dtype.type(1) << np.minimum(length, bits - 1).astype(dtype)) - dtype.type(1),
            dtype.type(2**bits - 1),
        )
        at = np.minimum(position, bits - 1).astype(dtype)
        mask = np.where(position < bits, ones << at, dtype.type(0))
        return (b & ~mask) | ((a << at) & mask)

    return Op(apply, (kind, kind, "u32", "u32"), (kind,))


@row(
    "bmsk", section=INTEGER,
    forms="""
        clamp|wrap .b32 : i32 = i32 i32
    """,
)  # fmt: skip
def bit_mask(ins: Instruction) -> Op:
    """A mask of ``b`` ones from bit ``a``; ``.clamp`` stops at 32, ``.wrap`` takes five bits."""
    require(ins, "b32")

    def apply(a: Any, b: Any) -> Any:
        if ins.has("wrap"):
            a, b = a & 31, b & 31
        start, length = np.minimum(a, 32).astype(np.uint64), np.minimum(b, 32).astype(np.uint64)
        ones = (np.uint64(1) << length) - np.uint64(1)
        return (ones << start).astype(np.uint32)

    return Op(apply, ("u32", "u32"), ("u32",))


@row(
    "fns", section=INTEGER,
    forms="""
        .b32 : t = t t t
    """,
)  # fmt: skip
def find_nth_set(ins: Instruction) -> Op:
    """The ``n``-th one bit of a mask from a base, upwards (n > 0) or downwards (n < 0).

    PTX ISA counts ``|n| - 1`` bits, which the least integer has no room for: 0 there (H200).
    """
    require(ins, "b32")

    def apply(mask: Any, base: Any, offset: Any) -> Any:
        mask, base, offset = np.broadcast_arrays(mask, base, offset)
        result = np.full(mask.shape, 0xFFFFFFFF, np.uint32)
        count = np.zeros(mask.shape, np.int64)
        wanted = np.where(offset == 0, 1, np.abs(offset.astype(np.int64)))
        base64 = base.astype(np.int64)
        for step in range(32):
            at = np.where(offset < 0, base64 - step, base64 + step)
            inside = (at >= 0) & (at < 32) & ((offset != 0) | (step == 0))
            bit = (mask >> np.clip(at, 0, 31).astype(np.uint32)) & 1
            hit = inside & (bit == 1)
            count = count + hit
            result = np.where(hit & (count == wanted), at.astype(np.uint32), result)
        result = np.where(offset == np.int32(-(2**31)), np.uint32(0), result)
        return result if result.ndim else result[()]

    return Op(apply, ("u32", "u32", "s32"), ("u32",))


@row(
    "prmt", section="Data Movement and Conversion Instructions",
    forms="""
        f4e|b4e|rc8|ecl|ecr|rc16? .b32 : t = t t t
    """,
)  # fmt: skip
def permute(ins: Instruction) -> Op:
    """Four bytes picked out of the eight of ``b:a``; a selector's top bit repeats the sign."""
    modes = {
        "f4e": [[i, i + 1, i + 2, i + 3] for i in range(4)],
        "b4e": [[i, (i - 1) % 8, (i - 2) % 8, (i - 3) % 8] for i in range(4)],
        "rc8": [[i] * 4 for i in range(4)],
        "ecl": [[max(i, j) for j in range(4)] for i in range(4)],
        "ecr": [[min(i, j) for j in range(4)] for i in range(4)],
        "rc16": [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
    }
    mode = next((m for m in ins.modifiers if m in modes), None)
    if scalar_type(ins) != "b32":
        raise Unsupported("types other than .b32")

    def apply(a: Any, b: Any, c: Any) -> Any:
        pair = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
        result: Any = np.uint32(0)
        for i in range(4):
            if mode:
                at = np.array([p[i] for p in modes[mode]], np.uint32)[c & 3]
                replicate = np.bool_(False)
            else:
                selector = (c >> np.uint32(4 * i)) & np.uint32(15)
                at, replicate = selector & np.uint32(7), selector >= 8
            byte = (pair >> (at.astype(np.uint64) * np.uint64(8))).astype(np.uint32) & np.uint32(
                255
            )
            filled = np.where(byte >= 128, np.uint32(255), np.uint32(0))
            result = result | (np.where(replicate, filled, byte) << np.uint32(8 * i))
        return result

    return Op(apply, ("u32", "u32", "u32"), ("u32",))


@row(
    "szext", section=INTEGER,
    forms="""
        clamp|wrap .s32|u32 : t = t i32
    """,
)  # fmt: skip
def extend(ins: Instruction) -> Op:
    """Sign- or zero-extend from ``b`` bits."""
    kind = require(ins, "s32", "u32")

    def apply(a: Any, b: Any) -> Any:
        n = (b & 31) if ins.has("wrap") else np.minimum(b, 32)
        up = (32 - n).astype(np.int64)
        moved = a.astype(np.int64) << (up + 32)
        if kind == "u32":
            back = (moved.view(np.uint64) >> np.minimum(up + 32, 63).astype(np.uint64)).view(
                np.int64
            )
        else:
            back = moved >> np.minimum(up + 32, 63)
        return np.where(n == 0, np.int64(0), back).astype(DTYPES[kind])

    return Op(apply, (kind, "u32"), (kind,))
