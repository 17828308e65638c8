"""Comparison, selection and moves."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from . import ieee
from .lanes import Case, bits, check, covered, mask, number

INTEGERS = ("s16", "u16", "s32", "u32", "s64", "u64")
ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
UNSIGNED = {"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
COMBINE: dict[str, Callable[[int, int], int]] = {
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip
FAR = Fraction(1 << 2000)


def key(x: int, kind: str) -> Fraction:
    """A float's place among the numbers; both zeros are 0."""
    n = ieee.decode(x, kind)
    if n in ("inf", "-inf"):
        return FAR if n == "inf" else -FAR
    return ieee.value_of(n)


def compared(name: str, kind: str, ftz: bool = False) -> Callable[[int, int], int]:
    """PTX ISA, "Comparison and Selection Instructions", as a function of bits."""
    if kind[0] == "f":

        def floats(a: int, b: int) -> int:
            if ftz:
                a, b = ieee.flush(a), ieee.flush(b)
            unordered = ieee.is_nan(a, kind) or ieee.is_nan(b, kind)
            if name in ("num", "nan"):
                return int(unordered == (name == "nan"))
            if unordered:
                return int(name.endswith("u"))
            return int(ORDERED[name[:2]](key(a, kind), key(b, kind)))

        return floats
    if name in UNSIGNED:
        return lambda a, b: int(UNSIGNED[name](a, b))
    return lambda a, b: int(ORDERED[name](number(a, kind), number(b, kind)))


def operators(kind: str) -> list[str]:
    if kind[0] == "f":
        return [*ORDERED, *(f"{name}u" for name in ORDERED), "num", "nan"]
    if kind[0] == "b":
        return ["eq", "ne"]
    return [*ORDERED, *(UNSIGNED if kind[0] == "u" else ())]


def set_predicates() -> list[Case]:
    made = []
    for kind in (*INTEGERS, "b16", "b32", "b64", "f32", "f64"):
        for name in operators(kind):
            base = compared(name, kind)
            two = (kind, kind)
            made.append(Case(f"setp.{name}.{kind}", ("pred",), two, base))
            made.append(
                Case(
                    f"setp.{name}.{kind}", ("pred", "pred"), two,
                    lambda a, b, f=base: (f(a, b), 1 - f(a, b)), tail=" p|q", most=300, random=50,
                )
            )  # fmt: skip
            for word in COMBINE if name in ("lt", "ge", "ltu", "eq") else ("and",):
                join = COMBINE[word]
                made.append(
                    Case(
                        f"setp.{name}.{word}.{kind}", ("pred", "pred"), (*two, "pred"),
                        lambda a, b, c, f=base, j=join: (j(f(a, b), c), j(1 - f(a, b), c)),
                        most=300, random=50,
                    )
                )  # fmt: skip
        equal = compared("eq", kind)
        made.append(
            Case(
                f"setp.eq.or.{kind}", ("pred",), (kind, kind, "pred"),
                lambda a, b, c, f=equal: f(a, b) | (1 - c),
                f"setp.eq.or.{kind} {{o}}, {{0}}, {{1}}, !{{2}};", tail=" !c", most=300, random=50,
            )
        )  # fmt: skip
    made += [
        Case(f"setp.{name}.ftz.f32", ("pred",), ("f32", "f32"), compared(name, "f32", True))
        for name in operators("f32")
    ]
    return made


def set_numbers() -> list[Case]:
    made = []
    for kind in ("s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64"):
        for name in operators(kind):
            for target, true in (("u32", mask(32)), ("s32", mask(32)), ("f32", 0x3F800000)):
                base = compared(name, kind)
                made.append(
                    Case(
                        f"set.{name}.{target}.{kind}", (target,), (kind, kind),
                        lambda a, b, f=base, t=true: f(a, b) * t, most=300, random=50,
                    )
                )  # fmt: skip
    for word, join in COMBINE.items():
        base = compared("gt", "f32")
        made.append(
            Case(
                f"set.gt.{word}.u32.f32", ("u32",), ("f32", "f32", "pred"),
                lambda a, b, c, f=base, j=join: j(f(a, b), c) * mask(32),
            )
        )  # fmt: skip
    flushing = compared("ne", "f32", True)
    made.append(
        Case(
            "set.ne.ftz.f32.f32", ("f32",), ("f32", "f32"),
            lambda a, b: flushing(a, b) * 0x3F800000,
        )
    )  # fmt: skip
    return made


def selections() -> list[Case]:
    made = []
    for kind in (*INTEGERS, "b16", "b32", "b64", "f32", "f64"):
        made.append(
            Case(f"selp.{kind}", (kind,), (kind, kind, "pred"), lambda a, b, p: a if p else b)
        )
        made.append(
            Case(
                f"slct.{kind}.s32", (kind,), (kind, kind, "s32"),
                lambda a, b, c: b if c >> 31 else a,
            )
        )  # fmt: skip
        for tail, ftz in (("", False), (".ftz", True)):

            def by_float(a: int, b: int, c: int, ftz: bool = ftz) -> int:
                c = ieee.flush(c) if ftz else c
                return b if ieee.is_nan(c, "f32") or key(c, "f32") < 0 else a

            name = f"slct{tail}.{kind}.f32"
            made.append(Case(name, (kind,), (kind, kind, "f32"), by_float))
    return made


def moves() -> list[Case]:
    made = [
        Case(f"mov.{kind}", (kind,), (kind,), lambda a: a)
        for kind in ("pred", *INTEGERS, "b16", "b32", "b64", "f32", "f64")
    ]
    made += [
        Case(
            f"mov.{kind}", (kind,), (), lambda v=value: v, f"mov.{kind} {{o}}, {text};",
            random=1, tail=f" {text}",
        )
        for kind, text, value in (
            ("u16", "65535", 65535), ("s16", "-2", 65534), ("b32", "0xdeadbeef", 0xDEADBEEF),
            ("s32", "-1", mask(32)), ("u32", "0b101", 5), ("u32", "017", 15), ("u32", "7U", 7),
            ("b64", "-3", mask(64) - 2), ("u64", "0xfedcba9876543210", 0xFEDCBA9876543210),
            ("f32", "0f3FC00000", 0x3FC00000), ("f32", "0fFFC12345", 0xFFC12345),
            ("f64", "0dC004000000000000", 0xC004000000000000), ("f64", "2.5", 0x4004 << 48),
            ("f32", "2.5", 0x40200000), ("u32", "WARP_SZ", 32),
        )
    ]  # fmt: skip
    for whole, part, count in (("b32", "b16", 2), ("b64", "b32", 2), ("b64", "b16", 4)):
        w = bits(part)
        parts = (part,) * count
        listed = ", ".join(f"{{{i}}}" for i in range(count))
        made.append(
            Case(
                f"mov.{whole}", (whole,), parts,
                lambda *a, w=w: sum(x << w * i for i, x in enumerate(a)),
                f"mov.{whole} {{o}}, {{{{{listed}}}}};", tail=f" packs {count}",
            )
        )  # fmt: skip
        for at in range(count):
            # One piece is wanted, the others go to the sink.
            names = ", ".join("{o}" if i == at else "_" for i in range(count))
            made.append(
                Case(
                    f"mov.{whole}", (part,), (whole,),
                    lambda a, w=w, at=at: a >> w * at & mask(w),
                    f"mov.{whole} {{{{{names}}}}}, {{0}};", tail=f" piece {at} of {count}",
                )
            )  # fmt: skip
        if count == 2:
            made.append(
                Case(
                    f"mov.{whole}", parts, (whole,), lambda a, w=w: (a & mask(w), a >> w),
                    f"mov.{whole} {{{{{{o}}, {{q}}}}}}, {{0}};", tail=" unpacks",
                )
            )  # fmt: skip
    floats = Case(
        "mov.b64", ("b64",), ("f32", "f32"), lambda a, b: a | b << 32,
        "mov.b64 {o}, {{{0}, {1}}};", tail=" packs floats",
    )  # fmt: skip
    # A guard keeps the old value where it is false.
    guarded = Case(
        "mov.b32", ("b32",), ("b32", "b32", "pred"), lambda a, b, p: b if p else a,
        "mov.b32 {o}, {0}; @{2} mov.b32 {o}, {1};", tail=" guarded",
    )  # fmt: skip
    refused = Case(
        "mov.b32", ("b32",), ("b32", "b32", "pred"), lambda a, b, p: a if p else b,
        "mov.b32 {o}, {0}; @!{2} mov.b32 {o}, {1};", tail=" guarded by the contrary",
    )  # fmt: skip
    return [*made, floats, guarded, refused]


CASES = [*set_predicates(), *set_numbers(), *selections(), *moves()]
COVERED = covered(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_compare(case: Case) -> None:
    check(case)
