"""Moves: of a value, of the parts of one, of bytes (PTX ISA, "mov" and "prmt")."""

from typing import cast

import numpy as np

from kernels.ptx.module import Instruction, Vector
from kernels.ptx.types import DTYPES

from ...core.geometry import NO_LANE, Lanes
from ..table import Op, Unsupported, bits_or_float, row, same, scalar_type, width

SECTION = "Data Movement and Conversion Instructions"


@row(
    "mov", section=SECTION, copies=True, of_address="same",
    forms="""
        .pred|u16|s16|u32|s32|u64|s64|f32|f64 : t = t%&
        .b16|b32|b64 : t = t%&
    """,
)  # fmt: skip
def move(ins: Instruction) -> Op:
    """Build a copy."""
    type = bits_or_float(scalar_type(ins))
    return Op(same, (type,), (type,))


@row("mov", section=SECTION, forms=".b16|b32|b64 : t = {t}")
def pack_parts(ins: Instruction) -> Op:
    """Two or four values side by side, the first in the lowest bits."""
    part, count, type = _parts(ins, 1)
    dtypes = [DTYPES[f"b{width(part) << step}"] for step in range(1, count.bit_length())]

    def apply(*parts: Lanes) -> Lanes:
        values = parts
        for dtype in dtypes:
            pairs = zip(values[::2], values[1::2], strict=True)
            values = tuple(pack(low, high, dtype) for low, high in pairs)
        return values[0]

    return Op(apply, (part,) * count, (type,))


@row("mov", section=SECTION, forms=".b16|b32|b64 : {t} = t%&")
def unpack_parts(ins: Instruction) -> Op:
    """The two or four parts of a value, the lowest bits first."""
    part, count, type = _parts(ins, 0)
    dtype = DTYPES[part]
    return Op(
        lambda value: tuple(upper(value, i, dtype) for i in range(count)), (type,), (part,) * count
    )


@row("mov", section=SECTION, forms=".b16|b32|b64 : {t} = {t}")
def move_parts(ins: Instruction) -> Op:
    """Refuse a move between two vectors."""
    raise Unsupported("a move between two vectors: use one for each part")


@row("mov", section=SECTION, forms=".b128 : t = t\n.b128 : t = {t}\n.b128 : {t} = t")
def move_halves(ins: Instruction) -> Op:
    """Build a copy between 128 bits and two parts of 64 or four of 32."""
    into, source = (len(o.items) if isinstance(o, Vector) else 2 for o in ins.operands)
    inputs, outputs = (f"b{128 // source}",) * source, (f"b{128 // into}",) * into

    def apply(*parts: Lanes) -> tuple[Lanes, ...]:
        if source == into:
            return parts
        if source > into:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            return tuple(pack(low, high, DTYPES["b64"]) for low, high in pairs)
        return tuple(upper(part, i, DTYPES["b32"]) for part in parts for i in range(2))

    return Op(apply, inputs, outputs)


def _parts(ins: Instruction, operand: int) -> tuple[str, int, str]:
    """Return the type of one part, how many there are, and the type of the whole."""
    vector, type = ins.operands[operand], scalar_type(ins)
    assert isinstance(vector, Vector)
    count = len(vector.items)
    return f"b{width(type) // count}", count, type


@row("prmt", section=SECTION, forms="f4e|b4e|rc8|ecl|ecr|rc16? .b32 : t = t t t")
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

    def apply(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        pair = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
        result = cast(Lanes, np.uint32(0))
        for i in range(4):
            if mode:
                at = np.array([p[i] for p in modes[mode]], np.uint32)[c & 3]
                replicate = NO_LANE
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


def pack(low_half: Lanes, high_half: Lanes, dtype: np.dtype) -> Lanes:
    """Return two values of half the width side by side."""
    half = low_half.dtype.itemsize * 8
    word = np.dtype(f"u{dtype.itemsize}")
    a = low_half.view(f"u{low_half.dtype.itemsize}").astype(word)
    b = high_half.view(f"u{high_half.dtype.itemsize}").astype(word)
    return (a | (b << word.type(half))).view(dtype)


def upper(value: Lanes, part: int, dtype: np.dtype) -> Lanes:
    """Return the ``part``-th piece of a value that is a vector of narrower ones."""
    word = value.view(f"u{value.dtype.itemsize}")
    return (
        (word >> word.dtype.type(part * dtype.itemsize * 8))
        .astype(f"u{dtype.itemsize}")
        .view(dtype)
    )
