"""Floating point of 8 bits and less: conversions (PTX ISA, "cvt").

The formats and rounding to nearest even are those of ml_dtypes. Saturation, NaN, ``.relu`` and
the powers of two (ue8m0, rounded down or up) are done here.
"""

from typing import NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ...core.geometry import Lanes
from ..table import Op, row
from . import half

Words = NDArray[np.uint32]


class Small(NamedTuple):
    """Format of at most 8 bits.

    Attributes:
        dtype: Its type in ml_dtypes; a number's byte is its code.
        bits: Of a number.
        fraction: Bits of its significand without the hidden one.
        least: Least exponent of a number that is not subnormal.
        largest: Largest finite number.
    """

    dtype: np.dtype[np.generic]
    bits: int
    fraction: int
    least: int
    largest: float

    @property
    def sign(self) -> int:
        """The bit of the sign; the code below it is what NaN becomes."""
        return 1 << (self.bits - 1)


def _small(dtype: type[np.generic]) -> Small:
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return Small(np.dtype(dtype), info.bits, info.nmant, info.minexp, float(info.max))


TYPES = {
    "e4m3": _small(ml_dtypes.float8_e4m3fn),
    "e5m2": _small(ml_dtypes.float8_e5m2),
    "e2m3": _small(ml_dtypes.float6_e2m3fn),
    "e3m2": _small(ml_dtypes.float6_e3m2fn),
    "e2m1": _small(ml_dtypes.float4_e2m1fn),
}


def encode(x: Lanes, kind: str, relu: bool) -> Words:
    """Round float64 to nearest even; a number that is too large becomes the largest one."""
    small = TYPES[kind]
    code = (
        np.clip(x, -small.largest, small.largest)
        .astype(small.dtype)
        .view(np.uint8)
        .astype(np.uint32)
    )
    if relu:
        code = np.where(np.signbit(x), np.uint32(0), code)
    return np.where(np.isnan(x), np.uint32(small.sign - 1), code)


def decode(kind: str) -> half.Words:
    """Return all codes as f16."""
    small = TYPES[kind]
    codes = np.arange(2 * small.sign, dtype=np.uint8)
    return half.from_double(codes.view(small.dtype).astype(np.float64), "f16")


_AS_F16 = {kind: decode(kind) for kind in TYPES}


@row(
    "cvt", section="Data Movement and Conversion Instructions",
    forms="""
        rn satfinite relu? .e4m3x2|e5m2x2 .f32 @89 : bf16 = t t
        rn satfinite relu? .e4m3x2|e5m2x2 .f16x2 @89 : bf16 = t
        rn satfinite relu? .e2m3x2|e3m2x2 .f32 @100 @a : bf16 = t t
        rn satfinite relu? .e2m1x2 .f32 @100 @a : bf8 = t t
        rn satfinite relu? .e2m1x2 .f16x2 @100 @a : bf8 = t
    """,
)  # fmt: skip
def to_small(ins: Instruction) -> Op:
    """Two numbers to few bits: the first of two f32 becomes the upper one."""
    kind = _kind(ins)
    up, relu, word = _room(kind), ins.has("relu"), _word(kind)
    dtype = DTYPES[word]

    def pair(low: Lanes, high: Lanes) -> Lanes:
        packed = encode(low, kind, relu) | encode(high, kind, relu) << np.uint32(up)
        return packed.astype(f"u{dtype.itemsize}").view(dtype)

    def halves(a: Lanes) -> Lanes:
        low, high = half.split(a)
        return pair(half.to_double(low, "f16"), half.to_double(high, "f16"))

    if ins.has("f16x2"):
        return Op(halves, ("b32",), (word,))
    return Op(lambda a, b: pair(b.astype(float), a.astype(float)), ("f32", "f32"), (word,))


@row(
    "cvt", section="Data Movement and Conversion Instructions",
    forms="""
        rn relu? .f16x2 .e4m3x2|e5m2x2 @89 : t0 = bf16
        rn relu? .f16x2 .e2m3x2|e3m2x2 @100 @a : t0 = bf16
        rn relu? .f16x2 .e2m1x2 @100 @a : t0 = bf8
    """,
)  # fmt: skip
def from_small(ins: Instruction) -> Op:
    """Two numbers of few bits as f16, exactly."""
    kind = _kind(ins)
    table, every, up = _AS_F16[kind], np.uint16(2 * TYPES[kind].sign - 1), np.uint16(_room(kind))

    def apply(a: Lanes) -> Lanes:
        codes = a.view(f"u{a.dtype.itemsize}").astype(np.uint16)
        low, high = (half.finish(ins, "f16", table[c & every]) for c in (codes, codes >> up))
        return half.join(low, high)

    return Op(apply, (_word(kind),), ("b32",))


@row(
    "cvt", section="Data Movement and Conversion Instructions",
    forms="""
        rz|rp satfinite? .ue8m0x2 .f32 @100 @a : bf16 = t t
        rz|rp satfinite? .ue8m0x2 .bf16x2 @100 @a : bf16 = u32!
    """,
)  # fmt: skip
def to_power(ins: Instruction) -> Op:
    """Two powers of two, without a sign: the largest one below a number, or the least above it."""
    up, finite = ins.has("rp"), ins.has("satfinite")

    def code(bits: Lanes) -> Lanes:
        size = bits & np.uint32(0x7FFFFFFF)
        exponent, rest = size >> np.uint32(23), size & np.uint32(0x7FFFFF)
        least = np.where(exponent == 0, np.uint32(0x400000), np.uint32(0))  # of code 0: 2**-127
        more = exponent + (rest > least) if up else exponent
        more = np.where(exponent == 0xFF, np.uint32(0xFF), more)
        infinite = size <= 0x7F800000
        return np.where((more == 0xFF) & infinite & finite, 0xFE, more).astype(np.uint32)

    def pair(high: Lanes, low: Lanes) -> Lanes:
        return (code(low) | code(high) << np.uint32(8)).astype(np.uint16).view(np.int16)

    if ins.has("bf16x2"):
        top = np.uint32(0xFFFF0000)
        return Op(lambda a: pair(a & top, a << np.uint32(16)), ("u32",), ("b16",))
    return Op(pair, ("u32", "u32"), ("b16",))


@row(
    "cvt", section="Data Movement and Conversion Instructions",
    forms="rn .bf16x2 .ue8m0x2 @100 @a : t0 = bf16",
)  # fmt: skip
def from_power(ins: Instruction) -> Op:
    """Two powers of two as bf16, which has them all; the last code is NaN."""

    def one(code: Lanes) -> half.Words:
        power = np.where(code == 0, np.uint16(0x40), code << np.uint16(7))
        return np.where(code == 0xFF, half.NAN, power)

    def apply(a: Lanes) -> Lanes:
        codes = a.view(np.uint16)
        return half.join(one(codes & np.uint16(0xFF)), one(codes >> np.uint16(8)))

    return Op(apply, ("b16",), ("b32",))


def _room(kind: str) -> int:
    """Return the bits that a number has in a pair."""
    return 4 if kind == "e2m1" else 8


def _word(kind: str) -> str:
    """Return the type of a pair's register."""
    return f"b{2 * _room(kind)}"


def _kind(ins: Instruction) -> str:
    return next(m[:-2] for m in ins.modifiers if m[:-2] in TYPES)
