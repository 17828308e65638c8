"""Floating point of few bits against all its numbers as fractions."""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from tests.simulator.isa.cases import EDGES, Batch, Case, batches
from tests.simulator.isa.floats import FORMATS, Format
from tests.simulator.isa.harness import check

F16, BF16, F32 = FORMATS["f16"], FORMATS["bf16"], FORMATS["f32"]


@dataclass(frozen=True)
class Small:
    """A type of few bits; ``most``: the code of its largest number, ``nan``: what NaN becomes."""

    bits: int
    fraction: int
    most: int
    nan: int

    @functools.cached_property
    def numbers(self) -> list[Fraction]:
        """By code, the numbers that are not negative."""
        bias = (1 << (self.bits - 2 - self.fraction)) - 1
        found = []
        for code in range(self.most + 1):
            exponent, whole = divmod(code, 1 << self.fraction)
            whole += (exponent > 0) << self.fraction
            found.append(whole * Fraction(2) ** (max(exponent, 1) - bias - self.fraction))
        return found

    def narrow(self, f: Format, x: int, relu: bool = False) -> int:
        """The nearest number, the even one of two; the largest for what is beyond it."""
        if f.is_nan(x):
            return self.nan
        if f.negative(x) and relu:
            return 0
        n, sign = self.numbers, f.negative(x) << (self.bits - 1)
        if f.is_inf(x) or abs(f.number(x)) >= n[-1]:
            return self.most | sign
        size = abs(f.number(x))
        above = bisect.bisect_right(n, size)
        low, high = size - n[above - 1], n[above] - size
        return (above if high < low or (high == low and above % 2 == 0) else above - 1) | sign

    def widen(self, x: int, relu: bool = False) -> int:
        """As f16, exactly."""
        sign, code = divmod(x, 1 << (self.bits - 1))
        if code > self.most:
            infinite = self.fraction == 2 and code == self.most + 1
            return F16.inf | sign << 15 if infinite and not (sign and relu) else (
                0 if infinite else F16.nan)  # fmt: skip
        if sign and relu:
            return 0
        n = self.numbers[code]
        return (F16.encode(n.numerator, 0, "rn", n.denominator) if n else 0) | sign << 15


SMALL = {
    "e4m3": Small(8, 3, 0x7E, 0x7F), "e5m2": Small(8, 2, 0x7B, 0x7F),
    "e2m3": Small(6, 3, 0x1F, 0x1F), "e3m2": Small(6, 2, 0x1F, 0x1F), "e2m1": Small(4, 1, 7, 7),
}  # fmt: skip
"""Those below 8 bits are of later GPUs: not seen on hardware."""


def around(small: Small) -> tuple[int, ...]:
    """f32 in the middle of two numbers, and next to it."""
    n = small.numbers
    middles = [(a + b) / 2 for a, b in itertools.pairwise(n)] + [n[-1] * 33 / 32]
    bits = [F32.encode(x.numerator, 0, "rn", x.denominator) for x in middles]
    return tuple(x for b in bits for x in (b - 1, b, b + 1, b | 1 << 31))


def conversions(t: str, small: Small) -> list[Case]:
    """Of two numbers each: the first of two f32 is the upper one."""
    narrow, widen, up = small.narrow, small.widen, max(small.bits, 8) if small.bits > 4 else 4
    every, target = 2 ** min(small.bits, up) - 1, 90 if small.bits == 8 else 100
    cases: list[Case] = []

    def add(name: str, out: str, ins: tuple[str, ...], model: Callable[..., int],
            **more: Any) -> None:  # fmt: skip
        code, seen = "", model
        if up == 4 and name.endswith(t + "x2"):  # a pair of e2m1 is a register of 8 bits
            code = f"{{{{ .reg .b8 %x, %y; mov.b16 {{{{%x, %y}}}}, {{v0}}; {name} {{o0}}, %x; }}}}"
        elif up == 4:
            sources = ", ".join(f"{{v{i}}}" for i in range(len(ins)))
            code = f"{{{{ .reg .b8 %x; {name} %x, {sources}; mov.b16 {{o0}}, {{{{%x, %x}}}}; }}}}"
            seen = lambda *given: model(*given) * 257  # noqa: E731
        cases.append(Case(name, (out,), ins, seen, code=code, target=target, **more))

    for relu in (False, True):
        dot = ".relu" * relu
        singles: Callable[..., int] = lambda a, b, r=relu: (  # noqa: E731
            narrow(F32, a, r) << up | narrow(F32, b, r)
        )
        halves: Callable[..., int] = lambda a, r=relu: (  # noqa: E731
            narrow(F16, a >> 16, r) << up | narrow(F16, a & 0xFFFF, r)
        )
        back: Callable[..., int] = lambda a, r=relu: (  # noqa: E731
            widen(a >> up & every, r) << 16 | widen(a & every, r)
        )
        edges = ((0, (*EDGES["f32"], *around(small))), (1, tuple(EDGES["f32"])))
        some = tuple(x << 16 | 65535 - x for x in range(0, 65536, 7))
        codes = tuple(range(0, 65536, 257))
        add(f"cvt.rn.satfinite{dot}.{t}x2.f32", "b16", ("f32",) * 2, singles, edges=edges)
        if small.bits != 6:
            add(f"cvt.rn.satfinite{dot}.{t}x2.f16x2", "b16", ("f16x2",), halves,
                edges=((0, some),), most=10_000)  # fmt: skip
        add(f"cvt.rn{dot}.f16x2.{t}x2", "f16x2", ("b16",), back, edges=((0, codes),))
    return cases


def powers() -> list[Case]:
    """ue8m0: a power of two, the largest below a size or the least above it; 255 is NaN."""
    powers = [Fraction(2) ** (code - 127) for code in range(255)]

    def narrow(f: Format, x: int, up: bool, finite: bool) -> int:
        if f.is_nan(x):
            return 255
        if f.is_inf(x):
            return 255 - finite
        size = abs(f.number(x))
        if up:
            return min(bisect.bisect_left(powers, size), 255 - finite)
        return max(bisect.bisect_right(powers, size) - 1, 0)

    cases = []
    for up, finite in itertools.product((False, True), repeat=2):
        name = f"cvt.{'rp' if up else 'rz'}{'.satfinite' * finite}.ue8m0x2"
        one = functools.partial(narrow, up=up, finite=finite)
        singles: Callable[..., int] = lambda a, b, one=one: one(F32, a) << 8 | one(F32, b)  # noqa: E731
        halves: Callable[..., int] = lambda a, one=one: (  # noqa: E731
            one(BF16, a >> 16) << 8 | one(BF16, a & 0xFFFF)
        )
        near = tuple(code << 23 | low for code in range(256) for low in (0, 1, 0x400000, 0x7FFFFF))
        edges = ((0, (*near, 0x400001, 0x3FFFFF)), (1, tuple(EDGES["f32"])))
        cases += [
            Case(f"{name}.f32", ("b16",), ("f32",) * 2, singles, edges=edges, target=100),
            Case(f"{name}.bf16x2", ("b16",), ("bf16x2",), halves, target=100),
        ]

    def widen(code: int) -> int:
        return BF16.nan if code == 255 else BF16.encode(1, code - 127)

    back: Callable[..., int] = lambda a: widen(a >> 8) << 16 | widen(a & 0xFF)  # noqa: E731
    codes = tuple(range(0, 65536, 257))
    edges = ((0, codes),)
    name = "cvt.rn.bf16x2.ue8m0x2"
    return [*cases, Case(name, ("bf16x2",), ("b16",), back, edges=edges, target=100)]


CASES = [case for t, small in SMALL.items() for case in conversions(t, small)] + powers()


@pytest.mark.slow_but(
    "cvt.rn.f16x2.e2m3x2-to-cvt.rn.bf16x2.ue8m0x2",
    "cvt.rn.f16x2.e4m3x2-to-cvt.rn.relu.f16x2.e5m2x2",
    "cvt.rz.ue8m0x2.bf16x2-to-cvt.rp.satfinite.ue8m0x2.bf16x2",
)
@pytest.mark.parametrize("batch", batches(CASES), ids=str)
def test_small(batch: Batch) -> None:
    check(batch)
