"""Conversions on exact integers and rationals, rounded once."""

import math
from collections.abc import Callable
from fractions import Fraction

from kernels.ptx.module import Instruction
from tests.oracles.interpreter.floating import encode, rounding, tiny, value
from tests.oracles.interpreter.values import (
    WIDTH,
    Meaning,
    NotModelled,
    clamp,
    limits,
    mask,
    number,
    opcode,
)  # fmt: skip
from tests.simulator.isa.floats import FORMATS, Format

INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


def to_integer(n: Fraction, mode: str) -> int:
    """A rational rounded to an integer; ties go to the even one."""
    if mode == "rn":
        return round(n)
    if mode == "rz":
        return math.trunc(n)
    return math.floor(n) if mode == "rm" else math.ceil(n)


@opcode("cvt")
def convert(ins: Instruction) -> Meaning:
    if ins.has("pack"):
        return pack(ins)
    if ins.has("tf32"):
        return tf32(ins)
    if len(ins.types) != 2:
        raise NotModelled(ins.name)
    target, source = ins.types
    if target.endswith("x2"):
        one = convert_one(ins, target.removesuffix("x2"), "f32")
        return Meaning(("f32", "f32"), ("b32",), lambda a, b: one(a) << 16 | one(b))
    carrier = {"f16": "b16", "bf16": "b16"}
    fn = convert_one(ins, target, source)
    return Meaning((carrier.get(source, source),), (carrier.get(target, target),), fn)


def convert_one(ins: Instruction, target: str, source: str) -> Callable[[int], int]:
    mode = rounding(ins)
    integral = next((INTEGRAL[m] for m in ins.modifiers if m in INTEGRAL), "")
    sat, ftz = ins.has("sat"), ins.has("ftz")
    bits = mask(WIDTH[target])
    if source not in FORMATS:
        if target not in FORMATS:
            if sat:
                return lambda a: clamp(number(a, source), target) & bits
            return lambda a: number(a, source) & bits
        f = FORMATS[target]

        def from_integer(a: int) -> int:
            x = number(a, source)
            x = min(max(x, 0), 1) if sat else x
            return f.encode(x, 0, mode) if x else 0

        return from_integer
    s = FORMATS[source]
    if target not in FORMATS:
        low, high = limits(target)
        # What an H200 gives for NaN: nothing, or the top bit alone where 64 bits are in play.
        wide = WIDTH[target] == 64 or source == "f64"
        nan = 1 << (WIDTH[target] - 1) if wide else 0

        def from_float(a: int) -> int:
            if ftz and source == "f32":
                a = s.flush(a)
            if s.is_nan(a):
                return nan
            if s.is_inf(a):
                return (low if s.negative(a) else high) & bits
            return clamp(to_integer(value(s, a), integral), target) & bits

        return from_float
    t = FORMATS[target]

    def between(a: int) -> int:
        if ftz and source == "f32":
            a = s.flush(a)
        negative = s.negative(a)
        if s.is_nan(a):
            result = nan_of(ins, target, source, a)
        elif s.is_inf(a):
            result = t.sign_bit * negative | t.inf
        else:
            n = value(s, a)
            if integral:
                n = Fraction(to_integer(n, integral))
            result = encode(t, n, mode) if n else t.sign_bit * negative
            if ftz and target == "f32" and tiny(n, mode):
                result = t.sign_bit * negative
        if sat:
            result = t.saturate(result)
        if ins.has("relu") and t.negative(result) and not t.is_nan(result):
            result = 0
        return result

    return between


def nan_of(ins: Instruction, target: str, source: str, a: int) -> int:
    """f16 and f32 give one NaN; with f64 on a side, sign and high payload bits are kept."""
    s, t = FORMATS[source], FORMATS[target]
    if source == "bf16" and target == "f32" and not ins.has("sat", *INTEGRAL):
        return a << 16
    if "f64" not in (target, source):
        return t.nan
    if target == "f64" and ins.has("ftz"):
        return t.nan if source != "f32" else nan_of_parts(s, t, FORMATS["f32"].nan)
    return nan_of_parts(s, t, a)


def nan_of_parts(s: Format, t: Format, a: int) -> int:
    moved = t.digits - s.digits
    fraction = a & mask(s.digits - 1)
    fraction = fraction << moved if moved > 0 else fraction >> -moved
    return t.sign_bit * s.negative(a) | t.inf | fraction | 1 << (t.digits - 2)


def pack(ins: Instruction) -> Meaning:
    """``cvt.pack.sat``: two integers clamped to few bits, above each other, below ``c``."""
    name = ins.modifiers[ins.modifiers.index("sat") + 1]
    bits = int(name[1:])
    low, high = (-(1 << bits - 1), mask(bits - 1)) if name[0] == "s" else (0, mask(bits))

    def fn(a: int, b: int, c: int = 0) -> int:
        first, second = (min(max(number(x, "s32"), low), high) & mask(bits) for x in (a, b))
        return (c << 2 * bits | first << bits | second) & mask(32)

    return Meaning(("s32", "s32") + (("b32",) if bits < 16 else ()), ("b32",), fn)


def tf32(ins: Instruction) -> Meaning:
    """float32 with the low 13 bits rounded away."""
    f = FORMATS["f32"]

    def fn(a: int) -> int:
        if f.is_nan(a):
            return a & ~mask(13) if ins.has("rna") else 0x7FFFE000
        low = a & mask(13)
        if ins.has("rna"):
            up = low >> 12
        elif ins.has("rn"):
            up = int(low + (a >> 13 & 1) > 1 << 12)
        else:
            up = 0
        result = (a & ~mask(13)) + (up << 13)
        if ins.has("relu") and f.negative(a):
            result = 0
        return result

    return Meaning(("f32",), ("b32",), fn)
