"""Comparisons, selections, and moves of parts of registers."""

from __future__ import annotations

from kernels.ptx.module import Instruction

from ...isa import Op
from ...isa.memory.address_windows import WINDOWS
from ..lines import Lines, bits_of
from .floats import flushed
from .table import BITS, FLOATS, INTEGERS, Emit, Operand, form, only

_ORDERED = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_UNORDERED = {"equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge"}
_REAL = _ORDERED | _UNORDERED | {"num": "ord", "nan": "uno"}
_UNSIGNED = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge", "eq": "eq", "ne": "ne"}
_JOINS = ("and", "or", "xor")


@form("setp")
def compare(ins: Instruction, op: Op) -> Emit | None:
    """``setp``, joined with a predicate or not; the second result is of the opposite."""
    names = {**_REAL, **_UNSIGNED}
    if not only(ins, INTEGERS, BITS, FLOATS, names, _JOINS, ("ftz",)) or len(ins.types) != 1:
        return None
    type = ins.types[0]
    bits = bits_of(type)
    how = next(word for word in ins.modifiers if word in names)
    join = next((word for word in ins.modifiers if word in _JOINS), None)
    if len(op.inputs) != (3 if join else 2):
        return None

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        if type in FLOATS:
            given = [flushed(x, v.name) if ins.has("ftz") else v.name for v in a[:2]]
            one, other = (x.real(value, bits) for value in given)
            kind = "float" if type == "f32" else "double"
            found = x.value(f"fcmp {_REAL[how]} {kind} {one}, {other}")
        else:
            letter = "s" if type[0] == "s" else "u"
            name = how if how in ("eq", "ne") else _UNSIGNED.get(how, letter + how)
            found = x.value(f"icmp {name} i{bits} {a[0].name}, {a[1].name}")
        opposite = x.value(f"xor i1 {found}, true")
        if join:
            found, opposite = (
                x.value(f"{join} i1 {value}, {a[2].name}") for value in (found, opposite)
            )
        return [found, opposite][: len(op.outputs)]

    return emit


@form("selp")
def choose(ins: Instruction, op: Op) -> Emit | None:
    """``selp``."""
    if not only(ins, INTEGERS, BITS, FLOATS):
        return None
    bits = bits_of(op.outputs[0])

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        return [x.value(f"select i1 {a[2].name}, i{bits} {a[0].name}, i{bits} {a[1].name}")]

    return emit


@form("mov")
def move_parts(ins: Instruction, op: Op) -> Emit | None:
    """``mov`` of a register, of two halves into one, or of one into halves."""
    if not only(ins, INTEGERS, BITS, FLOATS, ("pred",)):
        return None
    inputs, outputs = ([bits_of(type) for type in some] for some in (op.inputs, op.outputs))
    if len(inputs) == len(outputs) == 1 and inputs == outputs:
        return lambda x, a: [a[0].name]
    if len(outputs) == 1 and inputs == [outputs[0] // len(inputs)] * len(inputs):
        return lambda x, a: [_packed(x, a, inputs[0], outputs[0])]
    if len(inputs) == 1 and outputs == [inputs[0] // len(outputs)] * len(outputs):
        return lambda x, a: _unpacked(x, a[0], inputs[0], outputs)
    return None


def _packed(x: Lines, parts: list[Operand], part: int, whole: int) -> str:
    result = "0"
    for place, value in enumerate(parts):
        wide = x.resized(value.name, part, whole, False)
        moved = x.value(f"shl i{whole} {wide}, {place * part}")
        result = x.value(f"or i{whole} {result}, {moved}")
    return result


def _unpacked(x: Lines, value: Operand, whole: int, parts: list[int]) -> list[str]:
    return [
        x.resized(x.value(f"lshr i{whole} {value.name}, {place * part}"), whole, part, False)
        for place, part in enumerate(parts)
    ]


@form("cvta")
def address(ins: Instruction, op: Op) -> Emit | None:
    """``cvta``: between a generic address and one in a space, of a launch without clusters."""
    words = ("to", "global", "local", "const", "param", "shared", "shared::cta", "u64")
    if not only(ins, words):
        return None
    space = next((word for word in ins.modifiers if word in WINDOWS), "shared")
    start = WINDOWS[space] * (-1 if ins.has("to") else 1)
    return lambda x, a: [x.value(f"add i64 {a[0].name}, {start}") if start else a[0].name]
