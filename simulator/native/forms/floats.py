"""Floating-point arithmetic, rounded to nearest even, with the GPU's NaNs."""

from __future__ import annotations

from kernels.ptx.module import Instruction

from ...isa import Op
from ..lines import FLOAT, Lines, bits_of
from .table import FLOATS, Emit, Operand, form, only

NAN = {32: 0x7FFFFFFF, 64: 0xFFF8000000000000 - (1 << 64)}
QUIET = 1 << 51
"""The bit that makes a double-precision NaN a quiet one."""
_NAN_ORDER = {"div": (0, 1), "rcp": (0,), "sqrt": (0,), "fma": (1, 2, 0), "mad": (1, 2, 0)}
_PLAIN = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def canonical(x: Lines, number: str, bits: int, passed_on: list[str]) -> str:
    """Return a result as bits; of a NaN the one that the GPU writes.

    Args:
        x: The lines.
        number: The result, as a floating-point number.
        bits: Its width.
        passed_on: Operands, as bits, of which a double-precision NaN is the first that is one.
    """
    raw = x.raw(number, bits)
    is_nan = x.value(f"fcmp uno {FLOAT[bits]} {number}, {number}")
    nan = str(NAN[bits])
    for operand in reversed(passed_on if bits == 64 else []):
        value = x.real(operand, bits)
        operand_nan = x.value(f"fcmp uno double {value}, {value}")
        quiet = x.value(f"or i64 {operand}, {QUIET}")
        nan = x.value(f"select i1 {operand_nan}, i64 {quiet}, i64 {nan}")
    return x.value(f"select i1 {is_nan}, i{bits} {nan}, i{bits} {raw}")


def saturated(x: Lines, value: str, bits: int) -> str:
    """Return a number clamped to 0 ... 1, as bits; NaN becomes +0."""
    kind, one = FLOAT[bits], {32: "1.0", 64: "1.0"}[bits]
    number = x.real(value, bits)
    above = x.value(f"fcmp ogt {kind} {number}, 0.0")
    less = x.value(f"fcmp olt {kind} {number}, {one}")
    top = x.raw(x.value(f"fadd {kind} 0.0, {one}"), bits)
    clamped = x.value(f"select i1 {less}, i{bits} {value}, i{bits} {top}")
    return x.value(f"select i1 {above}, i{bits} {clamped}, i{bits} 0")


@form("add", "sub", "mul", "div", "fma", "mad", "rcp", "sqrt")
def arithmetic(ins: Instruction, op: Op) -> Emit | None:
    """The basic operations; ``.sat`` of single precision too."""
    if not only(ins, FLOATS, ("rn", "sat")) or len(ins.types) != 1:
        return None
    if len(op.inputs) != {"fma": 3, "mad": 3, "rcp": 1, "sqrt": 1}.get(ins.opcode, 2):
        return None
    bits = bits_of(ins.types[0])
    kind = FLOAT[bits]
    if ins.opcode in ("div", "rcp", "sqrt", "fma", "mad") and not ins.has("rn"):
        return None
    order = _NAN_ORDER.get(ins.opcode, (1, 0))

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        given = [x.real(value.name, bits) for value in a]
        if ins.opcode in _PLAIN:
            result = x.value(f"{_PLAIN[ins.opcode]} {kind} {given[0]}, {given[1]}")
        elif ins.opcode == "rcp":
            result = x.value(f"fdiv {kind} 1.0, {given[0]}")
        else:
            result = x.pure("sqrt" if ins.opcode == "sqrt" else "fma", kind, *given)
        found = canonical(x, result, bits, [a[i].name for i in order])
        return [saturated(x, found, bits) if ins.has("sat") else found]

    return emit


@form("neg", "abs")
def sign_bit(ins: Instruction, op: Op) -> Emit | None:
    """``neg`` and ``abs``: the sign bit; NaN gives the canonical one, or a quiet double."""
    if not only(ins, FLOATS):
        return None
    bits = bits_of(op.outputs[0])
    sign = -(1 << (bits - 1))

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        if ins.opcode == "neg":
            changed = x.value(f"xor i{bits} {a[0].name}, {sign}")
        else:
            changed = x.value(f"and i{bits} {a[0].name}, {~sign}")
        number = x.real(a[0].name, bits)
        is_nan = x.value(f"fcmp uno {FLOAT[bits]} {number}, {number}")
        nan = str(NAN[32]) if bits == 32 else x.value(f"or i64 {a[0].name}, {QUIET}")
        return [x.value(f"select i1 {is_nan}, i{bits} {nan}, i{bits} {changed}")]

    return emit


@form("min", "max")
def extreme(ins: Instruction, op: Op) -> Emit | None:
    """``min`` and ``max``: a NaN gives way to a number; -0 is less than +0."""
    if not only(ins, FLOATS) or len(op.inputs) != 2:
        return None
    bits = bits_of(op.outputs[0])
    kind, less = FLOAT[bits], "olt" if ins.opcode == "min" else "ogt"
    join = "or" if ins.opcode == "min" else "and"

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        one, other = a[0].name, a[1].name
        first, second = (x.real(value, bits) for value in (one, other))
        takes_first = x.value(f"fcmp {less} {kind} {first}, {second}")
        result = x.value(f"select i1 {takes_first}, i{bits} {one}, i{bits} {other}")
        equal = x.value(f"fcmp oeq {kind} {first}, {second}")
        both = x.value(f"{join} i{bits} {one}, {other}")
        result = x.value(f"select i1 {equal}, i{bits} {both}, i{bits} {result}")
        second_nan = x.value(f"fcmp uno {kind} {second}, {second}")
        result = x.value(f"select i1 {second_nan}, i{bits} {one}, i{bits} {result}")
        first_nan = x.value(f"fcmp uno {kind} {first}, {first}")
        result = x.value(f"select i1 {first_nan}, i{bits} {other}, i{bits} {result}")
        return [canonical(x, x.real(result, bits), bits, [other, one])]

    return emit
