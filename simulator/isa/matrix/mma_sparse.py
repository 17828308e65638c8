"""``mma.sp``: A has half of its elements, and some lanes' words say which (PTX ISA, "mma.sp").

Of each four elements along K two are there (of tf32, of each two one). Two bits are an element's
place; of a row, a lane has eight places and the row eight below it has the next sixteen bits, or
all sixteen. What is not there is no product: not even with an infinity.
"""

import numpy as np

from kernels.ptx.module import Imm, Instruction
from kernels.ptx.types import DTYPES

from ...core.geometry import Geometry, Lanes, WarpView
from ..architectures import sums
from ..numerics import tensor_integers, tensor_numerics
from ..table import Op, lines, row
from . import fragments
from .fragments import BITS, bits_of, kinds, register_type, registers, shape, widest
from .mma import SECTION, counted

_SHAPES = """
    m16n8k16 .row .col .f16 .f16 .f16 .f16 @80 : quarter
    m16n8k16 .row .col .f32 .f16 .f16 .f32 @80 : quarter
    m16n8k16 .row .col .f32 .bf16 .bf16 .f32 @80 : quarter
    m16n8k32 .row .col .f16 .f16 .f16 .f16 @80 : bit
    m16n8k32 .row .col .f32 .f16 .f16 .f32 @80 : bit
    m16n8k32 .row .col .f32 .bf16 .bf16 .f32 @80 : bit
    m16n8k8 .row .col .f32 .tf32 .tf32 .f32 @80 : quarter
    m16n8k16 .row .col .f32 .tf32 .tf32 .f32 @80 : bit
    m16n8k64 .row .col .f32 .e4m3|e5m2 .e4m3|e5m2 .f32 @89 : zero
    m16n8k32 .row .col satfinite? .s32 .s8|u8 .s8|u8 .s32 @80 : bit
    m16n8k64 .row .col satfinite? .s32 .s8|u8 .s8|u8 .s32 @80 : zero
"""


def _forms() -> str:
    split = (line.partition(" : ") for line in lines(_SHAPES))
    return "\n".join(
        f"sp|sp::ordered_metadata! sync aligned {form} : #d = #a #b #c b32! {selector}"
        for form, _, selector in split
    )


def places(geometry: Geometry, word: Lanes, compressed: int, bits: int, selector: int) -> Lanes:
    """Return the positions of A's elements along K, ``(kept, 16, warps)``."""
    size = 4 if bits == 32 else 2  # bits of a place
    lanes = fragments.stacked(geometry, [word], 1)[0]  # warps, 8, 4, blocks
    warps, blocks = lanes.shape[0], lanes.shape[3]
    found = np.empty((compressed, 2, 8, warps, blocks), np.int64)
    for i in range(compressed):
        for high in range(2):
            if bits == 8:  # a row's sixteen places fill a word
                lane, at = high + i // 16 * 2, i % 16
            else:
                each = 16 // size
                lane, at = i // each, i % each + each * high
            lane += selector * (1 if compressed * size <= 16 else 2)
            place = lanes[:, :, lane] >> np.uint32(size * at) & np.uint32((1 << size) - 1)
            first = i * 2 if bits == 32 else i // 2 * 4
            found[i, high] = (first + (place >> 3 if bits == 32 else place)).transpose(1, 0, 2)
    return found.reshape(compressed, 16, warps * blocks)


@row("mma", section=SECTION, waits="lanes", arch_dependent=True, forms=_forms())
def multiply(ins: Instruction) -> Op:
    """``d = a @ b + c``, where A is sparse."""
    modifiers = ins.modifiers
    size, types, counts = shape(modifiers), kinds(modifiers), registers(modifiers)
    selector = ins.operands[-1]
    assert isinstance(selector, Imm)
    chosen = selector.value
    result = np.uint16 if types[0] == "f16" else DTYPES[register_type(counts["d"][1])]

    def apply(arch: int, warp: WarpView, *words: Lanes) -> tuple[Lanes, ...]:
        g, parts, at = warp.geometry, [], 0
        for name in "abc":
            parts.append(words[at : at + counts[name][0]])
            at += counts[name][0]
        compressed = fragments.rows_of(g, parts[0], BITS[types[1]], 16)
        where = places(g, words[-2], len(compressed), BITS[types[1]], chosen)
        b = fragments.rows_of(g, parts[1], BITS[types[2]])
        c = bits_of(fragments.outputs_of(g, parts[2], BITS[types[3]], 16))
        compressed, where, b, c = widest(compressed, where, b, c)
        found = product(ins, arch, compressed, where, b, c)
        return warp.together(ins, tuple(fragments.to_registers(g, found.view(result))))

    inputs, outputs = (
        tuple(register_type(counts[name][1]) for name in names for _ in range(counts[name][0]))
        for names in ("abc", "d")
    )
    work = size.m * size.n * size.k // 32  # half of a dense one
    return Op(
        apply, (*inputs, "u32", "u32"), outputs, f"tensor_{counted(types[1])}", work, warp=True
    )


def product(
    ins: Instruction, arch: int, compressed: Lanes, where: Lanes, b: Lanes, c: Lanes,
    warpgroup: bool = False,
) -> Lanes:  # fmt: skip
    """Return the sum of the stored products; ``where``: their positions along K."""
    types = kinds(ins.modifiers)

    def spread(part: slice | Lanes) -> tuple[Lanes, Lanes]:
        dense = np.zeros((len(b), *compressed.shape[1:]), compressed.dtype)
        there = np.zeros(dense.shape, bool)
        np.put_along_axis(dense, where[part], compressed[part], axis=0)
        np.put_along_axis(there, where[part], True, axis=0)
        return dense, there

    if types[0] == "s32":
        dense, _ = spread(slice(None))
        return tensor_integers.integers(dense, b, c, types, ins.has("satfinite"))
    rule = sums(arch, types[1], warpgroup)
    whole = rule._replace(step=len(b))  # those of a step lie among zeros
    if arch == 90 and BITS[types[1]] == 8 and not warpgroup:
        first = np.arange(len(compressed)) % 4 < 2
        parts = [(*spread(np.flatnonzero(half)), b) for half in (first, ~first)]
        return tensor_numerics.unpacked(parts, c, types, whole)
    for k in range(0, len(compressed), rule.step):
        dense, there = spread(slice(k, k + rule.step))
        c = tensor_numerics.floats(dense, b, c, types, whole, there)
    return c
