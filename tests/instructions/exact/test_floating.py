"""Floating-point arithmetic on exact rationals; approximations within PTX's bounds."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from . import ieee
from .ieee import Number, tiny
from .lanes import Case, check, covered

MODES = ("rn", "rz", "rm", "rp")
NAN = {"f32": 0x7FFFFFFF, "f64": 0xFFF8000000000000}
QUIET = 1 << 51
NAN_ORDER = {1: (0,), 2: (1, 0), 3: (1, 2, 0)}
"""Which operand's NaN a double precision instruction passes on (tests/test_nan.py)."""


def negated(n: Number) -> Number:
    flipped = {"nan": "nan", "inf": "-inf", "-inf": "inf", "-0": ieee.ZERO}
    if isinstance(n, str):
        return flipped[n]
    return -n if n else "-0"


def signed(n: Number, negative: int) -> Number:
    return n if ieee.sign_of(n) == negative else negated(n)


def add(x: Number, y: Number, mode: str) -> Number:
    if "nan" in (x, y) or {"inf", "-inf"} == {x, y}:
        return "nan"
    for n in (x, y):
        if not ieee.finite(n):
            return n
    total = ieee.value_of(x) + ieee.value_of(y)
    if total:
        return total
    if ieee.is_zero(x) and ieee.is_zero(y) and ieee.sign_of(x) == ieee.sign_of(y):
        return x
    return "-0" if mode == "rm" else ieee.ZERO


def sub(x: Number, y: Number, mode: str) -> Number:
    return add(x, negated(y), mode)


def mul(x: Number, y: Number, _: str) -> Number:
    if "nan" in (x, y):
        return "nan"
    negative = ieee.sign_of(x) ^ ieee.sign_of(y)
    if ieee.finite(x) and ieee.finite(y):
        product = ieee.value_of(x) * ieee.value_of(y)
        return product if product else signed(ieee.ZERO, negative)
    return "nan" if ieee.is_zero(x) or ieee.is_zero(y) else signed("inf", negative)


def fma(x: Number, y: Number, z: Number, mode: str) -> Number:
    return add(mul(x, y, mode), z, mode)


def div(x: Number, y: Number, _: str) -> Number:
    if "nan" in (x, y):
        return "nan"
    negative = ieee.sign_of(x) ^ ieee.sign_of(y)
    if not ieee.finite(x):
        return "nan" if not ieee.finite(y) else signed("inf", negative)
    if ieee.is_zero(y):
        return "nan" if ieee.is_zero(x) else signed("inf", negative)
    if not ieee.finite(y) or ieee.is_zero(x):
        return signed(ieee.ZERO, negative)
    return ieee.value_of(x) / ieee.value_of(y)


def rcp(x: Number, mode: str) -> Number:
    return div(Fraction(1), x, mode)


def finish(n: Number, kind: str, mode: str, ftz: bool, sat: bool) -> int:
    """Round; flush; saturate. A NaN becomes +0 under .sat."""
    if n == "nan":
        return 0 if sat else NAN[kind]
    negative = ieee.sign_of(n)
    if not ieee.finite(n):
        result = ieee.infinity(kind, negative)
    elif ieee.is_zero(n) or (ftz and tiny(ieee.value_of(n), mode)):
        result = ieee.zero(kind, negative)
    else:
        result = ieee.encode(ieee.value_of(n), kind, mode)
    if sat:
        if negative:
            return 0
        return min(result, ieee.encode(Fraction(1), kind))
    return result


def modelled(
    operation: Callable[..., Number], kind: str, mode: str, ftz: bool = False, sat: bool = False
) -> Callable[..., int]:
    def model(*args: int) -> int:
        if kind == "f64":
            order = NAN_ORDER[len(args)] if operation is not div else (0, 1)
            for i in order:
                if ieee.is_nan(args[i], kind):
                    return args[i] | QUIET
        if ftz:
            args = tuple(ieee.flush(a) for a in args)
        numbers = [ieee.decode(a, kind) for a in args]
        return finish(operation(*numbers, mode), kind, mode, ftz, sat)

    return model


def root_model(kind: str, mode: str, ftz: bool = False) -> Callable[[int], int]:
    def model(a: int) -> int:
        if ftz:
            a = ieee.flush(a)
        n = ieee.decode(a, kind)
        if n == "nan":
            return a | QUIET if kind == "f64" else NAN[kind]
        if n in ("-0", "inf") or n == 0:
            return a
        if ieee.sign_of(n):
            return NAN[kind]
        return ieee.root(ieee.value_of(n), kind, mode)

    return model


BINARY: dict[str, Callable[..., Number]] = {"add": add, "sub": sub, "mul": mul, "div": div}
# Factors whose products, and pairs whose quotients, lie just under 2**-126.
UNDER = {
    "f32": [
        0x3F7FFFFF, 0x3F800001, 0xBF7FFFFF, 0x00800000, 0x80800000, 0x7E800000, 0x7E000000,
        0x1FFFFFFF, 0x20000001, 0x20800000, 0x1F800000, 0x007FFFFF, 0x80000001, 1, 0x00FFFFFF,
        0x3F000000, 0xFE800000, 0x3FFFFFFF, 0x1FFFFFFE, 0x207FFFFF, 0x80FFFFFF, 0x40000000,
        0x33000000, 0x0CFFFFFF,
    ],
}  # fmt: skip


def arithmetic() -> list[Case]:
    made = []
    for kind in ("f32", "f64"):
        for mode in MODES:
            for name, operation in BINARY.items():
                model = modelled(operation, kind, mode)
                made.append(Case(f"{name}.{mode}.{kind}", (kind,), (kind,) * 2, model))
            model = modelled(fma, kind, mode)
            for name in ("fma", "mad"):
                made.append(Case(f"{name}.{mode}.{kind}", (kind,), (kind,) * 3, model))
            model = modelled(rcp, kind, mode)
            made.append(Case(f"rcp.{mode}.{kind}", (kind,), (kind,), model))
            model = root_model(kind, mode)
            made.append(Case(f"sqrt.{mode}.{kind}", (kind,), (kind,), model, random=800))
    for name in ("add", "sub", "mul"):
        model = modelled(BINARY[name], "f32", "rn")
        made.append(Case(f"{name}.f32", ("f32",), ("f32",) * 2, model))
    for mode in MODES:
        for tail in (".ftz", ".sat", ".ftz.sat"):
            ftz, sat = "ftz" in tail, "sat" in tail
            for name in ("add", "sub", "mul", "fma", *(("div",) if not sat else ())):
                operation = BINARY.get(name, fma)
                count = 2 if name in BINARY else 3
                model = modelled(operation, "f32", mode, ftz, sat)
                label = f"{name}.{mode}{tail}.f32"
                made.append(Case(label, ("f32",), ("f32",) * count, model, most=700, random=300))
                if ftz and not sat:
                    addends = (0, 1 << 31, 0x00800000, 0x80800000, 0x33800000)
                    values = (UNDER["f32"], UNDER["f32"], addends)
                    made.append(
                        Case(
                            label, ("f32",), ("f32",) * count, model, values=values[:count],
                            random=0, most=2500, tail=" near 2**-126",
                        )
                    )  # fmt: skip
        model = modelled(rcp, "f32", mode, True)
        made.append(Case(f"rcp.{mode}.ftz.f32", ("f32",), ("f32",), model))
        made.append(Case(f"sqrt.{mode}.ftz.f32", ("f32",), ("f32",), root_model("f32", mode, True)))
    return made


def order(x: int, kind: str) -> tuple[Any, int]:
    """A key by which numbers are ordered, -0 below +0."""
    n = ieee.decode(x, kind)
    if n in ("inf", "-inf"):
        return (Fraction(1 << 2000) * (-1 if n == "-inf" else 1), 0)
    return (ieee.value_of(n), -ieee.sign_of(n))


def extreme(pick: Any, kind: str, propagates: bool, ftz: bool) -> Callable[..., int]:
    def model(*args: int) -> int:
        if ftz:
            args = tuple(ieee.flush(a) for a in args)
        nans = [a for a in reversed(args) if ieee.is_nan(a, kind)]
        if len(nans) == len(args) or (nans and propagates):
            return nans[0] | QUIET if kind == "f64" else NAN[kind]
        return pick((a for a in args if not ieee.is_nan(a, kind)), key=lambda a: order(a, kind))

    return model


def selection() -> list[Case]:
    made = []
    for name, pick in (("min", min), ("max", max)):
        for kind, tails in (("f32", ("", ".ftz", ".NaN", ".ftz.NaN")), ("f64", ("",))):
            for tail in tails:
                model = extreme(pick, kind, "NaN" in tail, "ftz" in tail)
                made.append(Case(f"{name}{tail}.{kind}", (kind,), (kind,) * 2, model, most=2500))
        for tail in ("", ".NaN"):
            model = extreme(pick, "f32", tail == ".NaN", False)
            label = f"{name}{tail}.f32"
            made.append(Case(label, ("f32",), ("f32",) * 3, model, tail=" of three"))
    for kind in ("f32", "f64"):
        top = ieee.layout(kind)[3]

        def sign(x: int, kind: str, ftz: bool, flip: bool, top: int = top) -> int:
            if ieee.is_nan(x, kind):
                return x | QUIET if kind == "f64" else NAN[kind]
            x = ieee.flush(x) if ftz else x
            return x ^ 1 << top if flip else x & ~(1 << top)

        for tail in ("", ".ftz")[: 2 if kind == "f32" else 1]:
            for name in ("abs", "neg"):
                made.append(
                    Case(
                        f"{name}{tail}.{kind}", (kind,), (kind,),
                        lambda a, k=kind, f=bool(tail), n=name, s=sign: s(a, k, f, n == "neg"),
                    )
                )  # fmt: skip
        made.append(
            Case(
                f"copysign.{kind}", (kind,), (kind, kind),
                lambda a, b, t=top: b & ~(1 << t) | a >> t << t,
            )
        )  # fmt: skip
        tests: dict[str, Callable[[int, str], bool]] = {
            "finite": lambda a, k: ieee.finite(ieee.decode(a, k)),
            "infinite": lambda a, k: ieee.decode(a, k) in ("inf", "-inf"),
            "number": lambda a, k: not ieee.is_nan(a, k),
            "notanumber": ieee.is_nan,
            # Zero counts as normal: measured on an H200.
            "normal": lambda a, k: ieee.finite(ieee.decode(a, k)) and not subnormal(a, k),
            "subnormal": lambda a, k: subnormal(a, k),
        }
        for name, test in tests.items():
            label = f"testp.{name}.{kind}"
            made.append(Case(label, ("pred",), (kind,), lambda a, k=kind, t=test: int(t(a, k))))
    return made


def subnormal(a: int, kind: str) -> bool:
    return not ieee.is_zero(ieee.decode(a, kind)) and ieee.flush(a, kind) != a


# -- approximations -------------------------------------------------------------


@dataclass(frozen=True)
class Near:
    """A number, and how far from it a result may lie."""

    value: Fraction
    tolerance: Fraction


ANY = "anything"


def near(kind: str) -> Callable[[int, Any], bool]:
    def same(found: int, wanted: Any) -> bool:
        if wanted == ANY:
            return True
        if isinstance(wanted, int):
            return found == wanted
        n = ieee.decode(found, kind)
        return ieee.finite(n) and abs(ieee.value_of(n) - wanted.value) <= wanted.tolerance

    return same


def as_float(x: int, kind: str) -> float:
    pack, unpack = {"f32": ("<I", "<f"), "f64": ("<Q", "<d")}[kind]
    return struct.unpack(unpack, struct.pack(pack, x))[0]


def ulp(value: Fraction, kind: str) -> Fraction:
    digits, bias = ieee.FORMATS[kind]
    power = max(ieee.floor_log2(abs(value)) if value else -bias, 1 - bias) - digits + 1
    return Fraction(1 << power) if power >= 0 else Fraction(1, 1 << -power)


def bounded(value: Fraction, relative: float, kind: str = "f32") -> Any:
    """Relative error; half an ulp more where that is coarser (subnormal results)."""
    edge = Fraction(1 << ieee.FORMATS[kind][1] + 1)
    if abs(value) >= edge * (1 - Fraction(1, 1 << 20)):
        return ANY if abs(value) < edge else ieee.infinity(kind, int(value < 0))
    return Near(value, max(abs(value) * Fraction(relative), ulp(value, kind)))


def approximate(
    specials: dict[str, int | str], exact: Callable[[float, Fraction], Any], kind: str, ftz: bool
) -> Callable[[int], Any]:
    """A model: given results for special operands, else ``exact``."""

    def model(a: int) -> Any:
        if ftz:
            a = ieee.flush(a, kind)
        n = ieee.decode(a, kind)
        if n == "nan":
            return a | QUIET if kind == "f64" else NAN[kind]
        key = n if isinstance(n, str) else "0" if n == 0 else "negative" if n < 0 else ""
        if key in specials:
            return specials[key]
        return exact(as_float(a, kind), ieee.value_of(n))

    return model


INF, NEG, ONE, NEG_ZERO = 0x7F800000, 0x80000000, 0x3F800000, 0x80000000
NEG_INF = INF | NEG
Q = NAN["f32"]


def sine(fn: Callable[[float], float]) -> Callable[[float, Fraction], Any]:
    def exact(x: float, _: Fraction) -> Any:
        # PTX ISA: 2**-20.5 within two pi, 2**-14.7 within a hundred; beyond, no promise.
        if abs(x) > 100 * math.pi:
            return ANY
        limit = 2.0**-20.5 if abs(x) <= 2 * math.pi else 2.0**-14.7
        return Near(Fraction(fn(x)), Fraction(limit))

    return exact


def log(x: float, _: Fraction) -> Any:
    value = Fraction(math.log2(x))
    limit = Fraction(2.0**-22)
    return Near(value, limit if 0.5 < x < 2 else max(abs(value), Fraction(1)) * limit)


def power(x: float, _: Fraction) -> Any:
    if x >= 128:
        return INF
    if x < -160:
        return 0
    return bounded(Fraction(math.exp2(x)), 2.0**-22)


UNARY: dict[str, tuple[dict[str, int | str], Callable[[float, Fraction], Any]]] = {
    "rcp": (
        {"0": INF, "-0": NEG_INF, "inf": 0, "-inf": NEG_ZERO},
        lambda x, n: bounded(1 / n, 2.0**-23),
    ),
    "sqrt": (
        {"0": 0, "-0": NEG_ZERO, "inf": INF, "-inf": Q, "negative": Q},
        lambda x, n: bounded(Fraction(math.sqrt(x)), 2.0**-23),
    ),
    "rsqrt": (
        {"0": INF, "-0": NEG_INF, "inf": 0, "-inf": Q, "negative": Q},
        lambda x, n: bounded(Fraction(1 / math.sqrt(x)), 2.0**-22.9),
    ),
    "ex2": ({"0": ONE, "-0": ONE, "inf": INF, "-inf": 0}, power),
    "lg2": ({"0": NEG_INF, "-0": NEG_INF, "inf": INF, "-inf": Q, "negative": Q}, log),
    "sin": ({"0": 0, "-0": NEG_ZERO, "inf": Q, "-inf": Q}, sine(math.sin)),
    "cos": ({"0": ONE, "-0": ONE, "inf": Q, "-inf": Q}, sine(math.cos)),
    "tanh": (
        {"0": 0, "-0": NEG_ZERO, "inf": ONE, "-inf": ONE | NEG},
        lambda x, n: bounded(Fraction(math.tanh(x)), 2.0**-11),
    ),
}


def quotient(full: bool, ftz: bool) -> Callable[[int, int], Any]:
    def model(a: int, b: int) -> Any:
        if ftz:
            a, b = ieee.flush(a), ieee.flush(b)
        x, y = ieee.decode(a, "f32"), ieee.decode(b, "f32")
        n = div(x, y, "rn")
        if not full and ieee.finite(y) and abs(ieee.value_of(y)) > 1 << 126:
            # PTX ISA: the reciprocal of such a number is 0.
            n = mul(x, signed(ieee.ZERO, ieee.sign_of(y)), "rn")
        if not isinstance(n, Fraction) or n == 0:
            return finish(n, "f32", "rn", ftz, False)
        if not full and abs(ieee.value_of(y)) < Fraction(1, 1 << 126):
            return ANY
        if ftz and abs(n) < Fraction(1, 1 << 125):
            # 2 ulp about the threshold may be flushed or not.
            return Near(ieee.ZERO, Fraction(1, 1 << 125))
        wanted = bounded(n, 2.0**-22)
        return Near(n, 2 * ulp(n, "f32")) if isinstance(wanted, Near) else wanted

    return model


def approximations() -> list[Case]:
    made = []
    same = near("f32")
    for name, (specials, exact) in UNARY.items():
        tails = ("",) if name == "tanh" else ("", ".ftz")
        for tail in tails:
            model = approximate(specials, exact, "f32", bool(tail))
            if tail:
                model = flushed(model)
            label = f"{name}.approx{tail}.f32"
            made.append(Case(label, ("f32",), ("f32",), model, random=1500, same=same))
    for tail in (".approx", ".approx.ftz", ".full", ".full.ftz"):
        model = quotient("full" in tail, "ftz" in tail)
        made.append(Case(f"div{tail}.f32", ("f32",), ("f32",) * 2, model, same=same))
    return made


def flushed(model: Callable[[int], Any]) -> Callable[[int], Any]:
    """Of a result that may be subnormal, zero is right under ``.ftz``."""

    def apply(a: int) -> Any:
        wanted = model(a)
        if isinstance(wanted, Near) and abs(wanted.value) < Fraction(1, 1 << 126):
            return int(wanted.value < 0) << 31
        return wanted

    return apply


CASES = [*arithmetic(), *selection(), *approximations()]
COVERED = covered(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_floating(case: Case) -> None:
    check(case)


def test_models_know_when_a_number_is_tiny() -> None:
    least = Fraction(1, 1 << 126)
    near_it = least * (1 - Fraction(1, 1 << 26))
    assert not tiny(least, "rn")
    assert not tiny(near_it, "rn")
    assert tiny(near_it, "rz")
    assert tiny(near_it, "rm")
    assert not tiny(near_it, "rp")
    assert not tiny(-near_it, "rm")
    assert tiny(least * (1 - Fraction(1, 1 << 24)), "rn")
    assert tiny(least / 2 * (1 - Fraction(1, 1 << 40)), "rn")
