"""Floating-point arithmetic (PTX ISA, "Floating Point Instructions").

Integer rows of the same opcode call in here by type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from . import arithmetic as ieee
from . import half
from .table import Op, Unsupported, row, scalar_type

SECTION = "Floating Point Instructions"
_ROUNDINGS = ("rn", "rz", "rm", "rp")


def _rounding(ins: Instruction) -> str:
    return next((m for m in ins.modifiers if m in _ROUNDINGS), "rn")


def _float_type(ins: Instruction, *more: str) -> str:
    kind = scalar_type(ins)
    if kind not in ("f32", "f64", *more):
        raise Unsupported(f"type .{kind}")
    return kind


_NAN_ORDER = {
    "add": (1, 0), "sub": (1, 0), "mul": (1, 0), "min": (1, 0), "max": (1, 0),
    "fma": (1, 2, 0), "mad": (1, 2, 0), "div": (0, 1), "rcp": (0,), "sqrt": (0,), "rsqrt": (0,),
}  # fmt: skip
"""In which order a double precision instruction looks for a NaN to pass on (H200)."""


def _finished(ins: Instruction, fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn`` with ``.ftz`` around it and ``.sat`` after it, or f64's NaN passed on."""
    ftz, sat = ins.has("ftz"), ins.has("sat")
    if scalar_type(ins) == "f64" and ins.opcode in _NAN_ORDER:
        order = _NAN_ORDER[ins.opcode]
        return lambda *args: ieee.propagate(fn(*args), *(args[i] for i in order))
    if not ftz and not sat:
        return fn

    def apply(*args: Any) -> Any:
        if ftz:
            args = tuple(ieee.flush(a) for a in args)
        result = fn(*args)
        if ftz:
            result = ieee.flush(result)
        if sat:  # NaN becomes +0
            one, zero = result.dtype.type(1), result.dtype.type(0)
            result = np.where(result > zero, np.minimum(result, one), zero)
        return result

    return apply


_NEAREST: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: ieee.canonical(np.add(a, b)),
    "sub": lambda a, b: ieee.canonical(np.subtract(a, b)),
    "mul": lambda a, b: ieee.canonical(np.multiply(a, b)),
    "div": lambda a, b: ieee.canonical(np.divide(a, b)),
    "rcp": lambda a: ieee.canonical(np.divide(a.dtype.type(1), a)),
    "sqrt": lambda a: ieee.canonical(np.sqrt(a)),
}


def _rounded(ins: Instruction, operation: str) -> Callable[..., Any]:
    """One of the basic operations with the instruction's rounding."""
    mode = _rounding(ins)
    if mode == "rn":
        return _NEAREST[operation]
    directed = ieee.directed_f32 if scalar_type(ins) == "f32" else ieee.directed_f64
    return lambda *args: directed(operation, mode, *args)


def flush_when_tiny(result: Any, exact: Callable[[], Any], mode: str) -> Any:
    """``.ftz`` of a rounded f32 result: tiny is what lies below 2**-126 at 24 bits of precision.

    So (1 - 2**-24) * 2**-126, which a subnormal result could not hold and would round up
    to 2**-126, is flushed; 2**-126 - 2**-252 is not (measured on an H200: mul, fma, div
    and cvt from f64, in every rounding).

    Args:
        result: The rounded result.
        exact: Gives it in float64, exact as far as comparing with 25-bit numbers goes.
        mode: The rounding.
    """
    edge = np.abs(result) == np.float32(2.0**-126)
    if not np.any(edge):
        return result
    if mode == "rn":  # half way to 2**-126 goes up to it
        tiny = np.abs(exact()) < np.float64((1 - 2.0**-25) * 2.0**-126)
    else:  # only a rounding away from zero comes from below
        tiny = np.abs(exact()) <= np.float64((1 - 2.0**-24) * 2.0**-126)
    return np.where(edge & tiny, np.copysign(np.float32(0), result), result)


def _flushing(fn: Callable[..., Any], operation: str, mode: str) -> Callable[..., Any]:
    """``flush_when_tiny`` after a product, quotient or fma."""

    def apply(*args: Any) -> Any:
        def exact() -> Any:
            wide = [a.astype(np.float64) for a in args]
            if operation == "div":
                return wide[0] / wide[1]
            product = wide[0] * wide[1]
            return ieee.to_odd(product, wide[2]) if operation == "fma" else product

        return flush_when_tiny(fn(*args), exact, mode)

    return apply


def add_sub(ins: Instruction) -> Op:
    """``d = a ± b``."""
    if scalar_type(ins) in half.HALF_TYPES:
        return half.arithmetic(ins)
    kind = _float_type(ins)
    count = f"add_{kind}"
    return Op(_finished(ins, _rounded(ins, ins.opcode)), (kind, kind), (kind,), count, 1)


def mul(ins: Instruction) -> Op:
    """``d = a * b``."""
    if scalar_type(ins) in half.HALF_TYPES:
        return half.arithmetic(ins)
    kind = _float_type(ins)
    fn = _rounded(ins, "mul")
    if ins.has("ftz"):
        fn = _flushing(fn, "mul", _rounding(ins))
    return Op(_finished(ins, fn), (kind, kind), (kind,), f"mul_{kind}", 1)


@row(
    "fma", section=SECTION,
    later="""
        rn|rz|rm|rp? sat? .f32 .f16|bf16 : mixed precision
        rn|rz|rm|rp? ftz? .f32x2 : pairs of .f32
        rn oob relu? ftz? .f16|f16x2|bf16|bf16x2 : out-of-bounds NaN
    """,
    forms="""
        rn|rz|rm|rp ftz? sat? .f32 : t = t t t
        rn|rz|rm|rp .f64 : t = t t t
        rn ftz? sat? .f16|f16x2 : t = t t t
        rn ftz? relu .f16|f16x2 : t = t t t
        rn relu? .bf16|bf16x2 : t = t t t
    """,
)  # fmt: skip
def fma(ins: Instruction) -> Op:
    """``d = a * b + c``, rounded once. ``mad.f32`` and ``mad.f64`` are the same."""
    if scalar_type(ins) in half.HALF_TYPES:
        return half.arithmetic(ins)
    kind = _float_type(ins)
    mode = _rounding(ins)
    fn: Callable[..., Any]
    if kind == "f64":
        fn = ieee.fma_f64 if mode == "rn" else lambda a, b, c: ieee.fma_f64(a, b, c, mode)
    elif mode == "rn":
        fn = ieee.fma_f32
    else:
        fn = lambda a, b, c: ieee.directed_f32("fma", mode, a, b, c)  # noqa: E731
    if ins.has("ftz"):
        fn = _flushing(fn, "fma", mode)
    return Op(_finished(ins, fn), (kind,) * 3, (kind,), f"fma_{kind}", 2)


def div(ins: Instruction) -> Op:
    """``d = a / b``; ``.approx`` and ``.full`` promise an error bound only."""
    kind = _float_type(ins)
    loose, fn = ins.has("approx", "full"), _rounded(ins, "div")
    if kind == "f32" and ins.has("approx"):
        fn = _by_reciprocal(fn)
    elif ins.has("ftz"):
        fn = _flushing(fn, "div", _rounding(ins))
    return Op(_finished(ins, fn), (kind, kind), (kind,), None, 1, approximate=loose)


def _by_reciprocal(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``div.approx.f32``: 1/b is 0 where |b| is above 2**126 (PTX ISA, "div")."""

    def apply(a: Any, b: Any) -> Any:
        huge = (np.abs(b) > np.float32(2.0**126)) & np.isfinite(b)
        if not np.any(huge):
            return fn(a, b)
        nothing = np.copysign(np.float32(0), b)
        return np.where(huge, ieee.canonical(a * nothing), fn(a, b))

    return apply


@row(
    "rcp", section=SECTION,
    forms="""
        approx|rn|rz|rm|rp ftz? .f32 : t = t
        rn|rz|rm|rp .f64 : t = t
        approx ftz .f64 : t = t
    """,
)  # fmt: skip
@row(
    "sqrt", section=SECTION,
    forms="""
        approx|rn|rz|rm|rp ftz? .f32 : t = t
        rn|rz|rm|rp .f64 : t = t
    """,
)  # fmt: skip
def rcp_sqrt(ins: Instruction) -> Op:
    """Reciprocal and square root, IEEE or ``.approx``."""
    kind = _float_type(ins)
    loose, fn = ins.has("approx"), _rounded(ins, ins.opcode)
    fn = _coarse(fn) if kind == "f64" and loose else _finished(ins, fn)
    return Op(fn, (kind,), (kind,), None, 1, approximate=loose)


def _coarse(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``.approx.ftz.f64``: operand and result have their upper 32 bits alone; no subnormals.

    (The operand as measured on an H200: a NaN whose payload is all below counts as infinite.)
    """
    upper = np.uint64(0xFFFFFFFF00000000)

    def apply(a: Any) -> Any:
        a = (np.asarray(a).view(np.uint64) & upper).view(np.float64)
        result = np.asarray(ieee.flush(fn(ieee.flush(a))))
        nan = np.uint64(0x7FFFFFFF00000000)  # the manual's
        bits = np.where(np.isnan(result), nan, result.view(np.uint64) & upper)
        return bits.view(np.float64)[()]

    return apply


_APPROXIMATE: dict[str, Callable[[Any], Any]] = {
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}


@row(
    "rsqrt", section=SECTION,
    forms="""
        approx ftz? .f32|f64 : t = t
    """,
)  # fmt: skip
@row(
    "lg2", "sin", "cos", section=SECTION,
    forms="""
        approx ftz? .f32 : t = t
    """,
)  # fmt: skip
@row(
    "tanh", section="Half Precision Floating Point Instructions",
    forms="""
        approx .f32|f16|f16x2|bf16|bf16x2 : t = t
    """,
)  # fmt: skip
@row(
    "ex2", section="Half Precision Floating Point Instructions",
    forms="""
        approx ftz? .f32 : t = t
        approx .f16|f16x2 : t = t
        approx ftz .bf16|bf16x2 : t = t
    """,
)  # fmt: skip
def transcendental(ins: Instruction) -> Op:
    """The special-function unit's approximations, here in float64 and rounded once."""
    if scalar_type(ins) in half.HALF_TYPES:
        return half.transcendental(ins)
    kind = _float_type(ins)
    if kind == "f64" and ins.opcode != "rsqrt":
        raise Unsupported("type .f64")
    exact = _APPROXIMATE[ins.opcode]
    dtype = DTYPES[kind]

    def apply(a: Any) -> Any:
        return ieee.canonical(exact(a.astype(np.float64)).astype(dtype))

    fn = _coarse(apply) if kind == "f64" and ins.has("ftz") else _finished(ins, apply)
    return Op(fn, (kind,), (kind,), None, 1, approximate=True)


def sign_bit(ins: Instruction) -> Op:
    """``abs`` and ``neg``: the sign bit; NaN gives the canonical one, in f64 a quiet one (H200)."""
    kind = scalar_type(ins)
    if kind not in ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2"):
        raise Unsupported(f"type .{kind}")
    if kind in ("f32", "f64"):
        change: Any = np.abs if ins.opcode == "abs" else np.negative
        nan = ieee.canonical if kind == "f32" else None

        def apply(a: Any) -> Any:
            result = change(a)
            return nan(result) if nan else np.where(np.isnan(a), ieee.quiet(a), result)

        return Op(_finished(ins, apply), (kind,), (kind,))
    flushes = ins.has("ftz") and not kind.startswith("bf")
    sign = np.uint16(0x8000)

    def half_word(a: Any) -> Any:
        a = half.flush(a) if flushes else a
        result = a & ~sign if ins.opcode == "abs" else a ^ sign
        return np.where((a & ~sign) > half.infinity(kind), half.NAN, result)

    carrier = half.carrier(kind)
    return Op(half.lanes(half_word, kind), (carrier,), (carrier,))


@row(
    "copysign", section=SECTION,
    forms="""
        .f32|f64 : t = t t
    """,
)  # fmt: skip
def copy_sign(ins: Instruction) -> Op:
    """The sign of ``a`` on the magnitude of ``b``."""
    kind = _float_type(ins)
    return Op(lambda a, b: np.copysign(b, a), (kind, kind), (kind,))


def min_max(ins: Instruction) -> Op:
    """NaN gives way to a number (unless ``.NaN``); -0 is less than +0.

    ``.xorsign.abs``: of the magnitudes, with the product's sign.
    """
    if scalar_type(ins) in half.HALF_TYPES:
        return half.min_max(ins)
    kind = _float_type(ins)
    magnitudes, arity = ins.has("abs"), len(ins.operands) - 1
    if ins.has("xorsign") != (magnitudes and arity == 2):
        raise Unsupported(".xorsign or .abs alone")
    lesser = ins.opcode == "min"
    pick: Any = np.minimum if lesser else np.maximum
    word = np.int32 if kind == "f32" else np.int64
    join: Any = np.bitwise_or if lesser else np.bitwise_and
    propagate = ins.has("NaN")

    def apply(a: Any, b: Any) -> Any:
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

        def three(*args: Any) -> Any:
            a, b, c = (np.abs(x) for x in args) if magnitudes else args
            return apply(apply(a, b), c)

        return Op(_finished(ins, three), (kind, kind, kind), (kind,))
    if magnitudes:

        def signed(a: Any, b: Any) -> Any:
            result = apply(np.abs(a), np.abs(b))
            negative = (np.signbit(a) != np.signbit(b)) & ~np.isnan(result)
            return np.where(negative, -result, result)

        return Op(_finished(ins, signed), (kind, kind), (kind,))
    return Op(_finished(ins, apply), (kind, kind), (kind,))


@row(
    "testp", section=SECTION,
    forms="""
        finite|infinite|number|notanumber|normal|subnormal .f32|f64 : pred = t
    """,
)  # fmt: skip
def test_property(ins: Instruction) -> Op:
    """finite, infinite, number, notanumber, normal or subnormal."""
    kind = _float_type(ins)
    smallest = np.finfo(DTYPES[kind]).smallest_normal
    tests: dict[str, Callable[[Any], Any]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & ((np.abs(a) >= smallest) | (a == 0)),
        "subnormal": lambda a: (np.abs(a) < smallest) & (a != 0),
    }
    name = next((m for m in ins.modifiers if m in tests), None)
    if name is None:
        raise Unsupported("no property to test")
    return Op(tests[name], (kind,), ("pred",))
