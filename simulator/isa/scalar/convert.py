"""``cvt`` (PTX ISA, "Data Movement and Conversion Instructions: cvt")."""

from typing import cast

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ...core.geometry import Lanes
from ..numerics import arithmetic as ieee
from ..numerics.rounding import flush_when_tiny, rounding
from ..table import Function, Op, row, width
from . import half

_FLOATS = ("f16", "bf16", "f32", "f64")
_TO_INTEGER: dict[str, Function] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def _range(type: str) -> tuple[int, int]:
    info = np.iinfo(DTYPES[type])
    return int(info.min), int(info.max)


_INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
_ANY = "s8|u8|s16|u16|s32|u32|s64|u64"
_CLAMPED = "\n".join(  # .sat where the target does not hold all numbers of the source
    f"sat .{target} .{source} : t0~ = t~%"
    for target in _INTEGERS
    for source in _INTEGERS
    if _range(source)[0] < _range(target)[0] or _range(source)[1] > _range(target)[1]
)


@row(
    "cvt", section="Data Movement and Conversion Instructions", of_address="same",
    forms=f"""
        .{_ANY} .{_ANY} : t0~ = t~%
        {_CLAMPED}
        rni|rzi|rmi|rpi sat? .{_ANY} .f16|f64 : t0~ = t~
        rni|rzi|rmi|rpi sat? ftz? .{_ANY} .f32 : t0~ = t~
        rni|rzi|rmi|rpi .{_ANY} .bf16 : t0 = t~
        rn|rz|rm|rp sat? .f16|f64 .{_ANY} : t0~ = t~
        rn|rz|rm|rp sat? ftz? .f32 .{_ANY} : t0~ = t~
        rn|rz|rm|rp .bf16 .{_ANY} : t0~ = t
        rni|rzi|rmi|rpi? sat? .f16 .f16 : t0~ = t~
        rni|rzi|rmi|rpi? sat? .f64 .f64 : t0~ = t~
        rni|rzi|rmi|rpi? sat? ftz? .f32 .f32 : t0~ = t~
        rni|rzi|rmi|rpi? .bf16 .bf16 : t0~ = t~
        sat? .f64 .f16 : t0~ = t~
        sat? ftz? .f64 .f32 : t0~ = t~
        sat? ftz? .f32 .f16 : t0~ = t~
        ftz? rn|rz|rm|rp? .f32 .bf16 : t0 = t
        rn|rz|rm|rp? .f64 .bf16 : t0~ = t~
        rn|rz|rm|rp? .f16 .bf16 : t0 = t
        rn|rz|rm|rp? .bf16 .f16 : t0 = t
        rn|rz|rm|rp sat? ftz? .f32 .f64 : t0~ = t~
        rn|rz|rm|rp sat? .f16 .f64 : t0~ = t~
        rn|rz|rm|rp .bf16 .f64 : t0~ = t~
        rn|rz|rm|rp sat? ftz? .f16 .f32 : t0~ = t~
        rn|rz|rm|rp ftz? .bf16 .f32 : t0 = t
        rn|rz relu? satfinite? .f16 .f32 : t0~ = t~
        rn|rz relu? satfinite? .bf16 .f32 : t0 = t
        rn|rz relu? satfinite? .f16x2 .f32 : t0~ = t~ t~
        rn|rz relu? satfinite? .bf16x2 .f32 : t0 = t t
        rn|rz relu? .tf32 .f32 : t0 = t
        rn|rz relu? satfinite .tf32 .f32 @100 : t0 = t
        rna satfinite? .tf32 .f32 : t0 = t
        pack! sat .u16|s16 .s32 : i32 = t t
        pack! sat .u8|s8|u4|s4|u2|s2 .s32 .b32 : i32 = s32 s32 b32
    """,
)  # fmt: skip
def convert(ins: Instruction) -> Op:
    """Conversion between integer and floating-point types, and packing of two values."""
    if ins.has("pack"):
        return _pack(ins)
    if ins.has("tf32"):
        return _to_tf32(ins)
    target, source = ins.types
    if target in ("f16x2", "bf16x2") and source == "f32":
        return half.pack(ins, target, rounding(ins))
    if source == "bf16":  # float32 has all its numbers
        if target == "f32" and not ins.has("sat", *_TO_INTEGER):
            return Op(half.to_single, (source,), (target,))
        inner = _conversion(ins, target, "f32")
        return Op(lambda a: inner(half.to_single(a)), (source,), (target,))
    return Op(_conversion(ins, target, source), (source,), (target,))


def _conversion(ins: Instruction, target: str, source: str) -> Function:
    if source in _FLOATS:
        fn = _float_to_float if target in _FLOATS else _float_to_integer
    else:
        fn = _integer_to_float if target in _FLOATS else _integer_to_integer
    return fn(ins, target, source)


def _pack(ins: Instruction) -> Op:
    """``cvt.pack.sat``: two integers clamped to few bits, above each other, below ``c``."""
    narrow = ("u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2")
    name = next(m for m in ins.modifiers if m in narrow)
    bits = int(name[1:])
    low, high = (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    ones, up = np.uint32(2**bits - 1), np.uint32(bits)

    def clamped(x: Lanes) -> Lanes:
        return np.clip(x, np.int32(low), np.int32(high)).view(np.uint32) & ones

    def apply(a: Lanes, b: Lanes, *c: Lanes) -> Lanes:
        pair = (clamped(a) << up) | clamped(b)
        return pair | (c[0] << np.uint32(2 * bits)) if c else pair

    return Op(apply, ("s32", "s32") + (("u32",) if bits < 16 else ()), ("u32",))


def _to_tf32(ins: Instruction) -> Op:
    """float32 with the low 13 bits rounded away: ``rna`` takes ties away from zero."""

    def apply(a: Lanes) -> Lanes:
        bits = a.view(np.uint32)
        up = cast(Lanes, np.uint32(0x1000 if ins.has("rna") else 0))
        if ins.has("rn"):
            up = np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
        if ins.has("relu"):
            bits = np.where(np.signbit(a), np.uint32(0), bits)  # -0 as well: H200
        low = np.uint32(0xFFFFE000)
        # NaN as measured on an H200: rna cuts it off, even to infinity.
        nan = bits & low if ins.has("rna") else np.uint32(0x7FFFE000)
        rounded = np.where(np.isnan(a), nan, (bits + up) & low)
        if ins.has("satfinite"):
            beyond = (rounded & np.uint32(0x7F800000)) == 0x7F800000
            beyond &= ~np.isnan(a) | ins.has("rna")
            rounded = np.where(beyond, rounded - np.uint32(0x2000), rounded)
        return rounded

    return Op(apply, ("f32",), ("u32",))


def _integer_to_integer(ins: Instruction, target: str, source: str) -> Function:
    dtype = DTYPES[target]
    if not ins.has("sat"):
        return lambda a: a.astype(dtype)
    (low, high), (source_low, source_high) = _range(target), _range(source)
    low, high = max(low, source_low), min(high, source_high)
    lowest, highest = DTYPES[source].type(low), DTYPES[source].type(high)
    return lambda a: np.clip(a, lowest, highest).astype(dtype)


def _saturate(ins: Instruction, result: Lanes) -> Lanes:
    if not ins.has("sat"):
        return result
    one, zero = result.dtype.type(1), result.dtype.type(0)
    return np.where(result > zero, np.minimum(result, one), zero)


def _integer_to_float(ins: Instruction, target: str, source: str) -> Function:
    mode, dtype = rounding(ins), DTYPES[target]

    def apply(a: Lanes) -> Lanes:
        if mode == "rn" and target not in ("f16", "bf16"):
            return _saturate(ins, a.astype(dtype))
        wide = _odd_double(a) if width(source) == 64 else a.astype(np.float64)
        if target == "bf16":
            return half.finish(ins, target, half.from_double(wide, target, mode)).view(dtype)
        if target == "f64":
            return _saturate(ins, _directed_double(a, mode) if width(source) == 64 else wide)
        return _saturate(ins, _narrow(wide, target, mode))

    return apply


def _odd_double(a: Lanes) -> Lanes:
    """Return a 64-bit integer as float64, rounded to odd."""
    return ieee.to_odd(*_halves(a))


def _halves(a: Lanes) -> tuple[Lanes, Lanes]:
    """Return two float64 whose exact sum is a 64-bit integer."""
    high = (a >> a.dtype.type(32)).astype(np.float64) * 2.0**32
    return high, (a & a.dtype.type(0xFFFFFFFF)).astype(np.float64)


def _directed_double(a: Lanes, mode: str) -> Lanes:
    s, error = ieee.two_sum(*_halves(a))
    down, up = np.nextafter(s, -np.inf), np.nextafter(s, np.inf)
    too_high = (error < 0) & ((mode == "rm") | ((mode == "rz") & (s > 0)))
    too_low = (error > 0) & ((mode == "rp") | ((mode == "rz") & (s < 0)))
    return np.where(too_high, down, np.where(too_low, up, s))


def _narrow(x: Lanes, target: str, mode: str) -> Lanes:
    if target == "f32":
        return ieee.narrow(x, mode)
    return half.from_double(x, target, mode).view(np.float16)


def _float_to_integer(ins: Instruction, target: str, source: str) -> Function:
    """Out of range clamps; NaN gives 0, or the top bit alone where either side has 64 bits."""
    rounding = next(_TO_INTEGER[m] for m in ins.modifiers if m in _TO_INTEGER)
    dtype = DTYPES[target]
    low, high = _range(target)
    lowest, highest = np.float64(low), np.float64(high)
    nan = dtype.type(0)
    if width(target) == 64 or source == "f64":  # measured on an H200
        nan = np.dtype(f"u{dtype.itemsize}").type(1 << (width(target) - 1)).view(dtype)

    def apply(a: Lanes) -> Lanes:
        x = ieee.flush(a) if ins.has("ftz") else a
        wide = rounding(x.astype(np.float64))
        if _between(wide, lowest, highest):  # the usual case, at a fifth of the time
            return wide.astype(dtype)
        bottom, top = wide <= lowest, wide >= highest
        inside = np.where(bottom | top | np.isnan(wide), 0.0, wide).astype(dtype)
        result = np.where(bottom, dtype.type(low), np.where(top, dtype.type(high), inside))
        return np.where(np.isnan(wide), nan, result)

    return apply


def _between(x: Lanes, low: np.float64, high: np.float64) -> bool:
    """Whether all of some float64 lie strictly between two numbers; false if any is NaN."""
    if x.ndim == 0:
        return bool(low < x < high)
    smallest, largest = np.minimum.reduce(x, axis=None), np.maximum.reduce(x, axis=None)
    return bool(low < smallest and largest < high)


def _float_to_float(ins: Instruction, target: str, source: str) -> Function:
    mode = rounding(ins)
    integral = next((_TO_INTEGER[m] for m in ins.modifiers if m in _TO_INTEGER), None)
    dtype = DTYPES[target]
    ftz = ins.has("ftz")

    def apply(a: Lanes) -> Lanes:
        x = ieee.flush(a) if ftz and source == "f32" else a
        if ftz and target == "f64":  # .ftz also makes one NaN of all (H200)
            x = ieee.canonical(x)
        if integral is not None:
            x = integral(x)
        if target in ("f16", "bf16"):
            words = half.from_double(x.astype(np.float64), target, mode)
            if source == "f64":
                words = _half_nan(x, words, target)
            return half.finish(ins, target, words).view(dtype)
        if target == source:
            result = x
        elif width(target) > width(source):
            result = x.astype(dtype)
        else:
            wide = x.astype(np.float64) if mode != "rn" else x
            result = x.astype(dtype) if mode == "rn" else _narrow(wide, target, mode)
        if ftz and target == "f32":
            if source == "f64":
                result = flush_when_tiny(result, lambda: x, mode)
            result = ieee.flush(result)
        result = _saturate(ins, result)
        if "f64" in (target, source):  # NaN keeps its sign and what fits of its payload
            return ieee.quiet(result)
        return ieee.canonical(np.asarray(result)[()])

    return apply


def _half_nan(x: Lanes, words: Lanes, target: str) -> Lanes:
    """f64 to f16 or bf16: NaN keeps its sign and the top of its payload, made quiet (H200)."""
    nan = np.isnan(x)
    if not np.any(nan):
        return words
    pattern = x.view(np.uint64)
    bits = 7 if target == "bf16" else 10
    top = pattern >> np.uint64(52 - bits) & np.uint64((1 << bits) - 1)
    quiet = np.uint64(int(half.infinity(target)) | 1 << (bits - 1))
    payload = (pattern >> np.uint64(48)) & np.uint64(0x8000) | quiet | top
    return np.where(nan, payload.astype(words.dtype), words)
