"""Single and double precision arithmetic, exact; approximations within PTX's bounds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.simulator.isa.approximations import F32, F64, MINUS, QUIET, Operation, approximations
from tests.simulator.isa.cases import Batch, Case, batches
from tests.simulator.isa.floats import FORMATS, Format
from tests.simulator.isa.harness import check

MODES = ("rn", "rz", "rm", "rp")
NAN_ORDER = {1: (0,), 2: (1, 0), 3: (1, 2, 0)}
"""Which operand's NaN a double precision instruction passes on
(tests/simulator/isa/test_nan.py)."""

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


CASES = [*arithmetic(), *selection(), *approximations()]


@pytest.mark.slow_but("min.f32-to-max.NaN.f32", "rcp.rn.f32-to-testp.subnormal.f32")
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
