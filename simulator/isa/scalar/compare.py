"""Comparison and selection (PTX ISA, "Comparison and Selection Instructions")."""

import numpy as np

from kernels.ptx.module import Instruction, Pair
from kernels.ptx.types import DTYPES

from ...core.geometry import Lanes
from ..numerics import arithmetic as ieee
from ..table import Function, Op, Results, bits_or_float, row, scalar_type, signed, unsigned, width
from . import half

SECTION = "Comparison and Selection Instructions"

_ORDERED: dict[str, Function] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def comparison(ins: Instruction, type: str) -> tuple[Function, str]:
    """Return the compare function and the carrier type of its operands."""
    name = next(m for m in ins.modifiers if m in _ORDERED or m in _UNORDERED)
    if type in half.HALF_TYPES:
        return half.comparison(ins, type, _float_comparison(name)), half.carrier(type)
    if type in ("f32", "f64"):
        fn = _float_comparison(name)
        if ins.has("ftz"):
            return (lambda a, b: fn(ieee.flush(a), ieee.flush(b))), type
        return fn, type
    if name in ("lo", "ls", "hi", "hs"):
        type = unsigned(type)
    elif name in ("eq", "ne"):
        type = signed(type)
    return _ORDERED[name], type


def _float_comparison(name: str) -> Function:
    if name == "ne":  # false on NaN in PTX; NumPy's is true
        return lambda a, b: (a < b) | (a > b)
    return _ORDERED.get(name) or _UNORDERED[name]


_UNORDERED: dict[str, Function] = {
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": np.not_equal,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}

_COMBINE: dict[str, Function] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


_SIGNED = "eq|ne|lt|le|gt|ge"
_UNSIGNED = f"{_SIGNED}|lo|ls|hi|hs"
_FLOATS = f"{_SIGNED}|equ|neu|ltu|leu|gtu|geu|num|nan"


def _combined(lines: str) -> str:
    """Return the forms of a comparison, and those that combine it with a predicate."""
    more = (
        f"and|or|xor {x} {'predicate' if '.bf16' in x else 'pred'}"
        for x in lines.strip().splitlines()
    )
    return lines + "\n".join(more)


@row(
    "setp", section=SECTION,
    forms=_combined(f"""
        eq|ne .b16|b32|b64 : pred*|pred*? = t t
        {_SIGNED} .s16|s32|s64 : pred*|pred*? = t t
        {_UNSIGNED} .u16|u32|u64 : pred*|pred*? = t t
        {_FLOATS} ftz? .f32|f16x2 : pred*|pred*? = t t
        {_FLOATS} ftz? .f16 : pred*|_? = t t
        {_FLOATS} .f64 : pred*|pred*? = t t
        {_FLOATS} .bf16x2 : pred*|pred*? = t t
        {_FLOATS} .bf16 : pred*|_? = t t
    """),
)  # fmt: skip
def set_predicate(ins: Instruction) -> Op:
    """Compare; with a boolean operator, combined with ``c``; ``p|q``: q is the complement's."""
    fn, type = comparison(ins, scalar_type(ins))
    combine = next((_COMBINE[m] for m in ins.modifiers if m in _COMBINE), None)
    if type == "b32" and scalar_type(ins) in half.HALF_TYPES:  # p for the low halves, q the high

        def two(a: Lanes, b: Lanes, *c: Lanes) -> Results:
            results = [fn(x, y) for x, y in zip(half.split(a), half.split(b), strict=True)]
            return tuple(combine(p, c[0]) if combine else p for p in results)

        return Op(two, ("b32", "b32") + (("pred",) if combine else ()), ("pred", "pred"))
    pair = isinstance(ins.operands[0], Pair)

    def apply(a: Lanes, b: Lanes, *c: Lanes) -> Results:
        p = fn(a, b)
        if combine:
            q = combine(~p, c[0])
            p = combine(p, c[0])
            return (p, q) if pair else p
        return (p, ~p) if pair else p

    inputs = (type, type) + (("pred",) if combine else ())
    simple = not combine and not pair
    return Op(fn if simple else apply, inputs, ("pred", "pred") if pair else ("pred",))


_TRUE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}
"""What ``set`` writes for true where it is not all ones."""


@row(
    "set", section=SECTION,
    forms=_combined(f"""
        eq|ne .u32|s32|f32|f16 .b16|b32|b64 : t0 = t t
        eq|ne .bf16 .b16|b32|b64 : t0 = t t
        {_SIGNED} .u32|s32|f32|f16 .s16|s32|s64 : t0 = t t
        {_SIGNED} .bf16 .s16|s32|s64 : t0 = t t
        {_UNSIGNED} .u32|s32|f32|f16 .u16|u32|u64 : t0 = t t
        {_UNSIGNED} .bf16 .u16|u32|u64 : t0 = t t
        {_FLOATS} ftz? .u32|s32|f32|f16 .f32 : t0 = t t
        {_FLOATS} .bf16 .f32|f16|bf16|f64 : t0 = t t
        {_FLOATS} .u32|s32|f32|f16 .f64 : t0 = t t
        {_FLOATS} ftz? .u32|s32|u16|s16|f16 .f16 : t0 = t t
        {_FLOATS} .u32|s32|u16|s16 .bf16 : t0 = t t
        {_FLOATS} ftz? .u32|s32|f16x2 .f16x2 : t0 = t t
        {_FLOATS} .u32|s32|bf16x2 .bf16x2 : t0 = t t
    """),
)  # fmt: skip
def set_value(ins: Instruction) -> Op:
    """Compare into a number: all ones or 1.0 where true; of pairs, half by half."""
    target, source = ins.types[0], ins.types[1]
    fn, type = comparison(ins, source)
    combine = next((_COMBINE[m] for m in ins.modifiers if m in _COMBINE), None)
    pairs = source.endswith("x2")
    one = _TRUE.get(target.removesuffix("x2"), 2 ** (16 if pairs else width(target)) - 1)

    def both(a: Lanes, b: Lanes, *c: Lanes) -> Results:
        results = [fn(x, y) for x, y in zip(half.split(a), half.split(b), strict=True)]
        results = [combine(p, c[0]) if combine else p for p in results]
        return half.join(*(np.where(p, np.uint16(one), np.uint16(0)) for p in results))

    if pairs:
        return Op(both, ("b32", "b32") + (("pred",) if combine else ()), ("b32",))
    true = np.dtype(f"u{DTYPES[target].itemsize}").type(one).view(DTYPES[target])

    def apply(a: Lanes, b: Lanes, *c: Lanes) -> Results:
        p = fn(a, b)
        if combine:
            p = combine(p, c[0])
        return np.where(p, true, true.dtype.type(0))

    return Op(apply, (type, type) + (("pred",) if combine else ()), (target,))


@row(
    "selp", section=SECTION, of_address="either",
    forms=".b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64 : t = t t pred",
)  # fmt: skip
def select(ins: Instruction) -> Op:
    """``a`` where the predicate holds, else ``b``."""
    type = bits_or_float(scalar_type(ins))
    return Op(lambda a, b, p: choose(p, a, b), (type, type, "pred"), (type,))


@row(
    "slct", section=SECTION, of_address="either",
    forms="""
        .b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64 .s32 : t0 = t0 t0 t
        ftz? .b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64 .f32 : t0 = t0 t0 t
    """,
)  # fmt: skip
def select_by_sign(ins: Instruction) -> Op:
    """``a`` where ``c >= 0``, else ``b`` (also for NaN)."""
    type, by = bits_or_float(ins.types[0]), ins.types[1]
    zero = DTYPES[by].type(0)

    def apply(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        if ins.has("ftz"):
            c = ieee.flush(c)
        return choose(c >= zero, a, b)

    return Op(apply, (type, type, by), (type,))


def choose(mask: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """``np.where`` that keeps a uniform choice uniform."""
    if mask.ndim == 0:
        return a if mask else b
    return np.where(mask, a, b)
