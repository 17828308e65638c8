"""16-bit floating point: f16, bf16 and pairs of them (PTX ISA, "Half Precision Floating Point").

Arithmetic goes through float64, rounded to odd where it is not exact, and is rounded once
to 16 bits.
"""

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from kernels.ptx.module import Instruction

from ...core.geometry import Lanes
from ..numerics import arithmetic as ieee
from ..table import Function, Op, scalar_type

SECTION = "Half Precision Floating Point Instructions"
HALF_TYPES = ("f16", "f16x2", "bf16", "bf16x2")
NAN = np.uint16(0x7FFF)
Words = NDArray[np.uint16]
"""uint16 arrays that hold the bits of 16-bit floats."""


def to_double(words: Words, type: str) -> Lanes:
    """Return bits of f16 or bf16 as float64, exactly."""
    if type.startswith("bf"):
        return (words.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return words.view(np.float16).astype(np.float64)


def from_double(x: Lanes, type: str, mode: str = "rn") -> Words:
    """float64 rounded to f16 or bf16 (``rn``, ``rz``, ``rm`` or ``rp``); NaN becomes 0x7fff."""
    if type.startswith("bf"):
        single = ieee.narrow(x, "rz")
        bits = np.asarray(single).view(np.uint32)
        inexact = single.astype(np.float64) != x
        bits = np.where(inexact, bits | np.uint32(1), bits)
        up = cast(Lanes, np.uint32(0))
        if mode == "rn":
            up = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        elif mode != "rz":  # away from zero on one side of it
            up = np.where(np.signbit(x) == (mode == "rm"), np.uint32(0xFFFF), np.uint32(0))
        words = ((bits + up) >> np.uint32(16)).astype(np.uint16)
    else:
        half = x.astype(np.float16)
        if mode != "rn":
            back = half.astype(np.float64)
            toward_zero = mode == "rz"
            high = (back > x) & ((mode == "rm") | (toward_zero & (x > 0)))
            low = (back < x) & ((mode == "rp") | (toward_zero & (x < 0)))
            half = np.where(high, np.nextafter(half, np.float16(-np.inf)), half)
            half = np.where(low, np.nextafter(half, np.float16(np.inf)), half)
        words = np.asarray(half).view(np.uint16)
    return np.where(np.isnan(x), NAN, words)[()]


def infinity(type: str) -> np.uint16:
    """Return the bits of infinity; above them are NaNs."""
    return np.uint16(0x7F80 if type.startswith("bf") else 0x7C00)


def flush(words: Words) -> Words:
    """Subnormal f16 to zero of the same sign (``.ftz``)."""
    return np.where((words & np.uint16(0x7C00)) == 0, words & np.uint16(0x8000), words)


def finish(ins: Instruction, type: str, words: Words) -> Words:
    """``.sat``, ``.relu`` and ``.satfinite`` of a result."""
    top = infinity(type)
    negative, size = words >= np.uint16(0x8000), words & np.uint16(0x7FFF)
    if ins.has("sat"):
        one = np.uint16(0x3F80 if type.startswith("bf") else 0x3C00)
        words = np.where(negative | (size > top), np.uint16(0), np.minimum(words, one))
    if ins.has("relu"):
        words = np.where(negative & (size <= top), np.uint16(0), words)
    if ins.has("satfinite"):
        words = np.where(size == top, words - np.uint16(1), words)
    return words


def lanes(fn: Callable[..., Words], type: str) -> Function:
    """Return a function of 16-bit words, applied to both halves of a pair."""
    if not type.endswith("x2"):
        return lambda *args: fn(*(a.view(np.uint16) for a in args)).view(np.int16)

    def apply(*args: Lanes) -> Lanes:
        halves = [split(a) for a in args]
        return join(fn(*(h[0] for h in halves)), fn(*(h[1] for h in halves)))

    return apply


def carrier(type: str) -> str:
    """Return the type of the register that holds one number or a pair."""
    return "b32" if type.endswith("x2") else "b16"


def operation(ins: Instruction, type: str, exact: Function, arity: int, flops: int = 1) -> Op:
    """Return an operation given in float64 (exact, or rounded to odd)."""
    flushes = ins.has("ftz") and not type.startswith("bf")

    def words(*args: Words) -> Words:
        if flushes:
            args = tuple(flush(a) for a in args)
        result = from_double(exact(*(to_double(a, type) for a in args)), type)
        return finish(ins, type, flush(result) if flushes else result)

    word = carrier(type)
    pairs = 2 if type.endswith("x2") else 1
    inputs = (word,) * arity
    return Op(lanes(words, type), inputs, (word,), None, flops * pairs)


def arithmetic(ins: Instruction) -> Op:
    """``add``, ``sub``, ``mul``, ``fma``."""
    type = scalar_type(ins)
    table: dict[str, Function] = {
        "add": ieee.to_odd,
        "sub": lambda a, b: ieee.to_odd(a, -b),
        "mul": np.multiply,
        "fma": lambda a, b, c: ieee.to_odd(a * b, c),
    }
    fused = ins.opcode == "fma"
    return operation(ins, type, table[ins.opcode], 3 if fused else 2, 2 if fused else 1)


def min_max(ins: Instruction) -> Op:
    """NaN gives way to a number (unless ``.NaN``); -0 is less than +0."""
    type = scalar_type(ins)
    lesser, propagate = ins.opcode == "min", ins.has("NaN")

    def exact(a: Lanes, b: Lanes) -> Lanes:
        negative = np.signbit(a) != np.signbit(b)
        if ins.has("abs"):
            a, b = np.abs(a), np.abs(b)
        if lesser:
            first = np.where(a == b, np.signbit(a), a < b)
        else:
            first = np.where(a == b, ~np.signbit(a), a > b)
        result = np.where(np.isnan(a), b, np.where(np.isnan(b) | first, a, b))
        if ins.has("xorsign"):
            result = np.where(negative, -result, result)
        return np.where(np.isnan(a) | np.isnan(b), np.nan, result) if propagate else result

    return operation(ins, type, exact, 2)


def comparison(ins: Instruction, type: str, fn: Function) -> Function:
    """Return a comparison of float64 values, on f16 or bf16 bits."""
    flushes = ins.has("ftz") and not type.startswith("bf")

    def apply(*args: Lanes) -> Lanes:
        words = (a.view(np.uint16) for a in args)
        return fn(*(to_double(flush(w) if flushes else w, type) for w in words))

    return apply


def split(word: Lanes) -> tuple[Words, Words]:
    """Return the low and the high half of 32-bit words."""
    bits = word.view(np.uint32)
    return bits.astype(np.uint16), (bits >> np.uint32(16)).astype(np.uint16)


def join(low: Words, high: Words) -> Lanes:
    """Return two halves as a 32-bit word."""
    pair = low.astype(np.uint32) | (high.astype(np.uint32) << np.uint32(16))
    return pair.view(np.int32)


def to_single(a: Lanes) -> Lanes:
    """bf16 as float32: the same bits with zeros below them."""
    return (a.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def pack(ins: Instruction, target: str, mode: str) -> Op:
    """``cvt`` of two floats into a pair: the first becomes the high half."""
    type = target[:-2]

    def one(x: Lanes) -> Words:
        return finish(ins, type, from_double(x.astype(np.float64), type, mode))

    return Op(lambda a, b: join(one(b), one(a)), ("f32", "f32"), ("b32",))
