"""16-bit floating point: f16, bf16 and pairs of them (PTX ISA, "Half Precision Floating Point").

Arithmetic goes through float64, rounded to odd where it is not exact, and is rounded once
to 16 bits. Rows of the same opcode call in here by type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import arithmetic as ieee
from ..module import Instruction
from .table import DTYPES, Op, Unsupported, row, scalar_type

HALF_TYPES = ("f16", "f16x2", "bf16", "bf16x2")
_NAN16 = np.uint16(0x7FFF)
Words = Any
"""uint16 arrays that hold the bits of 16-bit floats."""


def to_double(words: Words, kind: str) -> Any:
    """Bits of f16 or bf16 as float64, exactly."""
    if kind.startswith("bf"):
        return (words.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return words.view(np.float16).astype(np.float64)


def from_double(x: Any, kind: str, mode: str = "rn") -> Words:
    """float64 rounded (``rn`` or ``rz``) to f16 or bf16; NaN becomes 0x7fff."""
    if kind.startswith("bf"):
        single = ieee.narrow(x, "rz")
        bits = np.asarray(single).view(np.uint32)
        bits = np.where(single.astype(np.float64) != x, bits | np.uint32(1), bits)
        if mode == "rn":
            bits = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        words = (bits >> np.uint32(16)).astype(np.uint16)
    else:
        half = x.astype(np.float16)
        if mode == "rz":
            away = np.abs(half.astype(np.float64)) > np.abs(x)
            half = np.where(away, np.nextafter(half, np.float16(0)), half)
        words = np.asarray(half).view(np.uint16)
    return np.where(np.isnan(x), _NAN16, words)[()]


def lanes(fn: Callable[..., Words], kind: str) -> Callable[..., Any]:
    """A function of 16-bit words, applied to both halves of a pair."""
    if not kind.endswith("x2"):
        return lambda *args: fn(*(a.view(np.uint16) for a in args)).view(np.int16)

    def apply(*args: Any) -> Any:
        low = fn(*((a.view(np.uint32) & np.uint32(0xFFFF)).astype(np.uint16) for a in args))
        high = fn(*((a.view(np.uint32) >> np.uint32(16)).astype(np.uint16) for a in args))
        pair = low.astype(np.uint32) | (high.astype(np.uint32) << np.uint32(16))
        return pair.view(np.int32)

    return apply


def _carrier(kind: str) -> str:
    return "b32" if kind.endswith("x2") else "b16"


def _op(ins: Instruction, kind: str, exact: Callable[..., Any], arity: int, flops: int = 1) -> Op:
    """An operation given in float64 (exact, or rounded to odd)."""

    def words(*args: Words) -> Words:
        x = exact(*(to_double(a, kind) for a in args))
        result = from_double(x, kind)
        if ins.has("ftz") and not kind.startswith("bf"):
            result = np.where((result & 0x7C00) == 0, result & np.uint16(0x8000), result)
        if ins.has("sat"):
            value = to_double(result, kind)
            one = from_double(np.float64(1), kind)
            result = np.where(value > 1, one, np.where(value > 0, result, np.uint16(0)))
        if ins.has("relu"):
            result = np.where((result >> np.uint16(15) == 1) & ~np.isnan(x), np.uint16(0), result)
        return result

    carrier = _carrier(kind)
    pairs = 2 if kind.endswith("x2") else 1
    return Op(lanes(words, kind), (carrier,) * arity, (carrier,), None, flops * pairs)


def arithmetic(ins: Instruction) -> Op:
    """``add``, ``sub``, ``mul``, ``fma``."""
    kind = scalar_type(ins)
    table: dict[str, Callable[..., Any]] = {
        "add": ieee.to_odd,
        "sub": lambda a, b: ieee.to_odd(a, -b),
        "mul": np.multiply,
        "fma": lambda a, b, c: ieee.to_odd(a * b, c),
    }
    fused = ins.opcode == "fma"
    return _op(ins, kind, table[ins.opcode], 3 if fused else 2, 2 if fused else 1)


def min_max(ins: Instruction) -> Op:
    """NaN gives way to a number (unless ``.NaN``); -0 is less than +0."""
    kind = scalar_type(ins)
    lesser, propagate = ins.opcode == "min", ins.has("NaN")

    def exact(a: Any, b: Any) -> Any:
        first = (
            np.where(a == b, np.signbit(a), a < b)
            if lesser
            else np.where(a == b, ~np.signbit(a), a > b)
        )
        result = np.where(np.isnan(a), b, np.where(np.isnan(b) | first, a, b))
        return np.where(np.isnan(a) | np.isnan(b), np.nan, result) if propagate else result

    return _op(ins, kind, exact, 2)


@row("tanh", "ex2", section="Half Precision Floating Point Instructions")
def transcendental(ins: Instruction) -> Op:
    """``ex2.approx`` and ``tanh.approx``; single precision is the other family's."""
    from . import floating

    kind = scalar_type(ins)
    if kind not in HALF_TYPES:
        return floating.transcendental(ins)
    fn: Any = np.tanh if ins.opcode == "tanh" else np.exp2
    op = _op(ins, kind, fn, 1)
    return Op(op.fn, op.inputs, op.outputs, op.count, op.flops, approximate=True)


def comparison(kind: str, fn: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A comparison of float64 values, on f16 or bf16 bits."""
    if kind.endswith("x2"):
        raise Unsupported(f"type .{kind}")
    return lambda a, b: fn(to_double(a.view(np.uint16), kind), to_double(b.view(np.uint16), kind))


def convert(ins: Instruction, target: str, source: str) -> Op | None:
    """Conversions that ``cvt`` has for bf16 and for packing two floats into a pair."""
    mode = "rz" if ins.has("rz") else "rn"

    def narrowed(x: Any, kind: str) -> Words:
        words = from_double(x.astype(np.float64), kind, mode)
        if ins.has("relu"):
            words = np.where((words >> np.uint16(15) == 1) & ~np.isnan(x), np.uint16(0), words)
        return words

    if target in ("f16x2", "bf16x2") and source == "f32":

        def pair(a: Any, b: Any) -> Any:
            kind = target[:-2]
            low, high = narrowed(b, kind), narrowed(a, kind)
            return (low.astype(np.uint32) | (high.astype(np.uint32) << np.uint32(16))).view(
                np.int32
            )

        return Op(pair, ("f32", "f32"), ("b32",))
    if target == "bf16" and source in ("f32", "f64"):
        return Op(lambda a: narrowed(a, "bf16").view(np.int16), (source,), ("b16",))
    if source == "bf16" and target in ("f32", "f64"):

        def widen(a: Any) -> Any:
            wide = to_double(a.view(np.uint16), "bf16")
            return ieee.canonical(wide.astype(DTYPES[target]))

        return Op(widen, ("b16",), (target,))
    return None
