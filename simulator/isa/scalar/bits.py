"""Counting, finding and moving bits (PTX ISA, "Integer Arithmetic Instructions")."""

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ...core.geometry import Lanes
from ..table import Op, row, scalar_type, unsigned, width

SECTION = "Integer Arithmetic Instructions"


@row("popc", section=SECTION, forms=".b32|b64 : i32 = t")
def population_count(ins: Instruction) -> Op:
    """Number of one bits."""
    type = unsigned(scalar_type(ins))
    return Op(lambda a: np.bitwise_count(a).astype(np.int32), (type,), ("b32",), positions=True)


def highest_bit(a: Lanes) -> Lanes:
    """Return position of the highest one bit of an unsigned array, -1 where there is none."""
    wide = a.astype(np.uint64)
    for shift in (1, 2, 4, 8, 16, 32):
        wide = wide | (wide >> np.uint64(shift))
    return np.bitwise_count(wide).astype(np.int32) - np.int32(1)


@row("clz", section=SECTION, forms=".b32|b64 : i32 = t")
def leading_zeros(ins: Instruction) -> Op:
    """Zeros above the highest one bit."""
    type = unsigned(scalar_type(ins))
    top = np.int32(width(type) - 1)
    return Op(lambda a: top - highest_bit(a), (type,), ("b32",), positions=True)


@row("bfind", section=SECTION, forms="shiftamt? .s32|u32|s64|u64 : i32 = t")
def find_bit(ins: Instruction) -> Op:
    """Highest bit that is not the sign; 0xffffffff where there is none."""
    type = scalar_type(ins)
    top = np.int32(width(type) - 1)
    word = DTYPES[unsigned(type)]

    def apply(a: Lanes) -> Lanes:
        magnitude = np.where(a < 0, ~a, a).view(word) if type.startswith("s") else a
        found = highest_bit(magnitude)
        if ins.has("shiftamt"):
            return np.where(found < 0, found, top - found)
        return found

    return Op(apply, (type,), ("b32",), positions=True)


@row("brev", section=SECTION, forms=".b32|b64 : t = t")
def bit_reverse(ins: Instruction) -> Op:
    """Bits in reverse order."""
    type = unsigned(scalar_type(ins))
    dtype, bits = DTYPES[type], width(type)
    steps = []
    shift = bits // 2
    while shift:
        pattern = sum(((1 << shift) - 1) << i for i in range(0, bits, 2 * shift))
        steps.append((dtype.type(shift), dtype.type(pattern)))
        shift //= 2

    def apply(a: Lanes) -> Lanes:
        for by, mask in steps:
            a = ((a & mask) << by) | ((a >> by) & mask)
        return a

    return Op(apply, (type,), (type,))


def _field(x: Lanes, bits: int) -> Lanes:
    """Return a bit position or length: 32-bit forms take the low byte, 64-bit ones all of the word.

    PTX ISA says the low byte for both; an H200 clamps the whole word in the 64-bit forms.
    """
    return x & np.uint32(255) if bits == 32 else np.minimum(x, np.uint32(255))


def _low_ones(length: Lanes, dtype: np.dtype[np.generic]) -> Lanes:
    """Return numbers with so many low bits set; at most all."""
    bits = dtype.itemsize * 8
    some = (dtype.type(1) << np.minimum(length, bits - 1).astype(dtype)) - dtype.type(1)
    return np.where(length < bits, some, dtype.type(2**bits - 1))


@row("bfe", section=SECTION, forms=".s32|u32|s64|u64 : t = t d8 d8")
def bit_field_extract(ins: Instruction) -> Op:
    """``c`` bits of ``a`` from bit ``b``, zero- or sign-filled."""
    type = scalar_type(ins)
    bits, dtype = width(type), DTYPES[type]

    def apply(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        position, length = _field(b, bits), _field(c, bits)
        if type.startswith("u"):
            field = np.where(
                position < bits, a >> np.minimum(position, bits - 1).astype(dtype), dtype.type(0)
            )
            return field & _low_ones(length, dtype)
        # Signed: past the top, every bit is the field's sign, which is bit
        # min(position + length - 1, bits - 1) of a.
        sign_at = np.minimum(position + length - 1, bits - 1)
        shift_up = (bits - 1 - sign_at.astype(np.int64)).astype(dtype)
        upper = a << np.clip(shift_up, 0, bits - 1).astype(dtype)
        down = np.minimum(position.astype(np.int64) + shift_up, bits - 1).astype(dtype)
        return np.where(length == 0, dtype.type(0), upper >> down)

    return Op(apply, (type, "u32", "u32"), (type,))


@row("bfi", section=SECTION, forms=".b32|b64 : t = t t d8 d8")
def bit_field_insert(ins: Instruction) -> Op:
    """The low ``d`` bits of ``a`` into ``b`` at bit ``c``."""
    type = unsigned(scalar_type(ins))
    bits, dtype = width(type), DTYPES[type]

    def apply(a: Lanes, b: Lanes, c: Lanes, d: Lanes) -> Lanes:
        position, length = _field(c, bits), _field(d, bits)
        at = np.minimum(position, bits - 1).astype(dtype)
        mask = np.where(position < bits, _low_ones(length, dtype) << at, dtype.type(0))
        return (b & ~mask) | ((a << at) & mask)

    return Op(apply, (type, type, "u32", "u32"), (type,))


@row("bmsk", section=SECTION, forms="clamp|wrap .b32 : i32 = i32 i32")
def bit_mask(ins: Instruction) -> Op:
    """A mask of ``b`` ones from bit ``a``; ``.clamp`` stops at 32, ``.wrap`` takes five bits."""

    def apply(a: Lanes, b: Lanes) -> Lanes:
        if ins.has("wrap"):
            a, b = a & 31, b & 31
        start, length = np.minimum(a, 32).astype(np.uint64), np.minimum(b, 32).astype(np.uint64)
        ones = (np.uint64(1) << length) - np.uint64(1)
        return (ones << start).astype(np.uint32)

    return Op(apply, ("u32", "u32"), ("u32",))


@row("fns", section=SECTION, forms=".b32 : t = t t t")
def find_nth_set(ins: Instruction) -> Op:
    """The ``n``-th one bit of a mask from a base, upwards (n > 0) or downwards (n < 0).

    PTX ISA counts ``|n| - 1`` bits, which the least integer has no room for: 0 there (H200).
    """

    def apply(mask: Lanes, base: Lanes, offset: Lanes) -> Lanes:
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


@row("szext", section=SECTION, forms="clamp|wrap .s32|u32 : t = t i32")
def extend(ins: Instruction) -> Op:
    """Sign- or zero-extend from ``b`` bits."""
    type = scalar_type(ins)

    def apply(a: Lanes, b: Lanes) -> Lanes:
        n = (b & 31) if ins.has("wrap") else np.minimum(b, 32)
        up = (32 - n).astype(np.int64)
        moved = a.astype(np.int64) << (up + 32)
        if type == "u32":
            back = (moved.view(np.uint64) >> np.minimum(up + 32, 63).astype(np.uint64)).view(
                np.int64
            )
        else:
            back = moved >> np.minimum(up + 32, 63)
        return np.where(n == 0, np.int64(0), back).astype(DTYPES[type])

    return Op(apply, (type, "u32"), (type,))
