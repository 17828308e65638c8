"""Moves: of a value, and of the parts of one (PTX ISA, "mov")."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.ptx.module import Instruction, Vector
from kernels.ptx.types import DTYPES

from .table import Op, Unsupported, bits_or_float, row, same, scalar_type, width

SECTION = "Data Movement and Conversion Instructions"


@row(
    "mov", section=SECTION, copies=True,
    later="""
        .b128 : 128-bit values
    """,
    forms="""
        .pred|u16|s16|u32|s32|u64|s64|f32|f64 : t = t%&
        .b16|b32|b64 : t = t%&
    """,
)  # fmt: skip
def move(ins: Instruction) -> Op:
    """A copy."""
    kind = bits_or_float(scalar_type(ins))
    return Op(same, (kind,), (kind,))


@row("mov", section=SECTION, forms=".b16|b32|b64 : t = {t}")
def pack_parts(ins: Instruction) -> Op:
    """Two or four values side by side, the first in the lowest bits."""
    part, count, kind = _parts(ins, 1)
    dtypes = [DTYPES[f"b{width(part) << step}"] for step in range(1, count.bit_length())]

    def apply(*parts: Any) -> Any:
        values = parts
        for dtype in dtypes:
            pairs = zip(values[::2], values[1::2], strict=True)
            values = tuple(pack(low, high, dtype) for low, high in pairs)
        return values[0]

    return Op(apply, (part,) * count, (kind,))


@row("mov", section=SECTION, forms=".b16|b32|b64 : {t} = t%&")
def unpack_parts(ins: Instruction) -> Op:
    """The two or four parts of a value, the lowest bits first."""
    part, count, kind = _parts(ins, 0)
    dtype = DTYPES[part]
    return Op(
        lambda value: tuple(upper(value, i, dtype) for i in range(count)), (kind,), (part,) * count
    )


@row("mov", section=SECTION, forms=".b16|b32|b64 : {t} = {t}")
def move_parts(ins: Instruction) -> Op:
    """Parts to parts."""
    raise Unsupported("a move between two vectors")


def _parts(ins: Instruction, operand: int) -> tuple[str, int, str]:
    """The type of one part, how many there are, and the type of the whole."""
    vector, kind = ins.operands[operand], scalar_type(ins)
    assert isinstance(vector, Vector)
    count = len(vector.items)
    return f"b{width(kind) // count}", count, kind


def pack(low_half: Any, high_half: Any, dtype: Any) -> Any:
    """Two values of half the width side by side."""
    half = low_half.dtype.itemsize * 8
    word = np.dtype(f"u{dtype.itemsize}")
    a = low_half.view(f"u{low_half.dtype.itemsize}").astype(word)
    b = high_half.view(f"u{high_half.dtype.itemsize}").astype(word)
    return (a | (b << word.type(half))).view(dtype)


def upper(value: Any, part: int, dtype: Any) -> Any:
    """The ``part``-th piece of a value that is a vector of narrower ones."""
    word = value.view(f"u{value.dtype.itemsize}")
    return (
        (word >> word.dtype.type(part * dtype.itemsize * 8))
        .astype(f"u{dtype.itemsize}")
        .view(dtype)
    )
