"""Products of matrices by a warp (PTX ISA, "Warp Level Matrix Instructions")."""

from collections.abc import Callable, Sequence

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ...core.geometry import Geometry, Lanes, WarpView
from ..architectures import sums
from ..numerics import tensor_integers, tensor_numerics
from ..table import Op, lines, row
from . import fragments
from .fragments import BITS, ProductShape, bits_of, kinds, register_type, registers, shape, widest

SECTION = "Warp Level Matrix Multiply-Accumulate Instructions"
Product = Callable[[Lanes, Lanes, Lanes], Lanes]
"""``c + a @ b`` of elements' bits, (K, M, warps) and (K, N, warps) and (M, N, warps)."""


_NARROW = "e4m3|e5m2|e3m2|e2m3|e2m1"
_SCALED = (
    "sync aligned m16n8k32|m16n8k64 row col kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4 "
    "block_scale? scale_vec::1X|scale_vec::2X|scale_vec::4X? "
    f".f16|f32 .{_NARROW} .{_NARROW} .f16|f32"
)
_SHAPES = """
    m8n8k4 .row|col .row|col .f16|f32 .f16 .f16 .f16
    m8n8k4 .row|col .row|col .f32 .f16 .f16 .f32
    m16n8k8 .row .col .f16 .f16 .f16 .f16 @75
    m16n8k8 .row .col .f32 .f16 .f16 .f32 @75
    m16n8k16 .row .col .f16 .f16 .f16 .f16 @80
    m16n8k16 .row .col .f32 .f16 .f16 .f32 @80
    m16n8k8|m16n8k16 .row .col .f32 .bf16 .bf16 .f32 @80
    m16n8k4|m16n8k8 .row .col .f32 .tf32 .tf32 .f32 @80
    m16n8k16|m16n8k32 .row .col .f16 .e4m3|e5m2 .e4m3|e5m2 .f16 @89
    m16n8k16|m16n8k32 .row .col .f32 .e4m3|e5m2 .e4m3|e5m2 .f32 @89
    m8n8k4 .row .col rn|rz|rm|rp? .f64 .f64 .f64 .f64 @80
    m16n8k4|m16n8k8|m16n8k16 .row .col rn|rz|rm|rp? .f64 .f64 .f64 .f64 @90
    m8n8k16 .row .col satfinite? .s32 .s8|u8 .s8|u8 .s32 @75
    m16n8k16|m16n8k32 .row .col satfinite? .s32 .s8|u8 .s8|u8 .s32 @80
    m8n8k32 .row .col satfinite? .s32 .s4|u4 .s4|u4 .s32 @75
    m16n8k32|m16n8k64 .row .col satfinite? .s32 .s4|u4 .s4|u4 .s32 @80
    m8n8k128 .row .col .s32 .b1 .b1 .s32 .xor .popc @75
    m8n8k128 .row .col .s32 .b1 .b1 .s32 .and .popc @80
    m16n8k128|m16n8k256 .row .col .s32 .b1 .b1 .s32 .xor|and .popc @80
"""


@row(
    "mma", section=SECTION, waits="lanes", arch_dependent=True,
    forms="\n".join(f"sync aligned {line} : #d = #a #b #c" for line in lines(_SHAPES)),
    later=f"""
        sp|sp::ordered_metadata! sync aligned m16n8k64|m16n8k128 satfinite? .row .col .s32 .s4|u4 \
        .s4|u4 .s32 : sparse matrices of 4-bit integers: use .s8 or .u8
        {_SCALED} : narrow elements, or scaled ones: use .e4m3 or .e5m2
        {_SCALED} .ue8m0|ue4m3 : narrow elements, or scaled ones: use .e4m3 or .e5m2
    """,
)  # fmt: skip
def multiply(ins: Instruction) -> Op:
    """``d = a @ b + c`` in the arithmetic of the architecture's tensor cores."""
    modifiers = ins.modifiers
    size, types, counts = shape(modifiers), kinds(modifiers), registers(modifiers)
    quarters = size == ProductShape(8, 8, 4) and types[1] == "f16"
    result = np.uint16 if types[0] == "f16" else DTYPES[register_type(counts["d"][1])]
    layouts = [m for m in modifiers if m in ("row", "col")]

    def apply(arch: int, warp: WarpView, *words: Lanes) -> tuple[Lanes, ...]:
        parts, at = [], 0
        for name in "abc":
            parts.append(words[at : at + counts[name][0]])
            at += counts[name][0]
        operation = product(ins, arch)
        if quarters:
            a = fragments.quarter_rows(warp.geometry, parts[0], layouts[0] == "row")
            b = fragments.quarter_rows(warp.geometry, parts[1], layouts[1] == "col")
            c = fragments.quarter_outputs(warp.geometry, parts[2])
            found = operation(*widest(a, b, bits_of(c))).view(result)
            return warp.together(ins, tuple(fragments.quarter_registers(warp.geometry, found)))
        found = operation(*_matrices(warp.geometry, parts, types, size.m)).view(result)
        return warp.together(ins, tuple(fragments.to_registers(warp.geometry, found)))

    inputs, outputs = (
        tuple(register_type(counts[name][1]) for name in names for _ in range(counts[name][0]))
        for names in ("abc", "d")
    )
    work = 2 * size.m * size.n * size.k * (4 if quarters else 1) // 32
    return Op(apply, inputs, outputs, f"tensor_{counted(types[1])}", work, warp=True)


def counted(kind: str) -> str:
    """Return the counter of operations with a type of A."""
    return {"e4m3": "fp8", "e5m2": "fp8"}.get(kind, kind if "f" in kind else "int")


def product(ins: Instruction, arch: int, warpgroup: bool = False, step: int = 0) -> Product:
    """Return the matrix function of an instruction; ``step``: products summed at once, if fewer."""
    types = kinds(ins.modifiers)
    kind = types[1]
    if kind == "f64":
        mode = next((m for m in ins.modifiers if m in ("rz", "rm", "rp")), "rn")
        return lambda a, b, c: tensor_numerics.doubles(a, b, c, mode)
    if kind == "b1":
        both = np.bitwise_xor if ins.has("xor") else np.bitwise_and
        return lambda a, b, c: tensor_integers.bits(a, b, c, both)
    if types[0] == "s32":
        clamped = ins.has("satfinite")
        return lambda a, b, c: tensor_integers.integers(a, b, c, types, clamped)
    if arch >= 75 and shape(ins.modifiers) == (8, 8, 4):
        return lambda a, b, c: tensor_numerics.small(a, b, c, types)
    rule = sums(arch, kind, warpgroup)
    rule = rule._replace(step=step or rule.step)
    unpacks = arch == 90 and not warpgroup and kind in ("e4m3", "e5m2")
    sum_up = tensor_numerics.halves if unpacks else tensor_numerics.floats
    if types[0] == "f16" and types[3] == "f32":  # the driver rounds what f32 sums give
        wide = ("f32", *types[1:])
        return lambda a, b, c: tensor_numerics.rounded(sum_up(a, b, c, wide, rule))
    return lambda a, b, c: sum_up(a, b, c, types, rule)


def _matrices(
    geometry: Geometry, parts: Sequence[Sequence[Lanes]], types: Sequence[str], rows: int
) -> list[Lanes]:
    """Return A, B and C of registers; of single bits, a word is an element."""
    a, b, c = parts
    bits = [BITS[kind] if BITS[kind] > 1 else 32 for kind in types]
    a_rows = fragments.rows_of(geometry, a, bits[1], rows)
    right = fragments.rows_of(geometry, b, bits[2])
    return widest(a_rows, right, bits_of(fragments.outputs_of(geometry, c, bits[3], rows)))
