"""The special-function unit of single precision, and division by its reciprocal."""

from __future__ import annotations

from collections.abc import Callable

from kernels.ptx.module import Instruction

from ...isa import Op
from ..lines import Lines
from .floats import canonical, flushed, flushed_when_tiny
from .table import FLOATS, Emit, Operand, form, only

_UNIT = ("ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt")
_TINY, _HUGE = 0x00800000, 0x7E800000
"""2**-126 and 2**126, as bits."""


def _unit(x: Lines, name: str, value: str) -> str:
    """Return what the unit makes of a float32, both as bits."""
    wide = x.value(f"zext i32 {value} to i64")
    found = x.call(f"unit_{name}", "i64", _tables(x), ("i64", wide))
    return x.value(f"trunc i64 {found} to i32")


def _tables(x: Lines) -> tuple[str, str]:
    x.declared.add("@unit_tables = external global i8")
    return "i64", "ptrtoint (ptr @unit_tables to i64)"


def _scaled(x: Lines, value: str, factor: str) -> str:
    """Return a float32 times another, as bits."""
    return x.raw(x.value(f"fmul float {x.real(value, 32)}, {factor}"), 32)


def _is_tiny(x: Lines, value: str) -> str:
    size = x.value(f"and i32 {value}, {0x7FFFFFFF}")
    return x.value(f"icmp ult i32 {size}, {_TINY}")


def _choose(x: Lines, condition: str, one: str, other: str, kind: str = "i32") -> str:
    return x.value(f"select i1 {condition}, {kind} {one}, {kind} {other}")


@form(*_UNIT)
def approximate(ins: Instruction, op: Op) -> Emit | None:
    """One function; without ``.ftz`` scaled by powers of two where subnormals matter."""
    if not only(ins, FLOATS, ("approx", "ftz")) or not ins.has("approx"):
        return None
    if ins.has("f64"):
        return _reciprocal if ins.opcode == "rcp" else None
    if ins.has("ftz") or ins.opcode not in _WIDE:
        return lambda x, a: [_unit(x, ins.opcode, a[0].name)]
    return lambda x, a: [_WIDE[ins.opcode](x, a[0].name)]


def _reciprocal(x: Lines, a: list[Operand]) -> list[str]:
    return [x.call("unit_rcp64", "i64", _tables(x), ("i64", a[0].name))]


def _wide_ex2(x: Lines, value: str) -> str:
    below = x.value(f"fcmp olt float {x.real(value, 32)}, -1.26e2")
    found = _unit(x, "ex2", _choose(x, below, _scaled(x, value, "5.0e-1"), value))
    square = _scaled(x, found, x.real(found, 32))
    return _choose(x, below, square, found)


def _wide_lg2(x: Lines, value: str) -> str:
    tiny = _is_tiny(x, value)
    found = _unit(x, "lg2", _choose(x, tiny, _scaled(x, value, "0x4170000000000000"), value))
    less = x.value(f"fsub float {x.real(found, 32)}, 2.4e1")
    return _choose(x, tiny, canonical(x, less, 32, []), found)


def _wide_root(name: str, factor: str) -> Callable[[Lines, str], str]:
    """A root of a subnormal: of 2**24 times it, scaled back by a factor."""

    def emit(x: Lines, value: str) -> str:
        tiny = _is_tiny(x, value)
        found = _unit(x, name, _choose(x, tiny, _scaled(x, value, "0x4170000000000000"), value))
        back = x.value(f"fmul float {x.real(found, 32)}, {factor}")
        return _choose(x, tiny, canonical(x, back, 32, []), found)

    return emit


def _wide_rcp(x: Lines, value: str) -> str:
    size = x.value(f"and i32 {value}, {0x7FFFFFFF}")
    tiny = _is_tiny(x, value)
    huge = x.value(f"icmp ugt i32 {size}, {_HUGE}")
    far = x.value(f"or i1 {tiny}, {huge}")
    scale = _choose(x, tiny, "0x4170000000000000", "2.5e-1", "float")
    found = _unit(x, "rcp", _choose(x, far, _scaled(x, value, scale), value))
    back = x.value(f"fmul float {x.real(found, 32)}, {scale}")
    return _choose(x, far, canonical(x, back, 32, []), found)


_WIDE = {
    "ex2": _wide_ex2, "lg2": _wide_lg2, "rcp": _wide_rcp,
    "rsqrt": _wide_root("rsqrt", "4.096e3"), "sqrt": _wide_root("sqrt", "0x3F30000000000000"),
}  # fmt: skip


@form("div")
def by_reciprocal(ins: Instruction, op: Op) -> Emit | None:
    """``div.approx`` and ``div.full``: a product with the unit's reciprocal, both scaled."""
    if not only(ins, ("f32", "approx", "full", "ftz")) or not ins.has("approx", "full"):
        return None
    full, ftz = ins.has("full"), ins.has("ftz")

    def product(x: Lines, one: str, other: str) -> str:
        given = [flushed(x, value) if ftz else value for value in (one, other)]
        raw = _scaled(x, given[0], x.real(given[1], 32))
        raw = canonical(x, x.real(raw, 32), 32, [])
        if ftz:
            raw = flushed(x, flushed_when_tiny(x, "mul", "rn", raw, given))
        return raw

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        one, other = (value.name for value in a)
        size = x.value(f"and i32 {other}, {0x7FFFFFFF}")
        scale = x.value("bitcast float 1.0 to i32")
        if full:
            huge = x.value(f"icmp ugt i32 {size}, {_HUGE}")
            finite = x.value(f"icmp ule i32 {size}, {0x7F800000}")
            scale = _choose(x, x.value(f"and i1 {huge}, {finite}"), str(0x3E800000), scale)
        if not ftz:
            scale = _choose(x, _is_tiny(x, other), str(0x4B800000), scale)
        factor = x.real(scale, 32)
        return [product(x, product(x, one, scale), _unit(x, "rcp", _scaled(x, other, factor)))]

    return emit
