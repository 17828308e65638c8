"""Comparison, selection and moves against Python's."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.simulator.isa.cases import Batch, Case, batches
from tests.simulator.isa.floats import FORMATS, ORDERED
from tests.simulator.isa.harness import check

INTEGERS = ("s16", "u16", "s32", "u32", "s64", "u64")
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
FLOAT_NAMES = (*ORDERED, *(f"{name}u" for name in ORDERED), "num", "nan")
JOINS: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda p, c: p and c, "or": lambda p, c: p or c, "xor": lambda p, c: p != c,
}  # fmt: skip
Comparison = tuple[str, str, Callable[[int, int], bool]]


def comparisons() -> list[Comparison]:
    """Name, type, meaning."""
    found: list[Comparison] = []
    for t in INTEGERS:
        found += [(name, t, fn) for name, fn in ORDERED.items()]
        if t[0] == "u":
            found += [(name, t, ORDERED[same]) for name, same in UNSIGNED.items()]
    for t in ("b16", "b32", "b64"):
        found += [(name, t, ORDERED[name]) for name in ("eq", "ne")]
    for t in ("f32", "f64"):
        f = FORMATS[t]
        found += [(name, t, lambda a, b, f=f, n=name: f.compare(n, a, b)) for name in FLOAT_NAMES]
    f = FORMATS["f32"]
    for name in FLOAT_NAMES:
        flat = lambda a, b, n=name: f.compare(n, f.flush(a), f.flush(b))  # noqa: E731
        found.append((f"{name}.ftz", "f32", flat))
    return found


def predicates() -> list[Case]:
    cases = []
    few: dict[str, Any] = {"most": 300, "drawn": 50}
    for name, t, fn in comparisons():
        cases.append(Case(f"setp.{name}.{t}", ("pred",), (t, t), fn))
        both = lambda a, b, fn=fn: (fn(a, b), not fn(a, b))  # noqa: E731
        cases.append(Case(f"setp.{name}.{t}", ("pred", "pred"), (t, t), both, **few))
        for target, true in (("u32", 0xFFFFFFFF), ("s32", -1), ("f32", 0x3F800000)):
            number = lambda a, b, fn=fn, true=true: true if fn(a, b) else 0  # noqa: E731
            cases.append(Case(f"set.{name}.{target}.{t}", (target,), (t, t), number, **few))
        for join, meet in JOINS.items():

            def two(
                a: int, b: int, c: bool, fn: Callable[..., bool] = fn,
                meet: Callable[..., bool] = meet,
            ) -> tuple[bool, bool]:  # fmt: skip
                return meet(fn(a, b), c), meet(not fn(a, b), c)

            one = lambda a, b, c, two=two: two(a, b, c)[0]  # noqa: E731
            inverse = lambda a, b, c, one=one: one(a, b, not c)  # noqa: E731
            number = lambda a, b, c, one=one: -int(one(a, b, c))  # noqa: E731
            label, ins = f"setp.{name}.{join}.{t}", (t, t, "pred")
            if join == "and" or name in ("lt", "ge", "ltu", "eq", "gt", "neu", "hi"):
                cases.append(Case(label, ("pred",) * 2, ins, two, **few))
            if name in ("eq", "gt", "neu", "hi") or (name, t) == ("lt", "s32"):
                code = f"{label} {{o0}}, {{v0}}, {{v1}}, !{{v2}};"
                cases.append(Case(f"{label} !", ("pred",), ins, inverse, code=code, **few))
                cases.append(Case(f"set.{name}.{join}.u32.{t}", ("u32",), ins, number, **few))
    code = "setp.lt.s32 _|{o0}, {v0}, {v1};"
    cases.append(Case("setp sink", ("pred",), ("s32", "s32"), lambda a, b: a >= b, code=code))
    cases.append(Case("setp.lt.s32", ("pred",), ("s32",), lambda a: a < -5, tail=", -5"))
    cases.append(
        Case("setp.gtu.f32", ("pred",), ("f32",), tail=", 0f3F800000",
             model=lambda a: FORMATS["f32"].compare("gtu", a, 0x3F800000))
    )  # fmt: skip
    return cases


def selections() -> list[Case]:
    f, cases = FORMATS["f32"], []
    for t in ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"):
        pick = lambda a, b, p: a if p else b  # noqa: E731
        cases.append(Case(f"selp.{t}", (t,), (t, t, "pred"), pick))
        by_sign = lambda a, b, c: a if c >= 0 else b  # noqa: E731
        cases.append(Case(f"slct.{t}.s32", (t,), (t, t, "s32"), by_sign))
        by_float = lambda a, b, c: a if f.compare("ge", c, 0) else b  # noqa: E731
        cases.append(Case(f"slct.{t}.f32", (t,), (t, t, "f32"), by_float))
        flat = lambda a, b, c: a if f.compare("ge", f.flush(c), 0) else b  # noqa: E731
        cases.append(Case(f"slct.ftz.{t}.f32", (t,), (t, t, "f32"), flat))
        cases.append(Case(f"mov.{t}", (t,), (t,), lambda a: a))
    cases.append(Case("mov.pred", ("pred",), ("pred",), lambda a: a))
    cases.append(Case("selp.u32", ("u32",), ("pred",), lambda p: 7 if p else 9,
                      code="selp.u32 {o0}, 7, 9, {v0};"))  # fmt: skip
    return cases


def vectors() -> list[Case]:
    """Registers packed into a wider one and taken apart."""
    cases = []
    for whole, part in (("b32", "b16"), ("b64", "b32"), ("b64", "f32"), ("b64", "b16")):
        bits = int(part[1:])
        count = int(whole[1:]) // bits
        names = ", ".join(f"{{v{i}}}" for i in range(count))
        join = lambda *v, bits=bits: sum(x << i * bits for i, x in enumerate(v))  # noqa: E731
        code = f"mov.{whole} {{o0}}, {{{{{names}}}}};"
        cases.append(Case(f"mov.{whole} of {part}", (whole,), (part,) * count, join, code=code))
        names = names.replace("v", "o")
        split = lambda a, bits=bits, n=count: tuple(a >> i * bits for i in range(n))  # noqa: E731
        code = f"mov.{whole} {{{{{names}}}}}, {{v0}};"
        cases.append(Case(f"mov.{whole} to {part}", (part,) * count, (whole,), split, code=code))
        for at in range(count):  # one piece is wanted, the others go to the sink
            names = ", ".join("{o0}" if i == at else "_" for i in range(count))
            piece = lambda a, at=at, bits=bits: a >> bits * at  # noqa: E731
            code = f"mov.{whole} {{{{{names}}}}}, {{v0}};"
            label = f"mov.{whole} {part} {at}"
            cases.append(Case(label, (part,), (whole,), piece, code=code))
    swap = "mov.b64 {{%r4, %r5}}, {v0}; mov.b64 {o0}, {{%r5, %r4}};"
    cases.append(Case("mov.b64 swap", ("b64",), ("b64",), lambda a: a >> 32 | a << 32, code=swap))
    return cases


def constants() -> list[Case]:
    cases = []
    for t, text, bits in (
        ("u16", "65535", 65535), ("s16", "-2", -2), ("s16", "-5", -5), ("b32", "0xdeadbeef", None),
        ("u32", "3735928559", 0xDEADBEEF), ("s32", "-1", -1), ("u32", "0b101", 5),
        ("u32", "017", 15), ("u32", "7U", 7), ("u32", "WARP_SZ", 32), ("b64", "-3", -3),
        ("u64", "0xfedcba9876543210", None), ("u64", "9223372036854775808", 1 << 63),
        ("f32", "0fBF800000", 0xBF800000), ("f32", "0f3FC00000", 0x3FC00000),
        ("f32", "0fFFC12345", 0xFFC12345), ("f32", "0.5", 0x3F000000), ("f32", "2.5", 0x40200000),
        ("f64", "0dC000000000000000", 0xC << 60), ("f64", "0dC004000000000000", 0xC004 << 48),
        ("f64", "-1.5", 0xBFF8 << 48), ("f64", "2.5", 0x4004 << 48),
    ):  # fmt: skip
        value = int(text, 16) if bits is None else bits
        cases.append(Case(f"mov.{t}", (t,), (), lambda v=value: v, tail=f" {text}",
                          code=f"mov.{t} {{o0}}, {text};"))  # fmt: skip
    return cases


def guarded() -> list[Case]:
    """A guard keeps the old value where it is false."""
    cases = []
    for sign, model in (("", lambda a, b, p: b if p else a), ("!", lambda a, b, p: a if p else b)):
        code = f"mov.b32 {{o0}}, {{v0}}; @{sign}{{v2}} mov.b32 {{o0}}, {{v1}};"
        label = f"mov.b32 {sign}guard"
        cases.append(Case(label, ("b32",), ("b32", "b32", "pred"), model, code=code))
    return cases


CASES = predicates() + selections() + vectors() + constants() + guarded()


@pytest.mark.slow_cases(
    "setp.eq.and.f32-to-setp.nan.ftz.and.f32", "setp.eq.and.f64-to-setp.nan.and.f64",
    "setp.eq.and.u32-to-setp.hs.and.u32", "setp.eq.b32-to-set.ne.f32.b32",
    "setp.eq.f32-to-mov.b64 of f32", "setp.eq.f32-to-set.ne.ftz.f32.f32",
    "setp.eq.f64-to-set.nan.f32.f64", "setp.eq.u64-to-set.hs.f32.u64",
    "setp.lt.ftz.f32-to-set.nan.ftz.f32.f32",
)  # fmt: skip
@pytest.mark.parametrize("batch", batches(CASES), ids=str)
def test_compare(batch: Batch) -> None:
    check(batch)
