"""Instructions that look across the lanes of a warp (PTX ISA, "shfl.sync", "vote.sync" ...).

Their functions get a ``WarpView`` first, then the operands. Each of them waits
until all lanes that its mask names have come to it; the machine sees to that.
"""

import dataclasses
from typing import cast

import numpy as np

from kernels.ptx.module import Instruction, Pair
from kernels.ptx.types import DTYPES

from ...core.geometry import WHOLE_WARP, Lanes, Mask, WarpView
from ..table import Op, Results, row, scalar_type

PARALLEL = "Parallel Synchronization and Communication Instructions"
_NOBODY = cast(Lanes, np.uint32(0))
MOVEMENT = "Data Movement and Conversion Instructions"


@row(
    "shfl", section=MOVEMENT, waits="lanes", shuffles=True,
    forms="""
        sync up|down|bfly|idx .b32 : t|pred*? = t t t members
        up|down|bfly|idx .b32 @-69 : t|pred*? = t t t
    """,
)  # fmt: skip
def shuffle(ins: Instruction) -> Op:
    """Another lane's value: ``up``, ``down``, ``bfly`` or ``idx``; ``p``: the lane was in range."""
    pair = isinstance(ins.operands[0], Pair)

    def apply(warp: WarpView, a: Lanes, b: Lanes, c: Lanes, members: Lanes = WHOLE_WARP) -> Results:
        source, inside = shuffled(ins, warp.lane, b, c)
        value = warp.read(ins, a, source, inside, members)
        return (value, inside) if pair else value

    inputs = ("b32", "s32", "s32", "u32")[: len(ins.operands) - 1]
    return Op(apply, inputs, ("b32", "pred") if pair else ("b32",), warp=True)


def shuffled(ins: Instruction, lane: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Mask]:
    """Return the lane that each ``lane`` of a shuffle reads, and whether that one is in range."""
    mode = next(m for m in ins.modifiers if m in ("up", "down", "bfly", "idx"))
    b = b & 31
    segment, clamp = (c >> 8) & 31, c & 31
    last = (lane & segment) | (clamp & ~segment)
    if mode == "up":
        source = lane - b
        return source, source >= last
    if mode == "down":
        source = lane + b
    elif mode == "bfly":
        source = lane ^ b
    else:
        source = (lane & segment) | (b & ~segment)
    return source, source <= last


@row(
    "vote", section=PARALLEL, waits="lanes",
    forms="""
        sync all|any|uni .pred : t = t members
        sync ballot .b32 : t = pred members
        all|any|uni .pred @-69 : t = t
        ballot .b32 @-69 : t = pred
    """,
)  # fmt: skip
def vote(ins: Instruction) -> Op:
    """``all``, ``any``, ``uni`` of a predicate over the named lanes, or its ``ballot``."""
    mode = next(m for m in ins.modifiers if m in ("all", "any", "uni", "ballot"))

    def apply(warp: WarpView, p: Lanes, members: Lanes = WHOLE_WARP) -> Lanes:
        named = warp.active() & members
        true = warp.ballot(p) & named
        if mode == "ballot":
            return true.view(np.int32)
        if mode == "any":
            return true != 0
        if mode == "all":
            return true == named
        return (true == 0) | (true == named)

    inputs = ("pred", "u32")[: len(ins.operands) - 1]
    return Op(apply, inputs, ("b32",) if mode == "ballot" else ("pred",), warp=True)


@row(
    "match", section=PARALLEL, waits="lanes", is_match=True,
    forms="""
        any sync .b32|b64 : i32 = t members
        all sync .b32|b64 : i32*|pred*? = t members
    """,
)  # fmt: skip
def match(ins: Instruction) -> Op:
    """The lanes that hold the same value (``any``), or all of them if all do (``all``)."""
    type = scalar_type(ins)
    pair = isinstance(ins.operands[0], Pair)
    every = ins.has("all")

    def apply(warp: WarpView, a: Lanes, members: Lanes) -> Results:
        named = warp.active() & members
        result = _NOBODY
        for other in range(32):
            same = warp.gather(a, cast(Lanes, np.int32(other))) == a
            result = result | (same.astype(np.uint32) << np.uint32(other))
        result = result & named
        if not every:
            return result.view(np.int32)
        whole = result == named
        # All lanes agree if each lane's matches are everybody.
        agree = (warp.ballot(whole) & named) == named
        value = np.where(agree, named, np.uint32(0)).view(np.int32)
        return (value, agree) if pair else value

    outputs = ("b32", "pred") if pair else ("b32",)
    return Op(apply, (type, "u32"), outputs, warp=True)


@row(
    "redux", section=PARALLEL, waits="lanes",
    forms="""
        sync add|min|max .s32|u32 : i32 = i32 members
        sync and|or|xor .b32 : i32 = i32 members
    """,
)  # fmt: skip
def reduce(ins: Instruction) -> Op:
    """Integer add, min, max, and, or, xor over the named lanes."""
    type = scalar_type(ins)
    operations: dict[str, np.ufunc] = {
        "add": np.add, "min": np.minimum, "max": np.maximum,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }  # fmt: skip
    name = next(m for m in ins.modifiers if m in operations)
    info = np.iinfo(DTYPES[type])
    neutral = {"min": info.max, "max": info.min, "and": -1 if info.min else info.max}.get(name, 0)
    fill = DTYPES[type].type(neutral)

    def apply(warp: WarpView, a: Lanes, members: Lanes) -> Lanes:
        active = warp.active()
        named = active & members
        if np.all((named == active) | ~warp.mask):  # one group a warp
            on: Lanes = (active >> warp.lane.astype(np.uint32)) & np.uint32(1)
            return warp.reduce(operations[name], np.where(on == 1, a, fill))
        result = cast(Lanes, fill)
        for other in range(32):
            on = (named >> np.uint32(other)) & np.uint32(1)
            value = np.where(on == 1, warp.gather(a, cast(Lanes, np.int32(other))), fill)
            result = operations[name](result, value)
        return result

    return Op(apply, (type, "u32"), (type,), warp=True)


@row(
    "redux", section=PARALLEL, waits="lanes",
    forms="sync min|max abs? NaN? .f32 @100 @a : t = t members",
)  # fmt: skip
def reduce_floats(ins: Instruction) -> Op:
    """The least or largest: -0 is less than +0; NaN wins with ``.NaN``, else gives way."""
    name = "min" if ins.has("min") else "max"
    integers = reduce(dataclasses.replace(ins, modifiers=("sync", name, "s32")))
    first, last, size = np.int32(-(2**31)), np.int32(2**31 - 1), np.int32(2**31 - 1)
    strange = first if ins.has("NaN") == ins.has("min") else last

    def apply(warp: WarpView, a: Lanes, members: Lanes) -> Lanes:
        bits = (np.abs(a) if ins.has("abs") else a).view(np.int32)
        ordered = np.where(bits < 0, bits ^ size, bits)
        found = cast(Lanes, integers.fn(warp, np.where(np.isnan(a), strange, ordered), members))
        bits = np.where(found < 0, found ^ size, found)
        return np.where((found == first) | (found == last), last, bits).view(np.float32)

    return Op(apply, ("f32", "u32"), ("f32",), warp=True)


@row("activemask", section=PARALLEL, forms=".b32 : t =")
def active_mask(ins: Instruction) -> Op:
    """Build ``activemask``: the lanes that execute the instruction together."""
    return Op(lambda warp: warp.active().view(np.int32), (), ("b32",), warp=True)


@row("elect", section=PARALLEL, waits="lanes", forms="sync : i32*|pred = members")
def elect(ins: Instruction) -> Op:
    """One leader among the named lanes: the lowest."""

    def apply(warp: WarpView, members: Lanes) -> Results:
        named = warp.active() & members
        lowest = named & (~named + np.uint32(1))
        leader = np.bitwise_count(lowest - np.uint32(1)).astype(np.int32)
        return leader, warp.lane == leader

    return Op(apply, ("u32",), ("b32", "pred"), warp=True)
