"""16-bit floating point, single and in pairs, against exact integers."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tests.simulator.isa.cases import EDGES, Batch, Case, batches
from tests.simulator.isa.floats import FORMATS, ORDERED, Format, Near
from tests.simulator.isa.harness import check
from tests.studies.approximate import within

HALVES = ("f16", "bf16")
COMPARISONS = (*ORDERED, *(f"{name}u" for name in ORDERED), "num", "nan")


def pairs(fn: Callable[..., int]) -> Callable[..., int]:
    """A function of halves on both halves of words."""

    def model(*words: int) -> int:
        low = fn(*(w & 0xFFFF for w in words))
        return low | fn(*(w >> 16 for w in words)) << 16

    return model


def both(name: str, t: str, arity: int, fn: Callable[..., int], **more: Any) -> list[Case]:
    """The case on one number and on a pair."""
    return [
        Case(f"{name}.{t}", (t,), (t,) * arity, fn, **more),
        Case(f"{name}.{t}x2", (f"{t}x2",), (f"{t}x2",) * arity, pairs(fn), **more),
    ]


def relu(f: Format, x: int) -> int:
    return 0 if f.negative(x) and not f.is_nan(x) else x


def arithmetic(t: str) -> list[Case]:
    f = FORMATS[t]
    basic: dict[str, tuple[int, Callable[..., int]]] = {
        "add": (2, f.add),
        "sub": (2, lambda a, b: f.add(a, b ^ f.sign_bit)),
        "mul": (2, f.multiply),
        "fma.rn": (3, f.multiply_add),
    }
    cases = []
    for name, (arity, fn) in basic.items():
        rounding = "" if "." in name else ".rn"
        cases += both(name + rounding, t, arity, fn)
        if t == "f16":
            flushed = lambda *x, fn=fn: f.flush(fn(*map(f.flush, x)))  # noqa: E731
            cases += both(f"{name}{rounding}.ftz", t, arity, flushed)
            cases += both(f"{name}{rounding}.sat", t, arity, lambda *x, fn=fn: f.saturate(fn(*x)))
    cases += both("fma.rn.relu", t, 3, lambda *x: relu(f, f.multiply_add(*x)))
    cases += both("neg", t, 1, lambda a: f.nan if f.is_nan(a) else a ^ f.sign_bit)
    cases += both("abs", t, 1, lambda a: f.nan if f.is_nan(a) else f.magnitude(a))
    for name in ("min", "max"):
        for nan in ("", ".NaN"):
            pick = lambda a, b, n=name, p=bool(nan): f.extreme(n == "min", a, b, p)  # noqa: E731
            cases += both(name + nan, t, 2, pick)

            def signed(a: int, b: int, pick: Callable[[int, int], int] = pick) -> int:
                result = pick(f.magnitude(a), f.magnitude(b))
                return result if f.is_nan(result) else result | (a ^ b) & f.sign_bit

            cases += both(f"{name}{nan}.xorsign.abs", t, 2, signed)
    if t == "f16":
        low = lambda a, b: f.flush(f.extreme(True, f.flush(a), f.flush(b)))  # noqa: E731
        cases += both("min.ftz", t, 2, low)
    return cases


def comparisons(t: str) -> list[Case]:
    f = FORMATS[t]
    cases = []
    for name in COMPARISONS:
        compare = lambda a, b, n=name: f.compare(n, a, b)  # noqa: E731
        cases.append(Case(f"setp.{name}.{t}", ("pred",), (t, t), compare))

        def two(a: int, b: int, compare: Callable[..., bool] = compare) -> tuple[bool, bool]:
            return compare(a & 0xFFFF, b & 0xFFFF), compare(a >> 16, b >> 16)

        cases.append(Case(f"setp.{name}.{t}x2", ("pred",) * 2, (f"{t}x2",) * 2, two))
        ones = lambda a, b, c=compare: -int(c(a, b))  # noqa: E731
        cases.append(Case(f"set.{name}.u32.{t}", ("u32",), (t, t), ones))
        one = lambda a, b, c=compare: f.one if c(a, b) else 0  # noqa: E731
        for kind, model in ((t, one), (f"{t}x2", pairs(one))):
            cases.append(Case(f"set.{name}.{kind}.{kind}", (kind,), (kind, kind), model))
        pair = f"{t}x2"
        mask = pairs(lambda a, b, c=compare: 0xFFFF * c(a, b))
        cases.append(Case(f"set.{name}.u32.{pair}", ("u32",), (pair, pair), mask))
        unlike = lambda a, b, p, mask=mask: mask(a, b) ^ p * 0xFFFFFFFF  # noqa: E731
        for kind, true in (("s32", 0xFFFFFFFF), (pair, f.one << 16 | f.one)):
            model = lambda a, b, p, true=true, unlike=unlike: unlike(a, b, p) & true  # noqa: E731
            label = f"set.{name}.xor.{kind}.{pair}"
            cases.append(Case(label, (kind,), (pair, pair, "pred"), model))
    if t == "f16":

        def masked(a: int, b: int, c: bool) -> tuple[bool, bool]:
            less = f.compare("lt", f.flush(a & 0xFFFF), f.flush(b & 0xFFFF))
            more = f.compare("lt", f.flush(a >> 16), f.flush(b >> 16))
            return less and c, more and c

        code = "setp.lt.and.ftz.f16x2 {o0}|{o1}, {v0}, {v1}, {v2};"
        cases.append(
            Case("setp.lt.and.ftz.f16x2", ("pred",) * 2, ("f16x2", "f16x2", "pred"), masked,
                 code=code)
        )  # fmt: skip
        flat = lambda a, b: f.compare("lt", f.flush(a), f.flush(b))  # noqa: E731
        cases.append(Case("setp.lt.ftz.f16", ("pred",), ("f16", "f16"), flat))
    return cases


def conversions() -> list[Case]:
    f32, cases = FORMATS["f32"], []
    singles = (
        *EDGES["f32"],
        0x38800000, 0x387FE000, 0x387FF000, 0x33000001, 0x33C00000, 0x477FEFFF, 0x477FF000,
        0x477FE000, 0xC77FF001, 0x3F808000, 0x3F818000, 0x3F808001, 0x7F7F7FFF, 0x7F7F8000,
        0x00008000, 0x00018000, 0x00008001, 0x3F801000, 0x3F803000, 0x3F801001,
    )  # fmt: skip
    for t in HALVES:
        f = FORMATS[t]
        cases.append(
            Case(f"cvt.f32.{t}", ("f32",), (t,),
                 lambda a, t=t, f=f: a << 16 if t == "bf16" else f.convert(a, f32))
        )  # fmt: skip
        for mode in ("rn", "rz"):
            to = lambda a, f=f, m=mode: f32.convert(a, f, m)  # noqa: E731
            plus = lambda a, f=f, to=to: relu(f, to(a))  # noqa: E731
            e = ((0, singles),)
            cases.append(Case(f"cvt.{mode}.{t}.f32", (t,), ("f32",), to, edges=e))
            cases.append(Case(f"cvt.{mode}.relu.{t}.f32", (t,), ("f32",), plus, edges=e))
            for name, one in ((mode, to), (f"{mode}.relu", plus)):
                pack = lambda a, b, one=one: one(a) << 16 | one(b)  # noqa: E731
                e2 = ((0, singles), (1, singles))
                cases.append(
                    Case(f"cvt.{name}.{t}x2.f32", (f"{t}x2",), ("f32",) * 2, pack, edges=e2)
                )
    for mode in ("rn", "rz", "rna"):

        def tf32(x: int, mode: str = mode) -> int:
            if f32.is_nan(x):  # measured on an H200
                return x & ~0x1FFF if mode == "rna" else f32.nan & ~0x1FFF
            if f32.is_inf(x):
                return x
            up = {"rna": 0x1000, "rz": 0, "rn": 0xFFF + (x >> 13 & 1)}[mode]
            return (x + up) & ~0x1FFF

        cases.append(Case(f"cvt.{mode}.tf32.f32", ("b32",), ("f32",), tf32, edges=((0, singles),)))
    for mode in ("rn", "rz"):

        def clamped(x: int, mode: str = mode) -> int:
            if f32.is_nan(x):
                return f32.nan & ~0x1FFF
            up = {"rz": 0, "rn": 0xFFF + (x >> 13 & 1)}[mode]
            return 0 if x >> 31 else x if f32.is_inf(x) else (x + up) & ~0x1FFF

        name = f"cvt.{mode}.relu.tf32.f32"
        cases.append(Case(name, ("b32",), ("f32",), clamped, edges=((0, singles),)))
    cases += wide_conversions()
    return cases


def wide_conversions() -> list[Case]:
    """Between bf16 and what is neither f32 nor bf16 (sm_90)."""
    bf16, cases = FORMATS["bf16"], []
    f64 = FORMATS["f64"]

    def narrowed(a: int) -> int:
        if not f64.is_nan(a):
            return f64.convert(a, bf16)
        return a >> 48 & 0x8000 | 0x7FC0 | a >> 45 & 0x7F  # sign and payload stay (H200)

    cases.append(Case("cvt.rn.bf16.f64", ("bf16",), ("f64",), narrowed))
    f16 = FORMATS["f16"]
    cases.append(Case("cvt.rn.bf16.f16", ("bf16",), ("f16",), lambda a: f16.convert(a, bf16)))
    cases.append(Case("cvt.rn.f16.bf16", ("f16",), ("bf16",), lambda a: bf16.convert(a, f16)))
    for t in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
        byte = t in ("s8", "u8")  # ptxas takes an 8-bit register only
        for mode in ("rn", "rz", "rm", "rp"):

            def number(a: int, mode: str = mode) -> int:
                return bf16.encode(a, 0, mode) if a else 0

            name = f"cvt.{mode}.bf16.{t}"
            code = f"{{{{ .reg .b8 %b; cvt.{t}.{t[0]}16 %b, {{v0}}; {name} {{o0}}, %b; }}}}"
            cases.append(Case(name, ("bf16",), (t,), number, code=code if byte else ""))
        low, high = (0, 2 ** int(t[1:]) - 1)
        if t[0] == "s":
            low, high = -(high // 2) - 1, high // 2
        for mode in ("rni", "rzi", "rmi", "rpi"):

            def whole(
                a: int, mode: str = mode, low: int = low, high: int = high, t: str = t
            ) -> int:
                if bf16.is_nan(a):
                    return 1 << 63 if t[1:] == "64" else 0
                if bf16.is_inf(a):
                    return low if bf16.negative(a) else high
                down, rest = divmod(bf16.value(a), 1 << -bf16.lowest)
                half = 1 << (-bf16.lowest - 1)
                up = {
                    "rni": rest > half or (rest == half and down & 1),
                    "rzi": rest and down < 0, "rmi": False, "rpi": rest > 0,
                }[mode]  # fmt: skip
                return min(max(down + bool(up), low), high)

            name = f"cvt.{mode}.{t}.bf16"
            code = f"{{{{ .reg .b8 %b; {name} %b, {{v0}}; cvt.{t[0]}32.{t} {{o0}}, %b; }}}}"
            cases.append(Case(name, (t,), ("bf16",), whole, code=code if byte else ""))
    return cases


def approximations() -> list[Case]:
    """An H200's, within the bounds that the manual states."""
    cases = []
    power = lambda x: 2.0 ** min(x, 1000)  # noqa: E731
    bounds: dict[tuple[str, str], tuple[Callable[[float], float], float, float]] = {
        # (relative, absolute)
        ("ex2.approx", "f16"): (power, 2**-9.9, 2**-24),
        ("ex2.approx.ftz", "bf16"): (power, 2**-7, 2**-133),
        ("tanh.approx", "f16"): (math.tanh, 0, 2**-10.987),
        # The manual says 2**-8; an H200's worst of all 65,536 is 2**-7.012.
        ("tanh.approx", "bf16"): (math.tanh, 2**-7, 2**-133),
    }
    for (name, t), (exact, relative, absolute) in bounds.items():

        def near(
            x: int, f: Format = FORMATS[t], exact: Callable[[float], float] = exact,
            relative: float = relative, absolute: float = absolute,
        ) -> Near | int:  # fmt: skip
            if f.is_nan(x):
                return f.nan
            sign = -1 if f.negative(x) else 1
            n = exact(sign * math.inf if f.is_inf(x) else float(f.number(x)))
            wanted = Fraction(n) if math.isfinite(n) else f.number(f.inf - 1) * 4
            return Near(f, wanted, max(Fraction(relative) * abs(wanted), Fraction(absolute)))

        model = within(f"{name}.{t}", near)
        cases.append(Case(f"{name}.{t}", (t,), (t,), model))
        cases.append(Case(f"{name}.{t}x2", (f"{t}x2",), (f"{t}x2",), pairs(model)))
    return cases


CASES = [c for t in HALVES for c in arithmetic(t) + comparisons(t)]
CASES += conversions() + approximations()


@pytest.mark.slow_cases(
    "add.rn.bf16-to-set.nan.bf16.bf16", "add.rn.bf16x2-to-set.nan.u32.bf16x2",
    "add.rn.f16-to-setp.lt.ftz.f16", "add.rn.f16x2-to-set.nan.u32.f16x2",
    "cvt.rn.f16x2.f32-to-cvt.rz.relu.bf16x2.f32", "fma.rn.f16x2-to-fma.rn.relu.f16x2",
    "set.eq.xor.s32.bf16x2-to-set.nan.xor.bf16x2.bf16x2",
    "set.eq.xor.s32.f16x2-to-setp.lt.and.ftz.f16x2",
)  # fmt: skip
@pytest.mark.parametrize("batch", batches(CASES), ids=str)
def test_half(batch: Batch) -> None:
    check(batch)
