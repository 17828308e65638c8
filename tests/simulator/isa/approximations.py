"""Approximations: the hardware's bits, and the bounds that PTX gives."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tests.simulator.isa.cases import Case
from tests.simulator.isa.floats import FORMATS, Near
from tests.studies.approximate import within

F32, F64 = FORMATS["f32"], FORMATS["f64"]
QUIET = 1 << 51
Operation = Callable[..., int]


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
