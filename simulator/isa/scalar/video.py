"""Video instructions (PTX ISA, "Video Instructions").

Of one value each, an operand is a byte, a half or a whole register, extended by its type's sign;
the result is clamped with ``.sat``, then added to or compared with a third operand, or put over a
part of it. Of two or four at once, each lane picks its bytes or halves from both operands.
"""

from collections.abc import Callable

import numpy as np

from kernels.ptx.module import Instruction, Operand, Reg

from ...core.geometry import Lanes
from ..table import Op, Unsupported, row

SECTION = "Video Instructions"
_ORDER = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
_COMPARED = "eq|ne|lt|le|gt|ge"
_T = ".u32|s32"
_FULL = np.int64(0xFFFFFFFF)


def _average(a: Lanes, b: Lanes) -> Lanes:
    total = a + b
    return (total + (total >= 0)) >> np.int64(1)


_MEANING: dict[str, Callable[..., Lanes]] = {
    "add": np.add, "sub": np.subtract, "absdiff": lambda a, b: np.abs(a - b),
    "min": np.minimum, "max": np.maximum, "avrg": _average,
}  # fmt: skip


def _part(operand: Operand | None) -> str:
    return operand.part if isinstance(operand, Reg) else ""


def _bits(part: str) -> int:
    """Return the size of one of a part's pieces."""
    return {"b": 8, "h": 16}.get(part[:1], 32)


def _extended(value: Lanes, shift: int, bits: int, signed: bool) -> Lanes:
    """Return some bits of a value (of 64 bits), as an integer of its sign."""
    piece = value.astype(np.int64) >> np.int64(shift) & np.int64((1 << bits) - 1)
    top = np.int64(1 << (bits - 1))
    return (piece ^ top) - top if signed else piece


def _clamped(value: Lanes, bits: int, signed: bool) -> Lanes:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return np.clip(value, np.int64(low), np.int64(high))


def _put(into: Lanes, value: Lanes, shift: int, bits: int) -> Lanes:
    """Return a value over some bits of another."""
    room = np.int64(((1 << bits) - 1) << shift)
    return into & ~room | value << np.int64(shift) & room


def _word(value: Lanes) -> Lanes:
    return (value & _FULL).astype(np.uint32)


def _primary(ins: Instruction) -> Callable[..., Lanes]:
    """Return the function of two wide integers that an instruction computes."""
    order = next((_ORDER[m] for m in ins.modifiers if m in _ORDER), None)
    if order is not None:
        return lambda a, b: order(a, b).astype(np.int64)
    return _MEANING[ins.opcode[1:].rstrip("24")]


_INTO = "{0} : i32 = i32^ i32^\n{0} : i32^ = i32^ i32^ i32\n"
_THEN = "{0} {1} : i32 = i32^ i32^ i32\n"
_WIDER = "more than 32 bits compared: use min or max behind it"


def _scalar_forms(modifiers: str, sat: str = "sat") -> str:
    """Return the forms whose result on an H200 is known; ``sat``: empty if nothing is clamped."""
    modifiers = f"{modifiers} {sat and 'sat?'}"
    return _INTO.format(modifiers) + _THEN.format(modifiers, "add")


@row(
    "vadd", "vsub", "vabsdiff", "vmin", "vmax", section=SECTION,
    forms=_scalar_forms(f"{_T} {_T} {_T}"), later=f"{_T} {_T} {_T} sat? min|max : {_WIDER}",
)  # fmt: skip
@row(
    "vset", section=SECTION, forms=_scalar_forms(f"{_COMPARED} {_T} {_T}", ""),
    later=f"{_COMPARED} {_T} {_T} min|max : {_WIDER}",
)  # fmt: skip
@row(
    "vshr", section=SECTION, forms=_scalar_forms(f"clamp|wrap {_T} {_T} .u32"),
    later=f"clamp|wrap {_T} {_T} .u32 sat? min|max : {_WIDER}",
)  # fmt: skip
@row(
    "vshl", section=SECTION, forms=_scalar_forms(f"clamp|wrap {_T} {_T} .u32", ""),
    later=f"""
        clamp|wrap {_T} {_T} .u32 sat add|min|max? : clamped shifts: use shl and min
        clamp|wrap {_T} {_T} .u32 min|max : {_WIDER}
    """,
)  # fmt: skip
def one(ins: Instruction) -> Op:
    """Build a video instruction on one value."""
    kinds = [type == "s32" for type in ins.types]
    signed = kinds[0] if len(kinds) == 3 else False
    into = _part(ins.operands[0])
    parts = [_part(operand) for operand in ins.operands[1:3]]
    second = next((m for m in ins.modifiers[-1:] if m in ("add", "min", "max")), None)
    shifts = ins.has("clamp", "wrap")
    if shifts and into and ins.has("sat"):
        raise Unsupported("a part of what is clamped: use bfi behind it")
    primary = _shift(ins) if shifts else _primary(ins)

    def apply(a: Lanes, b: Lanes, *c: Lanes) -> Lanes:
        x, y = (
            _extended(value, int(part[1:] or 0) * _bits(part), _bits(part), sign)
            for value, part, sign in zip((a, b), parts, kinds[-2:], strict=True)
        )
        found = primary(x, y)
        if ins.has("sat"):
            found = _saturated(found, _bits(into), signed)
        if second:
            found = _MEANING[second](found, _extended(c[0], 0, 32, signed))
        elif into:
            shift = int(into[1:]) * _bits(into)
            # Of a half an H200 takes the bits that stand where it goes.
            found = found >> np.int64(shift) if into[0] == "h" else found
            found = _put(c[0].astype(np.int64), found, shift, _bits(into))
        return _word(found)

    return Op(apply, ("u32",) * (len(ins.operands) - 1), ("u32",))


def _saturated(value: Lanes, bits: int, signed: bool) -> Lanes:
    """Clamp as an H200 does, which differs from the manual (docs/measured.md).

    An unsigned word keeps what is beyond its bits; for a part what is negative is too large.
    """
    if bits == 32:
        return _clamped(value, bits, signed) if signed else np.maximum(value, np.int64(0))
    top = np.int64((1 << (bits - signed)) - 1)
    return np.minimum(value.astype(np.uint64), top.astype(np.uint64)).astype(np.int64)


def _shift(ins: Instruction) -> Callable[..., Lanes]:
    """Return a shift by at most 32, or by the lowest five bits."""

    def shifted(x: Lanes, by: Lanes) -> Lanes:
        by = np.minimum(by, np.int64(32)) if ins.has("clamp") else by & np.int64(31)
        return x >> by if ins.opcode == "vshr" else x << by

    return shifted


@row(
    "vmad", section=SECTION,
    forms=f"""
        {_T} {_T} {_T} sat? shr7|shr15? : i32 = i32^- i32^- i32-
        {_T} {_T} {_T} po sat? shr7|shr15? : i32 = i32^ i32^ i32
    """,
)  # fmt: skip
def multiply_add(ins: Instruction) -> Op:
    """``d = (±a * b ± c) >> n``; ``.po`` adds one more.

    An H200 takes whole operands as signed whatever their types (docs/measured.md). That is seen
    with a shift or ``.sat`` alone: the lowest 32 bits of a sum are those of the manual.
    """
    parts = [_part(operand) for operand in ins.operands[1:]]
    minus = [part.startswith("-") for part in parts]
    if minus[2] and minus[0] != minus[1]:
        raise Unsupported("signs of product and summand: use neg before it")
    plain = [part.strip("-") for part in parts[:2]]
    kinds = [type == "s32" for type in ins.types[1:]]
    signed = any(kinds) or minus[2] or minus[0] != minus[1]
    down = 7 if ins.has("shr7") else 15 if ins.has("shr15") else 0

    def apply(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        x, y = (
            _extended(value, int(part[1:] or 0) * _bits(part), _bits(part), sign or not part)
            for value, part, sign in zip((a, b), plain, kinds, strict=True)
        )
        z = _extended(c, 0, 32, True)
        total = (-x if minus[0] != minus[1] else x) * y + (-z if minus[2] else z)
        total = total + np.int64(ins.has("po"))
        if signed:
            total = total >> np.int64(down)
        else:
            total = (total.astype(np.uint64) >> np.uint64(down)).astype(np.int64)
        return _word(_clamped(total, 32, signed) if ins.has("sat") else total)

    return Op(apply, ("u32",) * 3, ("u32",))


def _lanes_forms(modifiers: str, sat: str) -> str:
    return f"""
        {modifiers} {sat} : i32^ = i32^! i32^! i32!
        {modifiers} add : i32^ = i32^! i32^! i32!
    """


@row(
    *(f"v{name}{n}" for name in ("add", "sub", "avrg", "absdiff", "min", "max") for n in (2, 4)),
    section=SECTION, forms=_lanes_forms(f"{_T} {_T} {_T}", "sat?"),
)  # fmt: skip
@row("vset2", "vset4", section=SECTION, forms=_lanes_forms(f"{_COMPARED} {_T} {_T}", ""))
def several(ins: Instruction) -> Op:
    """Build a SIMD instruction on two halves or four bytes; unselected parts come from ``c``."""
    count = int(ins.opcode[-1])
    bits, letter = 32 // count, "b" if count == 4 else "h"
    kinds = [type == "s32" for type in ins.types]
    signed = kinds[0] if len(kinds) == 3 else False
    usual = ("3210", "3210", "7654") if count == 4 else ("10", "10", "32")
    chosen = [
        (_part(operand) or letter + other)[1:]
        for operand, other in zip(ins.operands, usual, strict=False)
    ]
    primary = _primary(ins)

    def apply(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
        found = _extended(c, 0, 32, False)
        for lane in range(count):
            if str(lane) not in chosen[0]:
                continue
            x, y = (
                _extended(both, int(picked[-1 - lane]) * bits, bits, sign)
                for picked, sign in zip(chosen[1:], kinds[-2:], strict=True)
            )
            value = primary(x, y)
            if ins.has("add"):
                found = found + value
                continue
            value = _clamped(value, bits, signed) if ins.has("sat") else value
            found = _put(found, value, lane * bits, bits)
        return _word(found)

    return Op(apply, ("u32",) * 3, ("u32",))
