"""Products of matrices by a warpgroup (PTX ISA, "Asynchronous Warpgroup Level Matrix ...").

Each of the four warps makes sixteen of the 64 rows; B, and A if it has a descriptor, lie in shared
memory as rows of sixteen bytes. A warp reads all of B, and its part of A, when it issues the
instruction, and for the race checks once more when its group has been waited for.
"""

from typing import NamedTuple

import numpy as np

from kernels.ptx.module import Imm, Instruction, Operand, Vector
from kernels.ptx.types import DTYPES

from ...core.geometry import Geometry, Lanes, WarpView
from ..table import Op, Results, register_effect_only, row
from . import fragments
from .fragments import (
    BITS,
    bits_of,
    elements,
    kinds,
    register_type,
    registers,
    shape,
    stacked,
    widest,
)  # fmt: skip
from .mma import counted, product
from .mma_sparse import places
from .mma_sparse import product as product_of_sparse

SECTION = "Asynchronous Warpgroup Level Matrix Instructions"
ROWS = 16
"""Rows of sixteen bytes that a warp reads at once: two of them are 32 bytes along K."""


def _forms() -> str:
    every = range(8, 257, 8)
    some = (8, 16, 24, *range(32, 257, 16))
    found = []
    for a, turns in (("#a", 1), ("u64", 2)):
        for k, columns, types, rest in (
            (16, every, ".f16|f32 .f16 .f16", "sign sign" + " bit" * turns),
            (16, every, ".f32 .bf16 .bf16", "sign sign" + " bit" * turns),
            (8, every, ".f32 .tf32 .tf32", "sign sign"),
            (32, every, ".f16|f32 .e4m3|e5m2 .e4m3|e5m2", "sign sign"),
            (32, some, "satfinite? .s32 .s8|u8 .s8|u8", ""),
            (256, some, ".s32 .b1 .b1 .and .popc", ""),
        ):
            shapes = "|".join(f"m64n{n}k{k}" for n in columns)
            head = f"sync aligned {shapes} {types} @-90 @a"
            found.append(f"mma_async! {head} : #d+ = {a} u64 scale {rest}")
            if k < 256:
                head = head.replace(f"k{k}", f"k{2 * k}")
                chosen = "zero" if k == 32 else "bit"
                found.append(f"mma_async! sp! {head} : #d+ = {a} u64 b32! {chosen} scale {rest}")
    return "\n".join(found)


register_effect_only(
    "wgmma", section=SECTION, queue="product", forms="fence! sync aligned? @-90 @a :"
)
register_effect_only(
    "wgmma", section=SECTION, asynchronous="commit", queue="product",
    forms="commit_group! sync aligned? @-90 @a :",
)  # fmt: skip
register_effect_only(
    "wgmma", section=SECTION, waits="lanes", asynchronous="wait", queue="product",
    forms="wait_group! sync aligned? @-90 @a : = count",
)  # fmt: skip


class Fetch(NamedTuple):
    """Loads of a matrix from shared memory by a warp.

    Attributes:
        addresses: Function from a descriptor to the address of each lane's sixteen bytes, for each
            load.
        lanes: Number of lanes of each load.
    """

    addresses: Op
    lanes: tuple[int, ...]


def turned(ins: Instruction) -> tuple[bool, bool]:
    """Whether A and B lie with M and N along a row, not K."""
    numbers = [operand.value for operand in ins.operands[3:] if isinstance(operand, Imm)]
    if BITS[kinds(ins.modifiers)[1]] != 16:
        return False, False
    in_registers = isinstance(ins.operands[1], Vector)
    return not in_registers and bool(numbers[-2]), bool(numbers[-1])


def fetches(ins: Instruction) -> list[Fetch]:
    """Return the loads of A, if it has a descriptor, and of B."""
    turns, n = turned(ins), shape(ins.modifiers).n
    found = [] if isinstance(ins.operands[1], Vector) else [_fetch(ROWS, turns[0], True)]
    return [*found, _fetch(n, turns[1], False, _chunks(ins))]


def _constant(operand: Operand | None) -> int:
    assert isinstance(operand, Imm)
    return operand.value


def _chunks(ins: Instruction) -> int:
    """Return the sixteen-byte rows of B along K: twice those of A if that is sparse."""
    return 4 if ins.has("sp") else 2


def _fetch(rows: int, turns: bool, own: bool, chunks: int = 2) -> Fetch:
    units = chunks * rows
    loads = -(-units // 32)

    def addresses(warp: WarpView, descriptor: Lanes) -> Results:
        unit = np.arange(loads).reshape(-1, 1, 1, 1, 1) * 32 + warp.lane
        first = ROWS * (warp.geometry.warp_ids % 4) if own else 0
        if turns:
            across, along = np.divmod(unit, 8 * chunks)
            return _split(_place(descriptor, across + first // 8, along, True))
        across, along = np.divmod(unit, chunks)
        return _split(_place(descriptor, across + first, along, False))

    lanes = tuple(min(32, units - 32 * load) for load in range(loads))
    return Fetch(Op(addresses, ("s64",), ("s64",) * loads, warp=True), lanes)


def _split(found: Lanes) -> Results:
    return tuple(found) if len(found) > 1 else found[0]


def _place(descriptor: Lanes, across: Lanes, along: Lanes, turns: bool) -> Lanes:
    """Return the address of a row of sixteen bytes.

    Without turning, row ``across`` of M or N has some of them along K; with it, row ``along`` of K
    has one for each eight of M or N. What a swizzled row has no room for lies ``lead`` further on,
    as an H200 was seen to read it.
    """
    start, lead, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    mode = descriptor >> 62 & 3
    units = np.array([1, 8, 4, 2])[mode]  # of a row of the swizzled pattern
    plain_mode = mode == 0
    if turns:
        inner, group = across % units, across // units
        offset = inner * 16 + along % 8 * 16 * units
        offset = offset + np.where(plain_mode, stride, lead) * group
        offset = offset + np.where(plain_mode, lead, stride) * (along // 8)
    else:
        offset = across % 8 * 16 * units + across // 8 * stride
        inside = np.where(plain_mode, 1, units)
        offset = offset + along % inside * 16 + along // inside * lead
    address = start + offset
    phase = (address >> 7) - (descriptor >> 49 & 7)
    found: Lanes = address ^ ((phase & (units - 1)) << 4)
    return found


def _matrix(
    geometry: Geometry, words: tuple[Lanes, ...], bits: int, turns: bool, chunks: int = 2
) -> Lanes:
    """Return a matrix of what ``_fetch`` has loaded, ``(K, rows, warps)``."""
    found = stacked(geometry, words, len(words) // 4, 4)
    loads, _, warps, _, _, blocks = found.shape
    halves = (4 // chunks, 8 * chunks) if turns else (32 // chunks, chunks)
    parts = elements(found.reshape(loads, 4, warps, *halves, blocks), bits)
    stack = np.stack(parts, 2)  # load, word, part, warp, lane's two, block
    order = (5, 0, 4, 1, 2, 3, 6) if turns else (5, 1, 2, 0, 4, 3, 6)
    depth = 8 * chunks if turns else 4 * chunks * len(parts)
    return stack.transpose(order).reshape(depth, -1, warps * blocks)


@row("wgmma", section=SECTION, waits="lanes", arch_dependent=True, warpgroup=True,
     queue="product", forms=_forms())  # fmt: skip
def multiply(ins: Instruction) -> Op:
    """``d = a @ b + d``, or without it; of D, A's registers or words, B's words and ``scale-d``.

    Where A is sparse, the word that says which of it are there comes before ``scale-d``.
    """
    modifiers = ins.modifiers
    size, types, counts = shape(modifiers), kinds(modifiers), registers(modifiers)
    sparse = ins.has("sp")
    own_a, turns = isinstance(ins.operands[1], Vector), turned(ins)
    sums, parts_a = counts["d"][0], counts["a"][0] if own_a else 4
    numbers = [operand.value for operand in ins.operands[3:] if isinstance(operand, Imm)]
    negative = numbers.count(-1) % 2 == 1
    bits = [BITS[kind] if BITS[kind] > 1 else 32 for kind in types]
    result = np.uint16 if types[0] == "f16" else DTYPES[register_type(counts["d"][1])]

    def apply(arch: int, warp: WarpView, *words: Lanes) -> Results:
        g, scale = warp.geometry, words[-1]
        start = words[:sums]
        if scale.ndim or not scale:
            start = tuple(np.where(scale, d, d.dtype.type(0)) for d in start)
        given, rest = words[sums : sums + parts_a], words[sums + parts_a : -1 - sparse]
        if own_a:
            a = fragments.rows_of(g, given, bits[1], ROWS)
        else:
            a = _matrix(g, given, bits[1], turns[0])
        if negative:
            a = a ^ a.dtype.type(1 << (bits[1] - 1))
        b = _matrix(g, rest, bits[2], turns[1], _chunks(ins))[:, : size.n]
        c = bits_of(fragments.outputs_of(g, start, bits[0], ROWS))
        if sparse:
            where = places(g, words[-2], len(a), bits[1], _constant(ins.operands[4]))
            a, where, b, c = widest(a, where, b, c)
            found = product_of_sparse(ins, arch, a, where, b, c, warpgroup=True).view(result)
        else:
            operation = product(ins, arch, warpgroup=True)
            found = operation(*widest(a, b, c)).view(result)
        return warp.together(ins, tuple(fragments.to_registers(g, found)))

    loads = -(-size.n * _chunks(ins) // 32)
    others = parts_a + 4 * loads + sparse
    inputs = (register_type(counts["d"][1]),) * sums + ("u32",) * others + ("pred",)
    outputs = (register_type(counts["d"][1]),) * sums
    work = 2 * ROWS * size.n * size.k // 32 // (1 + sparse)
    return Op(apply, inputs, outputs, f"tensor_{counted(types[1])}", work, warp=True)
