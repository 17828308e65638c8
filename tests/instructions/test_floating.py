"""Single and double precision arithmetic, exact; approximations within PTX's bounds."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from tests.approximate import within

from .cases import Batch, Case, batches
from .floats import FORMATS, Format, Near
from .harness import check

MODES = ("rn", "rz", "rm", "rp")
F32, F64 = FORMATS["f32"], FORMATS["f64"]
QUIET = 1 << 51
NAN_ORDER = {1: (0,), 2: (1, 0), 3: (1, 2, 0)}
"""Which operand's NaN a double precision instruction passes on (tests/test_nan.py)."""

Operation = Callable[..., int]
OPERATIONS: dict[str, tuple[int, Callable[[Format, str], Operation]]] = {
    "add": (2, lambda f, mode: lambda a, b: f.add(a, b, mode)),
    "sub": (2, lambda f, mode: lambda a, b: f.add(a, b ^ f.sign_bit, mode)),
    "mul": (2, lambda f, mode: lambda a, b: f.multiply(a, b, mode)),
    "div": (2, lambda f, mode: lambda a, b: f.divide(a, b, mode)),
    "fma": (3, lambda f, mode: lambda a, b, c: f.multiply_add(a, b, c, mode)),
    "mad": (3, lambda f, mode: lambda a, b, c: f.multiply_add(a, b, c, mode)),
    "rcp": (1, lambda f, mode: lambda a: f.divide(f.one, a, mode)),
    "sqrt": (1, lambda f, mode: lambda a: f.root(a, mode)),
}
# Factors whose products, and pairs whose quotients, lie just under 2**-126; and what to add.
UNDER = (
    0x3F7FFFFF, 0x3F800001, 0xBF7FFFFF, 0x00800000, 0x80800000, 0x7E800000, 0x7E000000, 0x1FFFFFFF,
    0x20000001, 0x20800000, 0x1F800000, 0x007FFFFF, 0x80000001, 1, 0x00FFFFFF, 0x3F000000,
    0xFE800000, 0x3FFFFFFF, 0x1FFFFFFE, 0x207FFFFF, 0x80FFFFFF, 0x40000000, 0x33000000, 0x0CFFFFFF,
)  # fmt: skip
NEAR_TINY = ((0, UNDER), (1, UNDER), (2, (0, 1 << 31, 0x00800000, 0x80800000, 0x33800000)))


def modelled(name: str, kind: str, mode: str, tail: str = "") -> Operation:
    f, (_, operation) = FORMATS[kind], OPERATIONS[name]
    ftz = ".ftz" in tail
    apply = operation(replace(f, ftz=ftz), mode)

    def model(*args: int) -> int:
        if kind == "f64":
            for i in (0, 1) if name == "div" else NAN_ORDER[len(args)]:
                if f.is_nan(args[i]):
                    return args[i] | QUIET
        result = apply(*map(f.flush, args) if ftz else args)
        return f.saturate(result) if ".sat" in tail else result

    return model


def arithmetic() -> list[Case]:
    cases = []

    def add(name: str, kind: str, mode: str, tail: str = "", **more: Any) -> None:
        ins = (kind,) * OPERATIONS[name][0]
        label = ".".join(filter(None, (name, mode, tail[1:], kind)))
        cases.append(Case(label, (kind,), ins, modelled(name, kind, mode or "rn", tail), **more))

    for mode in MODES:
        for name, (arity, _) in OPERATIONS.items():
            for kind in ("f32", "f64"):
                add(name, kind, mode)
            if name != "mad":
                add(name, "f32", mode, ".ftz")
            if name in ("add", "sub", "mul", "fma"):
                add(name, "f32", mode, ".sat")
                add(name, "f32", mode, ".ftz.sat")
            if arity > 1 and name != "mad":
                add(name, "f32", mode, ".ftz", edges=NEAR_TINY[:arity], drawn=0)
    for name in ("add", "sub", "mul"):
        add(name, "f32", "")
    return cases


def extreme(name: str, f: Format, tail: str) -> Operation:
    def model(*args: int) -> int:
        if ".ftz" in tail:
            args = tuple(map(f.flush, args))
        nans = [a for a in reversed(args) if f.is_nan(a)]
        if f is F64 and len(nans) == len(args):
            return nans[0] | QUIET
        result = args[0]
        for a in args[1:]:
            result = f.extreme(name == "min", result, a, ".NaN" in tail)
        return result

    return model


def by_magnitude(name: str, tail: str) -> Operation:
    def model(a: int, b: int) -> int:
        result = extreme(name, F32, tail)(F32.magnitude(a), F32.magnitude(b))
        if F32.is_nan(result):
            return result
        if ".ftz" in tail:
            a, b = F32.flush(a), F32.flush(b)
        return result | (a ^ b) & F32.sign_bit

    return model


def selection() -> list[Case]:
    cases = []
    two, three = ("f32",) * 2, ("f32",) * 3
    for name in ("min", "max"):
        for tail in ("", ".ftz", ".NaN", ".ftz.NaN"):
            model = extreme(name, F32, tail)
            cases.append(Case(f"{name}{tail}.f32", ("f32",), two, model))
            signed = by_magnitude(name, tail)
            cases.append(Case(f"{name}{tail}.xorsign.abs.f32", ("f32",), two, signed))
            if "ftz" not in tail:
                cases.append(Case(f"{name}{tail}.f32", ("f32",), three, model, target=100))
        cases.append(Case(f"{name}.f64", ("f64",), ("f64",) * 2, extreme(name, F64, "")))
    for kind, tails in (("f32", ("", ".ftz")), ("f64", ("",))):
        f = FORMATS[kind]
        for tail in tails:
            for name in ("abs", "neg"):

                def sign(x: int, f: Format = f, tail: str = tail, name: str = name) -> int:
                    if f.is_nan(x):
                        return x | QUIET if f is F64 else f.nan
                    x = f.flush(x) if tail else x
                    return x ^ f.sign_bit if name == "neg" else f.magnitude(x)

                cases.append(Case(f"{name}{tail}.{kind}", (kind,), (kind,), sign))
        copy = lambda a, b, f=f: f.magnitude(b) | a & f.sign_bit  # noqa: E731
        cases.append(Case(f"copysign.{kind}", (kind,), (kind, kind), copy))
        tests: dict[str, Callable[[int], bool]] = {
            "finite": lambda a, f=f: f.magnitude(a) < f.inf,
            "infinite": f.is_inf,
            "number": lambda a, f=f: not f.is_nan(a),
            "notanumber": f.is_nan,
            # Zero counts as normal: measured on an H200.
            "normal": lambda a, f=f: f.magnitude(a) < f.inf and not f.is_subnormal(a),
            "subnormal": f.is_subnormal,
        }
        for name, test in tests.items():
            cases.append(Case(f"testp.{name}.{kind}", ("pred",), (kind,), test))
    return cases


# -- approximations -------------------------------------------------------------


def bounded(number: Fraction, relative: float) -> Near:
    """Relative error; half an ulp more where that is coarser (subnormal results)."""
    return Near(F32, number, max(abs(number) * Fraction(relative), F32.ulp(number)))


Exact = Callable[[float, Fraction], Any]


def sine(fn: Callable[[float], float]) -> Exact:
    def exact(x: float, _: Fraction) -> Near | None:
        # PTX ISA: 2**-20.5 within two pi, 2**-14.7 within a hundred; beyond, no promise.
        if abs(x) > 100 * math.pi:
            return None
        limit = 2.0**-20.5 if abs(x) <= 2 * math.pi else 2.0**-14.7
        return Near(F32, Fraction(fn(x)), Fraction(limit))

    return exact


def log(x: float, _: Fraction) -> Near:
    number, limit = Fraction(math.log2(x)), Fraction(2.0**-22)
    return Near(F32, number, limit if 0.5 < x < 2 else max(abs(number), Fraction(1)) * limit)


def power(x: float, _: Fraction) -> Near | int:
    if x >= 128:
        return F32.inf
    return bounded(Fraction(math.exp2(x)), 2.0**-22) if x >= -160 else 0


INF, ONE, NAN, MINUS = F32.inf, F32.one, F32.nan, F32.sign_bit
UNARY: dict[str, tuple[tuple[int, int, int, int], int | None, Exact]] = {
    # What 0, -0, inf and -inf give, what negative numbers give, and what the others do.
    "rcp": ((INF, INF | MINUS, 0, MINUS), None, lambda x, n: bounded(1 / n, 2.0**-23)),
    "sqrt": ((0, MINUS, INF, NAN), NAN, lambda x, n: bounded(Fraction(math.sqrt(x)), 2.0**-23)),
    "rsqrt": ((INF, INF | MINUS, 0, NAN), NAN,
              lambda x, n: bounded(Fraction(1 / math.sqrt(x)), 2.0**-22.9)),
    "ex2": ((ONE, ONE, INF, 0), None, power),
    "lg2": ((INF | MINUS, INF | MINUS, INF, NAN), NAN, log),
    "sin": ((0, MINUS, NAN, NAN), None, sine(math.sin)),
    "cos": ((ONE, ONE, NAN, NAN), None, sine(math.cos)),
    "tanh": ((0, MINUS, ONE, ONE | MINUS), None,
             lambda x, n: bounded(Fraction(math.tanh(x)), 2.0**-11)),
}  # fmt: skip


def approximate(name: str, ftz: bool) -> Operation:
    specials, negative, exact = UNARY[name]
    given = dict(zip((0, MINUS, INF, INF | MINUS), specials, strict=True))

    def model(x: int) -> Any:
        x = F32.flush(x) if ftz else x
        if F32.is_nan(x):
            return NAN
        if x in given:
            return given[x]
        if F32.negative(x) and negative is not None:
            return negative
        n = F32.number(x)
        wanted = exact(float(n), n)
        if ftz and isinstance(wanted, Near) and abs(wanted.number) < Fraction(1, 1 << 126):
            return MINUS if wanted.number < 0 else 0
        return wanted

    return model


def quotient(full: bool, ftz: bool) -> Operation:
    """As the driver does it: scaled first where a reciprocal is of a subnormal, or would be one."""
    f, rcp = replace(F32, ftz=ftz), within("rcp.approx.ftz.f32", lambda b: None)

    def model(a: int, b: int) -> int:
        a, b = (f.flush(a), f.flush(b)) if ftz else (a, b)
        scale = ONE
        if full and F32.magnitude(b) > 253 << 23:
            scale = 125 << 23  # 2**-2
        elif not ftz and F32.magnitude(b) < 1 << 23:
            scale = 151 << 23  # 2**24
        return f.multiply(f.multiply(a, scale), rcp(f.multiply(b, scale)))

    return model


COARSE = Fraction(1, 1 << 19)
"""Of 20 fraction bits the last may be off; the manual states no bound."""


def coarse(root: bool) -> Operation:
    """The reciprocal (of the root) in double precision."""

    def model(x: int) -> Near | int:
        x &= ~0xFFFFFFFF  # the lower half is not looked at (H200)
        x = F64.flush(x)
        sign = x & F64.sign_bit
        if F64.is_nan(x) or (root and sign and F64.magnitude(x)):
            return 0x7FFFFFFF00000000
        if F64.is_inf(x):
            return sign
        if not F64.magnitude(x):
            return sign | F64.inf
        n = 1 / F64.number(x)
        if root:  # to some 200 bits
            n = Fraction(math.isqrt((n.numerator << 2600) // n.denominator), 1 << 1300)
        small = abs(n) < Fraction(1, 1 << 1022)
        return Near(F64, Fraction(0) if small else n, Fraction(0) if small else COARSE * abs(n), 32)

    return model


def root(x: int) -> int:
    """``rsqrt.approx.f64`` as the driver does it: a step from the unit's upper word."""
    if F64.is_nan(x):
        return x | QUIET
    start = within("rsqrt.approx.ftz.f64", lambda _: None)
    if F64.negative(x) or not 0 < F64.magnitude(x) < F64.inf:
        return start(x) if not F64.negative(x) or not F64.magnitude(x) else 0xFFF8 << 48
    up, down = (1077 << 52, 1050 << 52) if F64.is_subnormal(x) else (F64.one, F64.one)  # 54, 27
    x = F64.multiply(x, up)
    y, half, more = start(x), 1022 << 52, 0x3FD8 << 48  # 1/2, 3/8
    error = F64.multiply_add(x, F64.multiply(y, y) ^ F64.sign_bit, F64.one)
    factor = F64.multiply_add(error, more, half)
    return F64.multiply(F64.multiply_add(factor, F64.multiply(y, error), y), down)


def approximations() -> list[Case]:
    cases = [Case("rsqrt.approx.f64", ("f64",), ("f64",), root)]
    for name in UNARY:
        for tail in ("",) if name == "tanh" else ("", ".ftz"):
            label = f"{name}.approx{tail}.f32"
            model = within(label, approximate(name, bool(tail)))
            cases.append(Case(label, ("f32",), ("f32",), model, drawn=1500))
    for tail in (".approx", ".approx.ftz", ".full", ".full.ftz"):
        model = quotient("full" in tail, "ftz" in tail)
        cases.append(Case(f"div{tail}.f32", ("f32",), ("f32",) * 2, model))
    for name in ("rcp", "rsqrt"):
        label = f"{name}.approx.ftz.f64"
        model = within(label, coarse(name == "rsqrt"))
        cases.append(Case(label, ("f64",), ("f64",), model))
    return cases


CASES = [*arithmetic(), *selection(), *approximations()]


@pytest.mark.parametrize("batch", batches(CASES), ids=str)
def test_floating(batch: Batch) -> None:
    check(batch)


def test_models_know_when_a_number_is_tiny() -> None:
    """Just under the least normal number, at so many further bits, by rounding."""
    f = replace(F32, ftz=True)
    least = 1 << 23

    def tiny(bits: int, mode: str, sign: int = 1) -> bool:
        return f.encode(sign * ((1 << bits) - 1), -126 - bits, mode) == (MINUS if sign < 0 else 0)

    assert f.encode(1, -126) == least
    assert [m for m in MODES if tiny(26, m)] == ["rz", "rm"]
    assert [m for m in MODES if tiny(26, m, -1)] == ["rz", "rp"]
    assert [m for m in MODES if tiny(24, m)] == list(MODES)
