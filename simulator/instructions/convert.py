"""``cvt`` (PTX ISA, "Data Movement and Conversion Instructions: cvt")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import arithmetic as ieee
from ..module import Instruction
from . import half
from .table import DTYPES, Op, Unsupported, row, width

_FLOATS = ("f16", "f32", "f64")
_TO_INTEGER: dict[str, Any] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@row("cvt", section="Data Movement and Conversion Instructions")
def convert(ins: Instruction) -> Op:
    """Between any two of the integer and floating types."""
    if len(ins.types) != 2:
        raise Unsupported("other than one type to one type")
    target, source = ins.types
    special = half.convert(ins, target, source)
    if special:
        return special
    for kind in (target, source):
        if kind not in (*_FLOATS, "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
            raise Unsupported(f"type .{kind}")
    if source in _FLOATS:
        fn = _float_to_float if target in _FLOATS else _float_to_integer
    else:
        fn = _integer_to_float if target in _FLOATS else _integer_to_integer
    return Op(fn(ins, target, source), (source,), (target,))


def _limits(kind: str) -> tuple[int, int]:
    info = np.iinfo(DTYPES[kind])
    return int(info.min), int(info.max)


def _integer_to_integer(ins: Instruction, target: str, source: str) -> Callable[[Any], Any]:
    dtype = DTYPES[target]
    if not ins.has("sat"):
        return lambda a: a.astype(dtype)
    (low, high), (source_low, source_high) = _limits(target), _limits(source)
    low, high = max(low, source_low), min(high, source_high)
    lowest, highest = DTYPES[source].type(low), DTYPES[source].type(high)
    return lambda a: np.clip(a, lowest, highest).astype(dtype)


def _rounding(ins: Instruction) -> str:
    return next((m for m in ins.modifiers if m in ("rn", "rz", "rm", "rp")), "rn")


def _saturate(ins: Instruction, result: Any) -> Any:
    if not ins.has("sat"):
        return result
    one, zero = result.dtype.type(1), result.dtype.type(0)
    return np.where(result > zero, np.minimum(result, one), zero)


def _integer_to_float(ins: Instruction, target: str, source: str) -> Callable[[Any], Any]:
    mode, dtype = _rounding(ins), DTYPES[target]

    def apply(a: Any) -> Any:
        if mode == "rn" and target != "f16":
            return _saturate(ins, a.astype(dtype))
        wide = _odd_double(a) if width(source) == 64 else a.astype(np.float64)
        if target == "f64":
            return _saturate(ins, _directed_double(a, mode) if width(source) == 64 else wide)
        return _saturate(ins, _narrow(wide, target, mode))

    return apply


def _odd_double(a: Any) -> Any:
    """A 64-bit integer as float64, rounded to odd."""
    high = (a >> a.dtype.type(32)).astype(np.float64) * 2.0**32
    low = (a & a.dtype.type(0xFFFFFFFF)).astype(np.float64)
    return ieee.to_odd(high, low)


def _directed_double(a: Any, mode: str) -> Any:
    high = (a >> a.dtype.type(32)).astype(np.float64) * 2.0**32
    low = (a & a.dtype.type(0xFFFFFFFF)).astype(np.float64)
    s, error = high + low, None
    v = s - high
    error = (high - (s - v)) + (low - v)
    if mode == "rn":
        return s
    down, up = np.nextafter(s, -np.inf), np.nextafter(s, np.inf)
    too_high = (error < 0) & ((mode == "rm") | ((mode == "rz") & (s > 0)))
    too_low = (error > 0) & ((mode == "rp") | ((mode == "rz") & (s < 0)))
    return np.where(too_high, down, np.where(too_low, up, s))


def _narrow(x: Any, target: str, mode: str) -> Any:
    if target == "f32":
        return ieee.narrow(x, mode)
    half = x.astype(np.float16)
    if mode == "rn":
        return half
    back = half.astype(np.float64)
    down, up = np.nextafter(half, np.float16(-np.inf)), np.nextafter(half, np.float16(np.inf))
    too_high = (back > x) & ((mode == "rm") | ((mode == "rz") & (x > 0)))
    too_low = (back < x) & ((mode == "rp") | ((mode == "rz") & (x < 0)))
    return np.where(too_high, down, np.where(too_low, up, half))


def _float_to_integer(ins: Instruction, target: str, source: str) -> Callable[[Any], Any]:
    """Out of range clamps; NaN gives 0, or the top bit alone where either side has 64 bits."""
    mode = next((m for m in ins.modifiers if m in _TO_INTEGER), None)
    if mode is None:
        raise Unsupported("no integer rounding")
    rounding = _TO_INTEGER[mode]
    dtype = DTYPES[target]
    low, high = _limits(target)
    nan = dtype.type(0)
    if width(target) == 64 or source == "f64":  # measured on an H200
        nan = np.dtype(f"u{dtype.itemsize}").type(1 << (width(target) - 1)).view(dtype)

    def apply(a: Any) -> Any:
        x = ieee.flush(a) if ins.has("ftz") else a
        wide = rounding(x.astype(np.float64))
        bottom, top = wide <= np.float64(low), wide >= np.float64(high)
        inside = np.where(bottom | top | np.isnan(wide), 0.0, wide).astype(dtype)
        result = np.where(bottom, dtype.type(low), np.where(top, dtype.type(high), inside))
        return np.where(np.isnan(wide), nan, result)

    return apply


def _float_to_float(ins: Instruction, target: str, source: str) -> Callable[[Any], Any]:
    mode = _rounding(ins)
    integral = next((_TO_INTEGER[m] for m in ins.modifiers if m in _TO_INTEGER), None)
    dtype = DTYPES[target]
    ftz = ins.has("ftz")

    def apply(a: Any) -> Any:
        x = ieee.flush(a) if ftz and source == "f32" else a
        if integral is not None:
            x = integral(x)
        if target == source:
            result = x
        elif width(target) > width(source):
            result = x.astype(dtype)
        else:
            wide = x.astype(np.float64) if mode != "rn" else x
            result = x.astype(dtype) if mode == "rn" else _narrow(wide, target, mode)
        if ftz and target == "f32":
            result = ieee.flush(result)
        result = _saturate(ins, result)
        if target == "f16":
            return _half_nan(result)
        if "f64" in (target, source):  # NaN keeps its sign and what fits of its payload
            return ieee.quiet(result)
        return ieee.canonical(np.asarray(result)[()])

    return apply


def _half_nan(x: Any) -> Any:
    return np.where(np.isnan(x), np.uint16(0x7FFF).view(np.float16), x)
