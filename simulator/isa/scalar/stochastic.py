"""Conversions with stochastic rounding (PTX ISA, "cvt", ``.rs``).

Random bits are added below the last bit that a number keeps: it goes up if they carry. Halves take
as many as they drop of an ordinary number, 13 or 16, from the bits of ``rbits`` above which they
come to stand. Four numbers of few bits take 16 each: the first two share the upper half of
``rbits``, the others the lower one, and the first and the third take theirs in reverse, as was
measured on an sm_100a by others.
"""

import functools
from typing import NamedTuple

import numpy as np

from kernels.ptx.module import Instruction

from ...core.geometry import Lanes
from ..table import Op, row
from . import half
from .fp8 import TYPES, encode

_BITS = 16


class _TargetFormat(NamedTuple):
    """Limits of a target type: significand bits, least exponent, largest number."""

    bits: int
    least: int
    largest: float


_HALVES = {
    "f16": _TargetFormat(11, -14, 65504.0),
    "bf16": _TargetFormat(8, -126, float.fromhex("0x1.fep127")),
}
_SMALL = {kind: _TargetFormat(t.fraction + 1, t.least, t.largest) for kind, t in TYPES.items()}


def rounded(x: Lanes, noise: Lanes, drawn: int, target: _TargetFormat) -> Lanes:
    """Round float64 numbers to a format's precision; ``noise``: ``drawn`` bits for each."""
    last = (
        np.maximum(np.frexp(np.where(np.isfinite(x), x, 1.0))[1] - 1, target.least)
        - target.bits
        + 1
    )
    below = np.ldexp(np.abs(x), drawn - last)
    units = np.floor((np.floor(below) + noise) * 2.0**-drawn)
    result: Lanes = np.copysign(np.ldexp(units, last), x)
    return result


@row(
    "cvt", section="Data Movement and Conversion Instructions",
    forms="rs relu? satfinite? .f16x2|bf16x2 .f32 @100 @a : t0 = t t bf16x2!",
)  # fmt: skip
def to_halves(ins: Instruction) -> Op:
    """Two halves, the first above."""
    kind = "bf16" if ins.has("bf16x2") else "f16"
    target, drawn = _HALVES[kind], 24 - _HALVES[kind].bits
    finite, relu = ins.has("satfinite"), ins.has("relu")

    def one(x: Lanes, noise: Lanes) -> half.Words:
        value = rounded(x.astype(float), noise & np.uint32((1 << drawn) - 1), drawn, target)
        if finite:
            value = np.clip(value, -target.largest, target.largest)
        if relu:
            value = np.where(np.signbit(value), 0.0, value)
        nan = np.isnan(x)
        return np.where(nan, half.NAN, half.from_double(np.where(nan, 0.0, value), kind))

    def apply(a: Lanes, b: Lanes, noise: Lanes) -> Lanes:
        return half.join(one(b, noise), one(a, noise >> np.uint32(16)))

    return Op(apply, ("f32", "f32", "u32"), ("b32",))


@row(
    "cvt", section="Data Movement and Conversion Instructions",
    forms="""
        rs relu? satfinite .e4m3x4|e5m2x4|e2m3x4|e3m2x4 .f32 @100 @a : bf16x2 = {slope4 bf16x2!
        rs relu? satfinite .e2m1x4 .f32 @100 @a : bf16 = {slope4 bf16x2!
    """,
)  # fmt: skip
def to_four(ins: Instruction) -> Op:
    """Four numbers of few bits, the first at the top."""
    kind = next(m[:-2] for m in ins.modifiers if m[:-2] in TYPES)
    target, relu = _SMALL[kind], ins.has("relu")
    room = 4 if kind == "e2m1" else 8

    def one(x: Lanes, noise: Lanes) -> Lanes:
        return encode(rounded(x.astype(float), noise, _BITS, target), kind, relu)

    def apply(a: Lanes, b: Lanes, e: Lanes, f: Lanes, noise: Lanes) -> Lanes:
        high, low = noise >> np.uint32(16), noise & np.uint32(0xFFFF)
        parts = one(f, low), one(e, _reversed(low)), one(b, high), one(a, _reversed(high))
        word = functools.reduce(lambda low, high: low | high, (
            part << np.uint32(i * room) for i, part in enumerate(parts)
        ))  # fmt: skip
        return word.astype(np.uint16).view(np.int16) if room == 4 else word

    floats = ("f32",) * 4
    return Op(apply, (*floats, "u32"), ("b16" if room == 4 else "u32",))


def _reversed(bits: Lanes) -> Lanes:
    """16 bits, the last one first."""
    for mask, shift in ((0x5555, 1), (0x3333, 2), (0x0F0F, 4), (0x00FF, 8)):
        by, some = np.uint32(shift), np.uint32(mask)
        bits = (bits & some) << by | bits >> by & some
    return bits
