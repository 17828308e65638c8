"""Products of matrices by a warp, with loads and stores of them (PTX ISA, "WMMA").

Which elements a lane holds PTX leaves open. An H200 lays them out as ``mma`` does: A as blocks of
sixteen rows, B as tiles of eight columns, C and D as both; ``m8n32`` is the transposed product of
``m32n8``, and A and B of f16, which have eight registers, stand in them more than once.
"""

import functools
from typing import NamedTuple

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ...core.geometry import Geometry, Lanes, WarpView
from ..table import Op, Results, lines, row
from . import fragments
from .fragments import BITS, bits_of, kinds, register_type, registers, shape, widest
from .mma import counted, product

SECTION = "Warp Level Matrix Multiply-Accumulate Instructions"
_SPACES = "global|shared|shared::cta?"
_LARGE = "m16n16k16|m8n32k16|m32n8k16"
_MATRICES = f"""
    a|b row|col {_LARGE} {_SPACES} .f16
    a|b row|col {_LARGE} {_SPACES} .s8|u8 @75
    a|b row|col {_LARGE} {_SPACES} .bf16 @80
    a|b row|col m16n16k8 {_SPACES} .tf32 @80
    a|b row|col m8n8k4 {_SPACES} .f64 @80
    a row m8n8k32 {_SPACES} .s4|u4 @75
    b col m8n8k32 {_SPACES} .s4|u4 @75
    a row m8n8k128 {_SPACES} .b1 @75
    b col m8n8k128 {_SPACES} .b1 @75
"""
_SUMS = f"""
    row|col {_LARGE} {_SPACES} .f16|f32
    row|col {_LARGE}|m8n8k32|m8n8k128 {_SPACES} .s32 @75
    row|col m16n16k8 {_SPACES} .f32 @80
    row|col m8n8k4 {_SPACES} .f64 @80
"""
_PRODUCTS = f"""
    .row|col .row|col {_LARGE} .f16|f32 .f16|f32
    .row|col .row|col {_LARGE} satfinite? .s32 .s8 .s8 .s32 @75
    .row|col .row|col {_LARGE} satfinite? .s32 .u8 .u8 .s32 @75
    .row|col .row|col {_LARGE} .f32 .bf16 .bf16 .f32 @80
    .row|col .row|col m16n16k8 .f32 .tf32 .tf32 .f32 @80
    .row|col .row|col m8n8k4 rn|rz|rm|rp? .f64 .f64 .f64 .f64 @80
    .row .col m8n8k32 satfinite? .s32 .s4 .s4 .s32 @75
    .row .col m8n8k32 satfinite? .s32 .u4 .u4 .s32 @75
    .xor .popc .row .col m8n8k128 .s32 .b1 .b1 .s32 @75
    .and .popc .row .col m8n8k128 .s32 .b1 .b1 .s32 @80
"""
_STEPS = {"tf32": 4}
"""How many products the driver lets tensor cores sum at once, where they could sum more."""
_LOADS = [*lines(_MATRICES), *(f"c {line}" for line in lines(_SUMS))]


class FragmentAccess(NamedTuple):
    """One access of a lane to a fragment.

    Attributes:
        register: The register.
        shift: Lowest accessed bit of the register.
        type: PTX type of the access.
        major: For each lane, the row of a row-major matrix, or the column of a column-major one.
        minor: Position in that row or column.
    """

    register: int
    shift: int
    type: str
    major: Lanes
    minor: Lanes


def _blocks(modifiers: tuple[str, ...]) -> tuple[int, int, bool]:
    """Return the computed product's rows of A and columns of B, and if it is transposed."""
    m, n, _ = shape(modifiers)
    return (n, m, True) if (m, n) == (8, 32) else (m, n, False)


@functools.cache
def pieces(modifiers: tuple[str, ...]) -> tuple[FragmentAccess, ...]:
    """Return the accesses of a load or store."""
    name = next(m for m in modifiers if m in ("a", "b", "c", "d"))
    kind, depth = kinds(modifiers)[0], shape(modifiers).k
    rows, columns, transposed = _blocks(modifiers)
    bits = BITS[kind]
    per = max(32 // bits, 1) if bits > 1 else 1
    lane = np.arange(32)
    group, within = lane // 4, lane % 4
    high = min(rows, 16) // 8
    operand = name if not transposed else {"a": "b", "b": "a"}.get(name, name)
    places: list[list[tuple[Lanes, Lanes]]] = []  # of a register's elements, row and column
    if operand in ("a", "b"):
        across, tall = (rows, high) if operand == "a" else (columns, 1)
        steps = depth // (4 * per if bits > 1 else 128)
        for r in range(across * steps // 8):
            first = r // (steps * tall) * 8 * tall + r % tall * 8
            along = r // tall % steps * 4 * per
            found = [(first + group, along + within * per + j) for j in range(per)]
            places.append(found if name == "a" else [(k, n) for n, k in found])
    else:
        both = 2 if bits >= 32 else 1
        for r in range(rows * columns * bits // (2048 if bits == 64 else 1024)):
            tile, down, right = r // (high * both), r // both % high, r % both
            top, first_column = (tile * 16, 0) if rows == 32 else (0, tile * 8)
            found = [
                (top + 8 * down + group, first_column + 2 * within + right + j) for j in range(per)
            ]
            places.append([(y, x) for x, y in found] if transposed else found)
    in_rows = "row" in modifiers
    made = []
    for r, found in enumerate(places):
        spots = [(row, column) if in_rows else (column, row) for row, column in found]
        (major, minor), others = spots[0], spots[1:]
        together = all(
            (y == major).all() and (x == minor + j).all() for j, (y, x) in enumerate(others, 1)
        )
        whole = kind if kind in ("f32", "f64") else "u32"
        if together:
            made.append(FragmentAccess(r, 0, whole, major, minor * (32 if bits == 1 else 1)))
        else:
            made += [
                FragmentAccess(r, j * bits, f"u{bits}", y, x) for j, (y, x) in enumerate(spots)
            ]
    return tuple(made)


def addresses(ins: Instruction, strided: bool) -> Op:
    """Return a function from base address and stride to the address of each access."""
    modifiers = ins.modifiers
    name = next(m for m in modifiers if m in ("a", "b", "c", "d"))
    bits = BITS[kinds(modifiers)[0]]
    m, n, k = shape(modifiers)
    high, wide = {"a": (m, k), "b": (k, n)}.get(name, (m, n))
    usual = np.int64(wide if "row" in modifiers else high)

    def apply(warp: WarpView, base: Lanes, *stride: Lanes) -> Results:
        pitch = stride[0].astype(np.int64) if strided else usual
        lane = warp.lane
        found = [
            base + (piece.major[lane] * pitch + piece.minor[lane]) * bits // 8
            for piece in pieces(modifiers)
        ]
        return tuple(found) if len(found) > 1 else found[0]

    inputs = ("s64", "u32") if strided else ("s64",)
    return Op(apply, inputs, ("s64",) * len(pieces(modifiers)), warp=True)


@row(
    "wmma", section=SECTION, waits="lanes", memory="load", scattered=True,
    forms="\n".join(
        f"load! {head}! sync aligned {rest} : #m = @{stride}"
        for head, _, rest in (line.partition(" ") for line in _LOADS)
        for stride in ("", " i32")
    ),
)  # fmt: skip
def load(ins: Instruction) -> Op:
    """A matrix's registers from its pieces."""
    count, kind = registers(ins.modifiers)["m"]
    split = pieces(ins.modifiers)

    def apply(*values: Lanes) -> Results:
        found: dict[int, Lanes] = {}
        for piece, value in zip(split, values, strict=True):
            if piece.type[0] == "u" and piece.type != "u32":
                value = value.astype(np.uint32) << np.uint32(piece.shift)
                value = found[piece.register] | value if piece.shift else value
            found[piece.register] = value
        result = tuple(found[r % len(found)] for r in range(count))
        return result if count > 1 else result[0]

    return Op(apply, tuple(piece.type for piece in split), (register_type(kind),) * count)


@row(
    "wmma", section=SECTION, waits="lanes", memory="store", scattered=True,
    forms="\n".join(
        f"store! d! sync aligned {line} : = @ #m{stride}"
        for line in lines(_SUMS) for stride in ("", " i32")
    ),
)  # fmt: skip
def store(ins: Instruction) -> Op:
    """A matrix's pieces from its registers."""
    count, kind = registers(ins.modifiers)["m"]
    split = pieces(ins.modifiers)

    def apply(*words: Lanes) -> Results:
        return tuple(
            words[piece.register]
            if piece.type in ("u32", "f32", "f64")
            else (words[piece.register] >> np.uint32(piece.shift)).astype(DTYPES[piece.type])
            for piece in split
        )

    return Op(apply, (register_type(kind),) * count, tuple(piece.type for piece in split))


@row(
    "wmma", section=SECTION, waits="lanes", arch_dependent=True,
    forms="\n".join(f"mma! sync aligned {line} : #d = #a #b #c" for line in lines(_PRODUCTS)),
)  # fmt: skip
def multiply(ins: Instruction) -> Op:
    """``d = a @ b + c`` in the arithmetic of the architecture's tensor cores."""
    modifiers = ins.modifiers
    size, types, counts = shape(modifiers), kinds(modifiers), registers(modifiers)
    rows, columns, transposed = _blocks(modifiers)
    result = np.uint16 if types[0] == "f16" else DTYPES[register_type(counts["d"][1])]
    bits = [BITS[kind] if BITS[kind] > 1 else 32 for kind in types]
    per = 32 // bits[1] if bits[1] < 32 else 1
    steps = max(size.k // (4 * per), 1) if types[1] != "b1" else 1
    tall = min(rows, 16)

    def operand(g: Geometry, words: tuple[Lanes, ...], across: int, height: int) -> Lanes:
        each = steps * height // 8
        split = [words[i * each : (i + 1) * each] for i in range(across // height)]
        found = (fragments.rows_of(g, part, bits[1], height) for part in split)
        return np.concatenate(widest(*found), 1)

    def apply(arch: int, warp: WarpView, *words: Lanes) -> Results:
        g, (many, more) = warp.geometry, (counts["a"][0], counts["b"][0])
        given = words[:many], words[many : many + more]
        a_tile, right = given[::-1] if transposed else given
        a, b = operand(g, a_tile, rows, tall), operand(g, right, columns, 8)
        sums = words[many + more :]
        blocks = rows // tall
        each = len(sums) // blocks
        parts = [sums[i * each : (i + 1) * each] for i in range(blocks)]
        c = np.concatenate(
            widest(*(fragments.outputs_of(g, part, bits[3], tall) for part in parts))
        )
        found = product(ins, arch, step=_STEPS.get(types[1], 0))(*widest(a, b, bits_of(c))).view(
            result
        )
        split = [found[i * tall : (i + 1) * tall] for i in range(blocks)]
        return warp.together(
            ins, tuple(r for part in split for r in fragments.to_registers(g, part))
        )

    inputs, outputs = (
        tuple(register_type(counts[name][1]) for name in names for _ in range(counts[name][0]))
        for names in ("abc", "d")
    )
    work = 2 * size.m * size.n * size.k // 32
    return Op(apply, inputs, outputs, f"tensor_{counted(types[1])}", work, warp=True)
