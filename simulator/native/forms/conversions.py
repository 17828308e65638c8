"""``cvt`` between integers and floating point of 32 and 64 bits."""

from __future__ import annotations

from kernels.ptx.module import Instruction

from ...isa import Op
from ..lines import FLOAT, Lines, bits_of
from .floats import NAN, QUIET, canonical, flushed, saturated
from .table import FLOATS, INTEGERS, Emit, Operand, form

_INTEGERS = (*INTEGERS, "s8", "u8")
_ROUNDINGS = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


@form("cvt")
def convert(ins: Instruction, op: Op) -> Emit | None:
    """Between any two of the types, rounded to nearest; to an integer as the form says."""
    if len(ins.types) != 2 or len(op.inputs) != 1:
        return None
    target, source = ins.types
    words = set(ins.modifiers) - {target, source}
    if target in _INTEGERS and source in _INTEGERS:
        return _between_integers(target, source) if not words else None
    if target in FLOATS and source in _INTEGERS:
        return _to_float(target, source) if words - {"ftz"} == {"rn"} else None
    if target in _INTEGERS and source in FLOATS and len(words - {"ftz"}) == 1:
        (how,) = words - {"ftz"}
        known = _ROUNDINGS.get(how)
        return _to_integer(target, source, known, "ftz" in words) if known else None
    if target in FLOATS and source in FLOATS:
        return _between_floats(target, source, words)
    return None


def _between_integers(target: str, source: str) -> Emit:
    have, want, signed = bits_of(source), bits_of(target), source[0] == "s"
    return lambda x, a: [x.resized(a[0].name, have, want, signed)]


def _to_float(target: str, source: str) -> Emit:
    have, bits = bits_of(source), bits_of(target)
    name = "sitofp" if source[0] == "s" else "uitofp"
    return lambda x, a: [
        x.raw(x.value(f"{name} i{have} {a[0].name} to {FLOAT[bits]}"), bits)
    ]  # fmt: skip


def _to_integer(target: str, source: str, rounding: str, ftz: bool) -> Emit:
    """Out of range clamps; NaN gives 0, or the top bit alone where either side has 64 bits."""
    have, want = bits_of(source), bits_of(target)
    letter = "si" if target[0] == "s" else "ui"
    nan = -(1 << (want - 1)) if want == 64 or have == 64 else 0
    suffix = {32: "f32", 64: "f64"}[have]

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        number = x.real(flushed(x, a[0].name) if ftz else a[0].name, have)
        rounded = x.pure(rounding, FLOAT[have], number)
        found = x.call(
            f"llvm.fpto{letter}.sat.i{want}.{suffix}", f"i{want}", (FLOAT[have], rounded)
        )
        is_nan = x.value(f"fcmp uno {FLOAT[have]} {number}, {number}")
        return [x.value(f"select i1 {is_nan}, i{want} {nan}, i{want} {found}")]

    return emit


def _between_floats(target: str, source: str, words: set[str]) -> Emit | None:
    have, want = bits_of(source), bits_of(target)
    rounding = next((word for word in words if word in _ROUNDINGS), None)
    words = words - {rounding or ""}
    allowed = {"sat"} | ({"rn"} if want < have else set())
    if not words <= allowed or (want < have) != ("rn" in words) or (rounding and want != have):
        return None
    if "sat" in words and "f64" in (target, source):
        return None

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        number = x.real(a[0].name, have)
        if rounding:
            number = x.pure(_ROUNDINGS[rounding], FLOAT[have], number)
        if want > have:
            number = x.value(f"fpext float {number} to double")
        elif want < have:
            number = x.value(f"fptrunc double {number} to float")
        if have == want == 32:
            raw = canonical(x, number, 32, [])
            return [saturated(x, raw, 32) if "sat" in words else raw]
        return [_kept_nan(x, a[0].name, number, have, want)]

    return emit


def _kept_nan(x: Lines, given: str, number: str, have: int, want: int) -> str:
    """Return a result as bits; a NaN keeps its sign and what fits of its payload, made quiet."""
    is_nan = x.value(f"fcmp uno {FLOAT[want]} {number}, {number}")
    if have == want:
        nan = x.value(f"or i64 {given}, {QUIET}")
    elif want == 64:
        wide = x.value(f"zext i32 {given} to i64")
        payload = x.value(f"and i64 {wide}, {(1 << 23) - 1}")
        payload = x.value(f"shl i64 {payload}, 29")
        sign = x.value(f"lshr i64 {wide}, 31")
        sign = x.value(f"shl i64 {sign}, 63")
        nan = x.value(f"or i64 {sign}, {NAN[64] & ((1 << 63) - 1)}")
        nan = x.value(f"or i64 {nan}, {payload}")
    else:
        payload = x.value(f"lshr i64 {given}, 29")
        payload = x.value(f"and i64 {payload}, {(1 << 23) - 1}")
        sign = x.value(f"lshr i64 {given}, 63")
        sign = x.value(f"shl i64 {sign}, 31")
        both = x.value(f"or i64 {sign}, {payload}")
        both = x.value(f"or i64 {both}, {0x7FC00000}")
        nan = x.value(f"trunc i64 {both} to i32")
    return x.value(f"select i1 {is_nan}, i{want} {nan}, i{want} {x.raw(number, want)}")
