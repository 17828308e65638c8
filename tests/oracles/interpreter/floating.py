"""Floating point on exact integers and rationals, rounded once."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from kernels.ptx.module import Instruction, Pair
from tests.oracles.interpreter.values import (
    WIDTH,
    Meaning,
    NotModelled,
    halves,
    mask,
    number,
    opcode,
    type_of,
)  # fmt: skip
from tests.simulator.isa.floats import FORMATS, Format

MODES = ("rn", "rz", "rm", "rp")
QUIET = 1 << 51
NAN_ORDER = {
    "add": (1, 0), "sub": (1, 0), "mul": (1, 0), "min": (1, 0), "max": (1, 0),
    "fma": (1, 2, 0), "mad": (1, 2, 0), "div": (0, 1), "rcp": (0,), "sqrt": (0,),
}  # fmt: skip
"""Which operand's NaN a double precision instruction passes on (measured on an H200)."""


def rounding(ins: Instruction) -> str:
    return next((m for m in ins.modifiers if m in MODES), "rn")


def value(f: Format, x: int) -> Fraction:
    """A finite number, exactly."""
    return f.value(x) * Fraction(2) ** f.lowest


def encode(f: Format, n: Fraction, mode: str) -> int:
    """A rational other than zero, rounded."""
    return f.encode(n.numerator, 0, mode, n.denominator)


def tiny(n: Fraction, mode: str) -> bool:
    """Below 2**-126 when rounded to 24 bits with no end to the exponents (H200, ``.ftz``)."""
    if n == 0 or abs(n) >= Fraction(1, 1 << 126):
        return False
    f = FORMATS["f32"]
    scaled = encode(f, n * Fraction(2) ** (-math.floor(math.log2(abs(n)))), mode)
    rounded = value(f, scaled) * Fraction(2) ** math.floor(math.log2(abs(n)))
    return abs(rounded) < Fraction(1, 1 << 126)


def quotient(f: Format, a: int, b: int, mode: str, ftz: bool) -> int:
    if f.is_nan(a) or f.is_nan(b):
        return f.nan
    sign = (a ^ b) & f.sign_bit
    if f.is_inf(a) or not f.magnitude(b):
        invalid = f.is_inf(a) == f.is_inf(b) and (f.is_inf(a) or not f.magnitude(a))
        return f.nan if invalid else sign | f.inf
    if f.is_inf(b) or not f.magnitude(a):
        return sign
    n = Fraction(f.value(a), f.value(b))
    return sign if ftz and tiny(n, mode) else encode(f, n, mode)


def root(f: Format, x: int, mode: str) -> int:
    if f.is_nan(x) or (f.negative(x) and f.magnitude(x)):
        return f.nan
    if f.is_inf(x) or not f.magnitude(x):
        return x
    n = value(f, x)
    # Many more bits than the format has, the last one sticky: it rounds as the root does.
    shift = 2 * (f.digits + 8 + max(0, -math.floor(math.log2(n)) // 2 + 1))
    scaled = math.floor(n * 2**shift)
    whole = math.isqrt(scaled)
    sticky = whole * whole != n * 2**shift
    return f.encode(2 * whole + sticky, -1 - shift // 2, mode)


def arithmetic(ins: Instruction) -> Meaning:
    """``add`` ... ``mad``, ``min``, ``max``, ``abs``, ``neg`` of floating types."""
    kind = type_of(ins)
    if ins.has("approx", "full"):
        raise NotModelled(ins.name)
    name = "fma" if ins.opcode == "mad" else ins.opcode
    one = kind.removesuffix("x2")
    f = FORMATS[one]
    ftz = ins.has("ftz") and not one.startswith("bf")
    mode = rounding(ins)
    arity = {"abs": 1, "neg": 1, "rcp": 1, "sqrt": 1, "fma": 3}.get(name, 2)
    if name in ("min", "max"):
        arity = len(ins.operands) - 1

    def bare(*args: int) -> int:
        a, b = args[0], args[-1]
        if name == "add":
            return f.add(a, b, mode)
        if name == "sub":
            return f.add(a, b if f.is_nan(b) else b ^ f.sign_bit, mode)
        if name == "mul" or name == "fma":
            addend = args[2] if name == "fma" else (a ^ b) & f.sign_bit
            result = f.multiply_add(a, args[1], addend, mode)
            if ftz and one == "f32" and f.magnitude(result) <= 1 << 23:
                exact = value(f, a) * value(f, args[1])
                exact += value(f, addend) if name == "fma" else 0
                if tiny(exact, mode):
                    return result & f.sign_bit
            return result
        if name == "div":
            return quotient(f, a, b, mode, ftz)
        if name == "rcp":
            return quotient(f, f.one, a, mode, ftz)
        if name == "sqrt":
            return root(f, a, mode)
        if name in ("abs", "neg"):
            if f.is_nan(a):
                return f.nan
            return f.magnitude(a) if name == "abs" else a ^ f.sign_bit
        if name in ("min", "max"):
            return extreme(ins, f, args)
        raise NotModelled(ins.name)

    def fn(*args: int) -> int:
        if kind == "f64":
            if name in ("abs", "neg") and f.is_nan(args[0]):
                return args[0] | QUIET
            nans = [args[i] for i in NAN_ORDER.get(name, ()) if f.is_nan(args[i])]
            if nans and (name not in ("min", "max") or len(nans) == len(args)):
                return nans[0] | QUIET
        if ftz:
            args = tuple(f.flush(a) for a in args)
        result = bare(*args)
        if ftz:
            result = f.flush(result)
        if ins.has("sat"):
            result = f.saturate(result)
        if ins.has("relu") and f.negative(result) and not f.is_nan(result):
            result = 0
        return result

    carrier = {"f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32"}.get(kind, kind)
    return Meaning((carrier,) * arity, (carrier,), halves(fn) if kind.endswith("x2") else fn)


def extreme(ins: Instruction, f: Format, args: tuple[int, ...]) -> int:
    """``min`` and ``max`` of two or three."""
    signs = 0
    if ins.has("abs"):
        if ins.has("xorsign"):
            signs = (args[0] ^ args[1]) & f.sign_bit
        args = tuple(f.magnitude(a) for a in args)
    result = args[0]
    for other in args[1:]:
        result = f.extreme(ins.opcode == "min", result, other, ins.has("NaN"))
    return f.nan if f.is_nan(result) else result | signs


@opcode("rcp", "sqrt")
def reciprocal_and_root(ins: Instruction) -> Meaning:
    return arithmetic(ins)


@opcode("copysign")
def copysign(ins: Instruction) -> Meaning:
    kind = type_of(ins)
    f = FORMATS[kind]
    return Meaning(
        (kind, kind), (kind,), lambda a, b: f.magnitude(b) | a & f.sign_bit
    )  # fmt: skip


@opcode("testp")
def testp(ins: Instruction) -> Meaning:
    kind = type_of(ins)
    f = FORMATS[kind]
    tests: dict[str, Callable[[int], bool]] = {
        "finite": lambda a: f.magnitude(a) < f.inf,
        "infinite": f.is_inf,
        "number": lambda a: not f.is_nan(a),
        "notanumber": f.is_nan,
        "normal": lambda a: f.magnitude(a) < f.inf and not f.is_subnormal(a),
        "subnormal": f.is_subnormal,
    }
    test = tests[ins.modifiers[0]]
    return Meaning((kind,), ("pred",), lambda a: int(test(a)))


def at_least_zero(c: int, ftz: bool) -> bool:
    """``slct`` by an f32: NaN is not, -0 is."""
    f = FORMATS["f32"]
    c = f.flush(c) if ftz else c
    return not f.is_nan(c) and (not f.negative(c) or not f.magnitude(c))


# -- comparison -------------------------------------------------------------------------

INTEGER_TESTS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b, "ls": lambda a, b: a <= b, "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
}  # fmt: skip


def compare(ins: Instruction) -> Meaning:
    """``setp`` and ``set``."""
    kind = ins.types[-1]
    name = ins.modifiers[0]
    one = kind.removesuffix("x2")
    join: Any = next(
        (fn for word, fn in (("and", int.__and__), ("or", int.__or__), ("xor", int.__xor__))
         if word in ins.modifiers), None,
    )  # fmt: skip
    carrier = kind
    if one in FORMATS:
        f = FORMATS[one]
        ftz = ins.has("ftz") and not one.startswith("bf")
        carrier = {16: "b16"}.get(WIDTH[kind], kind) if kind == one else "b32"

        def test(a: int, b: int) -> int:
            if ftz:
                a, b = f.flush(a), f.flush(b)
            return int(f.compare(name, a, b))

    else:

        def test(a: int, b: int) -> int:
            return int(INTEGER_TESTS[name](number(a, kind), number(b, kind)))

    sources = (carrier, carrier) + (("pred",) if join else ())
    if ins.opcode == "setp":
        if kind.endswith("x2"):

            def two(a: int, b: int, *c: int) -> Any:
                low, high = test(a & 0xFFFF, b & 0xFFFF), test(a >> 16, b >> 16)
                return (join(low, c[0]), join(high, c[0])) if join else (low, high)

            return Meaning(sources, ("pred", "pred"), two)

        def setp(a: int, b: int, *c: int) -> Any:
            p = test(a, b)
            q = 1 - p
            return (join(p, c[0]), join(q, c[0])) if join else (p, q)

        if isinstance(ins.operands[0], Pair):
            return Meaning(sources, ("pred", "pred"), setp)
        return Meaning(sources, ("pred",), lambda *a: setp(*a)[0])
    target = ins.types[0]
    true = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(target.removesuffix("x2"))
    if kind.endswith("x2"):  # also into a word: half by half
        all_of = 0xFFFF if true is None else true

        def two_halves(a: int, b: int, *c: int) -> int:
            ways = (test(a & 0xFFFF, b & 0xFFFF), test(a >> 16, b >> 16))
            low, high = (join(p, c[0]) if join else p for p in ways)
            return low * all_of | high * all_of << 16

        return Meaning(sources, ("b32",), two_halves)
    size = WIDTH[target]
    true = mask(size) if true is None else true

    def set_(a: int, b: int, *c: int) -> int:
        p = test(a, b)
        return (join(p, c[0]) if join else p) * true

    return Meaning(sources, ({16: "b16"}.get(size, target),), set_)
