"""Conversions between all integer and floating types, through exact rationals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from . import ieee
from .ieee import tiny
from .lanes import Case, bits, check, covered, edges, mask, number

INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
FLOATS = ("f16", "f32", "f64")
MODES = ("rn", "rz", "rm", "rp")
NAN = {"f16": 0x7FFF, "f32": 0x7FFFFFFF}


def limits(kind: str) -> tuple[int, int]:
    w = bits(kind)
    return (-(1 << (w - 1)), (1 << (w - 1)) - 1) if kind[0] == "s" else (0, mask(w))


def clamped(x: int, kind: str) -> int:
    low, high = limits(kind)
    return min(max(x, low), high)


def register(kind: str) -> str:
    """8-bit results are looked at in a 32-bit register, to which cvt extends them."""
    return f"{kind[0]}32" if bits(kind) == 8 else kind


def to_register(x: int, kind: str) -> int:
    """A value of a type as the bits of that register."""
    return number(x & mask(bits(kind)), kind) & mask(bits(register(kind)))


def between_integers() -> list[Case]:
    made = []
    for target in INTEGERS:
        for source in INTEGERS:
            if target == source:
                continue

            def plain(a: int, t: str = target, s: str = source) -> int:
                return to_register(number(a, s), t)

            def saturated(a: int, t: str = target, s: str = source) -> int:
                return to_register(clamped(number(a, s), t), t)

            out = (register(target),)
            made.append(Case(f"cvt.{target}.{source}", out, (source,), plain))
            (low, high), (least, most) = limits(target), limits(source)
            if low > least or high < most:  # ptxas refuses .sat that can do nothing
                made.append(Case(f"cvt.sat.{target}.{source}", out, (source,), saturated))
    return made


def integer_to_float(target: str, source: str, mode: str, sat: bool) -> Callable[[int], int]:
    def model(a: int) -> int:
        x = number(a, source)
        if x == 0 or (sat and x < 0):
            return 0
        return ieee.encode(Fraction(min(x, 1) if sat else x), target, mode)

    return model


def float_to_integer(target: str, source: str, mode: str, ftz: bool) -> Callable[[int], int]:
    low, high = limits(target)
    # What an H200 gives for NaN: nothing, or the top bit alone where 64 bits are in play.
    wide = bits(target) == 64 or source == "f64"
    nan = 1 << (bits(target) - 1) if wide else 0

    def model(a: int) -> int:
        n = ieee.decode(ieee.flush(a) if ftz else a, source)
        if n == "nan":
            return to_register(nan, target)
        if n in ("inf", "-inf"):
            return to_register(high if n == "inf" else low, target)
        return to_register(clamped(ieee.integral(ieee.value_of(n), mode[:2]), target), target)

    return model


def nan_of(a: int, target: str, source: str) -> int:
    """f16 and f32 give one NaN; with f64 on a side, sign and high payload bits are kept."""
    if "f64" not in (target, source):
        return NAN[target]
    if target == source:
        return a | 1 << 51
    _, _, _, top_in = ieee.layout(source)
    digits_in, digits_out = ieee.layout(source)[0], ieee.layout(target)[0]
    top = ieee.layout(target)[3]
    fraction = a & mask(digits_in)
    moved = digits_out - digits_in
    fraction = fraction << moved if moved > 0 else fraction >> -moved
    return (a >> top_in) << top | ieee.infinity(target, 0) | fraction | 1 << (digits_out - 1)


def float_to_float(
    target: str, source: str, mode: str = "rn", ftz: bool = False, sat: bool = False
) -> Callable[[int], int]:
    """``mode`` rounds to the format, or to an integer if it ends in i."""

    def model(a: int) -> int:
        if ftz and source == "f32":
            a = ieee.flush(a)
        n = ieee.decode(a, source)
        if n == "nan" and ftz and target == "f64":
            a = NAN["f32"]  # seen on an H200
        if n == "nan":
            return 0 if sat else nan_of(a, target, source)
        negative = ieee.sign_of(n)
        if n in ("inf", "-inf"):
            result = ieee.infinity(target, negative)
        else:
            value = ieee.value_of(n)
            if mode.endswith("i"):
                value = Fraction(ieee.integral(value, mode[:2]))
            if value == 0:
                result = ieee.zero(target, negative)
            else:
                result = ieee.encode(value, target, mode[:2])
            if ftz and target == "f32" and value and tiny(value, mode[:2]):
                result = ieee.zero(target, negative)
        if sat:
            return 0 if negative else min(result, ieee.encode(Fraction(1), target))
        return result

    return model


# Doubles about the midpoints of two f32 or two f16 numbers, and about the ends of integers.
MIDWAY = [
    sign << 63 | (pattern + step & mask(63))
    for sign in (0, 1)
    for pattern in (
        0x3FF0000010000000, 0x3FF0000030000000, 0x36A0000000000000, 0x3690000000000000,
        0x380FFFFFE0000000, 0x380FFFFFF0000000, 0x47EFFFFFF0000000, 0x3FF0020000000000,
        0x3E60000000000000, 0x3F0FF80000000000, 0x40EFFC0000000000, 0x40EFFE0000000000,
        0x405FC00000000000, 0x405FE00000000000, 0x406FE00000000000, 0x40DFFFC000000000,
        0x40DFFFE000000000, 0x40EFFFE000000000, 0x41DFFFFFFFC00000, 0x41E0000000000000,
        0x41EFFFFFFFE00000, 0x43E0000000000000, 0x43F0000000000000,
    )
    for step in (-1, 0, 1)
]  # fmt: skip
MIDWAY_32 = [
    sign << 31 | pattern + step
    for sign in (0, 1)
    for pattern in (
        0x3F801000, 0x3F803000, 0x33000000, 0x33800000, 0x387FE000, 0x387FC000, 0x477FE000,
        0x477FF000, 0x3F000000, 0x3FC00000, 0x40200000, 0x42FE0000, 0x42FF0000, 0x43000000,
        0x437F0000, 0x437F8000, 0x46FFFE00, 0x46FFFF00, 0x477FFF00, 0x4B000001, 0x4EFFFFFF,
        0x4F000000, 0x4F7FFFFF, 0x4F800000, 0x5F000000, 0x5F800000,
    )
    for step in (-1, 0, 1)
]  # fmt: skip
POOLS = {
    "f64": [*edges("f64"), *MIDWAY], "f32": [*edges("f32"), *MIDWAY_32],
    "f16": list(range(0, 1 << 16, 23)) + edges("f16"),
}  # fmt: skip


def wide_integers(kind: str) -> list[int]:
    """Integers at which rounding to 11, 24 or 53 bits is a tie or nearly one."""
    found = set(edges(kind))
    for digits in (11, 24, 53):
        for extra in (1, 2, 9):
            for low in (-1, 0, 1):
                for odd in (0, 1):
                    half = 1 << (extra - 1)
                    x = ((1 << (digits - 1)) + odd << extra) + half + low
                    found |= {x & mask(bits(kind)), -x & mask(bits(kind))}
    return sorted(found)


def floating_cases() -> list[Case]:
    made = []
    for real in FLOATS:
        for integer in INTEGERS:
            for mode in MODES:
                made.append(
                    Case(
                        f"cvt.{mode}.{real}.{integer}", (real,), (integer,),
                        integer_to_float(real, integer, mode, False),
                        values=(wide_integers(integer),),
                    )
                )  # fmt: skip
                if integer in ("s8", "u8"):
                    continue
                model = float_to_integer(integer, real, f"{mode}i", False)
                made.append(
                    Case(
                        f"cvt.{mode}i.{integer}.{real}", (register(integer),), (real,), model,
                        values=(POOLS[real],), most=3000,
                    )
                )  # fmt: skip
        for integer in ("s8", "u8"):
            model = float_to_integer(integer, real, "rzi", False)
            out = (register(integer),)
            values = (POOLS[real],)
            made.append(
                Case(f"cvt.rzi.{integer}.{real}", out, (real,), model, values=values, most=3000)
            )
    for integer in ("s32", "u64"):
        sat = integer_to_float("f32", integer, "rn", True)
        made.append(Case(f"cvt.rn.sat.f32.{integer}", ("f32",), (integer,), sat))
        model = float_to_integer(integer, "f32", "rpi", True)
        name = f"cvt.rpi.ftz.{integer}.f32"
        made.append(Case(name, (integer,), ("f32",), model, values=(POOLS["f32"],)))
    return made


def real_cases() -> list[Case]:
    def pooled(name: str, target: str, source: str, **how: object) -> list[Case]:
        model = float_to_float(target, source, **how)  # type: ignore[arg-type]
        near = Case(
            name, (target,), (source,), model, values=(POOLS[source],), most=3000, random=0,
            tail=" near",
        )  # fmt: skip
        return [near, Case(name, (target,), (source,), model, random=1500)]

    made = []
    for mode in MODES:
        made += pooled(f"cvt.{mode}.f32.f64", "f32", "f64", mode=mode)
        made += pooled(f"cvt.{mode}.f16.f64", "f16", "f64", mode=mode)
        made += pooled(f"cvt.{mode}.sat.f32.f64", "f32", "f64", mode=mode, sat=True)
        made += pooled(f"cvt.{mode}.ftz.f32.f64", "f32", "f64", mode=mode, ftz=True)
        for kind in ("f32", "f64"):
            made += pooled(f"cvt.{mode}i.{kind}.{kind}", kind, kind, mode=f"{mode}i")
        made += pooled(f"cvt.{mode}i.ftz.f32.f32", "f32", "f32", mode=f"{mode}i", ftz=True)
        made += pooled(f"cvt.{mode}.f16.f32", "f16", "f32", mode=mode)
    made += pooled("cvt.rn.ftz.f16.f32", "f16", "f32", ftz=True)
    for target, source in (("f64", "f32"), ("f32", "f16"), ("f64", "f16")):
        made += pooled(f"cvt.{target}.{source}", target, source)
        made += pooled(f"cvt.sat.{target}.{source}", target, source, sat=True)
    made += pooled("cvt.ftz.f64.f32", "f64", "f32", ftz=True)
    made += pooled("cvt.ftz.f32.f16", "f32", "f16", ftz=True)
    made += pooled("cvt.sat.f32.f32", "f32", "f32", sat=True)
    made += pooled("cvt.ftz.sat.f32.f32", "f32", "f32", ftz=True, sat=True)
    made += pooled("cvt.sat.f64.f64", "f64", "f64", sat=True)
    return made


CASES = [*between_integers(), *floating_cases(), *real_cases()]
COVERED = covered(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_convert(case: Case) -> None:
    check(case)
