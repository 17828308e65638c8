"""``cvt.rs`` against exact fractions: from the manual, not seen on hardware."""

import itertools
import math
import struct
from fractions import Fraction

import pytest

from tests.simulator.isa.cases import Batch, Case, batches
from tests.simulator.isa.harness import check

SMALL = {"e4m3": (8, 3, 7, 448), "e5m2": (8, 2, 15, 57344), "e2m3": (6, 3, 1, Fraction(15, 2)),
         "e3m2": (6, 2, 3, 28), "e2m1": (4, 1, 1, 6)}  # fmt: skip
"""Bits, those of the fraction, bias, the largest number."""
HALVES = {"f16": (16, 10, 15, 65504), "bf16": (16, 7, 127, Fraction(255 << 120))}


def code(bits: int, kind: tuple, drawn: int, noise: int, relu: bool, finite: bool) -> int:
    """A float, by its bits, as a number of few bits."""
    width, fraction, bias, most = kind
    sign, size = bits >> 31, bits & 0x7FFFFFFF
    if size > 0x7F800000:
        return {8: 0x7F, 6: 0x1F, 4: 7}.get(width, 0x7FFF)
    if sign and relu:
        return 0
    top = sign << width - 1
    ones = (1 << width - 1 - fraction) - 1 << fraction  # infinity's
    if size == 0x7F800000:
        value = Fraction(1 << 200)
    else:
        value = Fraction(struct.unpack("<f", size.to_bytes(4, "little"))[0])
        exponent = max(math.frexp(value)[1] - 1, 1 - bias)
        last = Fraction(2) ** (exponent - fraction)
        units = math.floor(value / last)
        rest = math.floor((value / last - units) * 2**drawn)
        value = (units + (rest + noise >> drawn)) * last
    if value > most:
        if not finite:
            return top | ones
        value = Fraction(most)
    exponent = max(math.frexp(value)[1] - 1, 1 - bias)
    units = value / Fraction(2) ** (exponent - fraction)
    assert units.denominator == 1
    return top | int(units) + (exponent + bias - 1 << fraction if value else 0)


def reverse(bits: int) -> int:
    return int(f"{bits:016b}"[::-1], 2)


def cases() -> list[Case]:
    found = []
    options = {"most": 500, "drawn": 300, "target": 100}
    noise = (0, 1, 0x1FFF1FFF, 0xFFFFFFFF, 0x80008000, 0x12345678, 0x10001000, 0xEFFFEFFF)
    for kind, relu, finite in itertools.product(HALVES, ("", ".relu"), ("", ".satfinite")):
        drawn = 13 if kind == "f16" else 16

        def pair(a: int, b: int, r: int, kind: str = kind, drawn: int = drawn, relu: str = relu,
                 finite: str = finite) -> int:  # fmt: skip
            every = (1 << drawn) - 1
            how = bool(relu), bool(finite)
            high = code(a, HALVES[kind], drawn, r >> 16 & every, *how)
            return high << 16 | code(b, HALVES[kind], drawn, r & every, *how)

        name = f"cvt.rs{relu}{finite}.{kind}x2.f32"
        found.append(Case(name, ("b32",), ("f32", "f32", "b32"), pair, edges=((2, noise),),
                          **options))  # fmt: skip
    for kind, relu in itertools.product(SMALL, ("", ".relu")):
        room = 4 if kind == "e2m1" else 8

        def four(a: int, b: int, e: int, f: int, r: int, kind: str = kind, relu: str = relu,
                 room: int = room) -> int:  # fmt: skip
            high, low = r >> 16, r & 0xFFFF
            parts = (f, low), (e, reverse(low)), (b, high), (a, reverse(high))
            codes = (code(x, SMALL[kind], 16, n, bool(relu), True) for x, n in parts)
            return sum(c << i * room for i, c in enumerate(codes))

        four_of = "{{{v0}, {v1}, {v2}, {v3}}}"
        statement = f"cvt.rs{relu}.satfinite.{kind}x4.f32 {{o0}}, {four_of}, {{v4}};"
        found.append(Case(f"cvt.rs{relu} {kind}", (f"b{4 * room}",), ("f32",) * 4 + ("b32",), four,
                          code=statement, edges=((4, noise),), **options))  # fmt: skip
    return found


CASES = cases()


@pytest.mark.slow_cases("cvt.rs e4m3-to...")
@pytest.mark.parametrize("batch", batches(CASES), ids=str)
def test_stochastic_rounding(batch: Batch) -> None:
    check(batch)
