"""Matrices that lie across a warp's registers (PTX ISA, "Warp-level Matrix Instructions").

Of a matrix of eight times eight 16-bit elements, lane ``t`` holds two neighbours of row ``t / 4``,
the columns ``2 * (t % 4)`` and one more, in the low and the high half of a register.
"""

import functools

import numpy as np

from kernels.ptx.module import Instruction

from ...core.geometry import Lanes, WarpView
from ..table import Op, Results, row

SECTION = "Warp-level Matrix Instructions"
ROW_WORDS = 4
"""Words of 32 bits in a row of 16 bytes."""


@row("movmatrix", section=SECTION, waits="lanes", forms="sync aligned m8n8 trans .b16 : b32 = b32!")
def transpose(ins: Instruction) -> Op:
    """Build the transposition of a matrix."""
    return Op(functools.partial(_transposed, ins), ("u32",), ("u32",), warp=True)


@row(
    "ldmatrix", section=SECTION, memory="load", rows=True, waits="lanes",
    forms="sync aligned m8n8 x1|x2|x4 trans? shared|shared::cta? .b16 : v:b32 = @",
    later="sync aligned m16n16 x1|x2 trans shared|shared::cta? .b8 : 8-bit elements: use .b16",
)  # fmt: skip
def load_matrices(ins: Instruction) -> Op:
    """One, two or four matrices; lane ``8 * k + i`` gives the address of row ``i`` of the k-th.

    The function gets the rows that the lanes have loaded, and hands out the elements.
    """
    count = matrices(ins)

    def apply(warp: WarpView, *words: Lanes) -> Results:
        row, column = warp.lane >> 2, warp.lane & 3
        found = []
        for matrix in range(count):
            parts = [warp.read(ins, word, matrix * 8 + row) for word in words]
            first = np.where(column == 0, parts[0], parts[1])
            right = np.where(column == 2, parts[2], parts[3])
            fragment = np.where(column < 2, first, right)
            found.append(_transposed(ins, warp, fragment) if ins.has("trans") else fragment)
        return tuple(found) if count > 1 else found[0]

    return Op(apply, ("u32",) * ROW_WORDS, ("u32",) * count, warp=True)


@row(
    "stmatrix", section=SECTION, memory="store", rows=True, waits="lanes",
    forms="sync aligned m8n8 x1|x2|x4 trans? shared|shared::cta? .b16 @90 : = @ v:b32!",
    later="""
        sync aligned m16n8 x1|x2|x4 trans shared|shared::cta? .b8 : 8-bit elements: use .b16
    """,
)  # fmt: skip
def store_matrices(ins: Instruction) -> Op:
    """Return the inverse operation: from elements to the rows that lanes store."""
    count = matrices(ins)

    def apply(warp: WarpView, *fragments: Lanes) -> Results:
        if ins.has("trans"):
            fragments = tuple(_transposed(ins, warp, fragment) for fragment in fragments)
        first, matrix = warp.lane % 8 * 4, warp.lane // 8
        words = []
        for word in range(ROW_WORDS):
            found = warp.read(ins, fragments[0], first + word)
            for other in range(1, count):
                found = np.where(
                    matrix == other, warp.read(ins, fragments[other], first + word), found
                )
            words.append(found)
        return tuple(words)

    return Op(apply, ("u32",) * count, ("u32",) * ROW_WORDS, warp=True)


def matrices(ins: Instruction) -> int:
    """Return the number of matrices of an instruction."""
    return next(int(m[1:]) for m in ins.modifiers if m in ("x1", "x2", "x4"))


def _transposed(ins: Instruction, warp: WarpView, fragment: Lanes) -> Lanes:
    row, column = warp.lane >> 2, (warp.lane & 3) * 2
    half = ((row & 1) * 16).astype(np.uint32)

    def element(row_of: Lanes) -> Lanes:
        return (warp.read(ins, fragment, row_of * 4 + (row >> 1)) >> half) & np.uint32(0xFFFF)

    return element(column) | (element(column + 1) << np.uint32(16))
