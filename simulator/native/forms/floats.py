"""Floating-point arithmetic, rounded to nearest even, with the GPU's NaNs."""

from __future__ import annotations

import numpy as np

from kernels.ptx.module import Instruction

from ...isa import Op
from ..lines import FLOAT, Lines, bits_of
from .table import FLOATS, Emit, Operand, form, only

NAN = {32: 0x7FFFFFFF, 64: 0xFFF8000000000000 - (1 << 64)}
QUIET = 1 << 51
"""The bit that makes a double-precision NaN a quiet one."""
_NAN_ORDER = {"div": (0, 1), "rcp": (0,), "sqrt": (0,), "fma": (1, 2, 0), "mad": (1, 2, 0)}
_DIRECTED = ("rz", "rm", "rp")
_ROUNDINGS = ("rn", *_DIRECTED)
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


def flushed(x: Lines, value: str) -> str:
    """Return a float32 as bits, or zero of its sign if it is subnormal."""
    exponent = x.value(f"and i32 {value}, {0x7F800000}")
    is_small = x.value(f"icmp eq i32 {exponent}, 0")
    sign = x.value(f"and i32 {value}, {-(1 << 31)}")
    return x.value(f"select i1 {is_small}, i32 {sign}, i32 {value}")


def _wide(x: Lines, number: str) -> str:
    return x.value(f"fpext float {number} to double")


def sum_to_odd(x: Lines, one: str, other: str) -> str:
    """Return the sum of two doubles, rounded to odd: rounding it again sees what it left out."""
    total = x.value(f"fadd double {one}, {other}")
    part = x.value(f"fsub double {total}, {one}")
    rest = x.value(f"fsub double {one}, {x.value(f'fsub double {total}, {part}')}")
    rest = x.value(f"fadd double {rest}, {x.value(f'fsub double {other}, {part}')}")
    raw = x.raw(total, 64)
    inexact = x.value(f"fcmp one double {rest}, 0.0")
    finite = x.value(f"fcmp one double {x.pure('fabs', 'double', rest)}, 0x7FF0000000000000")
    even = x.value(f"icmp eq i64 {x.value(f'and i64 {raw}, 1')}, 0")
    up = x.value(f"fcmp ogt double {rest}, 0.0")
    positive = x.value(f"fcmp ogt double {total}, 0.0")
    step = x.value(f"select i1 {x.value(f'icmp eq i1 {up}, {positive}')}, i64 1, i64 -1")
    moves = x.value(f"and i1 {x.value(f'and i1 {inexact}, {finite}')}, {even}")
    moved = x.value(f"add i64 {raw}, {step}")
    return x.real(x.value(f"select i1 {moves}, i64 {moved}, i64 {raw}"), 64)


def directed(x: Lines, operation: str, mode: str, given: list[str]) -> str:
    """Return ``add``, ``sub``, ``mul`` or ``fma`` of float32 numbers, rounded ``rz, rm`` or ``rp``.

    The double of ``sum_to_odd`` stands for the exact result. Its nearest float32 is at most one
    away from the one wanted.
    """
    wide = [_wide(x, number) for number in given]
    first = wide[0]
    if operation in ("mul", "fma"):
        first = x.value(f"fmul double {wide[0]}, {wide[1]}")
    second = x.value(f"fneg double {wide[-1]}") if operation == "sub" else wide[-1]
    exact = first if operation == "mul" else sum_to_odd(x, first, second)
    nearest = x.value(f"fptrunc double {exact} to float")
    back, raw = _wide(x, nearest), x.raw(nearest, 32)
    high, low = (x.value(f"fcmp {how} double {back}, {exact}") for how in ("ogt", "olt"))
    positive = x.value(f"fcmp ogt double {exact}, 0.0")
    negative = x.value(f"xor i1 {positive}, true")
    if mode == "rz":
        high, low = x.value(f"and i1 {high}, {positive}"), x.value(f"and i1 {low}, {negative}")
    elif mode == "rm":
        low = "false"
    else:
        high = "false"
    # Towards zero the bits become less, away from it more; from zero the sign may change.
    is_above = x.value(f"fcmp ogt float {nearest}, 0.0")
    is_below = x.value(f"fcmp olt float {nearest}, 0.0")
    less, more = x.value(f"sub i32 {raw}, 1"), x.value(f"add i32 {raw}, 1")
    downward = x.value(f"select i1 {is_below}, i32 {more}, i32 {-(1 << 31) + 1}")
    downward = x.value(f"select i1 {is_above}, i32 {less}, i32 {downward}")
    upward = x.value(f"select i1 {is_below}, i32 {less}, i32 1")
    upward = x.value(f"select i1 {is_above}, i32 {more}, i32 {upward}")
    raw = x.value(f"select i1 {high}, i32 {downward}, i32 {raw}")
    raw = x.value(f"select i1 {low}, i32 {upward}, i32 {raw}")
    if operation != "mul":  # an exact sum of zero is -0 when rounding down
        signs = x.value(f"xor i64 {x.raw(first, 64)}, {x.raw(second, 64)}")
        is_zero = x.value(f"fcmp oeq double {exact}, 0.0")
        zero = x.value(f"and i1 {is_zero}, {x.value(f'icmp slt i64 {signs}, 0')}")
        raw = x.value(f"select i1 {zero}, i32 {-(1 << 31) if mode == 'rm' else 0}, i32 {raw}")
    return x.real(raw, 32)


def flushed_when_tiny(x: Lines, operation: str, mode: str, raw: str, given: list[str]) -> str:
    """Return a result as bits, or zero of its sign (``isa.numerics.rounding.flush_when_tiny``).

    ``given``: the operands of ``mul``, ``fma`` or ``div``, as bits.
    """
    wide = [_wide(x, x.real(value, 32)) for value in given]
    if operation == "div":
        exact = x.value(f"fdiv double {wide[0]}, {wide[1]}")
    else:
        exact = x.value(f"fmul double {wide[0]}, {wide[1]}")
    if operation == "fma":
        exact = sum_to_odd(x, exact, wide[2])
    size = x.pure("fabs", "double", exact)
    how, bits = ("olt", 25) if mode == "rn" else ("ole", 24)
    bound = int(np.float64((1 - 2.0**-bits) * 2.0**-126).view(np.int64))
    is_tiny = x.value(f"fcmp {how} double {size}, 0x{bound:016X}")
    edge = x.value(f"icmp eq i32 {x.value(f'and i32 {raw}, {0x7FFFFFFF}')}, {1 << 23}")
    flushes = x.value(f"and i1 {edge}, {is_tiny}")
    sign = x.value(f"and i32 {raw}, {-(1 << 31)}")
    return x.value(f"select i1 {flushes}, i32 {sign}, i32 {raw}")


@form("add", "sub", "mul", "div", "fma", "mad", "rcp", "sqrt")
def arithmetic(ins: Instruction, op: Op) -> Emit | None:
    """The basic operations; ``.sat`` of single precision too."""
    if not only(ins, FLOATS, _ROUNDINGS, ("sat", "ftz")) or len(ins.types) != 1:
        return None
    if len(op.inputs) != {"fma": 3, "mad": 3, "rcp": 1, "sqrt": 1}.get(ins.opcode, 2):
        return None
    bits = bits_of(ins.types[0])
    kind = FLOAT[bits]
    mode = next((word for word in ins.modifiers if word in _ROUNDINGS), "")
    if not mode and ins.opcode in ("div", "rcp", "sqrt", "fma", "mad"):
        return None
    if mode in _DIRECTED and (bits == 64 or ins.opcode in ("div", "rcp", "sqrt")):
        return None
    ftz, operation = ins.has("ftz"), {"mad": "fma"}.get(ins.opcode, ins.opcode)
    order = _NAN_ORDER.get(ins.opcode, (1, 0))

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        names = [flushed(x, value.name) if ftz else value.name for value in a]
        given = [x.real(name, bits) for name in names]
        if mode in _DIRECTED:
            result = directed(x, operation, mode, given)
        elif ins.opcode in _PLAIN:
            result = x.value(f"{_PLAIN[ins.opcode]} {kind} {given[0]}, {given[1]}")
        elif ins.opcode == "rcp":
            result = x.value(f"fdiv {kind} 1.0, {given[0]}")
        else:
            result = x.pure("sqrt" if ins.opcode == "sqrt" else "fma", kind, *given)
        found = canonical(x, result, bits, [a[i].name for i in order])
        if ftz and operation in ("mul", "fma", "div"):
            found = flushed_when_tiny(x, operation, mode or "rn", found, names)
        if ftz:
            found = flushed(x, found)
        return [saturated(x, found, bits) if ins.has("sat") else found]

    return emit


@form("neg", "abs")
def sign_bit(ins: Instruction, op: Op) -> Emit | None:
    """``neg`` and ``abs``: the sign bit; NaN gives the canonical one, or a quiet double."""
    if not only(ins, FLOATS, ("ftz",)):
        return None
    ftz, bits = ins.has("ftz"), bits_of(op.outputs[0])
    sign = -(1 << (bits - 1))

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        given = flushed(x, a[0].name) if ftz else a[0].name
        if ins.opcode == "neg":
            changed = x.value(f"xor i{bits} {given}, {sign}")
        else:
            changed = x.value(f"and i{bits} {given}, {~sign}")
        number = x.real(a[0].name, bits)
        is_nan = x.value(f"fcmp uno {FLOAT[bits]} {number}, {number}")
        nan = str(NAN[32]) if bits == 32 else x.value(f"or i64 {a[0].name}, {QUIET}")
        return [x.value(f"select i1 {is_nan}, i{bits} {nan}, i{bits} {changed}")]

    return emit


@form("min", "max")
def extreme(ins: Instruction, op: Op) -> Emit | None:
    """``min`` and ``max``: a NaN gives way to a number; -0 is less than +0."""
    if not only(ins, FLOATS, ("ftz",)) or len(op.inputs) != 2:
        return None
    ftz, bits = ins.has("ftz"), bits_of(op.outputs[0])
    kind, less = FLOAT[bits], "olt" if ins.opcode == "min" else "ogt"
    join = "or" if ins.opcode == "min" else "and"

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        one, other = (flushed(x, value.name) if ftz else value.name for value in a)
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
