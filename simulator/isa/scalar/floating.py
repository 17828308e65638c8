"""Floating-point arithmetic (PTX ISA, "Floating Point Instructions")."""

import dataclasses

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ...core.geometry import Lanes
from ..numerics import arithmetic as ieee
from ..numerics.rounding import finished, flushing, rounded, rounding
from ..table import Function, Op, Results, row, scalar_type
from . import half, mufu
from .mov_prmt import pack, upper

SECTION = "Floating Point Instructions"


@row(
    "add", "sub", section=SECTION,
    forms="""
        rn|rz|rm|rp? ftz? sat? .f32 : t = t t
        rn|rz|rm|rp? .f64 : t = t t
    """,
)  # fmt: skip
def add_sub(ins: Instruction) -> Op:
    """``d = a ± b``."""
    type = scalar_type(ins)
    count = f"add_{type}"
    return Op(finished(ins, rounded(ins, ins.opcode)), (type, type), (type,), count, 1)


@row(
    "mul", section=SECTION,
    forms="""
        rn|rz|rm|rp? ftz? sat? .f32 : t = t t
        rn|rz|rm|rp? .f64 : t = t t
    """,
)  # fmt: skip
def mul(ins: Instruction) -> Op:
    """``d = a * b``."""
    type = scalar_type(ins)
    fn = rounded(ins, "mul")
    if ins.has("ftz"):
        fn = flushing(fn, "mul", rounding(ins))
    return Op(finished(ins, fn), (type, type), (type,), f"mul_{type}", 1)


@row(
    "fma", section=SECTION,
    later="""
        rn oob relu|sat? ftz? .f16|f16x2|bf16|bf16x2 : out-of-bounds NaN: use selp
    """,
    forms="""
        rn|rz|rm|rp ftz? sat? .f32 : t = t t t
        rn|rz|rm|rp .f64 : t = t t t
    """,
)  # fmt: skip
@row(
    "mad", section=SECTION,
    forms="""
        rn|rz|rm|rp ftz? sat? .f32 : t = t t t
        rn|rz|rm|rp .f64 : t = t t t
    """,
)  # fmt: skip
def fma(ins: Instruction) -> Op:
    """``d = a * b + c``, rounded once. ``mad.f32`` and ``mad.f64`` are the same."""
    type = scalar_type(ins)
    mode = rounding(ins)
    fn: Function
    if type == "f64":
        fn = ieee.fma_f64 if mode == "rn" else lambda a, b, c: ieee.fma_f64(a, b, c, mode)
    elif mode == "rn":
        fn = ieee.fma_f32
    else:
        fn = lambda a, b, c: ieee.directed_f32("fma", mode, a, b, c)  # noqa: E731
    if ins.has("ftz"):
        fn = flushing(fn, "fma", mode)
    return Op(finished(ins, fn), (type,) * 3, (type,), f"fma_{type}", 2)


_SCALAR = {"add": add_sub, "sub": add_sub, "mul": mul, "fma": fma}


def _single(ins: Instruction) -> Op:
    """Return the operation of an instruction on single ``.f32`` values."""
    modifiers = (m for m in ins.modifiers if m not in ("f16", "bf16", "f32", "f32x2"))
    single = dataclasses.replace(ins, modifiers=(*modifiers, "f32"), decoded=None)
    return _SCALAR[ins.opcode](single)


@row("add", "sub", "mul", section=SECTION, forms="rn|rz|rm|rp? ftz? .f32x2 @100 : bf64 = bf64 bf64")
@row("fma", section=SECTION, forms="rn|rz|rm|rp ftz? .f32x2 @100 : bf64 = bf64 bf64 bf64")
def pair(ins: Instruction) -> Op:
    """Build an operation on two ``.f32`` in a 64-bit register, each by itself."""
    one = _single(ins)
    f32, b64 = DTYPES["f32"], DTYPES["b64"]

    def apply(*words: Lanes) -> Lanes:
        found = (one.fn(*(upper(word, i, f32) for word in words)) for i in range(2))
        low, high = (np.asarray(value) for value in found)
        return pack(low, high, b64)[()]

    return Op(apply, ("b64",) * len(one.inputs), ("b64",), None, 2 * one.flops)


@row(
    "add", "sub", section=SECTION,
    forms="""
        rn|rz|rm|rp? sat? .f32 .f16 @100 : t0 = t! t0
        rn|rz|rm|rp? sat? .f32 .bf16 @100 : t0 = u16! t0
    """,
)  # fmt: skip
@row(
    "fma", section=SECTION,
    forms="""
        rn|rz|rm|rp sat? .f32 .f16 @100 : t0 = t! t! t0
        rn|rz|rm|rp sat? .f32 .bf16 @100 : t0 = u16! u16! t0
    """,
)  # fmt: skip
def mixed(ins: Instruction) -> Op:
    """Build an ``.f32`` operation with 16-bit operands, which are exact in it."""
    one, type = _single(ins), scalar_type(ins)

    def apply(*given: Lanes) -> Results:
        wide = (half.to_double(a.view(np.uint16), type).astype(np.float32) for a in given[:-1])
        return one.fn(*wide, given[-1])

    return Op(apply, (*("b16",) * (len(one.inputs) - 1), "f32"), ("f32",), None, one.flops)


row(
    "add", "sub", "mul", section=half.SECTION,
    forms="""
        rn? ftz? sat? .f16|f16x2 : t = t t
        rn? .bf16|bf16x2 : t = t t
    """,
)(half.arithmetic)  # fmt: skip
row(
    "fma", section=half.SECTION,
    forms="""
        rn ftz? sat? .f16|f16x2 : t = t t t
        rn ftz? relu .f16|f16x2 : t = t t t
        rn relu? .bf16|bf16x2 : t = t t t
    """,
)(half.arithmetic)  # fmt: skip


@row(
    "div", section=SECTION,
    forms="""
        approx|rn|rz|rm|rp ftz? .f32 : t = t t
        full! ftz? .f32 : t = t t
        rn|rz|rm|rp .f64 : t = t t
    """,
)  # fmt: skip
def div(ins: Instruction) -> Op:
    """``d = a / b``; ``.approx`` and ``.full`` promise an error bound only."""
    type = scalar_type(ins)
    if ins.has("approx", "full"):
        return Op(_by_reciprocal(ins), (type, type), (type,), None, 1, approximate=True)
    fn = rounded(ins, "div")
    if ins.has("ftz"):
        fn = flushing(fn, "div", rounding(ins))
    return Op(finished(ins, fn), (type, type), (type,), None, 1)


def _by_reciprocal(ins: Instruction) -> Function:
    """``a * rcp(b)``, both scaled first as the driver does where ``rcp`` would give a subnormal."""
    full, ftz = ins.has("full"), ins.has("ftz")
    product, reciprocal = rounded(ins, "mul"), mufu.single("rcp", ftz=True)
    if ftz:
        product = finished(ins, flushing(product, "mul", "rn"))

    def apply(a: Lanes, b: Lanes) -> Lanes:
        scale: Lanes = np.ones_like(b)
        if full:
            scale = np.where(np.abs(b) > np.float32(2.0**126), np.float32(0.25), scale)
        if not ftz:
            scale = np.where(np.abs(b) < np.float32(2.0**-126), np.float32(2.0**24), scale)
        return product(product(a, scale), reciprocal(b * scale))

    return apply


@row(
    "abs", "neg", section=SECTION,
    forms="""
        ftz? .f32|f16|f16x2 : t = t
        .f64|bf16|bf16x2 : t = t
    """,
)  # fmt: skip
def sign_bit(ins: Instruction) -> Op:
    """``abs`` and ``neg``: the sign bit; NaN gives the canonical one, in f64 a quiet one (H200)."""
    type = scalar_type(ins)
    if type in ("f32", "f64"):
        change: Function = np.abs if ins.opcode == "abs" else np.negative
        nan = ieee.canonical if type == "f32" else None

        def apply(a: Lanes) -> Lanes:
            result = change(a)
            return nan(result) if nan else np.where(np.isnan(a), ieee.quiet(a), result)

        # ptxas at level 0 makes an addition of it: no operation of the textbook's, but counted.
        count = "add_f32" if type == "f32" else None
        return Op(finished(ins, apply), (type,), (type,), count)
    flushes = ins.has("ftz") and not type.startswith("bf")
    sign = np.uint16(0x8000)

    def half_word(a: Lanes) -> Lanes:
        a = half.flush(a) if flushes else a
        result = a & ~sign if ins.opcode == "abs" else a ^ sign
        return np.where((a & ~sign) > half.infinity(type), half.NAN, result)

    carrier = half.carrier(type)
    return Op(half.lanes(half_word, type), (carrier,), (carrier,))


@row("copysign", section=SECTION, forms=".f32|f64 : t = t t")
def copy_sign(ins: Instruction) -> Op:
    """The sign of ``a`` on the magnitude of ``b``."""
    type = scalar_type(ins)
    return Op(lambda a, b: np.copysign(b, a), (type, type), (type,))


@row(
    "min", "max", section=SECTION,
    forms="""
        ftz? NaN? .f32|f16|f16x2 : t = t t
        ftz? NaN? xorsign abs .f32|f16|f16x2 : t = t t
        .f64 : t = t t
        NaN? .bf16|bf16x2 : t = t t
        NaN? xorsign abs .bf16|bf16x2 : t = t t
        ftz? NaN? abs? .f32 @100 : t = t t t
    """,
)  # fmt: skip
def min_max(ins: Instruction) -> Op:
    """NaN gives way to a number (unless ``.NaN``); -0 is less than +0.

    ``.xorsign.abs``: of the magnitudes, with the product's sign.
    """
    if scalar_type(ins) in half.HALF_TYPES:
        return half.min_max(ins)
    type = scalar_type(ins)
    magnitudes, arity = ins.has("abs"), len(ins.operands) - 1
    lesser = ins.opcode == "min"
    pick: Function = np.minimum if lesser else np.maximum
    word = np.int32 if type == "f32" else np.int64
    join: Function = np.bitwise_or if lesser else np.bitwise_and
    propagate = ins.has("NaN")

    def apply(a: Lanes, b: Lanes) -> Lanes:
        result = pick(a, b)
        # Not np.fmax: of a signalling NaN it makes a NaN where it does not take whole vectors.
        if not propagate and ieee.has_nan(result):
            result = np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))
        # Of two equal operands the bits differ in the sign of zero only.
        equal = a == b
        if np.any(equal):
            bits = np.asarray(join(a.view(word), b.view(word))).view(result.dtype)
            result = np.where(equal, bits, result)
        return ieee.canonical(np.asarray(result)[()])

    if arity == 3:

        def three(*args: Lanes) -> Lanes:
            a, b, c = (np.abs(x) for x in args) if magnitudes else args
            return apply(apply(a, b), c)

        return Op(finished(ins, three), (type, type, type), (type,))
    if magnitudes:

        def signed(a: Lanes, b: Lanes) -> Lanes:
            result = apply(np.abs(a), np.abs(b))
            negative = (np.signbit(a) != np.signbit(b)) & ~np.isnan(result)
            return np.where(negative, -result, result)

        return Op(finished(ins, signed), (type, type), (type,))
    return Op(finished(ins, apply), (type, type), (type,))


@row(
    "testp", section=SECTION,
    forms="finite|infinite|number|notanumber|normal|subnormal .f32|f64 : pred = t",
)  # fmt: skip
def test_property(ins: Instruction) -> Op:
    """finite, infinite, number, notanumber, normal or subnormal."""
    type = scalar_type(ins)
    smallest = np.finfo(DTYPES[type]).smallest_normal
    tests: dict[str, Function] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & ((np.abs(a) >= smallest) | (a == 0)),
        "subnormal": lambda a: (np.abs(a) < smallest) & (a != 0),
    }
    test = next(tests[m] for m in ins.modifiers if m in tests)
    return Op(test, (type,), ("pred",))
