"""Floating point of 8 bits and less: conversions (PTX ISA, "cvt").

A type is a sign, some bits of exponent and some of fraction, with subnormals: e4m3 has a NaN and
no infinity, e5m2 has both. All numbers of a type stand in a table; rounding finds the nearest.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ..geometry import Lanes
from . import half
from .table import Op, row

Words = NDArray[np.uint32]


class Small(NamedTuple):
    """A type of few bits.

    Attributes:
        bits: Of a number; ``fraction``: of its significand without the hidden one.
        most: Code of the largest finite number; ``nan``: of what NaN becomes.
        infinite: Whether the code after the largest is infinity.
    """

    bits: int
    fraction: int
    most: int
    nan: int
    infinite: bool = False

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << (self.bits - 1)

    def magnitudes(self) -> NDArray[np.float64]:
        """The numbers that are not negative, ascending: their places are their codes."""
        codes = np.arange(self.most + 1)
        exponent, fraction = codes >> self.fraction, codes & ((1 << self.fraction) - 1)
        bias = (1 << (self.bits - 2 - self.fraction)) - 1
        whole = np.where(exponent > 0, fraction + (1 << self.fraction), fraction)
        return np.ldexp(whole.astype(np.float64), np.maximum(exponent, 1) - bias - self.fraction)


TYPES = {
    "e4m3": Small(8, 3, 0x7E, 0x7F), "e5m2": Small(8, 2, 0x7B, 0x7F, True),
    "e2m3": Small(6, 3, 0x1F, 0x1F), "e3m2": Small(6, 2, 0x1F, 0x1F), "e2m1": Small(4, 1, 7, 7),
}  # fmt: skip
_NUMBERS = {kind: small.magnitudes() for kind, small in TYPES.items()}
_MIDDLES = {kind: (numbers[1:] + numbers[:-1]) / 2 for kind, numbers in _NUMBERS.items()}


def encode(x: Lanes, kind: str, relu: bool) -> Words:
    """float64 rounded to nearest even; what is too large becomes the largest number."""
    small, middles = TYPES[kind], _MIDDLES[kind]
    size = np.abs(x)
    code = np.searchsorted(middles, size)  # a number in the middle goes down
    tie = middles[np.minimum(code, len(middles) - 1)] == size
    code = (code + (tie & (code % 2 == 1))).astype(np.uint32)
    negative = np.signbit(x)
    signed = np.where(negative, np.uint32(0) if relu else code | np.uint32(small.sign), code)
    return np.where(np.isnan(x), np.uint32(small.nan), signed)


def decode(kind: str) -> half.Words:
    """All codes as f16."""
    small, numbers = TYPES[kind], _NUMBERS[kind]
    above = np.full(small.sign - len(numbers), np.nan)
    above[: small.infinite] = np.inf
    positive = np.concatenate([numbers, above])
    return half.from_double(np.concatenate([positive, -positive]), "f16")


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
    """The bits that a number has in a pair."""
    return 4 if kind == "e2m1" else 8


def _word(kind: str) -> str:
    """The type of a pair's register."""
    return f"b{2 * _room(kind)}"


def _kind(ins: Instruction) -> str:
    return next(m[:-2] for m in ins.modifiers if m[:-2] in TYPES)
